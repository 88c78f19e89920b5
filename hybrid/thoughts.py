"""Thoughts of a model that stand in its text: before the answer, in tags or in a channel of their own."""

from __future__ import annotations

import re
from typing import Final

_THOUGHT: Final = r"(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|analysis)"
_ENDS: Final = re.compile(rf"</{_THOUGHT}>|<\|channel\|>final<\|message\|>", re.IGNORECASE)
_BEGINS: Final = re.compile(rf"<{_THOUGHT}>|<\|channel\|>analysis<\|message\|>", re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """The text after the last thought that ends, and before one that never does."""
    *_, end = (0, *(match.end() for match in _ENDS.finditer(text)))
    return _BEGINS.split(text[end:], maxsplit=1)[0]
