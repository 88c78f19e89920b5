"""Sentences of a conclusion about tasks, and about means over tasks that other counts contradict."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.types import Cell, Metric
from hybrid.scoring.compare import compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.conclusion_limits import _weights
from hybrid.scoring.conclusion_tasks import significant_with_sign
from hybrid.scoring.headline import headline_tables
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, Result
from tests.hybrid.scoring.solvers import letters

UNEVEN = {
    "controller": {"Counting": "r" * 130 + "w" * 170, "Jigsaw": "r" * 36 + "w" * 4, "Relative_Depth": "r" * 10},
    "mllm": {"Counting": "r" * 190 + "w" * 110, "Jigsaw": "rw" * 20, "Relative_Depth": "rrr" + "w" * 7},
}


@pytest.mark.system
def test_a_mean_over_tasks_and_a_count_of_questions_that_disagree(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {**UNEVEN, "specialist": UNEVEN["mllm"]}
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare(compare_paths([run.path]).solvers))}
    words = (
        "+30 points (95% CI 15 to 43) as a mean over tasks, but -11 points (95% CI -16 to -5) over all 350 questions, "
        "176 instead of 213 right."
    )
    assert by_id["gain.uneven"].endswith(words)
    assert by_id["specialists.uneven"].endswith(words)
    assert "worse on Counting (-20 points, -25 to -15; 300 of 350 questions)" in by_id["tasks.shown"]


@pytest.mark.system
def test_a_task_of_one_picture_is_named_as_untested(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {
        "controller": {"Counting": "r" * 40, "Jigsaw": "rw" * 15, "Spatial_Relation": "r" * 9},
        "mllm": {"Counting": "rw" * 20, "Jigsaw": "rw" * 15, "Spatial_Relation": "w" * 9},
    }
    run = synthetic_runs.from_letters(tmp_path / "real", answers)
    questions = [
        replace(question, cluster="one" if question.task == "Spatial_Relation" else question.id)
        for question in run.questions()
    ]
    run.write_questions(questions)
    run.write_manifest({**run.manifest, "files": {}})
    sentences = {sentence.id: sentence.text for sentence in conclusion(compare(compare_paths([run.path]).solvers))}
    untested = "not tested: Spatial_Relation (+100 points, 9 questions); no other single task is shown to be worse"
    assert untested in sentences["tasks.shown"]


def test_a_task_that_differs_by_answering_is_not_better(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {
        "controller": {"Counting": "rw" * 50, "Jigsaw": "r" * 45 + "w" * 5},
        "mllm": {"Counting": "rw" * 25 + "a" * 50, "Jigsaw": "rw" * 25},
    }
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)
    comparison = compare(compare_paths([run.path]).solvers)
    by_id = {sentence.id: sentence.text for sentence in conclusion(comparison)}
    # The marks in the table of tasks agree with the sentence.
    _, tasks = headline_tables(comparison)
    assert {row[0]: row[1][-1] for row in tasks.rows} == {"Counting": " ", "Jigsaw": "+"}
    assert (
        "better on Jigsaw (+40 points, 23 to 56); different, but only with unanswered questions counted, on"
        in by_id["tasks.shown"]
    )
    assert "on Counting (+25 points, 16 to 35; 100 of 150 questions)" in by_id["tasks.shown"]


def test_a_loss_from_answering_fewer_questions_is_not_the_largest_of_those_not_shown(
    synthetic_runs: Any, tmp_path: Path
) -> None:
    answers = {
        "controller": {"Counting": "rw" * 25 + "a" * 50, "Jigsaw": "rw" * 24 + "ww"},
        "mllm": {"Counting": "rw" * 50, "Jigsaw": "rw" * 25},
    }
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare(compare_paths([run.path]).solvers))}
    assert "on Counting (-25 points, -35 to -16; 100 of 150 questions); no other single task" in by_id["tasks.shown"]
    assert "worse (50 questions each; largest loss: Jigsaw (-2 points" in by_id["tasks.shown"]


def test_tasks_are_named_by_the_sign_that_holds_after_adjustment() -> None:
    def of_task(value: float, p_holm: float) -> Result:
        return Result("differences", "difference", FRACTION, value, low=value - 0.05, high=value + 0.05, p_holm=p_holm)

    rows = [
        of_task(*facts) for facts in ((-0.1, 0.01), (0.2, 0.01), (-0.3, 0.01), (-0.4, 0.2), (0.5, 0.2), (0.3, 0.01))
    ]
    assert [row.value for row in significant_with_sign(rows, -1)] == [-0.3, -0.1]
    assert [row.value for row in significant_with_sign(rows, 1)] == [0.3, 0.2]


def test_several_tasks_with_more_weight_than_questions_have_it_each() -> None:
    sizes = {"Counting": 260, "Jigsaw": 30, "Relative_Depth": 12}
    cells = tuple(Cell(task, f"{task}{n}", 1.0, 1.0) for task, size in sizes.items() for n in range(size))
    metric = Metric("accuracy_macro", 1.0, len(cells), "mean_of_ratios", cells)
    (words,) = _weights([metric], "accuracy_macro")
    assert words == (
        "task Relative_Depth has 12 questions, task Jigsaw has 30 questions of 302 and 1/3 of the weight each"
    )


@pytest.mark.system
def test_a_task_without_an_interval_is_named_with_its_difference(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {
        "controller": {"Counting": "rw" * 20, "Jigsaw": "rw" * 20, "Relative_Depth": "w"},
        "mllm": {"Counting": "rw" * 20, "Jigsaw": "rw" * 20, "Relative_Depth": "r"},
    }
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare(compare_paths([run.path]).solvers))}
    assert by_id["tasks.none"] == (
        "Not tested: Relative_Depth (-100 points, 1 question); no other single task is shown to be worse (40 questions "
        "each)."
    )


@pytest.mark.system
def test_a_ranking_that_tasks_of_unequal_size_turn_around_says_so(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {
        "mllm": {"Counting": letters("150r 150w"), "Jigsaw": letters("18r 2w")},
        "text_only": {"Counting": letters("190r 110w"), "Jigsaw": letters("12r 8w")},
    }
    run = synthetic_runs.from_letters(tmp_path / "real", answers)
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare(compare_paths([run.path]).solvers))}
    assert "mllm has the highest accuracy (mean of 2 tasks), 0.700" in by_id["solvers.best"]
    assert by_id["solvers.best"].endswith("; over all questions, it would be text_only, 0.631.")
    words = "text_only (+8 points, -3 to +22, with another result over all questions than over tasks: -11 points"
    assert words in by_id["ahead.depends"]


def test_a_task_of_which_a_specialist_answers_few_is_no_loss_of_it(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {
        "mllm": {"Counting": letters("30r 30w"), "Jigsaw": letters("30r 30w"), "Relative_Depth": letters("30r 30w")},
        "specialist": {"Counting": letters("2r 1w 57a"), "Jigsaw": letters("60a"), "Relative_Depth": letters("60r")},
    }
    run = synthetic_runs.from_letters(tmp_path / "real", answers)
    table = headline_tables(compare(compare_paths([run.path]).solvers))[1]
    cells = {row[0]: row[2].strip() for row in table.rows}
    assert cells == {"Counting": "0.667*", "Jigsaw": "-", "Relative_Depth": "1.000+"}
    assert table.notes[0].startswith("*: over the questions of the task that the specialists answer")
