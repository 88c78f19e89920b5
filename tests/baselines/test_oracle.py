"""The oracle control in full runs: with perfect tools the specialist is right wherever its rule calls a tool."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.core.types import Outcome
from hybrid.models import ChatModel
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored


def run_solver(
    benchmark: str, solver: str, data: Path, folder: Path, model: ChatModel | None = None, **changes: object
) -> Scored:
    """Answer generated questions with perfect tools; a specialist calls no model."""
    config = RunConfig(
        benchmark,
        (solver,),
        model="openai:mock",
        model_settings=ModelSettings(base_url="http://127.0.0.1:9/v1"),
        data=str(data),
        service=ServiceOptions("classical"),
        tool_output="oracle",
        out=folder / solver,
        **changes,  # type: ignore[arg-type]
    )
    plan = prepare(config)
    plan = replace(plan, resources=replace(plan.resources, model=model))
    assert asyncio.run(ask_run(plan, lambda *_: None)) == ()
    (scored,) = score_run(plan.folder, ScoreOptions(unanswered="wrong"), (solver,))
    return scored


@pytest.mark.parametrize("benchmark", ["blink", "mvp_bench", "mm_sap", "hvsbench", "actiview"])
def test_with_perfect_tools_the_specialist_is_right(
    benchmark: str, folders: Callable[[str], Path], tmp_path: Path
) -> None:
    result = run_solver(benchmark, "specialist", folders(benchmark), tmp_path)
    assert "tool output oracle" in result.labels
    answered = [score for score in result.scores if score.outcome is Outcome.ANSWERED]
    # A scanpath is compared with human paths, so it is neither right nor wrong.
    assert {score.id: score.correct for score in answered if score.correct not in (1.0, None)} == {}
    silent = {score.task for score in result.scores if score.outcome is not Outcome.ANSWERED}
    # By benchmark, tasks in which no rule calls a tool: there is no rule, or it cannot parse the question's wording.
    assert silent <= {"mvp_bench": {"cross", "yes_no"}}.get(benchmark, set())
    assert len({score.task for score in answered}) == len({score.task for score in result.scores}) - ("cross" in silent)


@pytest.mark.parametrize("mode", ["zoom", "shift", "mixed"])
def test_a_perfect_tool_knows_what_is_to_be_seen(mode: str, folders: Callable[[str], Path], tmp_path: Path) -> None:
    result = run_solver("actiview", "specialist", folders("actiview"), tmp_path, settings={"mode": mode})
    assert {score.id: score.correct for score in result.scores if score.correct != 1.0} == {}
    metrics = {metric.name: metric.value for metric in result.metrics}
    # `recall_shift_paper` is left out: the paper counts the shown views from 0, so this recall is below 1.
    by_metric = {name: value for name, value in metrics.items() if name != "recall_shift_paper"}
    recalls = [value for name, value in by_metric.items() if "recall" in name and value is not None]
    assert recalls
    assert set(recalls) == {1.0}
