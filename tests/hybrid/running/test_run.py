"""Asking: no question is asked twice, a crash costs only requests in flight, and another configuration is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import RunConfig, ToolOutput
from hybrid.core.errors import UsageError
from hybrid.models.base import ModelRefused
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import UnfinishedQuestion, ask_run
from tests.tables import cases


def quiet(solver: str, finished: int, total: int) -> None:
    """Show no progress."""


async def ran(run: ResolvedRun) -> tuple[UnfinishedQuestion, ...]:
    return await ask_run(run, quiet)


def watched(config: RunConfig, fakes: Any, failing: dict[str, Exception] | None = None) -> tuple[ResolvedRun, Any]:
    """Return a run whose model records its requests."""
    run = prepare(config)
    model = fakes.WatchedModel(run.resources.model, failing or {})
    return replace(run, resources=replace(run.resources, model=model)), model


def attempts(run: ResolvedRun, solver: str = "mllm") -> dict[str, str]:
    return {attempt.id: attempt.exchanges[0].reply.text for attempt in run.folder.attempts(solver)}


async def test_a_refused_configuration_ends_the_run(config: RunConfig, fakes: Any) -> None:
    refused: dict[str, Exception] = dict.fromkeys(fakes.blink_replies(), ModelRefused("the key is wrong"))
    run, model = watched(replace(config, concurrency=2), fakes, refused)
    with pytest.raises(ModelRefused, match="the key is wrong"):
        await ran(run)
    assert len(model.question_ids) <= 2
    assert attempts(run) == {}


@pytest.mark.parametrize(*cases(__file__, "test_another_configuration_is_refused_with_the_difference"))
async def test_another_configuration_is_refused_with_the_difference(
    config: RunConfig, fakes: Any, changes: dict[str, Any], lines: list[str]
) -> None:
    await ran(prepare(config))
    run, model = watched(replace(config, **changes), fakes)
    with pytest.raises(UsageError, match="holds a run of another configuration") as caught:
        await ran(run)
    text = str(caught.value).splitlines()
    for line in lines:
        assert any(message.strip().startswith(line) for message in text)
    assert len(text) == len(lines) + 2
    assert model.question_ids == []


async def test_changed_data_or_recordings_are_another_configuration(
    config: RunConfig, blink: Path, tmp_path: Path, fakes: Any
) -> None:
    await ran(prepare(config))
    fakes.recordings(tmp_path / "model", fakes.blink_replies(text="(B)"))
    with pytest.raises(UsageError, match=r"model\.files_sha256"):
        await ran(prepare(config))
    fakes.recordings(tmp_path / "model", fakes.blink_replies())
    fakes.write_task(blink, "Jigsaw", [fakes.jigsaw_row(1)])
    with pytest.raises(UsageError, match=r"2 of its questions have changed .*no longer in the data"):
        await ran(prepare(config))


@pytest.mark.parametrize("mode", ["blank", "shuffled", "oracle"])
async def test_solvers_with_rules_live_with_every_control(config: RunConfig, mode: ToolOutput) -> None:
    assert await ran(prepare(replace(config, solvers=("arbiter", "specialist"), tool_output=mode))) == ()


async def test_an_unknown_solver_or_a_missing_model_is_a_wrong_option(config: RunConfig) -> None:
    with pytest.raises(UsageError, match=r"no solver 'arbitre' \(did you mean 'arbiter'\?\)"):
        prepare(replace(config, solvers=("arbitre",)))
    with pytest.raises(UsageError, match="--solver mllm needs a model"):
        prepare(replace(config, model=None))
    with pytest.raises(UsageError, match="--solver controller needs a live model"):
        prepare(replace(config, solvers=("controller",)))
    with pytest.raises(UsageError, match="--images none: a recorded model saw the images"):
        prepare(replace(config, images="none"))
    with pytest.raises(UsageError, match=r"no 'crystal' in tools/"):
        prepare(replace(config, tools=("crystal",)))
