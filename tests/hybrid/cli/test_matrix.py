"""`hybrid run --config FILE` with lists of values: several runs from one file, and one comparison."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import parse_price
from hybrid.running.cost_estimate import CostEstimate, ManyEstimate, SolverEstimate, Spent
from tests.finished_runs import Command


@pytest.fixture
def matrix(tmp_path: Path, fakes: Any) -> Path:
    """Configuration file of a matrix: two recorded models, three solvers and two controls, on two puzzles and two
    relations."""
    models = [fakes.recordings(tmp_path / name, fakes.blink_replies(2, 2, f"({name})")) for name in "AB"]
    content = {
        "benchmark": "blink",
        "data": str(fakes.blink_folder(tmp_path / "blink", 2, 2)),
        "backend": "classical",
        "solver": ["arbiter", "mllm", "specialist"],
        "matrix": {"model": [f"replay:{model}" for model in models], "tool-output": ["real", "blank"]},
    }
    path = tmp_path / "matrix.json"
    path.write_text(json.dumps(content, indent=2))
    return path


@pytest.mark.system
def test_one_file_is_four_runs_and_a_comparison(command: Command, matrix: Path) -> None:
    dry = command("run", "--config", matrix, "--dry-run", "--json")
    assert (dry.code, Path("runs").exists()) == (0, False)
    data = json.loads(dry.out)
    assert (data["number_of_runs"], data["total"]["questions"]) == (4, 8 * 4)

    first = command("run", "--config", matrix, "--json", code=0)
    record = json.loads(first.out)
    assert len({run["run"] for run in record["runs"]}) == 4
    assert [run["chosen"]["tool-output"] for run in record["runs"]] == ["real", "blank", "real", "blank"]
    # The solver `mllm` depends on the model, `specialist` depends on the tool output, and `arbiter` depends on both.
    values = [("arbiter", "mllm", "specialist"), ("arbiter", "specialist"), ("arbiter", "mllm"), ("arbiter",)]
    assert [tuple(run["solvers"]) for run in record["runs"]] == values
    folders = [run["run"] for run in record["runs"]]
    for run, solvers in zip(record["runs"], values, strict=True):
        assert sorted(path.parent.name for path in Path(run["run"]).glob("*/attempts.jsonl")) == sorted(solvers)
        assert json.loads((Path(run["run"]) / "manifest.json").read_text())["options"]["solver"] == list(solvers)
    assert [run["elsewhere"] for run in record["runs"]] == [
        {},
        {"mllm": folders[0]},
        {"specialist": folders[0]},
        {"mllm": folders[2], "specialist": folders[1]},
    ]
    assert len(record["comparison"]["solvers"]) == 8
    for number in range(1, 5):
        assert f"run {number} of 4, model=replay:" in first.err
    for waiting, times in ((12, 1), (8, 2), (4, 1)):
        assert first.err.count(f": {waiting} of {waiting} questions open") == times
    assert f"note: mllm would answer as in {folders[0]}: it is asked only there" in first.err

    result = command("run", "--config", matrix, "--json")
    assert (result.code, json.loads(result.out)) == (0, record)
    assert len(re.findall(": 0 of [0-9]+ questions open", result.err)) == 4

    # Each run of the matrix is an ordinary run, which its manifest reproduces.
    item = json.loads(command("run", "--config", record["runs"][1]["run"], "--json").out)
    assert item["run"] == record["runs"][1]["run"]
    text = command("run", "--config", matrix)
    assert (text.code, f"tool-output=blank; mllm is in {folders[0]}" in text.out) == (0, True)
    assert f"every table: hybrid compare {record['runs'][0]['run']}" in text.out


def test_nothing_is_asked_where_one_run_cannot_be(command: Command, matrix: Path, tmp_path: Path) -> None:
    content = json.loads(matrix.read_text())
    content["matrix"]["model"][1] = "replay:nowhere"
    matrix.write_text(json.dumps(content))
    result = command("run", "--config", matrix, "--out", tmp_path / "out")
    assert (result.code, result.out, (tmp_path / "out").exists()) == (2, "", False)
    assert "nowhere" in result.err
    content["matrix"] = {"unanswered": ["guess", "wrong"]}
    matrix.write_text(json.dumps(content))
    assert "unanswered: this option cannot vary" in command("run", "--config", matrix).err
    content["matrix"] = {"device": ["cpu", "auto"]}
    content["solver"] = ["specialist"]
    matrix.write_text(json.dumps(content))
    result = command("run", "--config", matrix)
    assert (result.code, "device=cpu and device=auto are the same run" in result.err) == (2, True)


def test_python_makes_one_run(matrix: Path) -> None:
    from hybrid import run
    from hybrid.core.errors import UsageError

    with pytest.raises(UsageError, match="defines several runs"):
        run("blink", config=str(matrix))
    with pytest.raises(UsageError, match="blink,hvsbench defines several runs"):
        run("blink,hvsbench", data="sample")


def test_each_run_has_its_own_price() -> None:
    def one(price: str | None, tokens: int) -> CostEstimate:
        spent = Spent(1, tokens, tokens)
        estimate = SolverEstimate(1, spent, spent, spent, parse_price(price) if price else None)
        return CostEstimate("folder", {"mllm": estimate}, None, (), ())

    many_estimate = ManyEstimate({"a": one("1/1", 1_000_000), "b": one("3/5", 1_000_000)})
    assert many_estimate.cost_usd == {"low": 10.0, "expected": 10.0, "high": 10.0}
    assert many_estimate.as_json()["total"]["cost_usd"]["high"] == 10.0  # type: ignore[index,call-overload]
    assert "10.00" in many_estimate.as_text()
    assert ManyEstimate({"a": one("1/1", 1_000_000), "b": one(None, 5)}).cost_usd is None
