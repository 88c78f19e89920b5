"""Reads token counts from a reply by the names in `usage.toml`, and checks them against their total.

    usage = read_usage("chat_completions", reply["usage"])      # None: the reply does not report its tokens

A missing count is unknown and not 0: without the input or output tokens there is no usage at all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hybrid.core.messages import TokenUsage

# For each kind of count: the first parts of its names, and each name as a sequence of parts (keys of nested objects).
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
    """Return the counts in an object of a reply; None if input or output tokens are missing.

    Args:
        wire: a table of `usage.toml`.
        counts: the object, or any other value in its place.
        is_empty: whether the reply is empty, so that 0 output tokens are plausible.
    """
    if not isinstance(counts, dict):
        return None
    find = _Finder(counts, WIRES[wire])
    read, output_tokens, total = find("input"), find("output"), find("total") or None
    cached_beside, stored_beside = find("cached_outside"), find("written_outside") or 0
    extra_tokens = (cached_beside or 0) + stored_beside
    # A prompt or a text never has 0 tokens; a 0 comes from a server that does not count.
    read = None if read == 0 and not extra_tokens else read
    output_tokens = None if output_tokens == 0 and not is_empty else output_tokens
    if total is not None and (read is None) is not (output_tokens is None):
        # The total determines the missing count.
        remaining = total - (read or output_tokens or 0)
        read, output_tokens = (
            (remaining if read is None else read),
            (remaining if output_tokens is None else output_tokens),
        )
    if read is None or output_tokens is None or output_tokens < 0 or read < 0:
        return None
    if extra_tokens and _is_outside(read, output_tokens, total, extra_tokens, by_default=find.beside_by_default):
        read += extra_tokens
    reasoning = find("reasoning")
    hidden = (total or 0) - read - output_tokens
    if hidden > 0 or (total is None and (reasoning or 0) > output_tokens):
        # Gemini and xAI count thinking apart from the output: the total exceeds the sum or, without a total, the
        # thinking exceeds the output.
        output_tokens += hidden if hidden > 0 else reasoning or 0
        reasoning = reasoning or hidden
    cached = find("cached")
    cached = cached if cached is not None else cached_beside
    stored = find("written") or stored_beside
    return TokenUsage(
        read,
        output_tokens,
        min(reasoning or 0, output_tokens),
        None if cached is None else min(cached, read),
        min(stored, read),
    )


def _is_outside(read: int, output_tokens: int, total: int | None, extra_tokens: int, *, by_default: bool) -> bool:
    """Return whether cached tokens are counted in addition to the input tokens, as Anthropic does."""
    if extra_tokens > read or total is None:
        return extra_tokens > read or by_default
    return total >= read + output_tokens + extra_tokens


class _Finder:
    """Finds counts under the names that one API uses."""

    def __init__(self, counts: Mapping[str, Any], names: Names) -> None:
        self._counts, self.names = counts, names
        # Gateways that use OpenAI's names already include the cached tokens in the input tokens.
        self.beside_by_default = "prompt_tokens" not in counts

    def __call__(self, kind: str) -> int | None:
        """Return the first count of a kind that is present."""
        heads, paths = self.names.get(kind, _NO_NAMES)
        if heads.isdisjoint(self._counts):
            # A reply contains only the names of one provider, so the search for most kinds of count ends here.
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
    """Return a count of at least 0, which some gateways write as text; None for any other value."""
    if type(value) is int:
        return value if value >= 0 else None
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}(?:\.0+)?", value.strip()):
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def merged(counts: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the counts of two events of a stream: the larger of each, because a last event may be incomplete."""
    out = dict(counts)
    for name, value in more.items():
        existing = out.get(name)
        if isinstance(value, Mapping) and isinstance(existing, Mapping):
            out[name] = merged(existing, value)
        elif value is not None and (_number(value) is None or (_number(existing) or 0) <= (_number(value) or 0)):
            out[name] = value
    return out
