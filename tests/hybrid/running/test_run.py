"""Loop 1: nothing is asked twice, a crash costs what was in flight, and another configuration is refused."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import RunConfig, RunLimits, ServiceOptions, ToolOutput, digest
from hybrid.errors import Outage, UsageError
from hybrid.models.base import ModelRefused
from hybrid.registry import load
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import UnfinishedQuestion, alike_together, bounded, execute
from hybrid.types import BrokenQuestion, Outcome, StoredImage


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
    return await execute(run, quiet)


def watched(config: RunConfig, fakes: Any, failing: dict[str, Exception] | None = None) -> tuple[ResolvedRun, Any]:
    """A run whose model keeps a list of what it was asked."""
    run = prepare(config)
    model = fakes.WatchedModel(run.resources.model, failing or {})
    return replace(run, resources=replace(run.resources, model=model)), model


def attempts(run: ResolvedRun, solver: str = "mllm") -> dict[str, str]:
    return {one.id: one.exchanges[0].reply.text for one in run.folder.attempts(solver)}


async def test_every_question_is_asked_once_and_written_down(config: RunConfig, fakes: Any) -> None:
    run, model = watched(config, fakes)
    assert await ran(run) == ()
    ids = [question.id for question in run.questions]
    assert sorted(model.asked) == sorted(ids)
    assert attempts(run) == dict.fromkeys(ids, "Answer: (A)")
    assert [question.id for question in run.folder.questions()] == ids
    assert run.folder.manifest["identity"] == json.loads(json.dumps(run.identity))
    assert run.folder.manifest["environment"]["python"]


async def test_the_same_command_again_asks_nothing(config: RunConfig, fakes: Any) -> None:
    await ran(prepare(config))
    run, model = watched(config, fakes)
    before = (run.folder.path / "mllm" / "attempts.jsonl").read_bytes()
    assert await ran(run) == ()
    assert model.asked == []
    assert (run.folder.path / "mllm" / "attempts.jsonl").read_bytes() == before


async def test_an_outage_leaves_its_question_open_for_the_next_run(config: RunConfig, fakes: Any) -> None:
    run, _ = watched(config, fakes, {"val_Jigsaw_2": Outage("503 from the server")})
    assert await ran(run) == (UnfinishedQuestion("mllm", "val_Jigsaw_2", "503 from the server"),)
    assert "val_Jigsaw_2" not in attempts(run)
    assert len(attempts(run)) == 5
    unfinished = run.folder.recorded("mllm").unfinished
    assert list(unfinished) == ["val_Jigsaw_2"]
    assert "Outage: 503 from the server" in unfinished["val_Jigsaw_2"]
    run, model = watched(config, fakes)
    assert await ran(run) == ()
    assert model.asked == ["val_Jigsaw_2"]
    assert len(attempts(run)) == 6


async def test_a_defect_costs_its_own_question_only(config: RunConfig, fakes: Any) -> None:
    run, _ = watched(config, fakes, {"val_Jigsaw_1": ZeroDivisionError("a defect")})
    assert await ran(run) == (UnfinishedQuestion("mllm", "val_Jigsaw_1", "ZeroDivisionError: a defect"),)
    assert len(attempts(run)) == 5


async def test_a_refused_configuration_ends_the_run(config: RunConfig, fakes: Any) -> None:
    refused: dict[str, Exception] = dict.fromkeys(fakes.blink_replies(), ModelRefused("the key is wrong"))
    run, model = watched(replace(config, concurrency=2), fakes, refused)
    with pytest.raises(ModelRefused, match="the key is wrong"):
        await ran(run)
    assert len(model.asked) <= 2
    assert attempts(run) == {}


async def test_what_is_not_recorded_is_told_and_not_asked_again(config: RunConfig, tmp_path: Path, fakes: Any) -> None:
    replies = fakes.blink_replies()
    del replies["val_Jigsaw_3"]
    config = replace(config, model=f"replay:{fakes.recordings(tmp_path / 'fewer', replies)}")
    run, _ = watched(config, fakes)
    assert await ran(run) == ()
    (missing,) = [one for one in run.folder.attempts("mllm") if one.id == "val_Jigsaw_3"]
    assert missing.exchanges[0].reply.outcome is Outcome.NOT_RECORDED
    run, model = watched(config, fakes)
    await ran(run)
    assert model.asked == []


async def test_a_reply_that_no_file_can_hold_costs_nobody_else(config: RunConfig, tmp_path: Path, fakes: Any) -> None:
    replies = {**fakes.blink_replies(), "val_Jigsaw_2": "Answer: (A) \ud83d and half a smile"}
    run = prepare(replace(config, model=f"replay:{fakes.recordings(tmp_path / 'odd', replies)}"))
    assert await ran(run) == ()
    assert attempts(run)["val_Jigsaw_2"] == "Answer: (A) \ufffd and half a smile"
    assert len(attempts(run)) == 6


KILLED = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from hybrid.config import RunConfig
from hybrid.registry import load
from hybrid.running.resolve import prepare
from hybrid.running.run import execute
from hybrid.config import ServiceOptions

class Stalling:
    def __init__(self, inner, answers):
        self.inner, self.left, self.name, self.provider = inner, answers, inner.name, inner.provider
    def metadata(self):
        return self.inner.metadata()
    async def chat(self, messages, tools, call):
        self.left -= 1
        if self.left < 0:
            await asyncio.sleep(600)
        return await self.inner.chat(messages, tools, call)
    def connection(self):
        return {}
    async def close(self):
        await self.inner.close()

data, model, out = sys.argv[1:]
classical = ServiceOptions("classical")
run = prepare(RunConfig("blink", ("mllm",), model, data=data, service=classical, out=Path(out), concurrency=2))
resources = replace(run.resources, model=Stalling(run.resources.model, 3))
asyncio.run(execute(replace(run, resources=resources), lambda *_: None))
"""


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


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"seed": 7}, ["seed: 0 -> 7"]),
        ({"tool_output": "blank"}, ['tool_output: "real" -> "blank"']),
        ({"format_line": False}, ["prompts.format_line: true -> false"]),
        ({"protocol": "official"}, ["prompts.format_line: true -> false", 'protocol: "strict" -> "official"']),
        ({"image_labels": False}, ["image_labels: true -> false", "solver mllm.image_labels: true -> false"]),
        ({"settings": {"disclaimer": "off"}}, ['settings.disclaimer: "on" -> "off"']),
        ({"tasks": ("Jigsaw",)}, ["data.sha256: ", 'tasks: ["Jigsaw", "Spatial_Relation"] -> ["Jigsaw"]']),
    ],
)
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


async def test_a_run_is_extended_by_limit_concurrency_and_solvers(config: RunConfig, fakes: Any) -> None:
    run, model = watched(replace(config, limit=2), fakes)
    await ran(run)
    assert sorted(model.asked) == ["val_Jigsaw_1", "val_Spatial_Relation_1"]
    run, model = watched(replace(config, limit=5, concurrency=1), fakes)
    await ran(run)
    assert len(model.asked) == 3
    run, model = watched(replace(config, solvers=("specialist", "mllm")), fakes)
    await ran(run)
    assert len(model.asked) == 1
    assert len(run.folder.questions()) == 6
    assert run.folder.solvers() == ("mllm", "specialist")


async def test_tasks_are_asked_in_turn_and_one_that_is_behind_first(config: RunConfig, fakes: Any) -> None:
    """A run whose calls are limited has asked all tasks alike, also one that was begun task by task."""
    alone = replace(config, concurrency=1)
    run, model = watched(replace(alone, run_limits=RunLimits(model_calls=4)), fakes)
    await ran(run)
    assert model.asked == ["val_Jigsaw_1", "val_Spatial_Relation_1", "val_Jigsaw_2", "val_Spatial_Relation_2"]
    path = run.folder.path / "mllm" / "attempts.jsonl"
    begun = [line for line in path.read_bytes().splitlines(keepends=True) if b"val_Jigsaw" in line]
    path.write_bytes(b"".join(begun))
    run, model = watched(replace(alone, run_limits=RunLimits(model_calls=3)), fakes)
    await ran(run)
    assert model.asked == ["val_Spatial_Relation_1", "val_Spatial_Relation_2", "val_Jigsaw_3"]


async def test_a_run_without_the_model_can_be_extended_by_one_with_it(config: RunConfig) -> None:
    await ran(prepare(replace(config, solvers=("specialist",))))
    run = prepare(config)
    assert await ran(run) == ()
    assert run.folder.solvers() == ("specialist", "mllm")


async def test_a_smaller_limit_takes_nothing_away(config: RunConfig) -> None:
    await ran(prepare(config))
    run = prepare(replace(config, limit=1))
    assert await ran(run) == ()
    assert len(run.folder.questions()) == len(attempts(run)) == 6


async def test_the_default_folder_is_that_of_the_configuration(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = prepare(replace(config, out=None))
    assert run.folder.path == Path("runs") / f"blink-model-{digest(run.identity)}"
    assert prepare(replace(config, out=None, limit=1, concurrency=3)).folder.path == run.folder.path
    assert prepare(replace(config, out=None, seed=1)).folder.path != run.folder.path


async def test_a_broken_image_costs_one_question(config: RunConfig, data: Path, fakes: Any) -> None:
    rows = [fakes.jigsaw_row(1), {**fakes.jigsaw_row(2), "image_2": b"no image"}, fakes.jigsaw_row(3)]
    fakes.write_task(data, "Jigsaw", rows)
    run, model = watched(config, fakes)
    assert await ran(run) == ()
    (broken,) = run.broken
    assert broken.id == "val_Jigsaw_2"
    assert "row 2, question val_Jigsaw_2, column image_2: these 8 bytes are not an image" in broken.error
    assert len(model.asked) == 5
    assert [q for q in run.folder.questions() if isinstance(q, BrokenQuestion)] == [broken]


async def test_a_run_with_a_control_is_labelled(config: RunConfig) -> None:
    run = prepare(replace(config, tool_output="shuffled"))
    await ran(run)
    assert run.folder.manifest["labels"] == ["tool output shuffled"]


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


def test_a_dry_preparation_goes_on_without_a_model(config: RunConfig) -> None:
    run = prepare(replace(config, model="replay:/nowhere"), dry=True)
    assert run.missing == ("--model replay:/nowhere: no such folder",)
    assert len(run.open_questions("mllm")) == 6


async def test_answers_do_not_depend_on_concurrency(config: RunConfig, tmp_path: Path) -> None:
    solvers = ("arbiter", "specialist", "chance")
    plans = [prepare(replace(config, solvers=solvers, out=tmp_path / f"c{n}", concurrency=n)) for n in (1, 8)]
    for run in plans:
        await ran(run)
    for solver in solvers:
        assert attempts(plans[0], solver) == attempts(plans[1], solver)
    # What the arbiter believes of tools, and on what it was counted; the specialists believe no card.
    told = {name: facts.get("reliability") for name, facts in plans[0].folder.manifest["solvers"].items()}
    assert told["specialist"] is told["chance"] is None
    (jigsaw,) = [one for one in load("tools", "jigsaw").card.backends if one.name == "classical"]
    bins = [[one.confidence, one.right, one.n] for one in jigsaw.reliability]
    assert told["arbiter"]["jigsaw"] == {"bins": bins, "counted_on": jigsaw.counted_on}
    steps = [step for line in plans[0].folder.attempts("arbiter") for step in line.exchanges[-1].reply.steps]
    assert {step.data["tool"]["counted_on"] for step in steps if "tool" in step.data} == {jigsaw.counted_on}


def test_images_of_one_shape_come_together_within_a_window_and_all_questions_come(fakes: Any) -> None:
    sizes = [(40, 30), (30, 40), (80, 60), (40, 30), (30, 40), (40, 30), (30, 40)]
    asked = [
        fakes.question(f"q{n}", images=(StoredImage(f"{n:064x}", *size, "image/png"),)) for n, size in enumerate(sizes)
    ]
    assert [one.id for one in alike_together(asked, window=6)] == ["q1", "q4", "q0", "q3", "q5", "q2", "q6"]
    assert [one.id for one in alike_together(asked)] == ["q1", "q4", "q6", "q0", "q3", "q5", "q2"]
    assert list(alike_together([])) == []


@pytest.mark.parametrize("backend", ["learned:depth-1:0123", "classical:depth-1"])
async def test_only_questions_that_a_network_may_be_asked_about_are_put_in_order(
    config: RunConfig, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.running.run.alike_together", lambda questions: questions[::-1])
    run = prepare(replace(config, solvers=("chance",), concurrency=1))
    named = {"depth": load("tools", "depth")}
    tools = replace(run.tools, tools=named, backends={"depth": backend}, by_solver={"chance": ("depth",)})
    await ran(replace(run, tools=tools))
    given = [question.id for question in run.questions.in_turn(set())]
    assert list(attempts(run, "chance")) == (given[::-1] if backend.startswith("learned") else given)


async def test_no_more_than_so_many_are_in_flight(fakes: Any) -> None:
    now, most, done = 0, 0, []

    async def work(question: Any) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        done.append(question.id)

    await bounded([fakes.question(f"q{n}") for n in range(20)], work, 3)
    assert (most, len(done)) == (3, 20)
    await bounded([], work, 3)
