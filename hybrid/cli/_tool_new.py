"""`hybrid tools new NAME`: creates a custom tool in one file, with a test."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from hybrid.cli import _option_types as types
from hybrid.core.errors import UsageError
from hybrid.plugins.discovery import KINDS, TOOLS, folders, is_word, no_word
from hybrid.plugins.templates import filled, write

# Code by which a test in the same folder finds its tool.
BESIDE: Final = (", add_search_path", "add_search_path([Path(__file__).parent], __file__)\n\n")


@click.command("new")
@click.argument("name")
@click.option(
    "--path",
    "--tool-path",
    "folder",
    type=types.FOLDER,
    metavar="DIR",
    help="Write into DIR, which is created if it does not exist.  [default: tools/ of the project]",
)
@click.option(
    "--learned", is_flag=True, help="Write a tool that runs a network; its test saves a tiny checkpoint and loads it."
)
@click.option("--module", is_flag=True, help="With --learned: the file defines the network as a torch module.")
def new(name: str, folder: Path | None, *, learned: bool, module: bool) -> int:
    """Write a new tool in one file, and its test, for you to change; both run at once (docs/add-a-tool.md).

    In DIR the test is next to the tool (in DIR/tools if DIR has folders by kind, such as benchmarks); in the project it
    is in tests/tools/.

    \b
    Examples:
      hybrid tools new brightness --path my_tools
      hybrid tools new likeness --learned --path my_tools
      hybrid tools new grain --learned --module --path my_tools
      hybrid tools new brightness
    """
    if not is_word(name):
        raise UsageError(f"{name!r}: {no_word('tool')}, and begins with a letter")
    if module and not learned:
        raise UsageError("--module is for a learned tool: add --learned")
    tools_folder = Path(folders("tools")[0])
    path = folder
    # A folder laid out like the project has its tools in `tools/`, and tools next to that folder are not found.
    if folder is not None and any((folder / kind.folder).is_dir() for kind in KINDS):
        folder /= TOOLS
    option = "" if path is None else f" --path {shlex.quote(str(path))}"
    target = (folder or tools_folder) / f"{name}.py"
    test = (tools_folder.parent / "tests" / "tools" if folder is None else folder) / f"test_{name}.py"
    # A tool with the name of a tool of the project would be ignored.
    for place in (target.with_suffix(""), tools_folder / f"{name}.py", tools_folder / name):
        if place.exists():
            raise UsageError(f"{place} already exists")
    files = tool_files(name, option, learned=learned, module=module, same_folder=folder is not None)
    write({target: files[f"{name}.py"], test: files[f"test_{name}.py"]})
    click.echo(f"wrote {target}\nwrote {test}")
    if learned:
        weights = f" --weights {name}_tiny{option}"
        click.echo(f"next: python {shlex.quote(str(test))} {name}_tiny\n      hybrid tools check {name}{weights}")
    else:
        click.echo(f"next: hybrid tools check {name} --contract{option}\n      hybrid tools run {name} IMAGE{option}")
    return 0


def tool_files(
    name: str, option: str, *, learned: bool = False, module: bool = False, same_folder: bool = False
) -> dict[str, str]:
    """Return the file of a tool and its test, by file name; `option` is the `--path` of its commands."""
    template = "module" if module else "learned" if learned else "tool"
    files = filled(template, {" --path my_tools": option, "my_tool": name})
    if not same_folder:
        test = f"test_{name}.py"
        for passage in (*BESIDE, *(() if learned else ("from pathlib import Path\n",))):
            files[test] = files[test].replace(passage, "")
    return files
