"""A run on disk: lines that survive a crash, one writer at a time, and what two configurations differ in."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.errors import DataError, UsageError
from hybrid.log.attempts import STEPS, Unfinished, attempt_line
from hybrid.log.codec import to_json
from hybrid.log.folder import RunFolder
from hybrid.log.manifest import difference
from hybrid.types import Attempt, BrokenQuestion, Exchange, Fault, Kind, Outcome, Prompt, Reply, Score, Step, Usage

IDENTITY = {"benchmark": "blink", "split": "val"}
PROMPT = Prompt(("What?",), Kind.CHOICE, ("yes", "no"), route="Route")


def attempt(identity: str, text: str = "(A)") -> Attempt:
    steps = (
        Step("model", "m", text, 0.5, None, {"likelihood": {"A": 0.7}}),
        Step("tool", "t", "found", fault=Fault.TIMEOUT),
        Step("rule", "keep", "no specialist answer", data={"specialist_answer": {"letter": "A", "confidence": 0.5}}),
    )
    reply = Reply(text, Outcome.ANSWERED, Usage(1, 1, 10, 5, 0, 0.25, 1.5), steps)
    return Attempt(identity, (Exchange(PROMPT, reply),), 2.0)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def write(folder: RunFolder, *ids: str) -> Path:
    journal = folder.journal("mllm")
    for identity in ids:
        journal.append(attempt_line(attempt(identity)))
    journal.close()
    return folder.path / "mllm" / "attempts.jsonl"


def test_attempts_come_back_with_every_step(folder: RunFolder) -> None:
    write(folder, "q1", "q2")
    assert folder.attempts("mllm") == (attempt("q1"), attempt("q2"))


def test_a_light_reader_gets_all_but_the_steps(folder: RunFolder) -> None:
    write(folder, "q1")
    recorded = folder.recorded("mllm")
    (exchange,) = recorded.without_steps["q1"].exchanges
    assert exchange.reply == replace(attempt("q1").exchanges[0].reply, steps=())
    assert exchange.prompt == PROMPT


def test_a_question_that_was_not_finished_is_open_until_it_is(folder: RunFolder) -> None:
    journal = folder.journal("mllm")
    for identity, error in (("q1", "first"), ("q2", "down"), ("q1", "second")):
        journal.append(to_json(Unfinished, Unfinished(identity, error)))
    assert folder.finished("mllm") == frozenset()
    assert dict(folder.recorded("mllm").unfinished) == {"q2": "down", "q1": "second"}
    journal.append(attempt_line(attempt("q1")))
    journal.close()
    assert folder.finished("mllm") == {"q1"}
    assert dict(folder.recorded("mllm").unfinished) == {"q2": "down"}


def test_what_was_read_is_read_again_only_when_it_changed(folder: RunFolder) -> None:
    path = write(folder, "q1")
    first = folder.recorded("mllm")
    assert folder.recorded("mllm") is first
    write(folder, "q2")
    assert list(folder.recorded("mllm").by_id) == ["q1", "q2"]
    path.unlink()
    assert folder.attempts("mllm") == ()


@pytest.mark.parametrize("steps", [b',"steps":[[{"kind":"model"}]]}', b"}", b',"steps":[[],[]]}', b',"steps":[]'])
def test_a_line_whose_steps_are_damaged_is_none(folder: RunFolder, steps: bytes) -> None:
    path = write(folder, "q1", "q2")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first.partition(STEPS)[0] + steps + b"\n" + second)
    recorded = folder.recorded("mllm")
    assert list(recorded.by_id) == ["q2"]
    (damage,) = recorded.damage
    assert damage.startswith(f"{path}, line 1: not an Attempt (")


def test_a_line_is_on_disk_when_append_returns(folder: RunFolder) -> None:
    journal = folder.journal("mllm")
    journal.append(attempt_line(attempt("q1")))
    assert [one.id for one in folder.attempts("mllm")] == ["q1"]
    journal.close()


def test_a_line_without_its_end_is_passed_over_and_overwritten(folder: RunFolder) -> None:
    path = write(folder, "q1", "q2")
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert [one.id for one in folder.attempts("mllm")] == ["q1"]
    write(folder, "q2")
    assert path.read_bytes() == whole


@settings(max_examples=30)
@given(cut=st.integers(0, 10_000))
def test_a_file_cut_anywhere_keeps_every_whole_line(tmp_path: Path, cut: int) -> None:
    folder = RunFolder(tmp_path / "run")
    path = folder.path / "mllm" / "attempts.jsonl"
    path.unlink(missing_ok=True)
    whole = write(folder, "q1", "q2", "q3").read_bytes()
    kept = whole[: cut % (len(whole) + 1)]
    path.write_bytes(kept)
    ids = ["q1", "q2", "q3"][: kept.count(b"\n")]
    assert [one.id for one in folder.attempts("mllm")] == ids
    write(folder, "q9")
    assert [one.id for one in folder.attempts("mllm")] == [*ids, "q9"]


def test_a_damaged_line_in_the_middle_is_named_and_costs_nobody_else(folder: RunFolder) -> None:
    path = write(folder, "q1", "q2")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b'{"id": 3}\n' + second)
    found = folder.recorded("mllm")
    assert list(found.by_id) == ["q1", "q2"]
    (line,) = found.damage
    assert line.startswith(f"{path}, line 2: not an Attempt (")
    assert "\n" not in line


def test_the_first_line_of_an_id_counts(folder: RunFolder) -> None:
    journal = folder.journal("mllm")
    journal.append(attempt_line(attempt("q1", "(A)")))
    journal.append(attempt_line(attempt("q1", "(B)")))
    journal.close()
    assert [one.exchanges[0].reply.text for one in folder.attempts("mllm")] == ["(A)"]


def test_no_attempts_are_none(folder: RunFolder) -> None:
    assert folder.attempts("mllm") == ()


def test_questions_come_back_with_all_they_had(folder: RunFolder, fakes: Any) -> None:
    asked = [
        fakes.question("q1#s2", target={"x": [1, 2.5, None]}, groups={"images": "2"}, cluster="pair-1"),
        BrokenQuestion("q2", "Task", "row 2 does not decode"),
        fakes.question("q3", protocol={"start": 1}, kind=Kind.SCANPATH, choices=()),
    ]
    folder.write_questions(asked)
    assert list(folder.questions()) == asked


def test_scores_are_sorted_by_id(folder: RunFolder) -> None:
    folder.write_scores("mllm", [Score(name, "T", 1.0, Outcome.ANSWERED) for name in ("b", "a", "c")])
    rows = [json.loads(line) for line in (folder.path / "mllm" / "scores.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["a", "b", "c"]


@pytest.mark.system
def test_a_second_process_is_refused_while_one_writes(folder: RunFolder) -> None:
    script = (
        "import sys; from pathlib import Path; from hybrid.log.folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).locked():\n    print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(folder.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="is being written by another process"), folder.locked():
            pytest.fail("the lock was given twice")
        other.communicate(timeout=20)
    with folder.locked():
        pass


def test_the_lock_ends_with_an_error_inside(folder: RunFolder) -> None:
    with pytest.raises(ZeroDivisionError), folder.locked():
        raise ZeroDivisionError
    with folder.locked():
        pass


def test_a_manifest_comes_back(folder: RunFolder) -> None:
    folder.write_manifest({"identity": IDENTITY, "solvers": {"mllm": {}}})
    assert folder.manifest == {"format": 2, "identity": IDENTITY, "solvers": {"mllm": {}}}
    assert RunFolder.existing(folder.path).path == folder.path


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is not JSON"), ("[]", "not a manifest"), ("{}", "not a manifest")]
)
def test_what_is_no_manifest_is_refused(folder: RunFolder, text: str, message: str) -> None:
    folder.path.mkdir()
    (folder.path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=message):
        assert folder.manifest


@pytest.mark.parametrize("number", [1, 3])
def test_a_run_of_another_format_is_refused_in_one_sentence(folder: RunFolder, number: int) -> None:
    folder.path.mkdir()
    (folder.path / "manifest.json").write_text(json.dumps({"format": number, "identity": IDENTITY, "solvers": {}}))
    with pytest.raises(DataError) as refused:
        assert folder.manifest
    said = str(refused.value)
    assert said.startswith(f"{folder.path / 'manifest.json'} is of format {number} ")
    assert "run it again with this version" in said
    assert "\n" not in said


def test_a_folder_without_a_manifest_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a run: it has no manifest\.json"):
        RunFolder.existing(tmp_path)


def test_solvers_are_those_with_attempts_in_the_order_of_the_manifest(folder: RunFolder) -> None:
    folder.write_manifest({"identity": IDENTITY, "solvers": {"specialist": {}, "mllm": {}, "arbiter": {}}})
    for name in ("mllm", "specialist"):
        folder.journal(name).close()
    assert folder.solvers() == ("specialist", "mllm")


ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=30)


@settings(max_examples=60)
@given(ANY_TEXT | st.text(st.sampled_from("\ud800\udfffab\n"), max_size=6))
def test_any_reply_can_be_written_and_read(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path / "run")
    (folder.path / "mllm" / "attempts.jsonl").unlink(missing_ok=True)
    journal = folder.journal("mllm")
    journal.append(attempt_line(attempt("q1", text)))
    journal.close()
    (found,) = folder.attempts("mllm")
    assert found.exchanges[0].reply.text == text.encode("utf-8", "replace").decode()


def test_difference_names_every_leaf() -> None:
    before = {"seed": 0, "model": {"name": "a", "detail": "low"}, "tasks": ["x"], "gone": 1}
    after = {"seed": 1, "model": {"name": "a", "detail": "high"}, "tasks": ["x"], "new": None}
    assert difference(before, after) == ["gone: 1 -> null", 'model.detail: "low" -> "high"', "seed: 0 -> 1"]
    assert difference(before, before) == []
    assert difference({"model": None}, {"model": {"name": "a"}}) == ['model: null -> {"name": "a"}']
