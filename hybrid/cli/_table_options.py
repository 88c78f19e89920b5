"""Options that every command has which prints tables of solvers."""

from __future__ import annotations

from typing import Any

import click

from hybrid.display import Shape, shape_of

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
