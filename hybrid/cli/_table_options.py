"""Options that every command has which prints tables of solvers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from hybrid.display.terminal import Shape, shape_of
from hybrid.errors import UsageError

protocol_option = click.option(
    "--protocol",
    type=click.Choice(["official", "strict"]),
    help="How replies are read: by the paper's own parser or by ours.  [default: as the run was made; strict for saved "
    "predictions]",
)
abstain_option = click.option(
    "--abstain",
    type=click.Choice(["chance", "wrong"]),
    help="What a question without a readable answer counts, for every kind of solver alike; tables show both and test "
    "one.  [default: chance in tables, wrong in the metrics of --json]",
)
allow_failed_option = click.option(
    "--allow-failed/--no-allow-failed",
    is_flag=True,
    help="Test differences also where more than 1 % of the questions failed.",
)
other_labels_option = click.option(
    "--other-labels",
    type=click.Choice(["refuse", "leave-out", "compare"]),
    help="Of a task whose authors corrected its labels, where solvers are scored by different ones: leave-out compares "
    "the other tasks, compare all as they are.  [default: refuse]",
)
published_option = click.option(
    "--published", is_flag=True, help="Below, what papers printed of the same metrics, and what limits comparison."
)


def _shape(_context: click.Context, _parameter: click.Parameter, value: Any) -> Shape:
    return shape_of(value)


tables_option = click.option(
    "--tables",
    type=click.Choice(["wide", "narrow", "auto"]),
    default="auto",
    show_default=True,
    callback=_shape,
    help="narrow keeps text within 80 columns: long names are folded, and columns stand in blocks below each other; "
    "auto is narrow in a terminal of fewer than 100 columns.",
)

FORMS = {
    "json": "One JSON object on stdout, everything else on stderr.",
    "csv": "One table, one number a line, nothing rounded; a name that a spreadsheet would compute gets an apostrophe.",
    "latex": "With the rules of booktabs.",
    "markdown": "Tables as GitHub shows them.",
}
"""The forms besides text in which tables are printed, and what is said of them."""


def form_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command `--json`, `--csv`, `--latex` and `--markdown`, of which it gets one as `form`, or None."""

    @functools.wraps(command)
    def formed(*args: Any, **options: Any) -> int:
        chosen = [form for form in FORMS if options.pop(f"form_{form}")]
        if len(chosen) > 1:
            raise UsageError(
                f"{' and '.join(f'--{form}' for form in chosen)} are forms of one output: give one of them"
            )
        return command(*args, form=chosen[0] if chosen else None, **options)

    for form, help_text in reversed(FORMS.items()):
        formed = click.option(f"--{form}", f"form_{form}", is_flag=True, help=help_text)(formed)
    return formed
