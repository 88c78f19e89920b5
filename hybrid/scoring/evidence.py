"""Use of evidence: MLLM alone right or wrong, finding right or wrong, hybrid right or wrong."""

from __future__ import annotations

from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told


def section(found: Comparison) -> Told | None:
    """A row for each company with traces and an MLLM alone; None without one."""
    del found
    return None
