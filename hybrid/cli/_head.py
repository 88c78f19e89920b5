"""The first line of an output, with the words for generated questions in colour."""

from __future__ import annotations

import click


def paint_head(text: str, form: str) -> str:
    """Colour the first words about generated questions before the first blank line, in the formats for a terminal."""
    from hybrid.scoring.head import GENERATED

    first, end, rest = text.partition("\n\n")
    return (
        first.replace(GENERATED, click.style(GENERATED, fg="yellow", bold=True), 1) + end + rest
        if form in PAINTED
        else text
    )


# The output formats for a terminal.
PAINTED = ("text", "narrow")
