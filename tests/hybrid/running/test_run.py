"""Loop 1: nothing is asked twice, a crash costs what was in flight, and another configuration is refused."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import RunConfig, ServiceOptions, ToolOutput
from hybrid.errors import UsageError
from hybrid.models.base import ModelRefused
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import UnfinishedQuestion, ask_run
from tests.tables import cases


@pytest.fixture
def data(tmp_path: Path, fakes: Any) -> Path:
    folder: Path = fakes.blink_folder(tmp_path / "blink")
    return folder


@pytest.fixture
def config(tmp_path: Path, data: Path, fakes: Any) -> RunConfig:
    """Three puzzles and three relations, answered "(A)" by a recorded model."""
    replies = fakes.recordings(tmp_path / "model", fakes.blink_replies())
    return RunConfig(
        "blink",
        ("mllm",),
        f"replay:{replies}",
        data=str(data),
        service=ServiceOptions("classical"),
        out=tmp_path / "run",
    )


def quiet(solver: str, finished: int, total: int) -> None:
    """No progress is shown."""


async def ran(run: ResolvedRun) -> tuple[UnfinishedQuestion, ...]:
    return await ask_run(run, quiet)


def watched(config: RunConfig, fakes: Any, failing: dict[str, Exception] | None = None) -> tuple[ResolvedRun, Any]:
    """A run whose model keeps a list of what it was asked."""
    run = prepare(config)
    model = fakes.WatchedModel(run.resources.model, failing or {})
    return replace(run, resources=replace(run.resources, model=model)), model


def attempts(run: ResolvedRun, solver: str = "mllm") -> dict[str, str]:
    return {one.id: one.exchanges[0].reply.text for one in run.folder.attempts(solver)}


async def test_a_refused_configuration_ends_the_run(config: RunConfig, fakes: Any) -> None:
    refused: dict[str, Exception] = dict.fromkeys(fakes.blink_replies(), ModelRefused("the key is wrong"))
    run, model = watched(replace(config, concurrency=2), fakes, refused)
    with pytest.raises(ModelRefused, match="the key is wrong"):
        await ran(run)
    assert len(model.asked) <= 2
    assert attempts(run) == {}


KILLED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["KILLED"]


@pytest.mark.system
async def test_a_killed_process_is_continued_where_it_stopped(config: RunConfig, fakes: Any) -> None:
    command = [sys.executable, "-c", KILLED, config.data, str(config.model), str(config.out)]
    path = Path(str(config.out)) / "mllm" / "attempts.jsonl"
    with subprocess.Popen(command, env=os.environ.copy()) as process:
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            if path.exists() and path.read_bytes().count(b"\n") == 3:
                break
            await asyncio.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    finished = path.read_bytes()
    assert finished.count(b"\n") == 3
    # One of each task in turn: a killed run is no run of its first task.
    assert [finished.count(task) > 0 for task in (b'{"id":"val_Jigsaw', b'{"id":"val_Spatial')] == [True, True]
    # What the kernel had not written of the next line.
    path.write_bytes(finished + b'{"id":"val_Spatial_Re')
    run, model = watched(config, fakes)
    assert await ran(run) == ()
    done = {row["id"] for row in map(json.loads, finished.splitlines())}
    assert sorted(model.asked) == sorted(set(fakes.blink_replies()) - done)
    assert set(attempts(run)) == set(fakes.blink_replies())
    assert path.read_bytes().startswith(finished)


@pytest.mark.parametrize(*cases(__file__, "test_another_configuration_is_refused_with_the_difference"))
async def test_another_configuration_is_refused_with_the_difference(
    config: RunConfig, fakes: Any, changes: dict[str, Any], lines: list[str]
) -> None:
    await ran(prepare(config))
    run, model = watched(replace(config, **changes), fakes)
    with pytest.raises(UsageError, match="holds a run of another configuration") as caught:
        await ran(run)
    told = str(caught.value).splitlines()
    for line in lines:
        assert any(said.strip().startswith(line) for said in told)
    assert len(told) == len(lines) + 2
    assert model.asked == []


async def test_changed_data_or_recordings_are_another_configuration(
    config: RunConfig, data: Path, tmp_path: Path, fakes: Any
) -> None:
    await ran(prepare(config))
    fakes.recordings(tmp_path / "model", fakes.blink_replies(text="(B)"))
    with pytest.raises(UsageError, match=r"model\.files_sha256"):
        await ran(prepare(config))
    fakes.recordings(tmp_path / "model", fakes.blink_replies())
    fakes.write_task(data, "Jigsaw", [fakes.jigsaw_row(1)])
    with pytest.raises(UsageError, match=r"2 of its questions are others now .*no longer there"):
        await ran(prepare(config))


@pytest.mark.parametrize("mode", ["blank", "shuffled", "oracle"])
async def test_solvers_with_rules_live_with_every_control(config: RunConfig, mode: ToolOutput) -> None:
    run = prepare(replace(config, solvers=("arbiter", "specialist"), tool_output=mode))
    assert await ran(run) == ()


async def test_an_unknown_solver_or_a_missing_model_is_a_wrong_option(config: RunConfig) -> None:
    with pytest.raises(UsageError, match=r"no solver 'arbitre' \(did you mean 'arbiter'\?\)"):
        prepare(replace(config, solvers=("arbitre",)))
    with pytest.raises(UsageError, match="--solver mllm needs a model"):
        prepare(replace(config, model=None))
    with pytest.raises(UsageError, match="--solver controller needs a live model"):
        prepare(replace(config, solvers=("controller",)))
    with pytest.raises(UsageError, match="--images none: a recorded model has seen the images"):
        prepare(replace(config, images="none"))
    with pytest.raises(UsageError, match=r"no 'crystal' in tools/"):
        prepare(replace(config, tools=("crystal",)))
