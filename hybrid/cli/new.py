"""`hybrid new`: create a plug-in repository, a benchmark, or a recipe."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

import click

from hybrid.cli import _option_types as types
from hybrid.cli._tool_new import tool_files
from hybrid.core.errors import UsageError
from hybrid.plugins.discovery import flat_tools, folders, is_word, no_word, own_names
from hybrid.plugins.templates import filled, write


@click.group("new")
def command() -> None:
    """Create a plug-in repository, a benchmark, or a recipe."""


@command.command()
@click.argument("name")
@click.option("-o", "--out", type=types.ANY_PATH, metavar="DIR", help="Folder of the new repository.  [default: NAME]")
def plugin(name: str, out: Path | None) -> int:
    """Write a repository with a tool, a solver and a statistic, a test of each, and continuous integration.

    Its tests pass without changes (docs/plugins.md).

    \b
    Example:
      hybrid new plugin glow
    """
    if not is_word(name):
        raise UsageError(f"{name!r}: {no_word('plug-in')}, and begins with a letter")
    if iskeyword(name) or name == "tests" or ((spec := find_spec(name)) is not None and spec.origin is not None):
        raise UsageError(
            f"{name!r}: this is a Python keyword, or the name of a module or of the tests; choose another name"
        )
    place, tool = out or Path(name), f"{name}_light"
    if place.exists():
        raise UsageError(f"{place} already exists")
    files = filled("plugin", {"my_plugin": name, "CHECKOUT": Path(folders("hybrid")[0]).parent.as_posix()})
    about = tool_files(tool, f" --path {name}")
    files |= {f"{name}/tools/{tool}.py": about[f"{tool}.py"], f"tests/test_{tool}.py": about[f"test_{tool}.py"]}
    write({place / path: text for path, text in files.items()})
    click.echo(f"wrote {place}\nnext: cd {place} && uv run pytest")
    return 0


@command.command()
@click.argument("name")
@click.option(
    "--path",
    "folder",
    type=types.FOLDER,
    default="mine",
    show_default=True,
    metavar="DIR",
    help="Write DIR/benchmarks/NAME.py and its test.",
)
def benchmark(name: str, folder: Path) -> int:
    """Write a benchmark in one file, and its test, for you to change; both run at once (docs/add-a-benchmark.md).

    Its questions show two pictures and ask for a point; it generates questions, and defines a metric.

    \b
    Example:
      hybrid new benchmark changes
    """
    if not is_word(name):
        raise UsageError(f"{name!r}: {no_word('benchmark')}, and begins with a letter")
    place = _benchmark_folder(name, folder)
    files = filled("benchmark", {" --path my_benchmarks": f" --path {shlex.quote(str(folder))}", "my_benchmark": name})
    write({place / path: text for path, text in files.items()})
    test = place / f"test_{name}.py"
    click.echo(
        f"wrote {place / f'{name}.py'}\nwrote {test}\nnext: pytest {shlex.quote(str(test))}\n"
        f"      hybrid run {name} --data sample --limit 4 --solver chance --path {shlex.quote(str(folder))}\n"
        "chance guesses no points, so that command answers 0 of 4; name a model for answers"
    )
    return 0


@command.command()
@click.argument("name")
@click.option(
    "--path",
    "folder",
    type=types.FOLDER,
    default="mine",
    show_default=True,
    metavar="DIR",
    help="Write DIR/benchmarks/NAME.yaml.",
)
def recipe(name: str, folder: Path) -> int:
    """Write a recipe: a benchmark from a table of questions, in one file without code (docs/recipes.md).

    It runs at once, on generated questions; replace its values with those of your table.

    \b
    Example:
      hybrid new recipe traffic
    """
    if not is_word(name):
        raise UsageError(f"{name!r}: {no_word('benchmark')}, and begins with a letter")
    place = _benchmark_folder(name, folder) / f"{name}.yaml"
    write({place: filled("recipe", {"my_recipe": name})[f"{name}.yaml"]})
    path = shlex.quote(str(folder))
    click.echo(f"wrote {place}\nnext: hybrid run {name} --data sample --solver chance,specialist --path {path}")
    return 0


def _benchmark_folder(name: str, folder: Path) -> Path:
    """Return the folder of benchmarks in `folder`. Raises `UsageError` if new plug-ins there would not be found."""
    place = folder / "benchmarks"
    if name in own_names("hybrid.benchmarks"):
        raise UsageError(
            f"{name} is already a benchmark of the project, which would be used instead; choose another name"
        )
    for existing in (place / f"{name}.py", place / f"{name}.yaml", place / name):
        if existing.exists():
            raise UsageError(f"{existing} already exists")
    if tools := flat_tools(folder):
        raise UsageError(
            f"{folder} contains tools ({', '.join(tools)}), which would no longer be found next to a benchmarks/ "
            f"folder: move them to {folder / 'tools'}, or choose another folder with --path"
        )
    return place
