"""`hybrid score` with several files: files of one model are scored like the folder that contains them."""

import json
import random
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.mvp_bench.sample import TASKS, write
from tests.finished_runs import Command


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mvp")
    write(folder, tuple(TASKS), 4, 3)
    return folder


def predicted(data: Path, folder: Path, model: str, seed: int) -> Path:
    """Write both prediction files of a simulated model that is right in 70 % of cases; return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    for name, file in (("all_questions.json", f"{model}.jsonl"), ("mcq_questions.json", f"mcq_{model}.jsonl")):
        rows = [json.loads(line) for line in (data / name).read_text().splitlines()]
        values = [
            {
                "question_id": row["question_id"],
                "output": row["answer"] if draw.random() < 0.7 else "E",
                "prompt": row["question"],
                "image": row["image"],
                "model_id": model,
            }
            for row in rows
        ]
        (folder / file).write_text("".join(f"{json.dumps(row)}\n" for row in values))
    return folder


def score(command: Command, data: Path, *words: object) -> Any:
    return json.loads(command("score", *words, "--benchmark", "mvp_bench", "--data", data, "--json", code=0).out)


@pytest.mark.parametrize("order", [("m.jsonl", "mcq_m.jsonl"), ("mcq_m.jsonl", "m.jsonl")])
def test_the_two_files_of_a_model_are_scored_as_their_folder(
    command: Command, data: Path, tmp_path: Path, order: Sequence[str]
) -> None:
    folder = predicted(data, tmp_path / "one", "m", 5)
    full = score(command, data, folder)
    pair = score(command, data, *(folder / name for name in order))
    # The first lines of the output name the model after the folder or the file.
    assert (full.pop("head")[0], pair.pop("head")[0]) == ("one", "m")
    assert pair == full
    assert {"qAcc", "circular", "vanilla", "first_rotation"} <= set(pair["metrics"])


def test_files_that_contradict_each_other_are_refused(command: Command, data: Path, tmp_path: Path) -> None:
    folder = predicted(data, tmp_path / "one", "m", 5)
    rows = [json.loads(line) for line in (folder / "m.jsonl").read_text().splitlines()]
    mixed = [{**rows[0], "output": "none of these"}]
    with (folder / "mcq_m.jsonl").open("a") as file:
        file.write("".join(f"{json.dumps(row)}\n" for row in mixed))
    words = (folder / "m.jsonl", folder / "mcq_m.jsonl", "--benchmark", "mvp_bench", "--data", data)
    assert f"has a different reply in {folder / 'm.jsonl'}" in command("score", *words, code=2).err
    # The message names the file of the first reply, which need not be the first file.
    (tmp_path / "m.jsonl").write_text(f"{json.dumps(rows[1])}\n")
    error = command("score", tmp_path / "m.jsonl", *words, code=2).err
    assert f"has a different reply in {folder / 'm.jsonl'}" in error


def test_the_command_for_all_tables_reads_the_predictions_with_the_same_options(
    command: Command, data: Path, tmp_path: Path
) -> None:
    """Without the benchmark, its data, the other file and the rule, the command would fail or print other numbers."""
    folder = predicted(data, tmp_path / "one model", "m", 5)
    words = ["score", folder / "m.jsonl", folder / "mcq_m.jsonl", "--benchmark", "mvp_bench", "--data", data]
    printed = command(*words, "--unanswered", "guess", code=0).out
    lines = printed.partition("More: hybrid ")[2].replace("\\\n", " ")
    compared = command(*shlex.split(lines), code=0).out
    # Both begin with the model, the questions and the rule.
    head = printed.partition("\n\n")[0].splitlines()[:3]
    assert compared.splitlines()[:3] == head
    assert any("as a guess" in line for line in head)
    assert command("compare", *words[1:], code=0).out.splitlines()[:3] != head
