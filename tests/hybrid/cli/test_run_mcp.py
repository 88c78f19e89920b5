"""`hybrid run --mcp`: errors come before anything is asked, and a run can be repeated from its configuration."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from tests.finished_runs import Command, Words
from tests.hybrid.integrations.served import PLAIN_IMAGES, plain
from tests.tables import cases

pytestmark = pytest.mark.system


@pytest.fixture
def asking(server: str, tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> Words:
    """Return the words of a run of a controller on one puzzle, with a model behind a server."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    data = fakes.blink_folder(tmp_path / "blink", 1, 0)
    words = ("run", "blink", "--data", data, "--model", "openai:mock", "--base-url", server, "--solver", "controller")
    return tuple(map(str, words))


def test_a_dry_run_lists_what_is_offered(command: Command, asking: Words) -> None:
    images = [word for name in PLAIN_IMAGES for word in ("--mcp-image", f"{name}=image")]
    result = command(*asking, "--mcp", plain(), *images, "--dry-run", "--json", code=0)
    (note,) = [load for load in json.loads(result.out)["notes"] if load.startswith("MCP server plain (Plain 1.0, ")]
    assert note.endswith("offers: plain_look, plain_dies, plain_odd, plain_refuses, plain_unwilling, plain_variables")


def test_without_the_package_one_line_says_what_to_do(
    command: Command, asking: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "hybrid.integrations.mcp.client", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = command(*asking, "--mcp", plain(), code=2)
    text = f"hybrid: --mcp needs the package mcp: uv pip install -e '{Path(__file__).resolve().parents[3]}[mcp]' ("
    assert result.err.splitlines()[-1].startswith(text)


@pytest.mark.parametrize(*cases(__file__, "test_wrong_words_are_said_in_one_line_without_secrets"))
def test_wrong_words_are_said_in_one_line_without_secrets(
    command: Command, asking: Words, words: Words, message: str
) -> None:
    result = command(*asking, *words, code=2)
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert "hidden-word" not in result.err


def test_a_run_from_a_file_is_given_back_as_a_configuration(command: Command, asking: Words, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    tools = {"tools": ["crop", "plain_look"], "mcp": [plain()], "mcp-image": {"plain_look": "image:base64"}}
    path.write_text(json.dumps(tools))
    result = command(*asking, "--config", path, "--json", code=0)
    run = Path(json.loads(result.out)["run"])
    manifest = json.loads((run / "manifest.json").read_text())
    assert {key: manifest["options"][key] for key in ("mcp", "mcp-image")} == {
        "mcp": [plain()],
        "mcp-image": {"plain_look": "image:base64"},
    }
    assert manifest["identity"]["tools_offered"] == ["crop", "plain_look"]
    second = command("run", "--config", run, "--json")
    assert (second.code, second.out) == (0, result.out)
    assert len(json.loads((run / "manifest.json").read_text())["commands"]) == 2
    # The form in which the image is sent is part of the tool's identity.
    other = command("run", "--config", run, "--mcp-image", "plain_look=image", "--out", run, code=2)
    assert "solver controller.tools.plain_look.code: " in other.err
