"""`hybrid data check` of a folder and of the hub, and a run whose data the hub gives, as a user starts them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.registry import load

Command = Callable[..., Any]


def puzzles(fakes: Any) -> list[dict[str, Any]]:
    """As many rows as the card of the task says, all of one puzzle."""
    row = fakes.jigsaw_row(1)
    return [{**row, "idx": f"val_Jigsaw_{number}"} for number in range(1, 151)]


def test_a_folder_is_counted_against_the_card(command: Command, tmp_path: Path, fakes: Any) -> None:
    data = fakes.blink_folder(tmp_path / "data", jigsaws=0, spatials=2)
    fakes.write_task(data, "Jigsaw", puzzles(fakes))
    whole = command("data", "check", data, "--task", "Jigsaw")
    assert whole.code == 0
    assert whole.out.splitlines()[0] == "150 questions, 0 broken: complete"
    found = command("data", "check", data)
    assert found.code == 3
    assert "Spatial_Relation                  2  (the card says 143)" in found.out
    assert "IQ_Test                           0  (the card says 150)" in found.out
    assert found.out.splitlines()[0] == "152 questions, 0 broken: not complete"
    assert command("data", "check", tmp_path / "nowhere").code == 2
    assert command("data", "check", data, "--task", "Chess").code == 2


def test_a_broken_row_is_named_and_counts_as_missing(command: Command, tmp_path: Path, fakes: Any) -> None:
    rows = puzzles(fakes)
    fakes.write_task(tmp_path / "data", "Jigsaw", [{**rows[0], "image_1": b"broken"}, *rows[1:]])
    ended = command("data", "check", tmp_path / "data", "--task", "Jigsaw", "--json")
    assert ended.code == 3
    report = json.loads(ended.out)
    assert report["complete"] is False
    assert report["tasks"] == {"Jigsaw": {"questions": 149, "broken": 1, "expected": 150, "kinds": {"choice": 149}}}
    (broken,) = report["broken"]
    assert broken["id"] == "val_Jigsaw_1"
    assert "row 1, question val_Jigsaw_1, column image_1" in broken["error"]


def test_missing_images_are_named(command: Command, tmp_path: Path) -> None:
    load("hybrid.benchmarks", "mvp_bench").generate(tmp_path / "data", ("yes_no",), 2, 0)
    image = sorted((tmp_path / "data" / "Images" / "Single_Images").iterdir())[0]
    image.unlink()
    ended = command("data", "check", tmp_path / "data", "--benchmark", "mvp_bench")
    assert ended.code == 3
    assert f"Single_Images/{image.name} is not under" in ended.out


def test_variants_are_not_counted_as_questions(command: Command, tmp_path: Path) -> None:
    load("hybrid.benchmarks", "mm_sap").generate(tmp_path / "data", ("BasicVisQA",), 3, 0)
    ended = command("data", "check", tmp_path / "data", "--benchmark", "mm_sap", "--json")
    assert json.loads(ended.out)["tasks"]["BasicVisQA"] == {
        "questions": 3,
        "broken": 0,
        "expected": 400,
        "kinds": {"choice": 3},
    }


def hybrid(*words: object, **environment: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        [sys.executable, "-m", "hybrid", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.slow
def test_a_run_from_the_hub_is_a_run_from_the_folder(tmp_path: Path, fakes: Any, hub_servers: Any) -> None:
    data = fakes.blink_folder(tmp_path / "data")
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies())
    words = ["run", "blink", "--task", "Jigsaw", "--task", "Spatial_Relation", "--solver", "mllm"]
    words += ["--model", f"replay:{model}", "--json", "--data"]
    with hub_servers.serving() as hub:
        where = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        sha = hub.commit("BLINK-Benchmark/BLINK", data)
        code, out, err = hybrid("data", "check", "hub", "--task", "Jigsaw", "--json", **where)
        assert code == 0, err
        size = (data / "Jigsaw" / "val-00000-of-00001.parquet").stat().st_size
        listed = json.loads(out)
        assert (listed["revision"], listed["bytes"], listed["to_fetch"]) == (sha, size, size)
        code, out, err = hybrid(*words, "hub", "--out", tmp_path / "remote", **where)
        assert code == 0, err
    # The server is gone.
    again = hybrid(*words, "hub", "--out", tmp_path / "again", **where, HF_HUB_OFFLINE="1")
    local = hybrid(*words, data, "--out", tmp_path / "local")
    scores = [json.loads(each)["solvers"] for each in (out, again[1], local[1])]
    assert scores[0] == scores[1] == scores[2]
    manifests = [json.loads((tmp_path / run / "manifest.json").read_text()) for run in ("remote", "again", "local")]
    of_data = [manifest["identity"]["data"] for manifest in manifests]
    assert of_data[0] == of_data[1]
    assert of_data[0] | {"kind": "folder"} == of_data[2] | {"id": "BLINK-Benchmark/BLINK", "revision": sha}
    runs = [(tmp_path / run / "questions.jsonl").read_bytes() for run in ("remote", "again", "local")]
    assert runs[0] == runs[1] == runs[2]
