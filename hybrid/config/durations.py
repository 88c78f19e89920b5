"""Times as a user writes them: `45s`, `90m`, `2h`."""

from __future__ import annotations

import re

from hybrid.core.errors import UsageError


def seconds_of(time: str, option: str = "--wait-for-server") -> float:
    """Convert `45s`, `90m`, `2h`, or a number of seconds to seconds. Raises `UsageError` for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", time.strip().lower())
    if match is None:
        raise UsageError(f"{option} {time}: write a time such as 90m or 2h")
    return float(match[1]) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}[match[2]]
