"""Options written as `KEY=VALUE`."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.core.errors import UsageError


def pairs(option: str, values: Sequence[str]) -> dict[str, str]:
    """Parse `KEY=VALUE` words to a mapping. Raises `UsageError` for another form or a duplicate key."""
    by_key: dict[str, str] = {}
    for value in values:
        key, equals, rest = value.partition("=")
        if not equals or not key:
            raise UsageError(f"{option} {value!r}: write KEY=VALUE")
        if key in by_key:
            raise UsageError(f"{option} {key}: given twice")
        by_key[key] = rest
    return by_key
