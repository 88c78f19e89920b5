"""Self-consistency: the vote next to a single sample, and what was refused."""

from __future__ import annotations

from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told


def section(found: Comparison) -> Told | None:
    """A row for each solver that sampled; None where none did."""
    del found
    return None
