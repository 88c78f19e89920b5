"""A user's file from `hybrid data template` to a report: each command works on it, as on any benchmark."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import hybrid
from hybrid.core.errors import UsageError
from tests.finished_runs import Command, Words
from tests.tables import stored

# Replies, all right except the third.
REPLIES = stored(__file__, "REPLIES")


@pytest.fixture
def file(command: Command, tmp_path: Path) -> Path:
    """The unchanged template."""
    path = tmp_path / "mine" / "questions.jsonl"
    assert command("data", "template", "-o", path).out.split() == [
        str(path),
        *(str(path.parent / f"shapes{number}.png") for number in ("", "-2", "-3", "-4")),
    ]
    return path


@pytest.fixture
def words(file: Path, tmp_path: Path, fakes: Any) -> Words:
    """Words of `hybrid run FILE` with a recorded model."""
    model = fakes.recordings(tmp_path / "model", REPLIES)
    return ("run", str(file), "--model", f"replay:{model}", "--solver", "mllm", "--solver", "chance")


def metrics(result: Any, solver: str = "mllm") -> dict[str, float]:
    results: dict[str, float] = json.loads(result.out)["solvers"][solver]["metrics"]
    return results


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv"])
def test_the_template_is_whole_in_every_ending(command: Command, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"questions{ending}"
    assert command("data", "template", "-o", path).code == 0
    report = json.loads(command("data", "check", path, "--json", code=0).out)
    kinds = {kind for task in report["tasks"].values() for kind in task["kinds"]}
    assert kinds == {"choice", "yes_no", "integer", "number", "text", "point", "box"}
    assert report["doubtful"] == []
    assert "already exists" in command("data", "template", "-o", path, code=2).err


def test_broken_rows_are_named_and_strict_refuses_them(command: Command, file: Path, words: Words) -> None:
    with file.open("a") as lines:
        lines.write(json.dumps({"id": "q8", "image": "away.png", "question": "?", "answer": "yes"}) + "\n")
    text = f"{file}:8, column image: no file 'away.png' inside {file.parent}"
    assert f"broken: q8: {text}" in command("data", "check", file, code=3).out
    for refused in (command("data", "check", file, "--strict"), command(*words, "--strict")):
        assert refused.code == 2
        assert f"--strict: 1 rows cannot be used:\n  q8: {text}" in refused.err
    result = command(*words, "--json", code=3)
    assert f"failed: q8 (mllm): {text}" in result.err
    assert json.loads(result.out)["solvers"]["mllm"]["failed"] == 1


def test_a_run_goes_on_and_is_compared_and_reported(command: Command, words: Words, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert "3 questions, run folder" in command(*words, "--out", run, "--limit", "3", "--json").err
    result = command(*words, "--out", run, "--json", code=0)
    assert metrics(result)["accuracy_macro"] == pytest.approx(6 / 7)
    assert metrics(result)["iou"] == 1.0
    assert metrics(result)["f1"] is None or metrics(result)["f1"] == 0.0
    assert command(*words, "--out", run, "--json").out == result.out
    assert "accuracy_macro" in command("compare", run, "--json", code=0).out
    assert command("score", run, "--json").code == 0
    assert command("report", run, "-o", tmp_path / "site").code == 0
    assert "Which shape is on the left?" in "".join(page.read_text() for page in (tmp_path / "site").rglob("*.js")), (
        "a page for each question"
    )


def test_a_path_is_the_data(command: Command, file: Path, tmp_path: Path) -> None:
    refused = command("run", file, "--data", tmp_path, "--solver", "chance")
    assert (refused.code, "this path is the data; leave out --data" in refused.err) == (2, True)
    assert "file not found" in command("run", tmp_path / "no.csv", "--solver", "chance", code=2).err
    assert "did you mean 'blink'" in command("run", "blinc", "--solver", "chance", code=2).err
    assert command("run", "questions", "--data", file, "--solver", "chance").code == 0
    config = tmp_path / "run.yaml"
    config.write_text(f"benchmark: {file}\nsolver: chance\nlimit: 2\n")
    assert command("run", "--config", config).code == 0


def test_questions_from_python_are_the_same_rows(file: Path, fakes: Any, tmp_path: Path, hybrid_home: Path) -> None:
    picture = file.parent / "shapes.png"
    images = [picture, str(picture), picture.read_bytes(), Image.open(picture), np.asarray(Image.open(picture))]
    questions = [
        hybrid.Question("Which is left?", image, "disc", choices=["disc", "square"], group={"form": str(number)})
        for number, image in enumerate(images)
    ]
    model = fakes.recordings(tmp_path / "model", {str(number): "(A)" for number in range(1, 6)})
    options = {"solvers": ["mllm"], "model": f"replay:{model}", "out": str(tmp_path / "run")}
    (scored,) = hybrid.run(questions=questions, **options).solvers
    assert [score.correct for score in scored.scores] == [1.0] * 5
    assert {score.groups["form"] for score in scored.scores} == set("01234")
    assert len(list((hybrid_home / "questions").iterdir())) == 1
    hybrid.run(questions=questions, **options)
    assert len(list((hybrid_home / "questions").iterdir())) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"questions": []}, "give at least one"),
        ({"questions": ["a text"]}, "item 1 is a str, not a hybrid.Question"),
        ({"questions": [hybrid.Question("?", 3, "yes")]}, "int is not an image"),  # type: ignore[arg-type]
        ({"questions": [hybrid.Question("?", "away.png", "yes")]}, "away.png: cannot be read"),
        ({"questions": [], "benchmark": "blink"}, "leave the benchmark out"),
        ({}, "takes a benchmark"),
    ],
)
def test_what_python_may_not_hand_in(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hybrid.run(**options, solvers=["chance"])
