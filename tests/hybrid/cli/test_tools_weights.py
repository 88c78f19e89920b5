"""`hybrid tools prepare` and `check`, as a person calls them."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def weights(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(content)
    return folder


def test_prepare_names_and_hashes_what_is_there(command: Callable[..., Any], tmp_path: Path) -> None:
    folder = weights(tmp_path / "w", b"numbers")
    ended = command("tools", "prepare", "depth", "--weights", f"depth={folder}", "-o", tmp_path / "weights.json")
    content = hashlib.sha256(b"numbers").hexdigest()
    sha = hashlib.sha256(f"model.safetensors\x1f{content}\x1e".encode()).hexdigest()
    assert ended.code == 0
    assert ended.out == f"depth  {folder}  {folder}  {sha}\n"
    row = {"tool": "depth", "weights": str(folder), "path": str(folder), "sha256": sha}
    assert json.loads((tmp_path / "weights.json").read_text()) == {"weights": [row], "absent": []}


def test_prepare_says_what_is_absent_in_one_line_each_and_ends_with_3(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    folder, empty = weights(tmp_path / "w", b"numbers"), tmp_path / "empty"
    empty.mkdir()
    words = ("--no-fetch", "--weights", f"depth={folder}", "--weights", f"motion={empty}", "-o", "out.json")
    ended = command("tools", "prepare", "depth", "motion", "segmentation", *words)
    assert ended.code == 3
    assert [line.split()[0] for line in ended.out.splitlines()] == ["depth"]
    lines = ended.err.splitlines()
    assert f"motion: weights absent: {empty} holds no .safetensors file" in lines
    assert sum(line.startswith("segmentation: weights absent: facebook/") for line in lines) == 1
    assert json.loads(Path("out.json").read_text())["absent"] == ["motion", "segmentation"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("markers",), "markers loads no weights of its own"),
        (("--weights", "relation=DIR"), "relation loads no weights of its own"),
        (("dpeth",), "did you mean 'depth'"),
        (("depth", "--weights", "depth"), "KEY=VALUE"),
    ],
)
def test_prepare_refuses_what_has_no_weights(command: Callable[..., Any], words: tuple[str, ...], said: str) -> None:
    ended = command("tools", "prepare", "--no-fetch", *words)
    assert ended.code == 2
    assert said in ended.err


@pytest.mark.system
def test_check_prints_each_image_and_ends_with_0_or_3(command: Callable[..., Any]) -> None:
    passed = command("tools", "check", "saliency", "--backend", "classical")
    assert passed.code == 0, passed.err
    assert passed.out.splitlines()[0].startswith("0 of 1 wrong: saliency, classical backend")
    assert "ok     dark on bright" in passed.out
    failed = command("tools", "check", "similarity", "--backend", "classical")
    assert failed.code == 3
    first, *each, said = failed.out.splitlines()
    assert any(line.startswith("missed ") for line in each)
    assert "failed: the same pattern in another light: " in said
    assert "at least 7 wanted" in said
    assert first.startswith("1 of 1 wrong: similarity, ")
    missed = command("tools", "check", "depth", "--backend", "classical")
    assert missed.code == 3
    assert "WRONG  nearer point" in missed.out


def test_check_explains_itself_with_examples(command: Callable[..., Any]) -> None:
    said = command("tools", "check", "--help").out
    assert "hybrid tools check depth --weights depth-anything/Depth-Anything-V2-Small-hf" in said


def test_check_refuses_a_tool_without_known_answers_and_absent_weights(command: Callable[..., Any]) -> None:
    assert "no images with known answers" in command("tools", "check", "crop").err
    absent = command("tools", "check", "depth", "--weights", "./nowhere")
    assert absent.code == 2
    assert "weights absent" in absent.err
