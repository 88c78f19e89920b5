"""`--path DIR`: additional search folders of plug-ins, for commands that use plug-ins."""

from __future__ import annotations

from pathlib import Path

import click

from hybrid.config.plugin_path import FORMER_NAME, PATH
from hybrid.core.errors import UsageError
from hybrid.plugins.registry import add_search_path, left_out, outside_folders


def _look(context: click.Context, _parameter: click.Parameter, places: tuple[Path, ...]) -> None:
    if not context.resilient_parsing:
        add_search_path(places, PATH.name)


# Applied before other options are parsed, for the rest of the process.
path_option = click.option(
    PATH.name,
    FORMER_NAME,
    "path",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar=PATH.metavar,
    is_eager=True,
    expose_value=False,
    callback=_look,
    help=PATH.help,
)


def check_name_conflict(package: str, name: str) -> None:
    """Raise `UsageError` if a given folder also has a plug-in of this name, which would be ignored silently."""
    reason = left_out(package).get(name, "")
    if reason.startswith(tuple(map(str, outside_folders(package)))):
        raise UsageError(reason)
