"""`hybrid tools new NAME`: begin a tool of one's own, in one file with a test."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from hybrid.cli import _tool_new_learned, _tool_new_weight_free
from hybrid.errors import UsageError
from hybrid.plugins import folders, is_word, no_word


@click.command("new")
@click.argument("name")
@click.option(
    "--path",
    "--tool-path",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write into DIR, which is made where it is not there.  [default: tools/ of the project]",
)
@click.option(
    "--learned", is_flag=True, help="Around a network, with a test on a tiny checkpoint that it saves itself."
)
@click.option("--module", is_flag=True, help="With --learned: the network is a torch module that the file defines.")
def new(name: str, folder: Path | None, *, learned: bool, module: bool) -> int:
    """Write a new tool that runs as it stands, in one file, and a test of it, to be changed (docs/add-a-tool.md).

    In DIR the test lies next to it; in the project it lies in tests/tools/.

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
        raise UsageError("--module says which network: add --learned")
    tools_folder = Path(folders("tools")[0])
    tests = tools_folder.parent / "tests" / "tools" if folder is None else folder
    target, test = (folder or tools_folder) / f"{name}.py", tests / f"test_{name}.py"
    for place in (target, target.with_suffix(""), test, *_ours(tools_folder, name)):
        if place.exists():
            raise UsageError(f"{place} is there already")
    option = "" if folder is None else f" --path {shlex.quote(str(folder))}"
    title = "".join(word.capitalize() for word in name.split("_"))
    target.parent.mkdir(parents=True, exist_ok=True)
    tests.mkdir(parents=True, exist_ok=True)
    kind = _tool_new_learned if learned else _tool_new_weight_free
    parts = _tool_new_learned.parts(name, module=module) if learned else {}
    target.write_text(kind.TEMPLATE.format(name=name, title=title, path=option, **parts))
    head = kind.INSIDE if folder is None else kind.BESIDE
    test.write_text(kind.TEST.format(name=name, file=test.name, head=head, **parts))
    click.echo(f"wrote {target}\nwrote {test}")
    if learned:
        weights = f" --weights {name}_tiny{option}"
        click.echo(f"next: python {test} {name}_tiny\n      hybrid tools check {name}{weights}")
    else:
        click.echo(f"next: hybrid tools check {name} --contract{option}\n      hybrid tools run {name} IMAGE{option}")
    return 0


def _ours(folder: Path, name: str) -> tuple[Path, ...]:
    """Where the project would have a tool of that name."""
    return folder / f"{name}.py", folder / name
