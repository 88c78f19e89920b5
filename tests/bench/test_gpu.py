"""Measurements on a GPU: the steps append to one file, and the page's tables are made from that file alone."""

import json
from pathlib import Path

import pytest

from bench import gpu
from tests.tables import stored

MACHINE = stored(__file__, "MACHINE")
SPEED = stored(__file__, "SPEED")
RUN = stored(__file__, "RUN")


def test_the_tables_are_made_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    for step, row in (("machine", MACHINE), ("speed", SPEED), ("speed", {**SPEED, "peak_mb": 80.4}), ("busy", RUN)):
        gpu.add(path, step, row)
    gpu.add(path, "tests", {"code": 1, "passed": 80, "failed": 1, "skipped": 0})
    for fewer in ({"of": "points", "largest": 0.0123}, {"of": "", "largest": 0.0}):
        row = {"network": "dinov2_base", "dtype": "bfloat16", "weights": "random", "changed": 1, "questions": 16}
        gpu.add(path, "reduced", {**row, **fewer})
    built = gpu.page(gpu.read_measurements(path))
    assert built.startswith("H9, 2026-01-02, torch 2, transformers 5, python 3.12: `bash bench/gpu.sh`.\n")
    assert "Tests marked `gpu`: 80 passed, 1 failed." in built
    for peak in ("-", "80"):
        assert f"| DINOv2 base | auto compiled | 1.23e+03 | 1.11e+03 | 0.90 | 15.5 | 0.5 | {peak} |" in built
    for largest in ("0.012", "-"):
        assert f"| DINOv2 base | bfloat16 | random | 1 of 16 | {largest} |" in built
    assert "200 questions with depth, correspondence and detection took 9.5 s; the GPU was busy 61% of" in built
    assert "busy 61% of the time and held 1235 MB." in built
    gpu.add(path, "busy", {**RUN, "cpu_s": 40.25})
    assert "detection took 9.5 s and 40.25 s of CPU time; the GPU was busy" in gpu.page(gpu.read_measurements(path))
    assert "embedded" not in built


def test_tests_are_counted_over_several_processes_and_in_one() -> None:
    lines = (
        "[gw1] [  3%] PASSED tests/a/test_b.py::test_c[d-e] ",
        "[gw0] [100%] SKIPPED tests/a/test_b.py::test_f ",
        "tests/a/test_b.py::test_g FAILED           [ 50%]",
        "tests/a/test_b.py::test_g",
        "FAILED tests/a/test_b.py::test_g - assert",
        "___ ERROR at setup of test_h ___",
    )
    rows = [(match["name"][-6:], match["first"] or match["last"]) for match in gpu.ENDED.finditer("\n".join(lines))]
    assert rows == [("c[d-e]", "PASSED"), ("test_f", "SKIPPED"), ("test_g", "FAILED")]


@pytest.mark.system
def test_a_step_measures_and_adds_to_the_others(tmp_path: Path) -> None:
    words = ["--json", str(tmp_path / "gpu.json"), "--device", "cpu", "--tiny"]
    for step in (
        ["machine"],
        ["speed", "--network", "dinov2_base", "vit_small_forensics"],
        ["reduced", "--network", "dinov2_base"],
    ):
        gpu.main([*words, *step, *(["--dtype", "bfloat16"] if step[0] == "reduced" else [])])
    data = json.loads((tmp_path / "gpu.json").read_text())
    assert data.keys() == {"machine", "speed", "reduced"}
    assert [row["network"] for row in data["speed"]] == ["dinov2_base", "vit_small_forensics"]
    assert all(row["service"] > 0 and row["peak_mb"] is None for row in data["speed"])
    assert (data["reduced"][0]["dtype"], data["reduced"][0]["questions"]) == ("bfloat16", 2)
