"""The claim of a headline pair: by its state, by the parts of a difference, and for pairs that were not tested."""

from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.scoring.conclusion_rows import AnswerSplit, HeadlinePair
from hybrid.scoring.result import FRACTION, UNTESTED, Result

ENDS: dict[str, tuple[float | None, float | None]] = {
    "more": (0.01, 0.2),
    "less": (-0.2, -0.01),
    "open": (-0.1, 0.1),
    "touching from above": (0.0, 0.2),
    "touching from below": (-0.2, 0.0),
    "few": (None, None),
}
NO_OPEN = SimpleNamespace(open=0)


def row(state: str, note: str = "") -> Result:
    low, high = ENDS[state]
    return Result("differences", "difference", FRACTION, 0.1, low=low, high=high, note=note)


def pair(state: str, split: AnswerSplit | None = None, **facts: Any) -> HeadlinePair:
    solvers: Any = (NO_OPEN, NO_OPEN)
    return HeadlinePair(*solvers, (row(state),), split=split, **facts)


def split(both: str | None, answering: str) -> AnswerSplit:
    return AnswerSplit(row(answering), row("open"), None if both is None else row(both), (3, 0))


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        *((name, name) for name in ("more", "less", "open", "few")),
        ("touching from above", "open"),
        ("touching from below", "open"),
    ],
)
def test_a_state_is_where_the_interval_lies(ends: str, state: str) -> None:
    assert pair(ends).state == state
    assert pair(ends).claim == state


@pytest.mark.parametrize(
    ("state", "both", "answering", "claim"),
    [
        ("more", "more", "open", "more"),
        ("more", "more", "more", "more"),
        ("more", "more", "less", "more"),
        ("more", "open", "more", "answering"),
        ("less", "open", "less", "answering"),
        # Neither part is significant alone, only both together.
        ("more", "open", "open", "split"),
        ("less", "open", "open", "split"),
        ("more", "less", "more", "answering"),
        ("more", "open", "less", "split"),
        ("open", "more", "less", "split"),
        ("open", "less", "more", "split"),
        ("open", "open", "more", "open"),
        ("open", "open", "open", "open"),
        ("open", "more", "open", "split"),
        ("more", None, "more", "answering"),
        ("open", None, "open", "split"),
        ("few", "more", "more", "few"),
    ],
)
def test_a_difference_is_claimed_where_the_answers_to_the_same_questions_show_it(
    state: str, both: str | None, answering: str, claim: str
) -> None:
    assert pair(state, split(both, answering)).claim == claim


@pytest.mark.parametrize(
    ("state", "both", "answering", "matters"),
    [
        ("more", "more", "open", False),
        ("open", "open", "open", False),
        ("more", "more", "more", True),
        ("more", "more", "less", True),
        ("more", "open", "open", True),
        ("open", None, "open", True),
    ],
)
def test_parts_are_printed_if_they_say_something_else(
    state: Any, both: str | None, answering: str, matters: bool
) -> None:
    assert split(both, answering).matters(state) is matters


def test_the_rule_goes_before_the_weights_of_tasks_and_these_before_the_parts() -> None:
    parts = split("open", "more")
    assert pair("more", parts, other_rule=row("open"), over_all=row("less")).claim == "rule"
    assert pair("more", parts, over_all=row("less")).claim == "uneven"
    assert pair("few", parts, other_rule=row("open"), over_all=row("less")).claim == "few"


@pytest.mark.parametrize(
    ("metrics", "open_a", "open_b", "state"),
    [
        (None, 1, 0, "waiting"),
        (None, 0, 1, "waiting"),
        (None, 0, 0, "apart"),
        ("some", 1, 1, "apart"),
    ],
)
def test_a_pair_without_rows_waits_or_is_apart(metrics: Any, open_a: int, open_b: int, state: str) -> None:
    solvers: Any = (SimpleNamespace(open=open_a), SimpleNamespace(open=open_b))
    assert HeadlinePair(*solvers, metrics=metrics).state == state


@pytest.mark.parametrize(
    ("reason", "state"), [("failed", "failed"), ("waiting", "waiting"), ("unanswered", "silent"), ("units", "units")]
)
def test_a_pair_that_was_not_tested_says_why(reason: str, state: str) -> None:
    solvers: Any = (NO_OPEN, NO_OPEN)
    # The first row is the difference; limits of other rows do not apply to it.
    assert HeadlinePair(*solvers, (row("few", UNTESTED[reason]), row("few"))).state == state
    assert HeadlinePair(*solvers, (row("more"), row("few", UNTESTED[reason]))).state == "more"
