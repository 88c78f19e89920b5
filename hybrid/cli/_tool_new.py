"""`hybrid tools new NAME`: begin a tool of one's own, in one file with a test."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from hybrid.errors import UsageError
from hybrid.plugins import folders, is_word, no_word

TEMPLATE = '''"""How light an image is, as a whole or in one half: an example to be changed.

`hybrid tools run {name} photo.jpg{path}`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from hybrid.tool import Args, BackendCard, Card, Evidence, KnownAnswer, CheckCase, Request, Tool


class {title}Args(Args):
    """The arguments of a call."""

    side: Literal["all", "left", "right"] = Field("all", description="The whole image, or its left or right half.")


class Classical:
    """The weight-free backend."""

    def setup(self, device: str, weights: str | None) -> None:
        """Nothing to load."""

    def run(self, requests: Sequence[Request[{title}Args]]) -> list[Evidence]:
        """One evidence a request, in order. Raise `ToolError` for a request that cannot be answered."""
        found = []
        for request in requests:
            pixels = request.images[0]
            half = max(1, pixels.shape[1] // 2)
            part = {{"all": pixels, "left": pixels[:, :half], "right": pixels[:, -half:]}}[request.args.side]
            light = float(part.mean()) / 255
            said = f"Mean lightness ({{request.args.side}}): {{light:.2f}} of 1."
            found.append(Evidence(said, {{"lightness_0_1": light}}, confidence=1.0))
        return found


def white_left_half() -> CheckCase:
    """A question whose answer is known."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20] = 255
    return CheckCase((pixels,), {{"side": "left"}}, lambda it: None if it.data["lightness_0_1"] == 1 else "it is white")


TOOL = Tool(
    card=Card(
        name="{name}",
        summary="Says how light an image is, as a whole or in its left or right half.",
        limits="Says nothing about what the image shows.",
        backends=(BackendCard("classical", "1", Classical, "Mean of all channels."),),
    ),
    args={title}Args,
    checks=(KnownAnswer("white left half", white_left_half),),
)
'''

TEST = '''"""`{name}` keeps the contract of all tools, and knows the answers of its own questions: `pytest {file}`."""

{head}
WEIGHTS: dict[str, str] = {{}}
"""By name of a tool the directory or hub id of weights that are not its default ones."""


@pytest.fixture(scope="module")
def backend():
    """The backend that answers: the learned one where its weights are on disk, else the weight-free one."""
    try:
        return Loader(BackendChoice(weights=WEIGHTS, unchecked=True)).load(load("tools", "{name}")).backend
    except NoBackend as error:
        pytest.skip(str(error))


def test_it_keeps_the_contract(backend) -> None:
    assert breaches("{name}", load("tools", "{name}"), ServiceOptions(weights=WEIGHTS, unchecked=True)) == ()


def test_it_knows_its_own_answers(backend) -> None:
    tool = load("tools", "{name}")
    if not tool.checks:
        pytest.skip("it has no images with known answers yet: `checks` of its TOOL")
    assert failures(run_checks(tool, backend)) == []
'''
IMPORTS = """from hybrid.serving.contract import breaches
from hybrid.serving.known_answers import failures, run_checks
from hybrid.config import BackendChoice, ServiceOptions
from hybrid.serving.loader import Loader
"""
INSIDE = f"""import pytest

from hybrid.errors import NoBackend
from hybrid.registry import load
{IMPORTS}"""
BESIDE = f"""from pathlib import Path

import pytest

from hybrid.errors import NoBackend
from hybrid.registry import load, look_also_in
{IMPORTS}
look_also_in([Path(__file__).parent], __file__)
"""


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
def new(name: str, folder: Path | None) -> int:
    """Write a new tool that runs as it stands, in one file, and a test of it, to be changed (docs/add-a-tool.md).

    In DIR the test lies next to it; in the project it lies in tests/tools/.

    \b
    Examples:
      hybrid tools new brightness --path my_tools
      hybrid tools new brightness
    """
    if not is_word(name):
        raise UsageError(f"{name!r}: {no_word('tool')}, and begins with a letter")
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
    target.write_text(TEMPLATE.format(name=name, title=title, path=option))
    head = INSIDE if folder is None else BESIDE
    test.write_text(TEST.format(name=name, file=test.name, head=head))
    click.echo(f"wrote {target}\nwrote {test}")
    click.echo(f"next: hybrid tools check {name} --contract{option}\n      hybrid tools run {name} IMAGE{option}")
    return 0


def _ours(folder: Path, name: str) -> tuple[Path, ...]:
    """Where the project would have a tool of that name."""
    return folder / f"{name}.py", folder / name
