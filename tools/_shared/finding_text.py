"""Limit the text of a tool output to the length that a model reads: 450 characters, 160 per line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hybrid.core.coordinates import length


class Lines(NamedTuple):
    """Limits of a text in characters, not counting coordinate markup."""

    most: int = 450
    longest: int = 160

    def cut(self, *lines: str) -> str:
        """Join the lines, each cut to `longest`."""
        return "\n".join(line[: self.longest] for line in lines)

    def fitting(self, texts: Iterable[str]) -> str:
        """Return the first text that fits, from texts of decreasing length; if none fits, cut the last text."""
        text = ""
        for text in texts:
            if length(text) <= self.most:
                return text
        return text[: self.most]
