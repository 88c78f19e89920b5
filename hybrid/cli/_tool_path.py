"""`--tool-path DIR`: tools that lie outside of the project, for the commands where tools are named."""

from __future__ import annotations

from pathlib import Path

import click

from hybrid.registry import PATH_VARIABLE, look_also_in


def _look(context: click.Context, _parameter: click.Parameter, places: tuple[Path, ...]) -> None:
    if not context.resilient_parsing:
        look_also_in(places, "--tool-path")


tool_path_option = click.option(
    "--tool-path",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    is_eager=True,
    expose_value=False,
    callback=_look,
    help="Find tools in DIR too: each file NAME.py, each folder NAME with an __init__.py. May be given several times, "
    f"besides the folders of ${PATH_VARIABLE}.",
)
"""Looked in before other options are read, for the rest of the process. Where a tool lies is no part of a run's
configuration; its code is (`hybrid/serving/sources.py`)."""
