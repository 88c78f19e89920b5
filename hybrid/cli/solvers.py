"""`hybrid solvers`: list the values of `--solver`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from hybrid.cli import _options as shared
from hybrid.cli._options import path_option, tables_option
from hybrid.display.terminal import Shape, folded

if TYPE_CHECKING:
    from hybrid.solving.solver import Solver


# Maximum length of a solver's name at the start of its docstring, in characters.
MAX_LABEL_LENGTH = 24


@click.group("solvers")
def command() -> None:
    """List the solvers."""


@command.command("list")
@path_option
@tables_option
@shared.as_json
def list_(tables: Shape, as_json: bool) -> int:
    """Print every solver: its name, its role in a comparison, whether it needs a model, and what it does."""
    from hybrid.plugins.registry import SOLVERS, load_each, solver_docstring

    solvers: dict[str, Solver] = dict(sorted(entry for package in SOLVERS for entry in load_each(package)))
    facts = []
    for name, solver in solvers.items():
        # The first paragraph of the docstring of the solver's module, without the name at its start.
        line = " ".join(solver_docstring(name).split("\n\n")[0].split())
        label, colon, rest = line.partition(": ")
        summary = rest if colon and len(label) <= MAX_LABEL_LENGTH else line
        facts.append({"name": name, "role": solver.role, "needs_model": solver.needs_model, "summary": summary})
    if as_json:
        click.echo(json.dumps({"solvers": facts}))
        return 0
    for fact in facts:
        model = "needs a model" if fact["needs_model"] else "no model"
        click.echo(folded(f"{fact['name']:12} {fact['role']:11} {model:14} {fact['summary']}", tables, hang=4))
    return 0
