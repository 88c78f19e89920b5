"""A damaged folder is repaired or refused by name; a full or read-only disk loses no existing data."""

import ctypes
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from runs import CONTROLLER, MLLM, Files, Process, Questions, words

from tests.finished_runs import Command, Ended

COUNT = 12


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer() as running:
        yield running


@pytest.fixture
def run(
    server: FaultyServer, questions: Questions, hybrid: Command, tmp_path: Path
) -> tuple[Files, Callable[..., Ended]]:
    """A finished run, and the command that continues it with additional options."""
    files = Files(tmp_path / "run", "mllm")

    def again(*more: str) -> Ended:
        return hybrid(*words(questions(COUNT), server.url, files.path, *MLLM, "--json", *more))

    assert again().code == 0
    return files, again


Run = tuple[Files, Callable[..., Ended]]


def test_a_last_line_that_was_cut_is_asked_again_and_nothing_else(run: Run, server: FaultyServer) -> None:
    files, second = run
    scores, mark = files.scores, len(server.seen)
    files.attempts.write_bytes(files.attempts.read_bytes()[:-20])
    assert second().code == 0
    assert sum(server.count_requests(mark).values()) == 1
    assert files.scores == scores
    assert files.finished() == set(range(1, COUNT + 1))


@pytest.mark.parametrize("damage", [b'{"id": "val_Spatial_Rel', b"\x00" * 40, b"[]", b"\xff\xfe"])
def test_a_line_in_the_middle_that_is_none_is_named_by_number_and_costs_its_own_question(
    run: Run, hybrid: Command, server: FaultyServer, damage: bytes
) -> None:
    files, second = run
    scores, mark = files.scores, len(server.seen)
    lines = files.attempts.read_bytes().split(b"\n")
    lines[4] = damage
    files.attempts.write_bytes(b"\n".join(lines))
    scored = hybrid("score", files.path, "--json", code=3)
    assert "attempts.jsonl, line 5" in scored.err
    assert json.loads(scored.out)["n"] == COUNT
    assert second().code == 0
    assert sum(server.count_requests(mark).values()) == 1
    assert files.scores == scores


def test_lines_that_vanish_are_missed(run: Run, hybrid: Command, server: FaultyServer) -> None:
    files, second = run
    scores, mark = files.scores, len(server.seen)
    files.attempts.write_bytes(b"".join(files.attempts.read_bytes().splitlines(keepends=True)[: COUNT // 2]))
    scored = hybrid("score", files.path, "--json")
    assert scored.code != 0
    assert "attempts.jsonl" in scored.err
    assert second().code == 0
    assert sum(server.count_requests(mark).values()) == COUNT - COUNT // 2
    assert files.scores == scores


def test_half_of_the_questions_is_no_run(run: Run, hybrid: Command) -> None:
    files, _ = run
    path = files.path / "questions.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: COUNT // 2]))
    scored = hybrid("score", files.path, "--json", code=2)
    assert scored.out == ""
    assert "questions.jsonl" in scored.err
    assert scored.err.count("\n") == 1


MANIFESTS = {
    "empty": b"",
    "cut": b'{"format": 1, "identity": {"hy',
    "not JSON": b"hello",
    "null": b"null",
    "a list": b"[]",
    "no fields": b"{}",
    "only a format": b'{"format": 1}',
    "wrong types": b'{"format": 1, "identity": 3, "solvers": [], "labels": {}, "environment": null, "notices": 5}',
    "not UTF-8": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("damage", MANIFESTS)
def test_a_damaged_manifest_is_one_line_and_nothing_is_written(
    run: Run, hybrid: Command, server: FaultyServer, damage: str
) -> None:
    files, second = run
    (files.path / "manifest.json").write_bytes(MANIFESTS[damage])
    content, mark = files.bytes(), len(server.seen)
    for result in (second(), hybrid("score", files.path, "--json")):
        assert result.code == 2
        assert "manifest.json" in result.err
        assert "Traceback" not in result.err
        assert result.out == ""
    assert files.bytes() == content
    assert len(server.seen) == mark


def test_answers_without_a_manifest_are_nobodys(run: Run, server: FaultyServer) -> None:
    files, second = run
    (files.path / "manifest.json").unlink()
    content, mark = files.bytes(), len(server.seen)
    other = second("--model", "openai:another")
    assert other.code == 2
    assert "manifest.json" in other.err
    assert files.bytes() == content
    assert len(server.seen) == mark


def test_another_configuration_is_refused_with_what_differs(run: Run, server: FaultyServer) -> None:
    files, second = run
    content, mark = files.bytes(), len(server.seen)
    for more, text in ((("--model", "openai:other"), "openai:other"), (("--seed", "3"), "seed: 0 -> 3")):
        other = second(*more)
        assert other.code == 2
        assert text in other.err
    assert files.bytes() == content
    assert len(server.seen) == mark


def test_where_the_server_is_and_how_patiently_it_is_asked_is_no_other_configuration(
    run: Run, questions: Questions, hybrid: Command, server: FaultyServer
) -> None:
    files, _ = run
    files.attempts.write_bytes(b"".join(files.attempts.read_bytes().splitlines(keepends=True)[:-1]))
    count = len(server.seen)
    with FaultyServer() as another:
        patient = ("--model-arg", "timeout_s=120", "--model-arg", "retries=1")
        result = hybrid(*words(questions(COUNT), another.url, files.path, *MLLM, *patient, "--json"))
        assert (result.code, len(another.seen)) == (0, 1)
    assert len(server.seen) == count


def test_a_clock_that_jumps_changes_no_answer(
    run: Run, questions: Questions, hybrid: Command, tmp_path: Path, server: FaultyServer
) -> None:
    files, _ = run
    jumped = Files(tmp_path / "jumped", "mllm")
    real, hours = time.time, iter(range(10**9))
    # The clock jumps by a day at every reading, because no decision of a run may use it.
    time.time = lambda: real() + 86400 * (-1) ** next(hours)
    try:
        result = hybrid(*words(questions(COUNT), server.url, jumped.path, *MLLM, "--json"))
    finally:
        time.time = real
    assert result.code == 0
    assert jumped.scores == files.scores


@pytest.mark.system
def test_a_full_disk_is_one_line_and_what_was_there_stays(
    tmp_path: Path, questions: Questions, hybrid: Command, process: Callable[..., Process], server: FaultyServer
) -> None:
    count = 60
    run = Files(tmp_path / "run", "mllm")
    arguments = words(questions(count), server.url, run.path, *MLLM, "--concurrency", "4")
    assert hybrid(*arguments, "--limit", "6").code == 0
    selected = run.finished()
    # No file of the process may grow beyond its questions and a few answers.
    blocks = _questions_bytes(hybrid, tmp_path, arguments) // 1024 + 6
    full = process(arguments, prefix=("bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash"))
    assert full.end() in (2, 3)
    assert "File too large" in full.output
    assert "Traceback" not in full.output
    assert selected < run.finished() < set(range(1, count + 1))
    finished, mark = run.finished(), len(server.seen)
    assert hybrid(*arguments).code == 0
    assert run.finished() == set(range(1, count + 1))
    assert not finished & set(server.count_requests(mark))


def _questions_bytes(hybrid: Command, tmp_path: Path, names: list[str]) -> int:
    """Return the size of the run's questions in its folder, in bytes."""
    place = names.index("--out") + 1
    assert hybrid(*names[:place], tmp_path / "whole", *names[place + 1 :]).code == 0
    return (tmp_path / "whole" / "questions.jsonl").stat().st_size


@contextmanager
def as_anybody() -> Iterator[None]:
    """Apply permissions of files to root as well, in this thread and those that it starts."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    had, less = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, had) == 0
    less[:] = list(had)
    less[0] &= ~0b110  # removes CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH from the effective capabilities
    assert libc.capset(header, less) == 0
    try:
        yield
    finally:
        assert libc.capset(header, had) == 0


def test_a_folder_that_is_read_only_can_be_scored_and_compared_and_is_not_continued(
    run: Run, hybrid: Command, server: FaultyServer, tmp_path: Path
) -> None:
    files, second = run
    expected = hybrid("score", files.path, "--json").out
    other = shutil.copytree(files.path, tmp_path / "other")
    # Scores and a lock are missing, and cannot be written.
    (files.path / "mllm" / "scores.json").unlink()
    lines = files.attempts.read_bytes().splitlines(keepends=True)
    folders = [path for path in (files.path, *files.path.rglob("*")) if path.is_dir()]
    for path in files.path.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    files.path.chmod(0o555)
    content, mark = files.bytes(), len(server.seen)
    try:
        with as_anybody():
            scored = hybrid("score", files.path, "--json")
            compared = hybrid("compare", files.path, other, "--json")
            continued = second()
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert len(lines) == COUNT
    assert (scored.code, scored.out) == (0, expected)
    assert scored.err == f"note: the scores of {files.path} cannot be saved there (Permission denied)\n"
    assert compared.code == 0
    assert json.loads(compared.out)
    assert continued.code == 2
    assert "cannot be written" in continued.err
    assert "Traceback" not in scored.err + compared.err + continued.err
    assert files.bytes() == content
    assert len(server.seen) == mark


def test_a_folder_that_cannot_be_made_is_one_line(
    questions: Questions, hybrid: Command, tmp_path: Path, server: FaultyServer
) -> None:
    (tmp_path / "file").write_text("in the way")
    mark = len(server.seen)
    for solver in (MLLM, CONTROLLER):
        result = hybrid(*words(questions(COUNT), server.url, tmp_path / "file" / "run", *solver), code=2)
        assert result.err.splitlines()[-1].startswith("hybrid: ")
        assert "cannot be written" in result.err
        assert "Traceback" not in result.err
    assert len(server.seen) == mark
