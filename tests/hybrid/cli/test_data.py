"""`hybrid data check` of a folder and of the hub, and a run whose data the hub gives, as a user starts them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hybrid.registry import load

Command = Callable[..., Any]


def test_missing_images_are_named(command: Command, tmp_path: Path) -> None:
    load("hybrid.benchmarks", "mvp_bench").generate(tmp_path / "data", ("yes_no",), 2, 0)
    image = sorted((tmp_path / "data" / "Images" / "Single_Images").iterdir())[0]
    image.unlink()
    ended = command("data", "check", tmp_path / "data", "--benchmark", "mvp_bench")
    assert ended.code == 3
    assert f"Single_Images/{image.name} is not under" in ended.out


def test_a_check_of_the_hub_says_what_would_come(command: Command, tmp_path: Path, fakes: Any, hub: Any) -> None:
    data = fakes.blink_folder(tmp_path / "data")
    sha = hub.commit("BLINK-Benchmark/BLINK", data)
    ended = command("data", "check", "hub", "--benchmark", "blink", "--task", "Jigsaw", "--json")
    assert ended.code == 0, ended.err
    size = (data / "Jigsaw" / "val-00000-of-00001.parquet").stat().st_size
    listed = json.loads(ended.out)
    assert (listed["revision"], listed["bytes"], listed["to_fetch"]) == (sha, size, size)
