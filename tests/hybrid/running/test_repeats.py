"""`--setting repeats=K` in a run: folders and seeds of their own, resumed and extended, refused where it is vain."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import AS_PAPERS
from hybrid.config import ModelSettings, RunConfig, ServiceOptions, identity_of
from hybrid.errors import Outage, UsageError
from hybrid.running.estimate import estimate
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import execute
from hybrid.scoring.compare import ComparisonOptions, SolverPair, compare
from hybrid.scoring.runs import score_run

WARM = ModelSettings(base_url="http://127.0.0.1:9/v1", temperature=1.0, seed=3)


@pytest.fixture
def config(tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return RunConfig(
        "blink",
        ("mllm", "chance", "specialist"),
        "openai:m",
        model_settings=WARM,
        data=str(fakes.blink_folder(tmp_path / "blink")),
        service=ServiceOptions("classical"),
        out=tmp_path / "run",
        repeats=2,
        seed=1,
    )


def quiet(solver: str, finished: int, total: int) -> None:
    """No progress is shown."""


def answered(run: ResolvedRun, fakes: Any, replies: list[Any]) -> tuple[ResolvedRun, Any]:
    model = fakes.QueueModel(replies)
    config = replace(run.config, concurrency=1)
    return replace(run, resources=replace(run.resources, config=config, model=model)), model


def said(run: ResolvedRun, solver: str) -> list[str]:
    return [attempt.exchanges[0].reply.text for attempt in run.folder.attempts(solver)]


async def test_every_repetition_is_a_solver_of_its_own(config: RunConfig, fakes: Any) -> None:
    run, model = answered(prepare(config), fakes, ["(A)"] * 6 + ["(B)"] * 6)
    told: list[tuple[str, int, int]] = []
    assert await execute(run, lambda *each: told.append(each)) == ()
    assert run.folder.solvers() == ("mllm", "chance", "specialist", "mllm@2", "chance@2")
    assert [call.solver for _, _, call in model.calls] == ["mllm"] * 6 + ["mllm@2"] * 6
    assert (said(run, "mllm"), said(run, "mllm@2")) == (["(A)"] * 6, ["(B)"] * 6)
    assert [name for name, done, total in told if done == total] == list(run.solvers)
    assert {path.name for path in (run.folder.path / "mllm@2").iterdir()} == {"attempts.jsonl"}
    # The same prompts in all of them; a seed of its own for each.
    first, second = (
        [str(messages) for messages, _, call in model.calls if call.solver == name] for name in ("mllm", "mllm@2")
    )
    assert first == second
    assert said(run, "chance") != said(run, "chance@2")
    names = [one.solver for one in score_run(run.folder, AS_PAPERS)]
    assert names == list(run.solvers)


async def test_a_run_is_extended_by_more_and_asks_nothing_twice(config: RunConfig, fakes: Any) -> None:
    once = prepare(replace(config, repeats=1, solvers=("mllm", "chance")))
    run, _ = answered(once, fakes, ["(A)"] * 6)
    await execute(run, quiet)
    chance = said(run, "chance")
    more = prepare(replace(config, repeats=3, solvers=("mllm", "chance")))
    assert more.identity == once.identity
    run, model = answered(more, fakes, ["(B)"] * 12)
    await execute(run, quiet)
    assert [call.solver for _, _, call in model.calls] == ["mllm@2"] * 6 + ["mllm@3"] * 6
    assert said(run, "chance") == chance
    assert len({tuple(said(run, name)) for name in ("chance", "chance@2", "chance@3")}) == 3


async def test_a_repetition_goes_on_where_it_stopped(config: RunConfig, fakes: Any) -> None:
    config = replace(config, solvers=("mllm",))
    run, _ = answered(prepare(config), fakes, ["(A)"] * 8 + [Outage("away")] * 4)
    assert {failure.solver for failure in await execute(run, quiet)} == {"mllm@2"}
    run, model = answered(prepare(config), fakes, ["(B)"] * 4)
    assert await execute(run, quiet) == ()
    assert [call.solver for _, _, call in model.calls] == ["mllm@2"] * 4


async def test_an_estimate_counts_every_repetition(config: RunConfig) -> None:
    found = (await estimate(prepare(config, dry=True))).solvers
    assert list(found) == ["mllm", "chance", "specialist", "mllm@2", "chance@2"]
    assert found["mllm@2"] == found["mllm"]
    assert found["mllm"].expected.calls == 6


async def test_pairs_are_those_of_first_repetitions(config: RunConfig, fakes: Any) -> None:
    run, _ = answered(prepare(replace(config, solvers=("mllm", "chance"))), fakes, ["(A)"] * 12)
    await execute(run, quiet)
    scored = score_run(run.folder, AS_PAPERS)
    assert compare(scored).pairs == (("mllm", "chance"),)
    # A repetition whose first is not there stands for its solver.
    alone = compare([one for one in scored if one.solver in ("mllm@2", "chance")])
    assert [set(pair) for pair in alone.pairs] == [{"mllm@2", "chance"}]
    chosen = (SolverPair("mllm", "mllm@2"),)
    assert compare(scored, ComparisonOptions(pairs=chosen)).pairs == chosen


def test_how_often_is_no_part_of_what_a_run_is() -> None:
    facts = dict.fromkeys(
        ("benchmark", "split", "tasks", "settings", "data", "model", "prompts", "tools_offered", "trust", "limits"),
        "fact",
    )
    one, five = RunConfig("blink"), RunConfig("blink", repeats=5)
    assert identity_of(one, facts) == identity_of(five, facts)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model": "replay:outputs"}, "--setting repeats=2: a recorded model has one reply to a question"),
        ({"answer": "likelihood"}, "--setting repeats=2: likelihoods are the same every time"),
        (
            {"model_settings": ModelSettings()},
            "at temperature 0 all repetitions are one: add --model-arg temperature=1 ",
        ),
        ({"repeats": 0}, "--setting repeats=0: at least 1"),
    ],
)
def test_where_repetitions_would_be_one_they_are_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        RunConfig("blink", **{"model": "openai:m", "model_settings": WARM, "repeats": 2, **change})


def test_without_a_model_a_temperature_is_nobodys() -> None:
    assert RunConfig("blink", ("chance",), repeats=3).repeats == 3


def test_a_repetition_is_no_word_of_the_command_line(config: RunConfig) -> None:
    with pytest.raises(UsageError, match=r"--solver mllm@3: .* --setting repeats=3 and --solver mllm$"):
        prepare(replace(config, solvers=("mllm@3",)))
