"""`hybrid tools up`, `down` and `status` as a user calls them.

`tests/hybrid/serving/test_tool_server.py` tests the server and its clients.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.serving.tool_server.address import listening, socket_path
from tests.finished_runs import Command, Words
from tests.tools.tiny_checkpoints import write


@pytest.fixture(scope="module")
def depth(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """Options that give depth a tiny checkpoint of Depth Anything in the real format."""
    folder = tmp_path_factory.mktemp("tiny")
    write("depth_anything", folder)
    return ("--weights", f"depth={folder}", "--unchecked-weights", "--device", "cpu")


@pytest.fixture
def folder(tmp_path: Path) -> Words:
    """Options that give depth a folder of weights that nothing loads."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/model.safetensors").touch()
    return ("--weights", f"depth={tmp_path / 'weights'}", "--device", "cpu")


@pytest.fixture
def stopped_server(command: Command) -> Iterator[None]:
    yield
    command("tools", "down")


def attempts(folder: Path) -> list[dict[str, Any]]:
    """Return what a run recorded of each question, without times."""
    rows = [json.loads(line) for line in (folder / "specialist/attempts.jsonl").read_text().splitlines()]
    return [without_times(row) for row in sorted(rows, key=lambda row: str(row["id"]))]


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: without_times(item)
            for key, item in value.items()
            if not key.endswith(("seconds", "_s", "at", "started", "ended")) and key != "cached"
        }
    return [without_times(item) for item in value] if isinstance(value, list) else value


@pytest.mark.system
@pytest.mark.usefixtures("stopped_server")
def test_a_run_with_a_real_network_is_the_same_with_and_without_a_server(
    command: Command, depth: Words, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hybrid_home: Path
) -> None:
    run = ("run", "blink", "--data", "sample", "--task", "Relative_Depth", "--solver", "specialist", "--limit", "4")
    words = (*run, *depth, "--no-cache")
    up = subprocess.run(
        [sys.executable, "-m", "hybrid", "tools", "up", "--tools", "depth", *depth],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the tool server is running with depth (process " in up.stdout
    for name in ("one", "two"):
        assert command(*words, "--out", name, code=0).err.count("tool server") == 0
    assert "runs in the tool server (process " in Path("one/log.txt").read_text()
    (facts,) = json.loads(command("tools", "status", "--json", code=0).out)["tools"].values()
    assert (facts["loads"], facts["hits"], facts["calls"]) == (1, 2, 8)
    assert "depth  loaded" in command("tools", "status", code=0).out
    command("tools", "down", code=0)
    command(*words, "--out", "three", code=0)
    manifests = [json.loads(Path(name, "manifest.json").read_text()) for name in ("one", "two", "three")]
    assert [manifest.get("tool_server") for manifest in manifests] == [["depth"], ["depth"], None]
    assert manifests[0]["identity"] == manifests[2]["identity"]
    assert attempts(Path("one")) == attempts(Path("two")) == attempts(Path("three"))
    assert "Relative depth (1 = nearest" in Path("one/specialist/attempts.jsonl").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tools", "deepth"), "--tools: no 'deepth' in tools/ (did you mean 'depth'?)"),
        (("--tools", ","), "--tools names no tool"),
        (("--tools", "markers"), "--tools markers: it loads no network and needs no server; leave it out"),
        (("--tools", "crop,markers"), "--tools crop: it loads no network"),
        (("--tools", "depth", "--weights", "no/such/place"), "weights absent: directory no/such/place not found"),
        (("--tools", "depth"), "is not on disk (`hybrid tools fetch depth` fetches it)"),
        (("--weights", "markers=."), "--weights markers=.: this tool loads no network"),
        (("--tools", "ocr", "--weights", "depth=."), "--weights depth=.: this tool is not among --tools"),
        (("--weights", "depth=no/such/place"), "weights absent: directory no/such/place not found"),
        (("--device", "gpu"), "--device"),
        (("--idle", "-1"), "--idle"),
    ],
)
def test_what_cannot_be_loaded_is_said_before_anything_starts(
    command: Command, words: Words, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert message in command("tools", "up", *words, code=2).err
    assert not socket_path().exists()


def test_a_folder_that_cannot_hold_the_socket_is_named(
    command: Command, folder: Words, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hybrid_home: Path
) -> None:
    words = ("tools", "up", "--tools", "depth", *folder)
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / ("long" * 30)))
    # Simulate a system without paths to open descriptors, such as macOS.
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("hybrid.serving.tool_server.address.DESCRIPTORS", tmp_path / "none")
        assert "set HYBRID_HOME to a folder with a shorter path" in command(*words, code=2).err
    # Other commands work without a server.
    assert "no tool server is up" in command("tools", "status", code=3).out
    assert "no tool server is up" in command("tools", "down", code=0).out
    (tmp_path / "file").touch()
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "file"))
    assert str(tmp_path / "file") in command(*words, code=2).err
    monkeypatch.setenv("HYBRID_HOME", str(hybrid_home))
    hybrid_home.mkdir()
    (hybrid_home / "tool-server").touch()
    assert "this is not a folder: set HYBRID_HOME to a folder of your own" in command(*words, code=2).err
    (hybrid_home / "tool-server").unlink()
    (hybrid_home / "tool-server").mkdir()
    if os.getuid() == 0:
        os.chown(hybrid_home / "tool-server", 65534, -1)
        assert "this folder belongs to another user" in command(*words, code=2).err


def test_a_second_server_is_refused_and_nothing_is_up_without_one(
    command: Command, folder: Words, hybrid_home: Path
) -> None:
    status = command("tools", "status", "--json", code=3)
    assert json.loads(status.out) == {"up": False, "reason": "`hybrid tools up` starts one"}
    assert command("tools", "down", code=0).out == "no tool server is up\n"
    with listening():
        err = command("tools", "up", "--tools", "depth", *folder, code=2).err
    assert "a tool server is already running for this cache folder: `hybrid tools status`" in err
