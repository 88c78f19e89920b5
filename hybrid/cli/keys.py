"""`hybrid keys`: list which keys of providers are found, and where."""

from __future__ import annotations

import json

import click

from hybrid.cli import _options as shared
from hybrid.cli._options import tables_option
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape


@click.command("keys")
@tables_option
@shared.as_json
def command(tables: Shape, as_json: bool) -> int:
    """List which keys are found, in the environment or in `.env` of the working folder. Values are never shown.

    The environment overrides the file. From the file, only variables named like secrets are read (..._API_KEY,
    ..._TOKEN). Exit code 3 if no provider's key is found.

    \b
    Example:
      hybrid keys
    """
    from hybrid.display.tables import NONE, RENDERERS, Column, Table
    from hybrid.models.env_file import ENV_FILE, found_keys, unread_names

    keys = found_keys()
    if ignored := unread_names():
        tell(f"note: not read from {ENV_FILE}, because only keys are read: {', '.join(ignored)}")
    if as_json:
        rows = [{"variable": key.variable, "provider": key.provider, "found_in": key.origin or None} for key in keys]
        click.echo(json.dumps({"keys": rows, "not_read": list(ignored)}))
    else:
        columns = tuple(Column(name, "left") for name in ("variable", "provider", "found in"))
        cells = tuple((key.variable, key.provider or NONE, key.origin or NONE) for key in keys)
        click.echo(RENDERERS[TEXT[tables]](Table("", columns, cells)), nl=False)
    return 0 if any(key.origin for key in keys) else 3
