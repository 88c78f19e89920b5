"""How much a solver varies from one repetition to the next."""

from __future__ import annotations

from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told


def section(found: Comparison) -> Told | None:
    """A row for each solver that was asked more than once; None where none was."""
    del found
    return None
