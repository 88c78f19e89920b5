"""`hybrid run --config FILE` with lists of values: several runs from one file, and one comparison."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.models.prices import parse_price
from hybrid.running.estimate import Estimate, SolverEstimate, Spent
from hybrid.running.several import MatrixEstimate

Command = Callable[..., Any]


@pytest.fixture
def matrix(tmp_path: Path, fakes: Any) -> Path:
    """Two recorded models, three solvers, two controls, over two puzzles and two relations."""
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


def test_one_file_is_four_runs_and_a_comparison(command: Command, matrix: Path) -> None:
    dry = command("run", "--config", matrix, "--dry-run", "--json")
    assert (dry.code, Path("runs").exists()) == (0, False)
    told = json.loads(dry.out)
    assert (told["number_of_runs"], told["total"]["questions"]) == (4, 4 * 3 * 4)

    first = command("run", "--config", matrix, "--json")
    assert first.code == 0, first.err
    found = json.loads(first.out)
    assert len({run["run"] for run in found["runs"]}) == 4
    assert [run["chosen"]["tool-output"] for run in found["runs"]] == ["real", "blank", "real", "blank"]
    assert len(found["comparison"]["solvers"]) == 4 * 3
    for number in range(1, 5):
        assert f"run {number} of 4, model=replay:" in first.err
    assert first.err.count("12 of 12 questions open") == 4

    again = command("run", "--config", matrix, "--json")
    assert (again.code, json.loads(again.out)) == (0, found)
    assert again.err.count(" 0 of 12 questions open") == 4

    # Each is an ordinary run, whose manifest gives it back.
    one = json.loads(command("run", "--config", found["runs"][1]["run"], "--json").out)
    assert one["run"] == found["runs"][1]["run"]
    text = command("run", "--config", matrix)
    assert (text.code, "tool-output=blank" in text.out) == (0, True)
    assert f"every table: hybrid compare {found['runs'][0]['run']}" in text.out


def test_folders_bear_the_choices_and_a_budget_is_for_all(command: Command, matrix: Path, tmp_path: Path) -> None:
    model = json.loads(matrix.read_text())["matrix"]["model"][0]
    words = ("run", "--config", matrix, "--model", model, "--out", tmp_path / "out", "--solver", "mllm")
    short = command(*words, "--run-max-calls", 5, "--concurrency", 1)
    assert short.code == 3
    assert "stopped with 3 questions open: " in short.err
    assert "run it again to go on" in short.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["blank", "real"]
    assert command(*words).code == 0


def test_nothing_is_asked_where_one_run_cannot_be(command: Command, matrix: Path, tmp_path: Path) -> None:
    content = json.loads(matrix.read_text())
    content["matrix"]["model"][1] = "replay:nowhere"
    matrix.write_text(json.dumps(content))
    ended = command("run", "--config", matrix, "--out", tmp_path / "out")
    assert (ended.code, ended.out, (tmp_path / "out").exists()) == (2, "", False)
    assert "nowhere" in ended.err
    content["matrix"] = {"abstain": ["chance", "wrong"]}
    matrix.write_text(json.dumps(content))
    assert "abstain: one value for all runs" in command("run", "--config", matrix).err
    content["matrix"] = {"device": ["cpu", "auto"]}
    content["solver"] = ["specialist"]
    matrix.write_text(json.dumps(content))
    ended = command("run", "--config", matrix)
    assert (ended.code, "device=cpu and device=auto are the same run" in ended.err) == (2, True)


def test_python_makes_one_run(matrix: Path) -> None:
    from hybrid import run
    from hybrid.errors import UsageError

    with pytest.raises(UsageError, match="asks for several runs"):
        run("blink", config=str(matrix))


def test_each_run_has_its_own_price() -> None:
    def one(price: str | None, tokens: int) -> Estimate:
        spent = Spent(1, tokens, tokens)
        asked = SolverEstimate(1, spent, spent, spent, parse_price(price) if price else None)
        return Estimate("folder", {"mllm": asked}, None, (), ())

    both = MatrixEstimate({"a": one("1/1", 1_000_000), "b": one("3/5", 1_000_000)})
    assert both.cost_usd == {"low": 10.0, "expected": 10.0, "high": 10.0}
    assert both.as_json()["total"]["cost_usd"]["high"] == 10.0  # type: ignore[index,call-overload]
    assert "10.00" in both.as_text()
    unknown = MatrixEstimate({"a": one("1/1", 1_000_000), "b": one(None, 5)})
    assert unknown.cost_usd is None
