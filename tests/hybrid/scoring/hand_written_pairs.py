"""Hand-written differences of the model alone and another solver, for the tests of sentences."""

from typing import Any

from hybrid.core.types import Cell, Metric
from hybrid.scoring.headline_pair import HeadlinePair
from hybrid.scoring.result import FRACTION, Result
from tests.hybrid.scoring.solvers import solver

Ends = tuple[float, float] | None
ALONE, METRIC = solver("mllm", {"Jigsaw": "r"}), Metric("accuracy", 0.5, 1, "ratio", (Cell("", "q", 1.0, 1.0),))


def row(value: float | None, ends: Ends = None, p: float | None = 0.01, **fields: Any) -> Result:
    low, high = ends or (None, None)
    tested = p if ends else None
    about: dict[str, Any] = {"section": "differences", "quantity": "difference", "unit": FRACTION, **fields}
    return Result(value=value, low=low, high=high, p=tested, p_holm=tested, **about)


def pair(name: str, difference: Result | None = None, n: int = 40, waiting: int = 0, **facts: Any) -> HeadlinePair:
    """Return the pair of the model alone and a solver of this name, with its difference if it has one."""
    rows = () if difference is None else (difference,)
    return HeadlinePair(ALONE, solver(name, {"Jigsaw": "r"}, open=waiting), rows, n=n, **facts)


GAIN, LOSS, OPEN = row(0.2, (0.1, 0.3)), row(-0.2, (-0.3, -0.1)), row(0.1, (-0.1, 0.3))
