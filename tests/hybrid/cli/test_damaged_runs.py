"""A damaged run folder is refused, or its missing parts are reported; no damage goes unnoticed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import Command, Words
from tests.tables import cases

pytestmark = pytest.mark.system  # the command that makes the run starts a worker process


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the first test makes the run and its home."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def run(command: Command, blink: Words, tmp_path: Path, hybrid_home: Path, shared_folder: Path) -> Path:
    """A finished run of six questions by two solvers, and a home with its images and tool outputs: a copy per test."""
    if not list(shared_folder.iterdir()):
        assert command("run", *blink, "--solver", "mllm", "--solver", "specialist").code == 0
        shutil.copytree(hybrid_home, shared_folder / "home")
        shutil.copytree(tmp_path / "run", shared_folder / "run")
    else:
        shutil.copytree(shared_folder / "home", hybrid_home)
        shutil.copytree(shared_folder / "run", tmp_path / "run")
    return tmp_path / "run"


def again(command: Command, blink: Words, *more: object) -> Any:
    return command("run", *blink, "--solver", "mllm", "--solver", "specialist", "--json", *more)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("mode", ["half of the lines", "in a line", "a line is garbage", "a line is another", "twice"])
def test_questions_that_are_not_all_there_are_refused_and_made_anew(
    command: Command, blink: Words, run: Path, mode: str
) -> None:
    path = run / "questions.jsonl"
    data, rows = path.read_bytes(), lines(path)
    damage = {
        "half of the lines": (b"".join(rows[:3]), "holds 3 of the 6 questions that were written"),
        "in a line": (data[:-20], "holds 5 of the 6 questions that were written"),
        "a line is garbage": (b"".join([*rows[:2], b"\0" * 40 + b"\n", *rows[3:]]), "line 3: not a Question ("),
        "a line is another": (data.replace(b'"(A)"', b'"(B)"', 1), "was changed: its first 6 questions are not"),
        "twice": (b"".join([*rows, rows[0]]), "line 7: the id 'val_Jigsaw_1' appears twice"),
    }
    content, text = damage[mode]
    path.write_bytes(content)
    scored = command("score", run, "--json", code=2)
    assert scored.out == ""
    assert text in scored.err
    assert scored.err.count("\n") == 1
    assert "`hybrid run` with the options of this run writes them again" in scored.err
    assert command("compare", run).code == 2
    assert command("calibrate", run, "-o", run / "trust.json").code == 2
    mended = again(command, blink)
    assert mended.code == 0
    assert f"note: {path}" in mended.err
    assert "written again from the data" in mended.err
    assert path.read_bytes() == data
    assert command("score", run, "--json").code == 0


def test_questions_are_not_made_anew_from_a_part_of_the_data(command: Command, blink: Words, run: Path) -> None:
    path = run / "questions.jsonl"
    path.write_bytes(b"".join(lines(path)[:3]))
    result = again(command, blink, "--limit", "2")
    assert result.code == 2
    assert (
        "holds 3 of the 6 questions that were written; they can be written again from the data, but not" in result.err
    )
    assert len(lines(path)) == 3


def test_lost_and_foreign_lines_are_told_and_their_questions_asked_again(
    command: Command, blink: Words, run: Path
) -> None:
    out = command("score", run, "--json").out
    path = run / "mllm" / "attempts.jsonl"
    path.write_bytes(b"".join(lines(path)[:4]))
    text = f"{path} holds 4 of the 6 lines that were written\n"
    scored = command("score", run, "--json")
    mllm = json.loads(scored.out)["solvers"]["mllm"]
    assert (mllm["n"], mllm["failed"], mllm["outcomes"]["outage"]) == (6, 2, 2)
    for result in (scored, command("compare", run)):
        assert (result.code, f"failed: {text}" in result.err) == (3, True)
    resumed = again(command, blink)
    assert resumed.code == 0
    assert f"note: {text}" in resumed.err
    assert "note: asking 2 questions of mllm again, because their answers are missing or unreadable" in resumed.err
    verdict = b'{"id": "val_Jigsaw_1", "ask": 0, "letter": "A", "model": "m", "text": "A"}\n'
    for bad in (lines(run / "mllm" / "scores.jsonl")[0], verdict):
        rows = lines(path)
        path.write_bytes(b"".join([*rows[:2], bad, *rows[3:]]))
        scored = command("score", run, "--json")
        assert (scored.code, f"failed: {path}, line 3: not an Attempt (" in scored.err) == (3, True)
        assert "note: asking 1 question of mllm again, because their answers are missing" in again(command, blink).err
        assert lines(run / "mllm" / "damaged.jsonl")[-1] == bad
    assert command("score", run, "--json").out == out
    assert again(command, blink).err.count("note:") == 0


def test_a_changed_manifest_is_refused_in_one_sentence(command: Command, run: Path) -> None:
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["identity"]["benchmark"] = "mvp_bench"
    path.write_text(json.dumps(manifest))
    for words in (("score", run), ("compare", run), ("report", run, "-o", run.parent / "site")):
        assert f"hybrid: {path} was changed after it was written" in command(*words, code=2).err


def test_a_damaged_manifest_is_one_line(command: Command, run: Path) -> None:
    path = run / "manifest.json"
    sound = path.read_text()
    for keys, value, case in cases(__file__, "DAMAGED")[1]:
        inner = manifest = json.loads(sound)
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        if value != "absent":
            inner[keys[-1]] = value
        path.write_text(json.dumps(manifest))
        for result in (command("score", run), command("compare", run)):
            assert (result.code, result.out) == (2, "")
            assert result.err.startswith(f"hybrid: {path} {case}")
