"""A model with several repetitions is one contestant: its mean and range are stated, not its best repetition."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import results
from tests.hybrid.scoring.solvers import solver

AGAIN = ("r" * 12 + "w" * 28, "w" * 28 + "r" * 12, "r" * 24 + "w" * 16)


def compared(synthetic_runs: Any, path: Path, **others: str) -> Comparison:
    options = {"mllm": AGAIN[0], "mllm@2": AGAIN[1], "mllm@3": AGAIN[2], **others}
    run = synthetic_runs.from_letters(path / "run", {name: {"Jigsaw": value} for name, value in options.items()})
    return compare_paths([run.path]).comparison


def test_of_one_model_asked_three_times_the_mean_and_the_range_are_said(synthetic_runs: Any, tmp_path: Path) -> None:
    first = conclusion(compared(synthetic_runs, tmp_path))[0].text
    assert first.startswith(
        "mllm has accuracy 0.400 (mean of 3 repetitions, 0.300 to 0.600) over 40 questions (95% CI "
    )
    low, high = (float(end) for end in first.split("95% CI ")[1].rstrip(".)").split(" to "))
    assert low < fmean([0.3, 0.3, 0.6]) < high < 0.6


def test_its_best_draw_is_no_winner(synthetic_runs: Any, tmp_path: Path) -> None:
    first = conclusion(compared(synthetic_runs, tmp_path, chance="r" * 20 + "w" * 20))[0].text
    assert first.startswith(
        "Of 2 solvers, none of them a model with tools, chance has the highest accuracy, 0.500 over"
    )


@pytest.mark.parametrize("solvers", [1, 3])
def test_unanswered_questions_are_counted_by_solver(solvers: int, synthetic_runs: Any, tmp_path: Path) -> None:
    names = ("mllm", "chance", "specialist")[:solvers]
    letters = {name: {"Jigsaw": "r" * 32 + ("u" * 8 if name == "mllm" else "r" * 8)} for name in names}
    run = synthetic_runs.from_letters(tmp_path / "run", letters)
    limits = conclusion(compare_paths([run.path]).comparison)[-1].text
    # The other solvers answer all questions.
    (word,) = [part for part in limits.rstrip(".").split("; ") if "unanswered" in part]
    assert word == "Limits: unanswered questions count as wrong: mllm 8 of 40"


def test_the_section_of_metrics_names_no_draw_either(synthetic_runs: Any, tmp_path: Path) -> None:
    (built,) = results(compared(synthetic_runs, tmp_path), ["metrics"])
    assert built.lead.startswith("mllm has accuracy_macro, 0.400 (mean of 3 repetitions, 0.300 to 0.600) (95% CI [")


def test_of_solvers_with_the_same_value_only_the_repeated_one_has_a_range() -> None:
    answers = {"mllm": "r" * 30 + "w" * 10, "mllm@2": "r" * 20 + "w" * 20, "zzz": "r" * 25 + "w" * 15}
    (built,) = results(compare([solver(name, {"Jigsaw": word}) for name, word in answers.items()]), ["metrics"])
    assert built.lead.startswith(
        "mllm (mean of 2 repetitions, 0.500 to 0.750) and zzz have the highest accuracy_macro, 0."
    )


def test_a_first_repetition_that_failed_entirely_has_no_part_in_the_mean() -> None:
    answers = {
        "mllm": "f" * 40,
        "mllm@2": "r" * 20 + "w" * 20,
        "mllm@3": "r" * 22 + "w" * 18,
        "zzz": "r" * 10 + "w" * 30,
    }
    (built,) = results(compare([solver(name, {"Jigsaw": word}) for name, word in answers.items()]), ["metrics"])
    assert built.lead.startswith("mllm has the highest accuracy_macro, 0.525 (mean of 2 repetitions, 0.500 to 0.550)")


def test_of_solvers_with_the_same_value_each_has_its_number_of_questions() -> None:
    for n, words in ((30, "over n = 30 for mllm and 40 for zzz."), (40, "over n = 40.")):
        answers = {"mllm": "r" * n + "f" * (40 - n), "zzz": "r" * 40}
        (built,) = results(compare([solver(name, {"Jigsaw": word}) for name, word in answers.items()]), ["metrics"])
        assert built.lead.startswith(f"mllm and zzz have the highest accuracy_macro, 1.000, {words}")


def test_the_number_of_questions_in_the_conclusion_is_among_those_of_the_metrics() -> None:
    """Of two solvers with the same value, the first has too many failures to be tested, so the conclusion names the
    second with its number of questions."""
    answers = {"mllm": "r" * 20 + "w" * 10 + "f" * 10, "other": "r" * 20 + "w" * 20, "zzz": "r" * 80 + "w" * 40}
    answers = {name: word.ljust(120, ".") for name, word in answers.items()}
    comparison = compare([solver(name, {"Jigsaw": word}) for name, word in answers.items()])
    first = conclusion(comparison, limits=False)[0].text
    assert "over 120 questions for zzz" in first
    (built,) = results(comparison, ["metrics"])
    assert "over n = 30 for mllm and 120 for zzz." in built.lead


def test_questions_of_one_picture_limit_what_is_said(synthetic_runs: Any, tmp_path: Path) -> None:
    run = synthetic_runs.from_letters(tmp_path / "run", {"mllm": {"Jigsaw": "rw" * 15}})
    variants = [replace(question, cluster=f"picture of q{n // 3}") for n, question in enumerate(run.questions())]
    run.write_questions(variants)
    run.write_manifest({**run.manifest, "files": {}})
    texts = [item.text for item in conclusion(compare_paths([run.path]).comparison)]
    assert "30 questions show 10 pictures" in texts[-1]
