"""The scores of a guess and of the most frequent answer, next to those of solvers and as reference lines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import AS_PAPERS, Benchmark
from hybrid.core.images import ImageStore
from hybrid.core.types import Kind, Question
from hybrid.plugins.registry import load
from hybrid.running.data import mount, questions
from hybrid.scoring.chance_baseline import Guesser
from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.pairing import Data
from hybrid.scoring.predicted import score_predictions
from hybrid.scoring.published import published
from hybrid.scoring.reference import ReferenceLine, reference_lines
from hybrid.scoring.result import Result
from hybrid.scoring.sections.chance import GUESS, SECTION
from tests.hybrid.scoring.solvers import GENERATED, VAL, solver

ANSWERS = {"Jigsaw": "AABA", "Counting": "CCDA"}
OPTIONS = {"Jigsaw": ("the second image", "the third image"), "Counting": ("1", "2", "3", "4")}


def make_questions() -> dict[str, Question]:
    return {
        f"val_{task}_{n}": Question(f"val_{task}_{n}", task, (), "Which?", Kind.CHOICE, OPTIONS[task], f"({letter})")
        for task, letters in ANSWERS.items()
        for n, letter in enumerate(letters, 1)
    }


def both(data: Data = VAL) -> Comparison:
    messages = {"mllm": {"Jigsaw": "rrrr", "Counting": "rrru"}, "specialist": {"Jigsaw": "wfwr", "Counting": "rr.."}}
    facts: dict[str, Any] = {"prefix": "val_", "unanswered": "wrong", "questions": make_questions()}
    return compare([solver(name, letters, data, **facts) for name, letters in messages.items()])


def rows_of(comparison: Comparison) -> dict[tuple[str, str, str], Result]:
    """Return the rows by quantity, solver and task; for rows over all tasks, the metric takes the task's place."""
    return {(row.quantity, row.a, row.group or row.metric): row for row in SECTION.rows(comparison)}


def lines_of(comparison: Comparison) -> tuple[ReferenceLine, ...]:
    return reference_lines(comparison, tuple(SECTION.rows(comparison)))


def test_people_and_papers_are_next_to_the_chance_of_the_same_task() -> None:
    lines = [line for line in lines_of(both()) if line.task == "Jigsaw"]
    assert lines[0] == ReferenceLine("Jigsaw", "uniform guess", "chance", 0.5, "")
    assert (lines[1].label, lines[1].kind, lines[1].value) == ("most frequent answer", "chance", 0.75)
    assert "answer key" in lines[1].note
    (person,) = [line for line in lines if line.kind == "human"]
    assert (person.label, person.value) == ("Human", 0.99)
    assert person.note.startswith("Table 4; over 150 questions, here 4; repeats the cells of Table 1")
    models = {line.label: line.value for line in lines if line.kind == "published"}
    assert models["GPT-4o"] == 0.5533
    assert [line.kind for line in lines] == sorted(
        (line.kind for line in lines), key=["chance", "human", "published"].index
    )
    assert all(0 <= line.value <= 1 for line in lines)


def test_another_split_and_generated_questions_have_no_published_line() -> None:
    test_set = replace(VAL, split="test")
    values = {line.value for line in lines_of(both(test_set)) if line.label == "Human" and line.task == "Counting"}
    assert values == {0.9375}
    assert {line.kind for line in lines_of(both(GENERATED))} == {"chance"}


@pytest.mark.system
@pytest.mark.shared_data
def test_the_published_row_of_random_choice_is_reproduced(shared_data: Path, tmp_path: Path) -> None:
    bench: Benchmark = load("hybrid.benchmarks", "blink")
    printed = {
        cell.metric: cell.value / 100
        for cell in published("blink")
        if (cell.kind, cell.source, cell.split) == ("chance", "Table 4", "val")
    }
    scored = score_predictions(shared_data / "blink_outputs" / "GPT4o", bench, "stored", AS_PAPERS)
    rows = rows_of(compare([scored]))
    tasks = {name: row for (quantity, _, name), row in rows.items() if quantity == GUESS and row.group}
    assert len(tasks) == 14
    for task, row in tasks.items():
        assert row.value == pytest.approx(printed[task], abs=5e-5), task
    # 8/21 is 38.095 percent, which the paper cuts to 38.09.
    assert rows[GUESS, "", "accuracy_macro"].value == pytest.approx(printed["accuracy_macro"], abs=1e-4)
    # If the rows are available, the guess is computed from their own options.
    store = ImageStore(tmp_path / "images")
    mounted = mount(bench, str(shared_data / "blink"), split="val", tasks=(), settings={}, store=store)
    guesser = Guesser(bench, AS_PAPERS, 2)
    for question in questions(bench, replace(mounted.source, for_predictions=True), 30):
        assert isinstance(question, Question)
        assert guesser.of(question).correct == pytest.approx(printed[question.task], abs=5e-5)
