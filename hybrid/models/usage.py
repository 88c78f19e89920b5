"""Counts of tokens, read from a reply by the names in `usage.toml` and checked against their total.

    usage = read_usage("chat_completions", reply["usage"])      # None: the reply does not say what it cost

A count that is missing is unknown and not 0: without the tokens read or written there is no usage at all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hybrid.messages import TokenUsage

# Of each kind of count: the first part of every name, and the names in their parts.
Names = Mapping[str, tuple[frozenset[str], Sequence[Sequence[str]]]]

WIRES: Final[Mapping[str, Names]] = {
    wire: {
        kind: (frozenset(name.partition(".")[0] for name in names), [name.split(".") for name in names])
        for kind, names in row.items()
    }
    for wire, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
_NO_NAMES: Final = (frozenset[str](), ())


def read_usage(wire: str, counts: Any, *, is_empty: bool = False) -> TokenUsage | None:
    """The counts in an object of a reply; None if it lacks those of what was read or written.

    Args:
        wire: a table of `usage.toml`.
        counts: the object, or whatever stands in its place.
        is_empty: whether the reply holds nothing, so that 0 tokens may have been written.
    """
    if not isinstance(counts, dict):
        return None
    find = _Finder(counts, WIRES[wire])
    read, written, total = find("input"), find("output"), find("total") or None
    cached_beside, stored_beside = find("cached_outside"), find("written_outside") or 0
    beside = (cached_beside or 0) + stored_beside
    # No prompt and no text has 0 tokens: servers that do not count say 0.
    read = None if read == 0 and not beside else read
    written = None if written == 0 and not is_empty else written
    if total is not None and (read is None) is not (written is None):
        # The total tells the other one.
        left = total - (read or written or 0)
        read, written = (left if read is None else read), (left if written is None else written)
    if read is None or written is None or written < 0 or read < 0:
        return None
    if beside and _is_outside(read, written, total, beside, by_default=find.beside_by_default):
        read += beside
    reasoning = find("reasoning")
    hidden = (total or 0) - read - written
    if hidden > 0 or (total is None and (reasoning or 0) > written):
        # Gemini and xAI count the thinking tokens beside the output; only their total shows it.
        written += hidden if hidden > 0 else reasoning or 0
        reasoning = reasoning or hidden
    cached = find("cached")
    cached = cached if cached is not None else cached_beside
    stored = find("written") or stored_beside
    return TokenUsage(
        read, written, min(reasoning or 0, written), None if cached is None else min(cached, read), min(stored, read)
    )


def _is_outside(read: int, written: int, total: int | None, beside: int, *, by_default: bool) -> bool:
    """Whether tokens of the cache are counted beside those read, as Anthropic does, and not among them."""
    if beside > read or total is None:
        return beside > read or by_default
    return total >= read + written + beside


class _Finder:
    """Reads counts by the names of one wire."""

    def __init__(self, counts: Mapping[str, Any], names: Names) -> None:
        self._counts, self.names = counts, names
        # Gateways that use OpenAI's names have added the parts up.
        self.beside_by_default = "prompt_tokens" not in counts

    def __call__(self, kind: str) -> int | None:
        """The first count of a kind that is there."""
        heads, paths = self.names.get(kind, _NO_NAMES)
        if heads.isdisjoint(self._counts):
            # A reply has names of one provider, so most kinds end here.
            return None
        for path in paths:
            if path[0] not in self._counts:
                continue
            value: Any = self._counts
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if value is not None and (count := _number(value)) is not None:
                return count
        return None


def _number(value: Any) -> int | None:
    """A count from 0; some gateways write it as text."""
    if type(value) is int:
        return value if value >= 0 else None
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}(?:\.0+)?", value.strip()):
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def merged(counts: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of two events of one stream: the larger of each, as a last event may hold zeros or half of them."""
    out = dict(counts)
    for name, value in more.items():
        held = out.get(name)
        if isinstance(value, Mapping) and isinstance(held, Mapping):
            out[name] = merged(held, value)
        elif value is not None and (_number(value) is None or (_number(held) or 0) <= (_number(value) or 0)):
            out[name] = value
    return out
