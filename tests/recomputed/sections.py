"""Every section of a comparison, and what recomputes its records."""

from collections.abc import Callable, Mapping, Sequence

from tests.recomputed.pairs import agreement, ceiling, gain, noninferior
from tests.recomputed.runs import JsonObject, Runs
from tests.recomputed.solvers import floor, sampling, spread
from tests.recomputed.traces import evidence, tool_use

RECOMPUTED: Mapping[str, Callable[[Runs, Sequence[JsonObject]], None]] = {
    one.__name__: one for one in (noninferior, gain, ceiling, evidence, tool_use, agreement, floor, spread, sampling)
}
"""By section what recomputes its records and compares every number of them."""
