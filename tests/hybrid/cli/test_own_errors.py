"""An error in the user's own code is one line with file and line, and `--debug` shows the traceback."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hybrid
from hybrid.core.errors import DataError, ToolError
from tests.finished_runs import Command, Words
from tests.tables import cases
from tests.tool_source import tool_source

pytestmark = pytest.mark.system
JIGSAW = ("run", "blink", "--data", "sample", "--task", "Jigsaw", "--limit", "1", "--path", "mine")

OWN = {
    "baselines": """
from hybrid.solving.solver import Solver

class Own(Solver):
    role = "chance"
    async def ask(self, prompt, ctx):
        pass

SOLVER = Own()
""",
    "models": """
def MODEL(*args, **options):
    pass
""",
    "sections": """
from hybrid.scoring.result import Section

def rows(comparison):
    pass

SECTION = Section("own", "Which?", (), rows)
""",
    "exports": """
from hybrid.exporting.base import Exporter

class Own(Exporter):
    form = about = "own"
    def export(self, run, path, options):
        pass

EXPORTER = Own()
""",
}


@pytest.fixture(autouse=True)
def mine(command: Command, tmp_path: Path, tools_as_they_were: None) -> Path:
    """A folder with the tool that `tools new` writes, and a picture next to it."""
    assert command("tools", "new", "bad", "--path", "mine").code == 0
    Image.fromarray(np.full((20, 30, 3), 90, np.uint8)).save("photo.png")
    return tmp_path / "mine"


def break_(file: Path, prefix: str, line: str = '{}["nokey"]') -> str:
    """Insert a line that raises an error before the line that contains `prefix`; return its location as messages print
    it."""
    lines = file.read_text().splitlines()
    at = next(place for place, item in enumerate(lines) if prefix in item)
    indent = " " * (len(lines[at]) - len(lines[at].lstrip()))
    file.write_text("\n".join([*lines[:at], indent + line, *lines[at:]]) + "\n")
    return f"{file.parent.name}/{file.name}, line {at + 1}"


def test_a_tool_that_raises(command: Command, mine: Path) -> None:
    place = break_(mine / "bad.py", "half = max(")
    result = command("tools", "run", "bad", "photo.png", "--path", "mine")
    assert (result.code, result.err) == (3, f"hybrid: the tool failed: KeyError: 'nokey' ({place})\n")
    err = command("tools", "run", "bad", "photo.png", "--path", "mine", "--debug").err
    assert "Traceback (most recent call last)" in err
    assert err.endswith(result.err)
    with pytest.raises(ToolError, match=re.escape(place)):
        hybrid.tool("bad", path="mine").run("photo.png")


def test_a_card_whose_comma_was_forgotten(command: Command, mine: Path) -> None:
    text = tool_source("bad", "return []")
    (mine / "bad.py").write_text(text.replace('"Is for tests."),)', '"Is for tests."))'))
    err = command("tools", "run", "bad", "photo.png", "--path", "mine").err
    assert re.search(r"mine/bad\.py:\d+: cannot be imported: TypeError: backends must be a tuple", err)


@pytest.mark.parametrize(*cases(__file__, "test_other_things_that_raise"))
def test_other_things_that_raise(command: Command, mine: Path, folder: str, words: Words) -> None:
    for kind in ("tools", folder):
        (mine / kind).mkdir()
    file = mine / folder / "own.py"
    file.write_text(OWN[folder])
    place = break_(file, "    pass")
    assert command(*JIGSAW[:-2], "--solver", "chance", "--out", "run").code == 0
    result = command(*words)
    assert result.code != 0
    assert f"KeyError: 'nokey' ({place})" in result.err


def test_a_name_of_the_project_is_refused_where_it_is_meant(command: Command, mine: Path) -> None:
    (mine / "depth.py").write_text((mine / "bad.py").read_text().replace('"bad"', '"depth"'))
    for words in (("run", "depth", "photo.png"), ("show", "depth"), ("check", "depth")):
        result = command("tools", *words, "--path", "mine", code=2)
        assert "a tool 'depth' already exists" in result.err
        assert "rename one of them" in result.err
    assert "--path DIR adds your own" in command("tools", "show", "brightness").err


def test_the_licence_of_a_tool_from_outside_is_not_ours(command: Command) -> None:
    assert "licence      not stated" in command("tools", "show", "bad", "--path", "mine").out
    assert "that of this project" in command("tools", "show", "crop").out


def test_a_tool_object_is_run_and_a_missing_picture_is_named() -> None:
    from tools.crop import TOOL

    with pytest.raises(DataError, match=r"^nowhere\.png: No such file"):
        hybrid.tool(TOOL).run("nowhere.png")


def test_a_new_recipe_runs_as_it_stands(command: Command) -> None:
    words = ("new", "recipe", "traffic", "--path", "recipes")
    assert "next: hybrid run traffic" in command(*words).out
    result = command("run", "traffic", "--data", "sample", "--limit", "2", "--solver", "chance", "--path", "recipes")
    assert result.code == 0, result.err
    assert "already exists" in command(*words).err
