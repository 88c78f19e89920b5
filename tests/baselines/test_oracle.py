"""The oracle control through whole runs: with perfect tools the specialist is right wherever its rule asks one."""

import asyncio
from pathlib import Path

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.running.config import RunConfig
from hybrid.running.resolve import prepare
from hybrid.running.run import execute
from hybrid.scoring.score import Scored, score_run
from hybrid.serving.service import ServiceOptions
from hybrid.types import Outcome


def asked(benchmark: str, solver: str, folder: Path, **changes: object) -> Scored:
    """Sample questions, answered with perfect tools."""
    config = RunConfig(
        benchmark,
        (solver,),
        "embedded",
        data="sample",
        service=ServiceOptions("classical"),
        tool_output="oracle",
        out=folder / solver,
        **changes,  # type: ignore[arg-type]
    )
    plan = prepare(config)
    assert asyncio.run(execute(plan, lambda *_: None)) == ()
    (found,) = score_run(plan.folder, ScoreOptions(abstain="wrong"), (solver,))
    return found


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))


SILENT = {"mvp_bench": {"cross", "yes_no"}}
"""Tasks in which a rule may call no tool, by benchmark: it has none, or cannot read the wording of the question."""


@pytest.mark.parametrize("benchmark", ["blink", "mvp_bench", "mm_sap", "hvsbench", "actiview"])
def test_with_perfect_tools_the_specialist_is_right(benchmark: str, tmp_path: Path) -> None:
    found = asked(benchmark, "specialist", tmp_path, limit=13 if benchmark == "hvsbench" else 8)
    assert "tool output oracle" in found.labels
    answered = [score for score in found.scores if score.outcome is Outcome.ANSWERED]
    # A scanpath is compared with people's paths: right and wrong are no words for it.
    assert {score.id: score.correct for score in answered if score.correct not in (1.0, None)} == {}
    silent = {score.task for score in found.scores if score.outcome is not Outcome.ANSWERED}
    assert silent <= SILENT.get(benchmark, set())
    assert len({score.task for score in answered}) == len({score.task for score in found.scores}) - ("cross" in silent)


def test_the_arbiter_believes_a_perfect_tool(tmp_path: Path) -> None:
    found = asked("blink", "arbiter", tmp_path, limit=4)
    assert [score.correct for score in found.scores] == [1.0] * 4


@pytest.mark.parametrize("mode", ["zoom", "shift", "mixed"])
def test_a_perfect_tool_knows_what_is_to_be_seen(mode: str, tmp_path: Path) -> None:
    found = asked("actiview", "specialist", tmp_path, limit=2, settings={"mode": mode})
    assert {score.id: score.correct for score in found.scores if score.correct != 1.0} == {}
    metrics = {metric.name: metric.value for metric in found.metrics}
    recalls = [value for name, value in metrics.items() if "recall" in name and value is not None]
    assert recalls
    assert set(recalls) == {1.0}
