"""Answers that authors have corrected are detected by digests, kept apart in comparisons and from printed numbers."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import hybrid
from hybrid.core.errors import UsageError
from hybrid.core.types import Kind, Question
from hybrid.plugins.registry import load
from hybrid.report.overview import overview_of
from hybrid.scoring.score import Scored

TASK = "Relative_Reflectance"
OLDER = "".join("ABC"[number % 3] for number in range(40))
CORRECTED = "".join("BCA"[number % 3] if number % 10 else OLDER[number] for number in range(40))


def name(number: int, task: str = TASK) -> str:
    return f"val_{task}_{number}"


def questions(letters: str) -> list[Question]:
    return [
        Question(name(number), TASK, (), "", Kind.CHOICE, ("a", "b", "c"), f"({letter})", TASK)
        for number, letter in enumerate(letters, 1)
    ]


@pytest.mark.shared_data
def test_the_published_outputs_of_blink_are_scored_by_the_older_labels(shared_data: Path) -> None:
    (correction,) = load("hybrid.benchmarks", "blink").card.corrections
    rows = json.loads((shared_data / "blink_outputs" / "GPT4o" / f"{TASK}.json").read_text())["val"]
    answers = [Question(row["idx"], TASK, (), "", Kind.CHOICE, ("a", "b", "c"), row["answer"], TASK) for row in rows]
    assert len(correction.before) == len(answers) == 134
    assert correction.labels(answers) == "before 2025-09-03"
    assert correction.labels(answers[::7]) == "before 2025-09-03"


def predictions(folder: Path, answers: Mapping[str, str]) -> Path:
    """Write published outputs of models that are each right on two of three questions; return the folder."""
    folder.mkdir(parents=True)
    for task, letters in answers.items():
        rows = [
            {
                "idx": name(number, task),
                "answer": f"({letter})",
                "full_prediction": f"({letter if number % 3 else 'A'})",
                "prediction": f"({letter if number % 3 else 'A'})",
            }
            for number, letter in enumerate(letters, 1)
        ]
        (folder / f"{task}.json").write_text(json.dumps({"val": rows, "test": []}))
    return folder


@pytest.fixture
def label_paths(tmp_path: Path) -> tuple[Path, Path]:
    """One model scored with older labels, another with corrected ones."""
    others = {"Jigsaw": "AB" * 20}
    return (
        predictions(tmp_path / "one", {TASK: OLDER, **others}),
        predictions(tmp_path / "two", {TASK: CORRECTED, **others}),
    )


def test_solvers_of_different_labels_are_not_compared_unless_it_is_asked_for(label_paths: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError) as error:
        hybrid.compare(*label_paths, benchmark="blink")
    for words in (TASK, "corrected on 2025-09-03", 'other_labels="leave-out"', 'other_labels="compare"'):
        assert words in str(error.value)


def test_a_task_is_left_out_of_every_number_and_the_numbers_say_so(label_paths: tuple[Path, Path]) -> None:
    report = hybrid.compare(*label_paths, benchmark="blink", other_labels="leave-out")
    assert all(
        len(solver.scores) == 40 and {score.task for score in solver.scores} == {"Jigsaw"} for solver in report.solvers
    )
    assert macro(report.solvers[0]) == pytest.approx(accuracy(report.solvers[0]))
    assert f"without {TASK}, whose labels differ" in str(report)


def test_both_are_compared_as_they_are_where_that_is_asked_for_and_marked(label_paths: tuple[Path, Path]) -> None:
    report = hybrid.compare(*label_paths, benchmark="blink", other_labels="compare")
    assert all(len(solver.scores) == 80 for solver in report.solvers)
    assert f"labels of {TASK} differ" in str(report)


def test_another_difference_is_refused_however_labels_are_compared(label_paths: tuple[Path, Path]) -> None:
    path = label_paths[1] / "Jigsaw.json"
    path.write_text(path.read_text().replace('"answer": "(A)"', '"answer": "(B)"', 1))
    with pytest.raises(UsageError, match="different questions under the same ids"):
        str(hybrid.compare(*label_paths, benchmark="blink", other_labels="compare"))


def test_a_printed_number_of_older_labels_is_not_shown_beside_others(label_paths: tuple[Path, Path]) -> None:
    text = str(hybrid.compare(label_paths[1], benchmark="blink", published=True))
    # These answers are invented: they are neither the older labels nor unknown.
    assert f"{TASK} and means over all tasks are left out" in text
    below = text.partition("published, ")[2]
    assert "Jigsaw" in below
    assert TASK not in below.replace(f"{TASK} and means", "")
    request = str(hybrid.compare(label_paths[1], benchmark="blink", published=True, other_labels="compare"))
    assert TASK in request.partition("published, ")[2]


def test_an_overview_has_no_printed_numbers_where_all_are_of_older_labels(tmp_path: Path) -> None:
    alone = predictions(tmp_path / "alone", {TASK: CORRECTED})
    overview = overview_of(hybrid.compare(alone, benchmark="blink").comparison, ())
    assert "published" not in [section.id for section in overview.sections]


def macro(scored: Scored) -> float:
    return next(metric.value for metric in scored.metrics if metric.name == "accuracy_macro") or 0.0


def accuracy(scored: Scored) -> float:
    return sum(score.correct or 0.0 for score in scored.scores) / len(scored.scores)
