"""The first line of an output, with the words for generated questions in colour."""

from __future__ import annotations

import re
from typing import Final

import click

# The output formats for a terminal.
PAINTED: Final = ("text", "narrow")
# The words for generated questions as a part of a head, which may be wrapped at any blank.
_IN_HEAD: Final = re.compile(r"(?<=\|)(\s+(?:and\s+)?)(generated\s+questions)(?=\s+\|)")


def paint_head(text: str, form: str) -> str:
    """Colour the words for generated questions in every head of an output, in the formats for a terminal."""
    return _IN_HEAD.sub(lambda match: match[1] + _paint(match[2]), text) if form in PAINTED else text


def _paint(words: str) -> str:
    return click.style(words, fg="yellow", bold=True)
