"""What of a hybrid solver's gain comes from the presence of tools, and what from their content: the blank control decides."""

from __future__ import annotations

from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told


def section(found: Comparison) -> Told | None:
    """A row for each company with a blank control; None without one."""
    del found
    return None
