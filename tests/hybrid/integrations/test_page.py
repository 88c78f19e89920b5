"""`docs/tools-elsewhere.md` does what it says."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hybrid
from hybrid.cli import cli
from tests.runnable import Page

PAGE = Page.read("docs/tools-elsewhere.md")


def block(language: str) -> str:
    (result,) = PAGE.of(language)
    return result.text


def test_the_python_runs_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fakes: Any) -> None:
    (tmp_path / "pictures").mkdir()
    photo = tmp_path / "pictures" / "photo.png"
    photo.write_bytes(fakes.encoded(fakes.pixels(0, (96, 64))))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(block("python"), "tools-elsewhere.md", "exec"), names)  # noqa: S102 - the page is ours
    arguments = {key: value for key, value in names["arguments"].items() if key != "image"}
    expected = hybrid.tool("depth").run(photo, **arguments)
    assert names["message"].status == "success"
    assert (names["text"]["text"], names["numbers"]) == (expected.text, expected.as_json()["data"])
    assert len(names["pictures"]) == len(expected.pngs) > 0


def test_the_command_is_one() -> None:
    server = json.loads(block("json"))["mcpServers"]["hybrid"]
    assert server["command"] == "hybrid"
    # A folder that is not there is the only thing wrong with it here.
    result = CliRunner().invoke(cli, server["args"])
    assert result.exit_code == 2
    assert "'pictures' does not exist" in result.output
