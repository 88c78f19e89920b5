"""Prior accuracy of an unmeasured MLLM: the mean of the column for a question type."""

from statistics import mean

import pytest

from hybrid.benchmarks.hvsbench import BENCHMARK
from hybrid.benchmarks.hvsbench.metrics import FIELDS, SCANPATH_TASKS
from hybrid.scoring.published import published

COLUMNS = {
    **{task: f"accuracy.{field}" for field, tasks in FIELDS.items() for task in tasks},
    **{task: f"m_dir.{task.lower()}" for task in SCANPATH_TASKS},
}
"""By question type the metric of ours that it counts for; of a scanpath the one that the card leads with."""


def column(metric: str, kind: str) -> list[float]:
    table = [row for row in published("hvsbench") if (row.source, row.split, row.kind) == ("Table 3", "test", kind)]
    return [row.value for row in table if row.metric == metric]


def test_the_means_are_those_of_the_table() -> None:
    means = {task: mean(column(metric, "model")) for task, metric in COLUMNS.items()}
    assert means == pytest.approx(dict(BENCHMARK.card.prior_accuracy.accuracy), abs=5e-5)
    assert means.keys() == BENCHMARK.card.tasks.keys()


def test_a_guessed_scanpath_is_worth_the_row_of_random_guesses() -> None:
    assert {task: column(COLUMNS[task], "chance") for task in SCANPATH_TASKS} == {
        task: [score] for task, score in BENCHMARK.card.prior_accuracy.guessed.items()
    }
