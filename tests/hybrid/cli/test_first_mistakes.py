"""A user's first mistakes with single questions and run folders: the message names the next step."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from hybrid.display.notes import is_shown, remember_warning
from hybrid.log.folder import RunFolder
from tests.finished_runs import Command, Words

CHANCE = ("--solver", "chance")


@pytest.fixture
def blink(fakes: Any, tmp_path: Path) -> Path:
    folder: Path = fakes.blink_folder(tmp_path / "blink")
    return folder


def ids(run: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (run / "questions.jsonl").read_text().splitlines()]


def answered(run: Path, solver: str = "chance") -> list[str]:
    return sorted(json.loads(line)["id"] for line in (run / solver / "attempts.jsonl").read_text().splitlines())


def test_one_question_by_its_id_then_all_of_them(command: Command, blink: Path, tmp_path: Path) -> None:
    run, words = tmp_path / "run", ("run", "blink", "--data", blink, "--solver", "chance", "--out", tmp_path / "run")
    first = command(*words, "--only", "val_Jigsaw_2")
    assert first.code == 0, first.err
    assert "1 question, run folder" in first.err
    assert "over 1 question (" in " ".join(first.out.split())
    assert ids(run) == answered(run) == ["val_Jigsaw_2"]
    two = command(*words, "--only", "val_Jigsaw_2", "--only", "val_Jigsaw_1")
    assert two.code == 0, two.err
    assert answered(run) == ["val_Jigsaw_1", "val_Jigsaw_2"]
    # The data of a single question are not mistaken for the complete data.
    assert command(*words).code == 0
    assert len(answered(run)) == 6
    # A run of a single question is not a part of the full run.
    assert command(*words, "--only", "val_Jigsaw_2").code == 0
    assert len(ids(run)) == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--only", "val_Jigsaw_9"),
            "--only val_Jigsaw_9: question not found among the 6 questions (did you",
        ),
        (("--only", "val_Jigsaw_3", "--limit", "2"), "among the 2 questions of --limit"),
        (("--only", "val_Jigsaw_1", "--task", "Spatial_Relation"), "task Spatial_Relation"),
    ],
)
def test_an_id_that_is_not_there(command: Command, blink: Path, tmp_path: Path, words: Words, message: str) -> None:
    run = ("run", "blink", "--data", blink, "--solver", "chance", "--out", tmp_path / "run")
    assert message in command(*run, *words, code=2).err
    assert not (tmp_path / "run").exists()


def test_variants_come_with_their_question(command: Command, blink: Path, tmp_path: Path) -> None:
    words = ("run", "blink", "--data", blink, "--solver", "chance", "--rotate", "--out", tmp_path / "run")
    assert command(*words, "--only", "val_Jigsaw_1").code == 0
    assert {name.partition("#")[0] for name in ids(tmp_path / "run")} == {"val_Jigsaw_1"}
    assert len(ids(tmp_path / "run")) > 1


@pytest.mark.parametrize("name", ["notes.txt", "photos/cat.png"])
def test_a_run_is_not_mixed_with_other_files(command: Command, blink: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine")
    words = ("run", "blink", "--data", blink, "--solver", "chance", "--out", out)
    err = command(*words, code=2).err
    assert (
        f"--out {out}: it contains {name.partition('/')[0]}, which is not part of a run: give a new or empty folder"
        in " ".join(err.split())
    )
    assert [path.name for path in out.iterdir()] == [name.partition("/")[0]]
    # A hidden file does not count as data, and an existing run continues next to added files.
    (out / name).rename(tmp_path / "mine")
    if "/" in name:
        (out / "photos").rmdir()
    (out / ".keep").touch()
    assert command(*words).code == 0
    (out / "notes.txt").touch()
    assert command(*words).code == 0


def test_a_folder_of_runs_is_no_run(command: Command, blink: Path, tmp_path: Path) -> None:
    words = ("run", "blink", "--data", blink, "--solver", "chance", "--out")
    assert command(*words, tmp_path / "runs" / "a").code == 0
    assert f"give one of them, such as {tmp_path / 'runs' / 'a'}" in command(*words, tmp_path / "runs", code=2).err


def test_only_a_run_without_answers_is_removed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    (tmp_path / "run" / "mllm").mkdir(parents=True)
    (tmp_path / "run" / "mllm" / "attempts.jsonl").write_text("{}\n")
    run.remove_unanswered()
    assert (tmp_path / "run" / "mllm" / "attempts.jsonl").exists()
    (tmp_path / "run" / "mllm" / "attempts.jsonl").write_text("")
    (tmp_path / "run" / "mine.txt").touch()
    run.remove_unanswered()
    assert (tmp_path / "run" / "mine.txt").exists()
    (tmp_path / "run" / "mine.txt").unlink()
    run.remove_unanswered()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("run",), "hybrid: Missing argument 'BENCHMARK'; `hybrid benchmarks list` shows the possible values"),
        (("tools", "run"), "hybrid: Missing argument 'NAME'; `hybrid tools list` shows the possible values"),
        (("benchmarks", "show"), "hybrid: Missing argument 'NAME'; `hybrid benchmarks list` shows the possible values"),
        (("compare",), "hybrid: Missing argument 'PATHS...'; `hybrid runs list` shows the possible values"),
        (("export", "absent"), "hybrid: Invalid value for 'RUN[/SOLVER]': Directory 'absent' does not exist; `hybrid"),
        (("rum",), "hybrid: No such command 'rum' (did you mean 'run'?); `hybrid --help` shows the usage"),
        (
            ("run", "blink", "--temprature", "0.5"),
            "No such option '--temprature'; write `--model-arg temperature=VALUE`",
        ),
        (
            ("ask", "a.png", "What?", "--top-p", "0.5"),
            "No such option '--top-p'; write `--model-arg top_p=VALUE`, `hyb",
        ),
        (("compare", "a", "--temperature", "0.5"), "No such option '--temperature'; `hybrid compare --help`"),
        (("new", "tool", "glow"), "No such command 'tool'; write `hybrid tools new`, `hybrid new --help` shows"),
        (("new", "run", "glow"), "No such command 'run'; `hybrid new --help` shows the usage"),
        (
            ("run", "blink", "--model", "hf:absent", "--data", "sample", "--task", "Jigsaw", "--limit", "1"),
            "--model hf:absent: directory absent not found; a repository of the hub",
        ),
        (
            ("run", "blink", "--model", "hf:.", "--data", "sample", "--task", "Jigsaw", "--limit", "1"),
            "--model hf:.: the directory contains no config.json",
        ),
        (("run", "blink", "--model", "gpt4o"), "no provider 'gpt4o' (did you mean 'openai:gpt4o'?)"),
        (
            ("run", "blink", "--data", "smaple", *CHANCE),
            "--data smaple: folder not found (did you mean",
        ),
        (
            ("run", "blink", "--data", "sample", *CHANCE, "--task", "Depth"),
            "(did you mean 'Relative_Depth'?); available: ",
        ),
        (("run", "blink", "--limit", "ten"), "Invalid value for '--limit': 'ten' is not a valid integer; `hybrid run"),
        (("data", "check", "absent.csv"), "hybrid: absent.csv: file or folder not found; give a file of"),
        (("data", "sample", "-o", "x", "--task", "Jigsaww"), "cannot be generated (did you mean 'Jigsaw'?); available"),
    ],
)
def test_a_message_is_one_line_with_the_next_step(command: Command, words: Words, hint: str) -> None:
    result = command(*words, code=2)
    assert hint in result.err
    assert result.err.startswith("hybrid: ")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [("quickstart",), ("study", "blink", "--model", "embedded"), ("ablate", "blink", "--model", "embedded")],
    ids=lambda words: str(words[0]),
)
def test_several_runs_are_not_mixed_with_other_files(command: Command, tmp_path: Path, words: Words) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    data = () if words == ("quickstart",) else ("--data", "sample", "--task", "Jigsaw")
    message = f"--out {out}: it contains notes.txt, which is not part of a run: give a new or empty folder"
    assert message in command(*words, *data, "--limit", 1, "--out", out, code=2).err
    assert [path.name for path in out.iterdir()] == ["notes.txt"]


def test_names_of_solvers_are_matched(command: Command, blink: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("run", "blink", "--data", blink, "--solver", "chance", "--out", run).code == 0
    exported = command("export", run / "chanse", "--to", "table", "-o", "t.csv", code=2).err
    assert f"{run} has no solver 'chanse' (did you mean 'chance'?); it has chance; `hybrid runs list` shows" in exported
    compared = command("compare", run, "--baseline", "chanse", code=2).err
    assert "--baseline chanse: unknown solver (did you mean 'chance'?); available: chance" in compared
    assert (
        "-o t.csv: the format parquet writes .parquet"
        in command("export", run, "--to", "parquet", "-o", "t.csv", code=2).err
    )
    file = tmp_path / "file"
    file.touch()
    words = ("run", "blink", "--data", blink, "--solver", "chance", "--out", file)
    assert f"--out {file}: this is a file; give a new or empty folder" in command(*words, code=2).err


def test_a_group_without_a_command_shows_its_help(command: Command) -> None:
    assert "Commands:" in command("new").err


def test_what_cannot_become_a_run_is_not_waited_for(command: Command, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").touch()
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("photos", "link", "loop", "photos/cat.png/run"):
        assert "is not a run" in command("view", tmp_path / name, code=2).err
    # A folder with answers but without a manifest is refused, because no run can begin there.
    (tmp_path / "orphans" / "mllm").mkdir(parents=True)
    (tmp_path / "orphans" / "mllm" / "attempts.jsonl").write_text("{}\n")
    assert "contains answers of mllm but no manifest.json" in command("view", tmp_path / "orphans", code=2).err


def test_a_warning_of_the_log_is_remembered() -> None:
    assert not is_shown("depth: a line of this test")
    remember_warning("depth: a line of this test")
    assert is_shown("depth: a line of this test")


@pytest.mark.system
def test_generated_data_and_made_up_models(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    result = command(
        "data", "sample", "-o", "BLINK", "--task", "Jigsaw", "--each", 3, "--replies", "alpha,beta", code=0
    )
    assert result.out.splitlines()[1] == "alpha: 3 made-up answers, for --model replay:alpha"
    lines = {name: Path(name, "calls.jsonl").read_text().splitlines() for name in ("alpha", "beta")}
    texts = {name: [json.loads(line)["text"] for line in of_model] for name, of_model in lines.items()}
    assert texts == {
        "alpha": ["Answer: (B)", "Answer: (A)", "Answer: (B)"],
        "beta": ["Answer: (B)", "Answer: (A)", "Answer: (A)"],
    }
    ran = command("run", "blink", "--data", "BLINK", "--model", "replay:alpha", "--solver", "mllm", "--out", "run")
    assert ran.code == 0, ran.err
    assert "3/3" in ran.out
    assert "--out BLINK: it is not an empty folder" in command("data", "sample", "-o", "BLINK", code=2).err
    assert "Art_Style cannot be generated" in command("data", "sample", "-o", "x", "--task", "Art_Style", code=2).err
    assert not Path("x").exists()


def test_a_part_of_generated_data_keeps_its_mark(command: Command, blink: Path, tmp_path: Path) -> None:
    command("data", "sample", "-o", "BLINK", "--task", "Jigsaw", "--each", 2, code=0)
    mixed = tmp_path / "mixed"
    shutil.copytree(blink, mixed)
    shutil.rmtree(mixed / "Jigsaw")
    shutil.copytree("BLINK/Jigsaw", mixed / "Jigsaw")
    for data, generated in ((mixed, True), (blink, False)):
        ran = command("run", "blink", "--data", data, *CHANCE, "--out", f"run-{data.name}", code=0)
        assert ("generated questions" in ran.out) is generated
        assert all(name.startswith("generated_") for name in ids(Path(f"run-{data.name}"))) is generated


def test_a_generated_table_read_as_own_questions_keeps_its_mark(command: Command) -> None:
    command("data", "sample", "--benchmark", "realworldqa", "-o", "made", "--each", 2, code=0)
    (table,) = Path("made").rglob("*.parquet")
    assert "generated questions" in command("run", table, *CHANCE, "--out", "run", code=0).out
    assert all(name.startswith("generated_") for name in ids(Path("run")))


@pytest.mark.parametrize("words", [("rum",), ("exprot", "run"), ("run", "blink", "--modle", "x")])
def test_a_misspelt_word_ends_in_one_sentence_with_the_suggestion(command: Command, words: Words) -> None:
    error = command(*words, code=2).err
    assert re.search(r" \(did you mean .*\?\); `hybrid .*--help` shows the usage$", error.strip()), error
