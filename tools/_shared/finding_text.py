"""The text of a finding, within what a model reads of several before it answers: 450 characters, 160 a line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hybrid.core.coordinates import length


class Lines(NamedTuple):
    """How much a text may take, in characters without the marks of its places."""

    most: int = 450
    longest: int = 160

    def cut(self, *lines: str) -> str:
        """These lines, each cut to the longest."""
        return "\n".join(line[: self.longest] for line in lines)

    def fitting(self, texts: Iterable[str]) -> str:
        """The first text that fits, of ones that say less and less; else the last, cut."""
        text = ""
        for text in texts:
            if length(text) <= self.most:
                return text
        return text[: self.most]
