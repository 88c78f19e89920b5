"""Tools outside of the project: created, found, refused, checked, and used in a run."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hybrid.config import ServiceOptions
from hybrid.core.errors import UsageError
from hybrid.plugins import discovery as plugins
from hybrid.plugins.discovery import add_search_path, outside
from hybrid.plugins.registry import described_by, load, loaded, names
from hybrid.serving.contract import breaches
from tests.finished_runs import Command, Words
from tests.tables import cases

# A whole tool.
FORTY_LINES = '''"""Redness: how red an image is."""

from collections.abc import Sequence

from hybrid.core.errors import ToolError
from hybrid.tool import Args, BackendCard, Card, Evidence, Request, Tool


class RednessArgs(Args):
    """No arguments."""


class Classical:
    def setup(self, device: str, weights: str | None) -> None:
        """Nothing to load."""

    def run(self, requests: Sequence[Request[RednessArgs]]) -> list[Evidence]:
        found = []
        for request in requests:
            pixels = request.images[0].reshape(-1, 3).astype(float)
            total = pixels.sum()
            if total == 0:
                raise ToolError("redness: a black image has no colour")
            share = float(pixels[:, 0].sum() / total)
            found.append(Evidence(f"Red is {share:.0%} of the light.", {"red_0_1": share}, 1.0))
        return found


TOOL = Tool(
    card=Card(
        name="redness",
        summary="Says which share of an image's light is red.",
        limits="Says nothing about what the image shows.",
        backends=(BackendCard("classical", "1", Classical, "The red channel's share of the sum."),),
    ),
    args=RednessArgs,
)
'''


pytestmark = pytest.mark.usefixtures("tools_as_they_were")


@pytest.fixture
def tool_folder(tmp_path: Path) -> Path:
    """A folder with one tool."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "redness.py").write_text(FORTY_LINES)
    return folder


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A red picture."""
    Image.fromarray(np.full((8, 12, 3), (200, 0, 0), np.uint8)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


@pytest.mark.system
def test_every_command_that_names_a_tool_finds_it(command: Command, tool_folder: Path, photo: Path) -> None:
    path = ("--path", tool_folder)
    assert "; available: " in command("tools", "show", "redness").err
    assert "Says which share" in command("tools", "show", "redness", *path).out
    assert json.loads(command("tools", "run", "redness", photo, *path, "--json").out)["data"] == {"red_0_1": 1.0}
    result = command("tools", "list", *path, code=0)
    assert [line.split()[0] for line in result.out.splitlines() if line.startswith("red")] == ["redness"]
    assert command("tools", "check", "redness", *path, "--contract").out == "redness: keeps the contract\n"


def test_the_environment_names_folders_too(tool_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "redder.py").write_text(FORTY_LINES.replace('"redness"', '"redder"'))
    monkeypatch.setenv("HYBRID_TOOL_PATH", f"{tool_folder}{os.pathsep}{second}")
    assert {"redness", "redder"} <= set(names("tools"))
    assert loaded("tools", "redder") is None
    assert load("tools", "redder") is loaded("tools", "redder")
    assert outside() == (tool_folder, second)


@pytest.mark.parametrize(*cases(__file__, "test_a_name_that_is_taken_or_no_word_is_told_and_left_out"))
def test_a_name_that_is_taken_or_no_word_is_told_and_left_out(
    tool_folder: Path, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    previous = names("tools")
    (tool_folder / name).write_text(FORTY_LINES)
    add_search_path([tool_folder], "--path")
    with described_by(lambda: pytest.fail("nothing is imported")):
        assert set(names("tools")) - {"redness"} == set(previous)
        names("tools")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: left out: ")
    assert re.search(message, line)
    assert load("tools", "depth").card.name == "depth", "a name of the project stays its own"


def test_of_two_tools_with_one_name_neither_has_it(tool_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "redness.py").write_text(FORTY_LINES)
    (tmp_path / "second" / "redder.py").write_text(FORTY_LINES.replace('"redness"', '"redder"'))
    add_search_path([tool_folder, tmp_path / "second"], "--path")
    assert "redness" not in names("tools")
    assert load("tools", "redder").card.name == "redder"
    with pytest.raises(UsageError, match=r"a tool 'redness' already exists, \S+/redness.py; rename one of them"):
        load("tools", "redness")


def test_a_folder_that_is_none_or_holds_nothing_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = command("tools", "list", "--path", "nowhere")
    assert (result.code, result.err) == (2, "hybrid: --path nowhere: folder not found\n")
    result = command("tools", "list", "--path", "empty")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "it contains neither a tool (a file NAME.py that defines TOOL)" in result.err


BROKEN = {name: (text, case) for name, text, case in cases(__file__, "BROKEN")[1]} | {
    "named": (FORTY_LINES.replace('name="redness"', 'name="red"'), "card has the name 'named', not 'red'")
}


@pytest.mark.system
def test_a_broken_file_costs_a_line_with_its_place(command: Command, tool_folder: Path) -> None:
    for name, (code, _) in BROKEN.items():
        (tool_folder / f"{name}.py").write_text(code)
    result = command("tools", "list", "--path", tool_folder, code=3)
    lines = result.err.splitlines()
    for name, (_, text) in BROKEN.items():
        assert len([line for line in lines if line.startswith(f"{name}: ") and text in line]) == 1, name
    assert {"redness", "depth"} <= {line.split()[0] for line in result.out.splitlines()}
    rendered = command("tools", "show", "unclosed", "--path", tool_folder, code=2)
    assert BROKEN["unclosed"][1] in rendered.err
    assert rendered.err.count("\n") == 1


@pytest.mark.system
def test_no_command_imports_it_or_ends_with_it(command: Command, tool_folder: Path) -> None:
    (tool_folder / "ends.py").write_text("import os\nos._exit(4)\n")
    (tool_folder / "stops.py").write_text("raise SystemExit(0)\n")
    result = command("tools", "list", "--path", tool_folder, code=3)
    process, stopped = (line for line in result.err.splitlines() if line.startswith(("ends:", "stops:")))
    assert process.endswith("ends.py: cannot be imported: ended its worker process: exit code 4")
    assert stopped.endswith("stops.py:1: cannot be imported: SystemExit: 0")
    assert {"redness", "depth"} <= {line.split()[0] for line in result.out.splitlines()}
    assert not {"tools.redness", "tools.ends"} & set(sys.modules)


ILL = {
    "sleeps": ("import time\n", "time.sleep(10000)", "sleeps did not answer within 6 s"),
    "ends": ("import os\n", "os._exit(4)", "ends ended its worker process: exit code 4"),
}


@pytest.mark.system
def test_a_call_that_hangs_or_ends_its_process_costs_neither_the_command_nor_the_page(
    command: Command, tool_folder: Path, photo: Path, tmp_path: Path
) -> None:
    for name, (previous, does, _) in ILL.items():
        text = FORTY_LINES.replace('name="redness"', f'name="{name}"')
        text = text.replace("found = []", f"{does}\n        found = []")
        (tool_folder / f"{name}.py").write_text(
            text.replace("from collections.abc", f"{previous}from collections.abc", 1)
        )
    words = ("--path", tool_folder, "--max-seconds", "6")
    for name, (*_, message) in ILL.items():
        result = command("tools", "run", name, photo, *words)
        assert (result.code, result.out, result.err) == (3, "", f"hybrid: {message}\n")
    (tmp_path / "photos").mkdir()
    photo.rename(tmp_path / "photos" / "photo.png")
    command("tools", "gallery", tmp_path / "photos", "-o", "page", "--backend", "classical", *words, code=0)
    page = (tmp_path / "page" / "index.html").read_text()
    for name, (*_, other_text) in ILL.items():
        assert f'<b>{name}</b><p class="said" dir="auto">{other_text}</p>' in page
    assert '<b>redness</b><p class="said" dir="auto">Red is 100% of the light.</p>' in page


def test_a_helper_in_its_folder_is_where_the_error_is(tool_folder: Path) -> None:
    (tool_folder / "red").mkdir()
    (tool_folder / "red" / "__init__.py").write_text("from tools.red.helper import HELP\n")
    (tool_folder / "red" / "helper.py").write_text("\nHELP = None.help\n")
    add_search_path([tool_folder], "--path")
    with pytest.raises(UsageError, match=r"red/helper\.py:2: cannot be imported: AttributeError"):
        load("tools", "red")


@pytest.mark.system
def test_what_it_imports_and_not_where_it_lies_is_its_code(tool_folder: Path, tmp_path: Path) -> None:
    """A tool's hash covers the files that it imports but not their location. A new process computes it, because it has
    read no file yet."""

    def code(folder: Path) -> str:
        program = (
            "from pathlib import Path; from hybrid.plugins.discovery import add_search_path;"
            "from hybrid.plugins.registry import described_by, load;"
            "from hybrid.serving.sources import code_of;"
            f"add_search_path([Path({str(folder)!r})], ''); print(code_of(load('tools', 'redness')))"
        )
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    (tool_folder / "_helper.py").write_text("X = 1\n")
    (tool_folder / "redness.py").write_text("from tools import _helper as _helper\n" + FORTY_LINES)
    previous = code(tool_folder)
    tool_folder.rename(tmp_path / "moved")
    assert code(tmp_path / "moved") == previous
    (tmp_path / "moved" / "_helper.py").write_text("X = 2\n")
    assert code(tmp_path / "moved") != previous


@pytest.mark.system
def test_the_contract_says_what_is_broken(command: Command, tool_folder: Path) -> None:
    broken = FORTY_LINES.replace('"red_0_1"', '"red"').replace("raise ToolError", "raise ValueError")
    broken = broken.replace("light is red.", "red.").replace(
        'limits="Says nothing about what the image shows."', 'limits="x"'
    )
    (tool_folder / "redness.py").write_text(broken)
    result = command("tools", "check", "redness", "--path", tool_folder, "--contract", code=3)
    for words in (
        "limits of 1 characters, at least 30 are needed",
        "a plain call: red has no unit: end its name in one of _px, _0_1",
        "image: black: the tool failed: ValueError",
    ):
        assert f"BROKEN {words}" in result.out
    assert result.out.count("red has no unit") == 1
    assert "--args is for --contract" in command("tools", "check", "redness", "--args", "{}").err


@pytest.mark.system
def test_several_tools_are_checked_one_after_the_other(command: Command, tool_folder: Path) -> None:
    (tool_folder / "redness.py").write_text(FORTY_LINES)
    (tool_folder / "twins.py").write_text(TWINS)
    result = command("tools", "check", "twins", "redness", "--path", tool_folder, "--contract", code=3)
    assert "twins: breaks the contract in 1 ways" in result.out
    assert "redness: keeps the contract" in result.out
    check = "\n@pairs.check(expect={})\ndef equal():\n    return [np.zeros((8, 8, 3), np.uint8)] * 2\n"
    (tool_folder / "pairs.py").write_text(f"import numpy as np\n{TWINS.replace('twins', 'pairs')}{check}")
    result = command("tools", "check", "twins", "pairs", "--path", tool_folder, code=3)
    assert "twins has no network and no images with known answers: add an image (@twins.check" in result.err
    assert "0 of 1 wrong: pairs" in result.out
    assert "note   it answers 33 of 33 pictures that contain nothing (flat grey, ...)" in result.out


def test_a_tool_that_answers_differently_each_time_breaks_it(tool_folder: Path) -> None:
    variant = FORTY_LINES.replace("share = float(", "import itertools\n            share = next(DRAWS) * float(")
    (tool_folder / "redness.py").write_text("import itertools\nDRAWS = itertools.cycle((1, 0.5, 0.25))\n" + variant)
    add_search_path([tool_folder], "--path")
    result = breaches("redness", load("tools", "redness"), ServiceOptions("classical"))
    assert result == ("the same question has two different outputs",)


def test_a_refused_plain_call_names_its_pictures(tool_folder: Path) -> None:
    (tool_folder / "twins.py").write_text(TWINS)
    add_search_path([tool_folder], "--path")
    (result,) = breaches("twins", load("tools", "twins"), ServiceOptions("classical"))
    assert result == (
        "a plain call with 2 pictures (160 x 120 px, 168 x 120 px) and the arguments {} is refused: their sizes "
        "differ; its pictures and arguments are those of the first known answer, if it has one"
    )


# A tool that refuses pictures of different sizes, and has no known answer.
TWINS = """
from hybrid.tool import Image, ToolError, ToolOutput, tool

@tool(limits="Both pictures have to be of one size.")
def twins(first: Image, second: Image) -> ToolOutput:
    \"\"\"Says whether two pictures are the same ones.\"\"\"
    if first.shape != second.shape:
        raise ToolError("their sizes differ")
    return ToolOutput("same")
"""


# A tool with only a learned backend that accepts any file content and has no known answers.
LEARNED = """
from pathlib import Path

import torch
from safetensors.torch import load_file

from hybrid.tool import Args, BackendCard, Card, Evidence, Provenance, Tool


def network():
    return torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(6)))


class Learned:
    def setup(self, device, weights):
        self.parts = {"net": network()}
        self.parts["net"].load_state_dict(load_file(Path(weights) / "model.safetensors"), strict=False)

    def run(self, requests):
        return [Evidence("Something.", {"count": 1}, 0.5) for _ in requests]


TOOL = Tool(
    card=Card(
        name="NAME",
        summary="Says something of an image, whatever it shows.",
        limits="Says nothing else, and never anything different.",
        backends=(
            BackendCard(
                "learned",
                "1",
                Learned,
                "Six layers, of which none is asked.",
                weights="./weights",
                provenances=(Provenance("./weights", "CC0", ("none",)),),
            ),
        ),
    ),
    args=Args,
)
"""


@pytest.fixture
def learned(tmp_path: Path) -> Callable[..., Path]:
    """`learned(name)` writes the tool into `mine` and weights into `weights`, random or after one training step."""

    def write(name: str, without: Collection[str] = (), *, trained: bool = False) -> Path:
        import torch
        from safetensors.torch import save_file

        torch.manual_seed(0)
        layers = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(6)))
        by_value = {
            key: values + torch.ones_like(values) * trained
            for key, values in layers.state_dict().items()
            if key not in without
        }
        (tmp_path / "weights").mkdir(exist_ok=True)
        save_file(by_value, tmp_path / "weights" / "model.safetensors")
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / f"{name}.py").write_text(LEARNED.replace("NAME", name))
        return tmp_path / "mine"

    return write


@pytest.mark.system
@pytest.mark.parametrize("words", [("check", "lacking"), ("run", "lacking", "photo.png", "--unchecked-weights")])
def test_tensors_that_no_file_holds_are_an_error_for_it_too(
    command: Command, learned: Callable[..., Path], photo: Path, words: Words
) -> None:
    result = command("tools", *words, "--path", learned("lacking", without=["1.weight", "4.bias"]), code=2)
    assert "does not fit the network parts.net: 2 of its tensors are in no weight file (1.weight, 4.bias)" in result.err


@pytest.mark.system
def test_a_check_that_asks_nothing_says_so(command: Command, learned: Callable[..., Path]) -> None:
    tool = learned("hidden") / "hidden.py"
    tool.write_text(tool.read_text().replace('self.parts = {"net": network()}', "return"))
    result = command("tools", "check", "hidden", "--path", tool.parent, code=2)
    assert "nothing was checked: hidden has no images with known answers" in result.err


@pytest.mark.system
def test_a_tool_that_falls_back_says_so_once(tool_folder: Path, photo: Path) -> None:
    message = 'provenances=(Provenance("./nowhere", "CC0", ("none",)),)'
    card = f'BackendCard("learned", "1", Classical, "Nothing is loaded.", weights="./nowhere", {message}), '
    tool = tool_folder / "both.py"
    text = FORTY_LINES.replace('"redness"', '"both"').replace("backends=(", f"backends=({card}")
    tool.write_text(text.replace("Evidence, Request", "Evidence, Provenance, Request"))
    words = [sys.executable, "-m", "hybrid", "tools", "run", "both", str(photo), "--path", str(tool.parent)]
    # The process of the tools writes to the same stream.
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr.count("weights absent")) == (0, 1)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on `sys.path` with a package that provides a tool, as an installer leaves it."""
    site = tmp_path / "site"
    package, facts = site / "red_package", site / "red_package-1.0.dist-info"
    package.mkdir(parents=True)
    facts.mkdir()
    (package / "__init__.py").write_text("")
    (package / "shares.py").write_text("LIGHT = 'light'\n")
    used = FORTY_LINES.replace("of the light", "of the {LIGHT}")
    (package / "colour.py").write_text("from red_package.shares import LIGHT\n" + used)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: red-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[hybrid.tools]\nredness = red_package.colour\n")
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.mark.parametrize(*cases(__file__, "test_the_rules_are_the_same_for_an_installed_package"))
def test_the_rules_are_the_same_for_an_installed_package(installed: Path, line: str, message: str) -> None:
    (installed / "red_package-1.0.dist-info" / "entry_points.txt").write_text(f"[hybrid.tools]\n{line}\n")
    plugins._entry_points.cache_clear()
    with pytest.raises(UsageError, match=message):
        load("tools", line.split(maxsplit=1)[0])


def test_an_installed_tool_and_a_file_of_the_same_name_clash(installed: Path, tool_folder: Path) -> None:
    add_search_path([tool_folder], "--path")
    assert "redness" not in names("tools")
    with pytest.raises(UsageError, match=r"red-package \(redness = \S+\): a tool 'redness' already exists, \S+own"):
        load("tools", "redness")
