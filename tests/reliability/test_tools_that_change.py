"""Tools that are added, removed or changed during an unfinished run: only those that the run offers or uses stop it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from runs import ROOT, Files, Questions, words

from tests.tool_source import tool_source

SHADE = """shares = [float(request.images[0].mean()) / 255 for request in requests]
return [Evidence(f"The image is {share:.0%} WORD.", {"share_0_1": share}, 1.0) for share in shares]"""


@dataclass(frozen=True)
class Checkout:
    """A checkout with copies of the tools and links to the rest, a folder of own tools, and a run that uses both."""

    path: Path
    own_tools: Path
    run: Files
    words: list[str]

    def ask(self, limit: int) -> "subprocess.CompletedProcess[str]":
        """Run the command for this many questions, in a process that has read no tool yet."""
        environment = {**os.environ, "PYTHONPATH": str(self.path)}
        return subprocess.run(
            [sys.executable, "-m", "hybrid", *self.words, "--limit", str(limit)],
            cwd=self.path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


def write(folder: Path, word: str, white: str = "255") -> None:
    run = SHADE.replace("WORD", word).replace("255", white)
    (folder / f"{word}ness.py").write_text(tool_source(f"{word}ness", run))


@pytest.fixture
def checkout(tmp_path: Path, questions: Questions) -> Iterator[Checkout]:
    """A checkout whose run offers crop, from the checkout, and brightness, from outside; the model calls brightness."""
    path, current = tmp_path / "checkout", tmp_path / "own"
    shutil.copytree(ROOT / "tools", path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("hybrid", "graphs", "baselines"):
        (path / room).symlink_to(ROOT / room)
    current.mkdir()
    for word in ("bright", "dark", "blue"):
        write(current, word)
    run = Files(tmp_path / "run", "controller")
    with FaultyServer(call=lambda _: ("brightness", '{"images": ["img:1"]}')) as server:
        more = ("--solver", "controller", "--tools", "crop,brightness", "--tool-path", current)
        yield Checkout(path, current, run, words(questions(4), server.url, run.path, *more))


@pytest.mark.slow
def test_only_tools_in_use_keep_a_run_from_going_on(checkout: Checkout) -> None:
    first = checkout.ask(1)
    assert first.returncode == 0, first.stderr
    answered = (checkout.run.path / "controller" / "attempts.jsonl").read_text()
    assert "bright." in answered, "the tool from outside has answered"

    # In the checkout and outside: tools are added, changed and removed.
    write(checkout.own_tools, "gray")
    (checkout.own_tools / "darkness.py").write_text(
        tool_source("darkness", SHADE.replace("WORD", "dark").replace("255", "256"))
    )
    (checkout.own_tools / "blueness.py").unlink()
    write(checkout.path / "tools", "new")
    changed(checkout.path / "tools" / "saliency" / "__init__.py")
    shutil.rmtree(checkout.path / "tools" / "attributes")
    second = checkout.ask(2)
    assert second.returncode == 0, second.stderr
    assert len(checkout.run.finished()) == 2

    used = {"brightness": checkout.own_tools / "brightness.py", "crop": checkout.path / "tools" / "crop.py"}
    by_value = {file: file.read_text() for file in used.values()}
    for file in used.values():
        changed(file)
    refused = checkout.ask(3)
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "holds a run of another configuration:" in refused.stderr
    texts = [line.split(":")[0].strip() for line in refused.stderr.splitlines() if "->" in line]
    assert texts == [f"solver controller.tools.{name}.code" for name in used]

    for file, text in by_value.items():
        file.write_text(text)
    used["brightness"].unlink()
    gone = checkout.ask(3)
    assert gone.returncode == 2
    assert gone.stderr.splitlines()[-1].startswith("hybrid: --tools: no 'brightness' in tools/")
    write(checkout.own_tools, "bright")
    assert checkout.ask(3).returncode == 0
    assert len(checkout.run.finished()) == 3


def changed(file: Path) -> None:
    file.write_text(file.read_text() + "\nCHANGED = True\n")
