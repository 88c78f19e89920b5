"""`hybrid data check` of a folder and of the hub, and a run with data from the hub, as a user starts them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hybrid.plugins.registry import load
from tests.finished_runs import Command


def test_missing_images_are_named(command: Command, tmp_path: Path) -> None:
    load("hybrid.benchmarks", "mvp_bench").generate(tmp_path / "data", ("yes_no",), 2, 0)
    image = sorted((tmp_path / "data" / "Images" / "Single_Images").iterdir())[0]
    image.unlink()
    result = command("data", "check", tmp_path / "data", "--benchmark", "mvp_bench", code=3)
    assert f"Single_Images/{image.name} is not under" in result.out


def test_a_folder_of_pictures_is_named_with_a_way_to_begin(command: Command, tmp_path: Path) -> None:
    pictures = tmp_path / "my pictures"
    (pictures / "more").mkdir(parents=True)
    for name in ("a.png", "more/b.JPG", "notes.txt"):
        (pictures / name).touch()
    error = command("data", "check", pictures, code=2).err
    begin = f"`hybrid data template -o '{pictures}/questions.csv'` writes one to start from"
    assert error == f"hybrid: {pictures} has 2 pictures and no file of questions; {begin}\n"
    assert "contains no BLINK data" in command("data", "check", pictures, "--benchmark", "blink", code=2).err
    (tmp_path / "empty").mkdir()
    assert "for other data, give a file of questions" in command("data", "check", tmp_path / "empty", code=2).err


def hybrid(*words: object, **environment: str) -> tuple[int, str, str]:
    result = subprocess.run(
        [sys.executable, "-m", "hybrid", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return result.returncode, result.stdout, result.stderr


@pytest.mark.slow
def test_a_run_from_the_hub_is_a_run_from_the_folder(tmp_path: Path, fakes: Any, hub_servers: Any) -> None:
    data = fakes.blink_folder(tmp_path / "data")
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies())
    words = ["run", "blink", "--task", "Jigsaw", "--task", "Spatial_Relation", "--solver", "mllm"]
    words += ["--model", f"replay:{model}", "--json", "--data"]
    with hub_servers.serving() as hub:
        payload = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        sha = hub.commit("BLINK-Benchmark/BLINK", data)
        code, out, err = hybrid("data", "check", "hub", "--task", "Jigsaw", "--json", **payload)
        assert code == 0, err
        size = (data / "Jigsaw" / "val-00000-of-00001.parquet").stat().st_size
        record = json.loads(out)
        assert (record["revision"], record["bytes"], record["to_fetch"]) == (sha, size, size)
        code, out, err = hybrid(*words, "hub", "--out", tmp_path / "remote", **payload)
        assert code == 0, err
    # The hub's server has stopped, so the run uses the data in the cache.
    result = hybrid(*words, "hub", "--out", tmp_path / "again", **payload, HF_HUB_OFFLINE="1")
    local = hybrid(*words, data, "--out", tmp_path / "local")
    scores = [json.loads(item)["solvers"] for item in (out, result[1], local[1])]
    assert scores[0] == scores[1] == scores[2]
    manifests = [json.loads((tmp_path / run / "manifest.json").read_text()) for run in ("remote", "again", "local")]
    of_data = [manifest["identity"]["data"] for manifest in manifests]
    assert of_data[0] == of_data[1]
    assert of_data[0] | {"kind": "folder"} == of_data[2] | {"id": "BLINK-Benchmark/BLINK", "revision": sha}
    runs = [(tmp_path / run / "questions.jsonl").read_bytes() for run in ("remote", "again", "local")]
    assert runs[0] == runs[1] == runs[2]
