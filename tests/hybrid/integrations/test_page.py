"""The commands of `docs/tools-elsewhere.md` work."""

import json
import re
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


def test_the_python_runs_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"`hybrid (data template [^`]+)`", PAGE.prose)
    assert CliRunner().invoke(cli, command.split()).exit_code == 0
    names: dict[str, Any] = {"__name__": "page"}
    for part in PAGE.of("python"):
        exec(compile(part.text, "tools-elsewhere.md", "exec"), names)  # noqa: S102 - the page is ours
    assert [*names["toolbox"].tools] == ["crop", "brightness"]
    assert names["server"].name == "hybrid"
    arguments = {key: value for key, value in names["arguments"].items() if key != "image"}
    expected = hybrid.tool("depth").run(tmp_path / "pictures" / "shapes.png", **arguments)
    assert names["message"].status == "success"
    assert (names["text"]["text"], names["numbers"]) == (expected.text, expected.as_json()["data"])
    assert len(names["pictures"]) == len(expected.pngs) > 0


def test_the_command_is_one() -> None:
    server = json.loads(block("json"))["mcpServers"]["hybrid"]
    assert server["command"] == "hybrid"
    # The only error here is a missing folder.
    result = CliRunner().invoke(cli, server["args"])
    assert result.exit_code == 2
    assert "'pictures' does not exist" in result.output
