"""`hybrid new`: begin a repository of one's own."""

from __future__ import annotations

from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Final

import click

from hybrid.cli._plugin_template import FILES
from hybrid.cli._tool_new_weight_free import INSIDE, TEMPLATE, TEST
from hybrid.errors import UsageError
from hybrid.plugins import folders, is_word, no_word

PYTHON: Final = ">=3.11,<3.14"
"""The versions that the project runs with (pyproject.toml)."""


@click.group("new")
def command() -> None:
    """Begin a repository of one's own."""


@command.command()
@click.argument("name")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="The repository's folder.  [default: NAME]"
)
def plugin(name: str, out: Path | None) -> int:
    """Write a repository with a tool, a solver and a statistic, a test of each, and continuous integration.

    Its tests pass as it stands (docs/plugins.md).

    \b
    Example:
      hybrid new plugin glow
    """
    if not is_word(name):
        raise UsageError(f"{name!r}: {no_word('plug-in')}, and begins with a letter")
    if iskeyword(name) or name == "tests" or ((spec := find_spec(name)) is not None and spec.origin is not None):
        raise UsageError(f"{name!r}: Python knows this name, of a module or as a keyword; choose another")
    place = out or Path(name)
    if place.exists():
        raise UsageError(f"{place} is there already")
    for path, text in texts(name).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    click.echo(f"wrote {place}\nnext: cd {place} && uv run pytest")
    return 0


def texts(name: str) -> dict[str, str]:
    """The files of the repository by their path in it."""
    title = "".join(word.capitalize() for word in name.split("_"))
    checkout = Path(folders("hybrid")[0]).parent.as_posix()
    made = {
        path.format(name=name): text.format(name=name, title=title, hybrid=checkout, python=PYTHON)
        for path, text in FILES.items()
    }
    tool = f"{name}_light"
    made[f"{name}/tools/{tool}.py"] = TEMPLATE.format(name=tool, title=f"{title}Light", path=f" --path {name}")
    made[f"tests/test_{tool}.py"] = TEST.format(name=tool, file=f"tests/test_{tool}.py", head=INSIDE)
    return made
