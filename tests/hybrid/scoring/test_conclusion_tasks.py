"""The sentence about tasks for hand-written differences: sign, size, adjustment, and unanswered questions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.scoring.conclusion_tasks import losses_sentence, task_sentence
from hybrid.scoring.result import FRACTION, Result

ALONE, TOOLS, OTHER = (SimpleNamespace(solver=name) for name in ("alone", "tools", "other tools"))


def task(
    group: str, value: float | None, p: float | None = 0.5, n: int | None = 40, quantity: str = "difference"
) -> Result:
    """Return a task's difference with an interval of 10 points on each side, or without an interval if `p` is None."""
    low, high = (None, None) if p is None or value is None else (value - 0.1, value + 0.1)
    return Result("differences", quantity, FRACTION, value, "alone", "tools", "accuracy", group, n, low, high, p, p)


@dataclass(frozen=True)
class TaskRows:
    """Stand-in for a comparison, with the rows that the sentence reads. The tasks in `by_answering` differ in their
    unanswered questions."""

    rows: Sequence[Result]
    by_answering: Collection[str] = ()
    by: str | None = None
    unscored: Sequence[str] = ()

    @property
    def found(self) -> Any:
        return SimpleNamespace(options=SimpleNamespace(by=self.by))

    def tasks(self, a: Any, b: Any) -> list[Result]:
        assert (a, b.solver) == (ALONE, b.solver)
        is_named = [row for row in self.rows if row.group and row.quantity == "difference" and row.low is not None]
        return is_named if b == TOOLS else [row for row in is_named if row.group == "Jigsaw"]

    def between(self, section: str, names: tuple[str, str]) -> list[Result]:
        assert (section, names) == ("differences", ("alone", "tools"))
        return list(self.rows)

    def unscored_tasks(self, a: Any, b: Any) -> list[str]:
        assert (a, b) == (ALONE, TOOLS)
        return list(self.unscored)

    def is_of_answers(self, a: Any, b: Any, row: Result) -> bool:
        assert a == ALONE
        assert b in (TOOLS, OTHER)
        return row.group not in self.by_answering

    def pair(self, a: Any, b: Any) -> Any:
        assert a == ALONE
        assert b in (TOOLS, OTHER)
        return SimpleNamespace(a=a, b=b, n=200)


def sentences(rows: TaskRows, alone: Any = ALONE) -> list[tuple[str, str]]:
    rows_like: Any = rows
    group: Any = SimpleNamespace(alone=alone, hybrid=TOOLS)
    return [(item.id, item.text) for item in task_sentence(rows_like, group)]


COUNTING, JIGSAW = task("Counting", 0.2), task("Jigsaw", -0.05, n=60)
# The sentence ignores the difference over all questions, another quantity, and a task without interval and value.
NO_TASKS = (task("", -0.9, None), task("Depth", -0.9, None, quantity="helped"), task("Multi-view", None, None))
WORSE, WORST, BETTER = task("Art", -0.3, 0.01), task("Depth", -0.5, 0.01, 20), task("Relation", 0.4, 0.01)
LOSS = "; largest loss: Jigsaw (-5 points, -15 to +5; 60 of 200 questions)"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (TaskRows([COUNTING]), []),
        (TaskRows([COUNTING, *NO_TASKS]), []),
        (
            TaskRows([COUNTING, JIGSAW, task("Depth", -0.02, n=20), *NO_TASKS]),
            ["tasks.none", f"No single task is shown to be worse (20 to 60 questions each{LOSS})."],
        ),
        (
            TaskRows([COUNTING, task("Depth", 0.0)]),
            ["tasks.none", "No single task is shown to be worse (40 questions each)."],
        ),
        (
            TaskRows([COUNTING, JIGSAW], by="scene"),
            ["tasks.none", f"No single group is shown to be worse (40 to 60 questions each{LOSS})."],
        ),
        # A difference that depends on unanswered questions and is not significant is not stated separately.
        (
            TaskRows([COUNTING, JIGSAW], ("Counting", "Jigsaw")),
            ["tasks.none", f"No single task is shown to be worse (40 to 60 questions each{LOSS})."],
        ),
        # A task without an interval is named; a task without a value is not.
        (
            TaskRows([COUNTING, JIGSAW, task("Depth", -1.0, None, 1), *NO_TASKS]),
            [
                "tasks.none",
                (
                    "Not tested: Depth (-100 points, 1 question); no other single task is shown to be worse (40 to 60 "
                    f"questions each{LOSS})."
                ),
            ],
        ),
        # Tasks whose answers are neither right nor wrong are named, as their losses are not in the sentence.
        (
            TaskRows([BETTER, COUNTING], unscored=["Q9", "Q12"]),
            [
                "tasks.shown",
                (
                    "After adjustment (Holm) over 2 tasks: better on Relation (+40 points, 30 to 50); not compared, as "
                    "neither right nor wrong: Q9, Q12; no other single task is shown to be worse (40 questions each)."
                ),
            ],
        ),
        # Gains and losses are sorted by size, the largest first; losses have their share of the questions.
        (
            TaskRows([WORSE, BETTER, WORST, COUNTING, task("Style", 0.6, 0.01)]),
            [
                "tasks.shown",
                (
                    "After adjustment (Holm) over 5 tasks: worse on Depth (-50 points, -60 to -40; 20 of 200 "
                    "questions), Art (-30 points, -40 to -20; 40 of 200 questions); better on Style (+60 points, 50 to "
                    "70), Relation (+40 points, 30 to 50)."
                ),
            ],
        ),
        (
            TaskRows([BETTER, JIGSAW], by="scene"),
            [
                "tasks.shown",
                (
                    "After adjustment (Holm) over 2 groups of scene: better on Relation (+40 points, 30 to 50); no "
                    f"single group is shown to be worse (40 to 60 questions each{LOSS})."
                ),
            ],
        ),
        (
            TaskRows([WORSE, JIGSAW, task("Style", 1.0, None, 2)]),
            [
                "tasks.shown",
                (
                    "After adjustment (Holm) over 2 tasks: worse on Art (-30 points, -40 to -20; 40 of 200 questions); "
                    "not tested: Style (+100 points, 2 questions); no other single task is shown to be worse (60 "
                    f"questions each{LOSS})."
                ),
            ],
        ),
        (
            TaskRows([WORSE, WORST, task("Style", 1.0, None, 2)]),
            [
                "tasks.shown",
                (
                    "After adjustment (Holm) over 2 tasks: worse on Depth (-50 points, -60 to -40; 20 of 200 "
                    "questions), Art (-30 points, -40 to -20; 40 of 200 questions); not tested: Style (+100 points, 2 "
                    "questions)."
                ),
            ],
        ),
        # A difference that depends on unanswered questions counts neither as better nor as worse, nor as a loss that is
        # not significant.
        (
            TaskRows([WORST, JIGSAW], ("Depth",)),
            [
                "tasks.shown",
                (
                    "After adjustment (Holm) over 2 tasks: different, but only with unanswered questions counted, on "
                    f"Depth (-50 points, -60 to -40; 20 of 200 questions); no other single task is shown to be worse "
                    f"(60 questions each{LOSS})."
                ),
            ],
        ),
        (
            TaskRows([WORSE, BETTER], ("Art", "Relation")),
            [
                "tasks.shown",
                (
                    "After adjustment (Holm) over 2 tasks: different, but only with unanswered questions counted, on "
                    "Art (-30 points, -40 to -20; 40 of 200 questions), Relation (+40 points, 30 to 50; 40 of 200 "
                    "questions)."
                ),
            ],
        ),
        (
            TaskRows([WORSE, WORST], ("Depth",)),
            [
                "tasks.shown",
                (
                    "After adjustment (Holm) over 2 tasks: worse on Art (-30 points, -40 to -20; 40 of 200 questions); "
                    "different, but only with unanswered questions counted, on Depth (-50 points, -60 to -40; 20 of "
                    "200 questions)."
                ),
            ],
        ),
    ],
)
def test_tasks_that_differ_and_the_rest(rows: TaskRows, expected: list[str]) -> None:
    assert sentences(rows) == ([tuple(expected)] if expected else [])
    assert sentences(rows, alone=None) == []


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            TaskRows([WORSE, WORST, BETTER, task("Jigsaw", -0.7, 0.01), task("Style", -0.2)], ("Art",)),
            (
                "Tasks worse than alone after adjustment (Holm): tools Jigsaw (-70 points, -80 to -60; 40 of 200 "
                "questions), Depth (-50 points, -60 to -40; 20 of 200 questions); other tools Jigsaw (-70 points, -80 "
                "to -60; 40 of 200 questions)."
            ),
        ),
        (
            TaskRows([WORST], by="scene"),
            (
                "Groups of scene worse than alone after adjustment (Holm): tools Depth (-50 points, -60 to -40; 20 of "
                "200 questions)."
            ),
        ),
        (TaskRows([BETTER, JIGSAW, WORSE], ("Art",)), "Tasks worse than alone after adjustment (Holm): none."),
    ],
)
def test_losses_of_several_solvers(rows: TaskRows, words: str) -> None:
    rows_like: Any = rows
    (sentence,) = losses_sentence(rows_like, [rows.pair(ALONE, TOOLS), rows.pair(ALONE, OTHER)])
    assert (sentence.id, sentence.text) == ("tasks.several", words)


def test_without_a_tested_task_nothing_is_said_about_losses() -> None:
    rows_like: Any = (rows := TaskRows([]))
    assert not list(losses_sentence(rows_like, [rows.pair(ALONE, TOOLS)]))
