"""Prints results on stdout and failures on stderr, for the commands that score."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from hybrid.core.secrets import redact
from hybrid.display.terminal import TEXT, Shape

if TYPE_CHECKING:
    from hybrid.scoring.reports import ScoreReport

FAILED_SHOWN = 20
# The output formats for a terminal.
PAINTED: Final = ("text", "narrow")
# The words for generated questions as a part of a head, which may be wrapped at any blank.
_IN_HEAD: Final = re.compile(r"(?<=\|)(\s+(?:and\s+)?)(generated\s+questions)(?=\s+\|)")


def paint_head(text: str, form: str) -> str:
    """Colour the words for generated questions in every head of an output, in the formats for a terminal."""
    return _IN_HEAD.sub(lambda match: match[1] + _paint(match[2]), text) if form in PAINTED else text


def _paint(words: str) -> str:
    return click.style(words, fg="yellow", bold=True)


def show_scores(report: ScoreReport, tables: Shape, *, as_json: bool) -> None:
    """Print scores as tables or as JSON."""
    if as_json:
        click.echo(json.dumps(report.as_json()))
    elif report.solvers:
        form = TEXT[tables]
        click.echo(paint_head(report.render(form), form))


def print_failures(lines: Sequence[str]) -> None:
    """Print the first failures on stderr, without secrets, and the number of further failures."""
    for line in lines[:FAILED_SHOWN]:
        click.echo(f"failed: {redact(line)}", err=True)
    if len(lines) > FAILED_SHOWN:
        click.echo(f"failed: and {len(lines) - FAILED_SHOWN} more", err=True)
