"""Whether a part of a difference from answering comes from more answers: weights, credit, and missing verdicts."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hybrid.scoring.conclusion_rows import _is_of_more_answers


@dataclass(frozen=True)
class TwoTasks:
    """Stand-in for an overlap, with what `_is_of_more_answers` reads: a large task of 10 questions and a small one of
    2."""

    right: tuple[np.ndarray, np.ndarray]
    # Where only the second solver answered, and where only the first did.
    silent_share: tuple[np.ndarray, np.ndarray]
    kept: np.ndarray
    combine: str = "mean_of_ratios"
    rule: str = "wrong"
    task: np.ndarray = field(default_factory=lambda: np.array(["large"] * 10 + ["small"] * 2, object))
    credit: np.ndarray = field(default_factory=lambda: np.zeros(12))
    counted: np.ndarray = field(default_factory=lambda: np.ones(12, bool))

    def __len__(self) -> int:
        return 12

    def headline(self, rule: str) -> tuple[SimpleNamespace]:
        return (SimpleNamespace(combine=self.combine),)


ONLY_B, ONLY_A = np.arange(12) < 4, np.arange(12) >= 10


def of_more_answers(combine: str, kept: Any, answering: float = 0.2, only_a: Any = ONLY_A) -> bool:
    """Return the decision for solvers `a` and `b` that are right on all questions that only they answered."""
    by_solver = (only_a.astype(float), ONLY_B.astype(float))
    overlap: Any = TwoTasks(by_solver, by_solver[::-1], np.full(12, kept), combine)
    return _is_of_more_answers(overlap, answering)


def test_the_part_from_answering_weighs_questions_as_the_metric_does() -> None:
    # Over all questions `b` gains 4 and `a` gains 2, because `b` answered two questions more. In a mean over tasks `a`
    # gains more, because the small task has the same weight as the large one.
    assert of_more_answers("ratio", kept=True)
    assert not of_more_answers("mean_of_ratios", kept=True)
    # In the large task, only four questions can be right or wrong, so `b` gains the whole task; `a` gains half of the
    # small task.
    of_four, one_of_a = ONLY_B | (np.arange(12) >= 10), np.arange(12) == 10
    assert of_more_answers("mean_of_ratios", of_four, only_a=one_of_a)
    assert not of_more_answers("mean_of_ratios", kept=True, only_a=one_of_a)
    # A question that both solvers answered and that is neither right nor wrong decides nothing.
    assert not of_more_answers("mean_of_ratios", np.arange(12) != 5)


def test_half_of_the_part_from_answering_is_enough() -> None:
    # On the n questions that only `a` answered, `a` is wrong. `b` gains one point on each of the four that only `b`
    # answered; by the numbers of answers alone it would gain (4 - n) / (4 + n) points on average.
    nothing, right_b = np.zeros(12), ONLY_B.astype(float)
    for of_a, is_of_more in ((1, True), (2, False)):
        silent = (right_b, (np.arange(12) >= 12 - of_a).astype(float))
        overlap: Any = TwoTasks((nothing, right_b), silent, np.full(12, True), "ratio")
        assert _is_of_more_answers(overlap, 0.2) is is_of_more
    # In the small task each solver answers one question that the other does not, and `b` is wrong on its question. In a
    # mean over tasks `b` gains 0.4 and `a` 0.5; by number of questions, `b` gains 4 and `a` 1.
    only_b, only_a = ONLY_B | (np.arange(12) == 10), np.arange(12) == 11
    overlap = TwoTasks((only_a.astype(float), right_b), (only_b.astype(float), only_a.astype(float)), np.full(12, True))
    assert _is_of_more_answers(overlap, 0.2)


def worth(right_b: int, right_a: int, combine: str = "ratio", answering: float = 0.2, **facts: Any) -> bool:
    """Return the decision if only `b` answered four questions, only `a` answered two, and both are right on the
    rest."""
    both = ~ONLY_A & ~ONLY_B
    of_b, of_a = both | (np.arange(12) < right_b), both | (np.arange(12) >= 12 - right_a)
    silent = (ONLY_B.astype(float), ONLY_A.astype(float))
    kept = np.full(12, True)
    overlap: Any = TwoTasks((of_a.astype(float), of_b.astype(float)), silent, kept, combine, **facts)
    return _is_of_more_answers(overlap, answering)


def test_answers_are_worth_what_they_exceed_the_credit_by() -> None:
    # A missing answer is worth a half. In the three cases `b` gains 2, 0 or 1, and `a` gains 0, 1 or 1; a third of the
    # sum is due to the numbers of answers.
    credit = np.where(ONLY_A | ONLY_B, 0.5, 0.0)
    decided = [worth(*right, credit=credit) for right in ((4, 1), (2, 2), (3, 2))]
    assert decided == [False, False, True]
    # In a mean over tasks, `b` gains a tenth and `a` gains 1; the weights of their answers are 0.4 and 1.
    assert worth(1, 2, "mean_of_ratios", -0.2)
    # Only one question of the small task has a verdict. `a` gains it, and `b` gains one of the large task's ten.
    one_of_small, one_of_large = np.arange(12) == 11, np.arange(12) == 0
    of_both, silent = (one_of_small.astype(float), one_of_large.astype(float)), ONLY_B.astype(float)
    lone: Any = TwoTasks(of_both, (silent, of_both[0]), np.arange(12) != 10)
    assert _is_of_more_answers(lone, -0.2)
    # By the numbers of answers alone, three questions against one give exactly half of the gain.
    three, one = np.arange(12) < 3, np.arange(12) == 11
    by_solver = (np.zeros(12), three.astype(float))
    overlap: Any = TwoTasks(by_solver, (by_solver[1], one.astype(float)), np.full(12, True), "ratio")
    assert _is_of_more_answers(overlap, 0.2)
    # If both solvers left the same questions unanswered, neither answered more.
    overlap = TwoTasks(by_solver, (by_solver[1], by_solver[1]), np.full(12, True), "ratio")
    assert not _is_of_more_answers(overlap, 0.2)


@pytest.mark.parametrize("kept", [False, ~ONLY_A, ~ONLY_B])
def test_of_questions_without_right_and_wrong_the_number_decides(kept: Any) -> None:
    decided = [of_more_answers("mean_of_ratios", kept, answering) for answering in (0.2, 0.0, -0.2)]
    assert decided == [True, False, False]
    same_number = np.arange(12) >= 8
    assert not of_more_answers("mean_of_ratios", kept=False, only_a=same_number)
