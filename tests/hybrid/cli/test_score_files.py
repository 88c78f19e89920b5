"""`hybrid score` with several files: those of one model are scored as the folder that holds them would be."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.card import BenchmarkCard
from hybrid.benchmarks.mvp_bench.sample import TASKS, write
from hybrid.scoring.predictions.mounted import sets_of

Command = Callable[..., Any]
CARD = BenchmarkCard("b", "B", "", "", (), None, ("test",), {"t": 1}, prediction_prefixes=("mcq_", "long_"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mvp")
    write(folder, tuple(TASKS), 4, 3)
    return folder


def predicted(data: Path, folder: Path, model: str, seed: int) -> Path:
    """Both files of a model that guesses, right more often than not."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    for name, file in (("all_questions.json", f"{model}.jsonl"), ("mcq_questions.json", f"mcq_{model}.jsonl")):
        rows = [json.loads(line) for line in (data / name).read_text().splitlines()]
        found = [
            {
                "question_id": row["question_id"],
                "output": row["answer"] if draw.random() < 0.7 else "E",
                "prompt": row["question"],
                "image": row["image"],
                "model_id": model,
            }
            for row in rows
        ]
        (folder / file).write_text("".join(f"{json.dumps(row)}\n" for row in found))
    return folder


def score(command: Command, data: Path, *words: object) -> Any:
    ended = command("score", *words, "--benchmark", "mvp_bench", "--data", data, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


@pytest.mark.parametrize("order", [("m.jsonl", "mcq_m.jsonl"), ("mcq_m.jsonl", "m.jsonl")])
def test_the_two_files_of_a_model_are_scored_as_their_folder(
    command: Command, data: Path, tmp_path: Path, order: Sequence[str]
) -> None:
    folder = predicted(data, tmp_path / "one", "m", 5)
    whole = score(command, data, folder)
    both = score(command, data, *(folder / name for name in order))
    assert both == whole
    assert {"qAcc", "circular", "vanilla", "first_rotation"} <= set(both["metrics"])


def test_files_of_two_models_stay_apart(command: Command, data: Path, tmp_path: Path) -> None:
    folder = predicted(data, tmp_path / "both", "m", 5)
    predicted(data, folder, "k", 6)
    found = score(command, data, *sorted(folder.iterdir()))["paths"]
    assert set(found) == {str(folder / "m.jsonl"), str(folder / "k.jsonl")}
    for model, seed in (("m", 5), ("k", 6)):
        assert found[str(folder / f"{model}.jsonl")] == score(
            command, data, predicted(data, tmp_path / model, model, seed)
        )


def test_the_two_files_of_a_model_are_compared_as_one(command: Command, data: Path, tmp_path: Path) -> None:
    one, two = predicted(data, tmp_path / "one", "m", 5), predicted(data, tmp_path / "two", "k", 6)
    words = ("--benchmark", "mvp_bench", "--data", data, "--json")
    whole = json.loads(command("compare", one, two, *words).out)
    apart = json.loads(
        command("compare", one / "m.jsonl", one / "mcq_m.jsonl", two / "k.jsonl", two / "mcq_k.jsonl", *words).out
    )
    assert len(whole["solvers"]) == 2
    # A set of predictions is called by its folder or by its first file.
    for one, other in zip(apart["solvers"].values(), whole["solvers"].values(), strict=True):
        assert {**one, "model": None} == {**other, "model": None}


def test_both_files_become_one_run(command: Command, data: Path, tmp_path: Path) -> None:
    folder = predicted(data, tmp_path / "one", "m", 5)
    files = (folder / "m.jsonl", folder / "mcq_m.jsonl")
    told = command("score", *files, "--benchmark", "mvp_bench", "--data", data).err
    assert f"one model, scored together: {files[0]}, {files[1]}\n" in told
    imported = score(command, data, *files, "-o", tmp_path / "run")
    assert imported["metrics"]["circular"] == score(command, data, folder)["metrics"]["circular"]
    other = predicted(data, tmp_path / "two", "k", 6) / "k.jsonl"
    refused = command("score", *files, other, "--benchmark", "mvp_bench", "--data", data, "-o", tmp_path / "second")
    assert refused.code == 2
    assert "-o imports one set of predictions" in refused.err


def test_files_that_contradict_each_other_are_refused(command: Command, data: Path, tmp_path: Path) -> None:
    folder = predicted(data, tmp_path / "one", "m", 5)
    rows = [json.loads(line) for line in (folder / "m.jsonl").read_text().splitlines()]
    mixed = [{**rows[0], "output": "none of these"}]
    with (folder / "mcq_m.jsonl").open("a") as file:
        file.write("".join(f"{json.dumps(row)}\n" for row in mixed))
    words = (folder / "m.jsonl", folder / "mcq_m.jsonl", "--benchmark", "mvp_bench", "--data", data)
    ended = command("score", *words)
    assert ended.code == 2
    assert "has another reply in" in ended.err


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("a", "mcq_a"), (("a", "mcq_a"),)),
        (("mcq_a", "b", "a", "long_a"), (("a", "mcq_a", "long_a"), ("b",))),
        (("mcq_a", "mcq_b"), (("mcq_a",), ("mcq_b",))),
        (("x/a", "y/mcq_a"), (("x/a",), ("y/mcq_a",))),
        (("a", "mcqa"), (("a",), ("mcqa",))),
        (("a",), (("a",),)),
    ],
)
def test_which_files_are_one_set(paths: Sequence[str], expected: Sequence[Sequence[str]]) -> None:
    assert sets_of([Path(path) for path in paths], CARD) == tuple(tuple(map(Path, one)) for one in expected)
