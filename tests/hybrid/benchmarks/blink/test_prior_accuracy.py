"""Prior accuracy of an unmeasured MLLM: the means of the published rows that are named, and of no others."""

from statistics import mean

import pytest

from hybrid.benchmarks.blink import BENCHMARK
from hybrid.scoring.published import published

MODELS = ("GPT-4V", "GPT-4 Turbo", "GPT-4o", "Gemini Pro", "Claude 3 OPUS")
"""The models of the table that are asked through an API."""


def test_the_means_are_those_of_the_test_split() -> None:
    table = [row for row in published("blink") if (row.source, row.split, row.kind) == ("Table 1", "test", "model")]
    models = [row for row in table if row.who in MODELS]
    assert {row.who for row in models} == set(MODELS)
    means = {task: mean(row.value / 100 for row in models if row.metric == task) for task in BENCHMARK.card.tasks}
    # Its labels were corrected since: no printed number is of them.
    del means["Relative_Reflectance"]
    assert means == pytest.approx(dict(BENCHMARK.card.prior_accuracy.accuracy), abs=5e-5)
    assert BENCHMARK.card.prior_accuracy.guessed == {}
