"""Prints results on stdout and failures on stderr, for the commands that score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hybrid.core.secrets import redact
from hybrid.display.terminal import TEXT, Shape

if TYPE_CHECKING:
    from hybrid.scoring.reports import ScoreReport

FAILED_SHOWN = 20
# The output formats for a terminal.
PAINTED = ("text", "narrow")


def paint_head(text: str, form: str) -> str:
    """Colour the first words about generated questions before the first blank line, in the formats for a terminal."""
    from hybrid.scoring.head import GENERATED

    first, end, rest = text.partition("\n\n")
    return (
        first.replace(GENERATED, click.style(GENERATED, fg="yellow", bold=True), 1) + end + rest
        if form in PAINTED
        else text
    )


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
