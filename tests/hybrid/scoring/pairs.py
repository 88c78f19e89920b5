"""Headline pairs for tests: pairs made by hand, and the pair in a comparison of two solvers."""

from types import SimpleNamespace
from typing import Any

from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.headline_pair import AnswerSplit, HeadlinePair
from hybrid.scoring.result import FRACTION, Result
from tests.hybrid.scoring.solvers import solver

ENDS: dict[str, tuple[float | None, float | None]] = {
    "more": (0.01, 0.2),
    "less": (-0.2, -0.01),
    "open": (-0.1, 0.1),
    "touching from above": (0.0, 0.2),
    "touching from below": (-0.2, 0.0),
    "few": (None, None),
}
NO_OPEN = SimpleNamespace(open=0)


def row(state: str, note: str = "", value: float | None = 0.1) -> Result:
    low, high = ENDS[state]
    return Result("differences", "difference", FRACTION, value, low=low, high=high, note=note)


def pair(state: str, split: AnswerSplit | None = None, **facts: Any) -> HeadlinePair:
    solvers: Any = (NO_OPEN, NO_OPEN)
    return HeadlinePair(*solvers, (row(state),), split=split, **facts)


def split(shared: str | None, answering: str) -> AnswerSplit:
    return AnswerSplit(row(answering), row("open"), None if shared is None else row(shared), (3, 0))


def pair_of(a: dict[str, str], b: dict[str, str], *more: str) -> tuple[ConclusionRows, Comparison, HeadlinePair]:
    """Return the pair of two solvers that gave these letters, by task; `more` has the letters of b's repetitions in the
    first task."""
    task = next(iter(a))
    repetitions = [solver(f"b@{n}", {**b, task: word}) for n, word in enumerate(more, 2)]
    # A solver's name in a comparison may differ from its name in the run. The latter decides which solvers are
    # repetitions.
    recorded = {name: {} if more else {"recorded": f"{name} recorded"} for name in "ab"}
    comparison = compare([solver("a", a, **recorded["a"]), solver("b", b, **recorded["b"]), *repetitions])
    rows = ConclusionRows(comparison, ("differences", "helped", "answered"))
    return rows, comparison, rows.pair(comparison.named("a"), comparison.named("b"))
