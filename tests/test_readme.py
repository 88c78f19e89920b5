"""Tests of every claim of the README that can be run."""

import importlib
import re
from pathlib import Path

import click
import numpy as np
import pytest

from hybrid.cli import cli
from hybrid.cli._run_config import config_of
from hybrid.cli.run import command as run
from hybrid.tool import Request, Tool
from tests.runnable import Page

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return [block.text for block in Page.read("README.md").of(language)]


def between(start: str, end: str) -> str:
    return README.split(start, 1)[1].split(end, 1)[0]


def test_options_in_the_text_exist() -> None:
    commands = [cli.get_command(click.Context(cli), name) for name in ("run", "compare", "report")]
    values = {
        name for command in commands if command is not None for parameter in command.params for name in parameter.opts
    }
    values |= {"--picture", "--help"}
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    assert set(re.findall(r"`(--[a-z-]+)", prose)) <= values | {"--no-browser"}


def test_what_quickstart_is_said_to_show() -> None:
    # tests/hybrid/cli/test_quickstart.py runs the quickstart.
    from hybrid.cli.quickstart import BENCHMARK
    from hybrid.cli.quickstart import command as quickstart

    text = between("hybrid quickstart\n```", "<!-- quickstart, measured -->")
    defaults = quickstart.make_context("quickstart", []).params
    assert f"{defaults['limit']} generated questions" in text
    assert all(f"`{name}`" in text for name in ("controller", "mllm", "specialist"))
    assert "blank" in text
    assert BENCHMARK == "blink"
    report = between("<!-- quickstart, measured -->", "<!-- end of quickstart, measured -->")
    assert f"`{defaults['out']}/site/index.html`" in report
    assert "of BLINK's kind" in text


def test_repetitions_can_be_asked_for_as_printed() -> None:
    (words,) = re.findall(r"`(--setting repeats=[^`]+)`", (ROOT / "docs" / "statistics.md").read_text())
    context = run.make_context("run", ["blink", "--model", "openai:gpt-4o", *words.split()])
    assert config_of(context.params).repeats == 3


def test_the_installation_for_the_cpu_names_what_it_needs() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    assert "uv pip install --torch-backend cpu -e '.[local]'" in text
    assert "uv 0.7.14 or later" in text
    assert "download.pytorch.org" in text


def test_example_tool_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = next(block for block in blocks("python") if "@tool(" in block)
    (tmp_path / "brightness.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    tool: Tool = importlib.import_module("brightness").brightness
    card = tool.backend("classical")
    assert card is not None
    (evidence,) = card.make().run([Request((np.full((4, 6, 3), 255, dtype=np.uint8),), tool.parse({}))])
    assert evidence.data == {"brightness_0_1": 1.0}
    assert len([line for line in code.splitlines() if line.strip()]) <= 6


def test_controller_graph_is_current() -> None:
    from graphs.controller import build

    printed = between("<!-- controller graph -->\n```mermaid\n", "\n```\n<!-- end of controller graph -->")
    assert printed == build().get_graph().draw_mermaid().strip()


def test_tree_names_what_is_there() -> None:
    (tree,) = blocks("")
    room = Path()
    for line in tree.splitlines():
        names = re.match(r"( *)((?:[\w.]+(?:/|\.py) ?)+)", line)
        assert names, line
        if not names[1]:
            room = Path(names[2].split()[0])
            assert (ROOT / room).is_dir(), line
            continue
        for name in names[2].split():
            assert (ROOT / room / name).exists(), line
    for package in ("hybrid", "tools", "graphs", "baselines", "training", "bench", "tests"):
        assert f"\n{package}/" in f"\n{tree}"


PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_paths_in_the_text_exist(page: Path) -> None:
    # A path after OWNER/NAME@COMMIT is in that repository.
    elsewhere = r"```.*?```|https?://\S+|[\w-]+/[\w.-]+@[0-9a-f]{7}(?:,? `[^`]*`)+"
    prose = re.sub(elsewhere, "", page.read_text(), flags=re.DOTALL)
    folders = "hybrid|tools|graphs|baselines|training|bench|docs|tests"
    matches = re.findall(rf"(?<!reference/)\b(?:{folders})/[\w./-]*\w", prose)
    examples = ("NAME", "quarters", "shades", "first_option", "joined.py", "second_look")
    assert [path for path in matches if not (ROOT / path).exists() and not any(word in path for word in examples)] == []
