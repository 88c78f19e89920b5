"""A run folder is whole, or it is refused or reported with what is missing: nothing is silently wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system  # the run that is damaged is made by the command, with its worker

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run and its home are kept once the first test has made them."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def run(command: Command, blink: tuple[str, ...], tmp_path: Path, hybrid_home: Path, made: Path) -> Path:
    """A finished run of six questions by two solvers, and a home with its images and findings: a copy for each test."""
    if not list(made.iterdir()):
        assert command("run", *blink, "--solver", "mllm", "--solver", "specialist").code == 0
        shutil.copytree(hybrid_home, made / "home")
        shutil.copytree(tmp_path / "run", made / "run")
    else:
        shutil.copytree(made / "home", hybrid_home)
        shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def again(command: Command, blink: tuple[str, ...], *more: object) -> Any:
    return command("run", *blink, "--solver", "mllm", "--solver", "specialist", "--json", *more)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def answers(path: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["id"]: row["exchanges"][0]["reply"]["text"] for row in rows}


@pytest.mark.parametrize("how", ["half of the lines", "in a line", "a line is garbage", "a line is another", "twice"])
def test_questions_that_are_not_all_there_are_refused_and_made_anew(
    command: Command, blink: tuple[str, ...], run: Path, how: str
) -> None:
    path = run / "questions.jsonl"
    whole, rows = path.read_bytes(), lines(path)
    damage = {
        "half of the lines": (b"".join(rows[:3]), "holds 3 of the 6 questions that were written"),
        "in a line": (whole[:-20], "holds 5 of the 6 questions that were written"),
        "a line is garbage": (b"".join([*rows[:2], b"\0" * 40 + b"\n", *rows[3:]]), "line 3: not a Question ("),
        "a line is another": (whole.replace(b'"(A)"', b'"(B)"', 1), "was changed: its first 6 questions are not"),
        "twice": (b"".join([*rows, rows[0]]), "line 7: the id 'val_Jigsaw_1' appears twice"),
    }
    content, told = damage[how]
    path.write_bytes(content)
    scored = command("score", run, "--json")
    assert scored.code == 2
    assert scored.out == ""
    assert told in scored.err
    assert scored.err.count("\n") == 1
    assert "`hybrid run` with the options of this run writes them anew" in scored.err
    assert command("compare", run).code == 2
    assert command("calibrate", run, "-o", run / "trust.json").code == 2
    mended = again(command, blink)
    assert mended.code == 0
    assert f"note: {path}" in mended.err
    assert "written anew from the data" in mended.err
    assert path.read_bytes() == whole
    assert command("score", run, "--json").code == 0


def test_questions_are_not_made_anew_from_a_part_of_the_data(
    command: Command, blink: tuple[str, ...], run: Path
) -> None:
    path = run / "questions.jsonl"
    path.write_bytes(b"".join(lines(path)[:3]))
    ended = again(command, blink, "--limit", "2")
    assert ended.code == 2
    assert "holds 3 of the 6 questions that were written; they can be written anew from the data, but not" in ended.err
    assert len(lines(path)) == 3


def test_lost_attempts_are_failed_questions_until_they_are_asked_again(
    command: Command, blink: tuple[str, ...], run: Path
) -> None:
    whole = command("score", run, "--json").out
    path = run / "mllm" / "attempts.jsonl"
    path.write_bytes(b"".join(lines(path)[:4]))
    told = f"failed: {path} holds 4 of the 6 lines that were written\n"
    scored = command("score", run, "--json")
    assert scored.code == 3
    assert told in scored.err
    found = json.loads(scored.out)["solvers"]["mllm"]
    assert (found["n"], found["failed"], found["outcomes"]["outage"]) == (6, 2, 2)
    assert command("score", run, "--json").err == scored.err
    compared = command("compare", run)
    assert compared.code == 3
    assert told in compared.err
    resumed = again(command, blink)
    assert resumed.code == 0
    assert f"note: {path} holds 4 of the 6 lines that were written" in resumed.err
    assert "note: 2 questions of mllm have no answer that can be read and are asked now" in resumed.err
    assert command("score", run, "--json").out == whole


@pytest.mark.parametrize("line", [b'{"id": 3}\n', b"\xff\xfe\0\n", b"\n", "score", "verdict"])
def test_a_corrupted_line_is_named_and_costs_its_own_question(
    command: Command, blink: tuple[str, ...], run: Path, line: bytes | str
) -> None:
    whole = command("score", run, "--json").out
    path = run / "mllm" / "attempts.jsonl"
    rows = lines(path)
    others = {
        "score": lines(run / "mllm" / "scores.jsonl")[0],
        "verdict": b'{"id": "val_Jigsaw_1", "ask": 0, "letter": "A", "model": "m", "text": "A"}\n',
    }
    bad = line if isinstance(line, bytes) else others[line]
    path.write_bytes(b"".join([*rows[:2], bad, *rows[3:]]))
    kept = answers_of_sound_lines(path)
    scored = command("score", run, "--json")
    assert scored.code == 3
    assert f"failed: {path}, line 3: not an Attempt (" in scored.err
    assert json.loads(scored.out)["solvers"]["mllm"]["failed"] == 1
    resumed = again(command, blink)
    assert resumed.code == 0
    assert "note: 1 questions of mllm have no answer that can be read and are asked now" in resumed.err
    assert lines(run / "mllm" / "damaged.jsonl") == [bad]
    assert answers(path).items() >= kept.items()
    assert command("score", run, "--json").out == whole
    assert again(command, blink).err.count("note:") == 0


def answers_of_sound_lines(path: Path) -> dict[str, str]:
    found = {}
    for line in lines(path):
        try:
            row = json.loads(line)
            found[row["id"]] = row["exchanges"][0]["reply"]["text"]
        except (ValueError, KeyError):
            continue
    return found


def test_a_changed_manifest_is_refused_in_one_sentence(command: Command, run: Path) -> None:
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["identity"]["benchmark"] = "mvp_bench"
    path.write_text(json.dumps(manifest))
    for words in (("score", run), ("compare", run), ("report", run, "-o", run.parent / "site")):
        ended = command(*words)
        assert (ended.code, ended.out) == (2, "")
        assert f"hybrid: {path} was changed after it was written" in ended.err


def without(*keys: str) -> Callable[[dict[str, Any]], bytes]:
    def cut(manifest: dict[str, Any]) -> bytes:
        inner = manifest
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        return json.dumps(manifest).encode()

    return cut


def with_value(value: Any, *keys: str) -> Callable[[dict[str, Any]], bytes]:
    def put(manifest: dict[str, Any]) -> bytes:
        inner = manifest
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        return json.dumps(manifest).encode()

    return put


DAMAGED: dict[str, tuple[Callable[[dict[str, Any]], bytes], str]] = {
    "empty": (lambda _: b"", "is not JSON"),
    "truncated": (lambda manifest: json.dumps(manifest).encode()[:200], "is not JSON"),
    "no JSON": (lambda _: b"benchmark: blink\n", "is not JSON"),
    "deep": (lambda _: b"[" * 100_000, "is not JSON"),
    "binary": (lambda _: bytes(range(256)), "is not JSON"),
    "a list": (lambda _: b"[]", "is not a manifest"),
    "wrong format": (with_value(7, "format"), "is of format 7 and this version reads format 2: "),
    "no identity": (without("identity"), "is damaged: identity: Field required"),
    "no benchmark": (without("identity", "benchmark"), "is damaged: identity.benchmark: Field required"),
    "identity is a text": (with_value("blink", "identity"), "is damaged: identity: "),
    "settings are a list": (with_value([1], "identity", "settings"), "is damaged: identity.settings: "),
    "solvers are a list": (with_value(["mllm"], "solvers"), "is damaged: solvers: "),
    "no solvers": (without("solvers"), "is damaged: solvers: Field required"),
    "a solver is elsewhere": (with_value({"../other": {}}, "solvers"), "is damaged: '../other' is no name of a solver"),
    "labels are a number": (with_value(3, "labels"), "is damaged: labels: "),
    "files are a text": (with_value("all", "files"), "is damaged: files: "),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_manifest_is_one_line(command: Command, blink: tuple[str, ...], run: Path, how: str) -> None:
    path = run / "manifest.json"
    damage, told = DAMAGED[how]
    path.write_bytes(damage(json.loads(path.read_text())))
    before = path.read_bytes()
    for ended in (command("score", run), command("compare", run), again(command, blink)):
        assert (ended.code, ended.out) == (2, "")
        (line,) = [line for line in ended.err.splitlines() if line.startswith("hybrid: ")]
        assert line.startswith(f"hybrid: {path} {told}")
        assert "Traceback" not in ended.err
    assert path.read_bytes() == before
