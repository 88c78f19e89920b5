"""How a run ends before all is asked, and what it leaves: finished questions, open ones, and replies already said."""

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import RunConfig, ServiceOptions
from hybrid.errors import HybridError, Outage, ServerDown, ToolError, UsageError, WeightsError
from hybrid.log.attempts import Recorder, Unfinished
from hybrid.log.folder import RunFolder
from hybrid.messages import AssistantMessage, Message, TokenUsage
from hybrid.models.base import CallKey, ChatModel, ModelRefused, ReplyLog
from hybrid.running.engine import attempt_question
from hybrid.running.probes import SIGHT_PROBE
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import RunEnd, UnfinishedQuestion, carry_out, execute
from hybrid.scoring.runs import score_run
from hybrid.secrets import keep_secret
from hybrid.solving.call_tool import find_tool
from hybrid.tool import Tool
from hybrid.types import Attempt, Exchange, Fault, Json, Kind, Prompt, Reply


@pytest.fixture
def config(tmp_path: Path, fakes: Any) -> RunConfig:
    """Three puzzles and three relations, answered "(A)" by a recorded model, one at a time."""
    replies = fakes.recordings(tmp_path / "model", fakes.blink_replies())
    return RunConfig(
        "blink",
        ("mllm",),
        f"replay:{replies}",
        data=str(fakes.blink_folder(tmp_path / "blink")),
        service=ServiceOptions("classical"),
        concurrency=1,
        out=tmp_path / "run",
    )


def with_model(run: ResolvedRun, model: Any) -> ResolvedRun:
    return replace(run, resources=replace(run.resources, model=model))


def failing(config: RunConfig, fakes: Any, **errors: BaseException) -> ResolvedRun:
    run = prepare(config)
    return with_model(run, fakes.WatchedModel(run.resources.model, errors))


async def ended(run: ResolvedRun, told: list[str] | None = None) -> RunEnd:
    return await carry_out(run, lambda *_: None, (told if told is not None else []).append)


def finished(run: ResolvedRun, solver: str = "mllm") -> list[str]:
    return sorted(attempt.id for attempt in run.folder.attempts(solver))


@pytest.mark.parametrize(
    "error", [ServerDown("nobody answered for 60 s"), ModelRefused("the key is wrong"), WeightsError("no weights")]
)
async def test_what_ends_a_run_leaves_open_what_it_does_not_finish(
    config: RunConfig, fakes: Any, error: HybridError
) -> None:
    run = failing(config, fakes, val_Jigsaw_3=error)
    end = await ended(run)
    assert end == RunEnd((), 4, error)
    assert finished(run) == ["val_Jigsaw_1", "val_Jigsaw_2", "val_Spatial_Relation_1", "val_Spatial_Relation_2"]
    assert dict(run.folder.recorded("mllm").unfinished) == {}
    assert await ended(prepare(config)) == RunEnd((), 2)


async def test_a_model_that_is_gone_does_not_stop_who_needs_none(config: RunConfig, fakes: Any) -> None:
    config = replace(config, solvers=("mllm", "arbiter", "specialist"))
    run = prepare(config)
    model = fakes.WatchedModel(run.resources.model, {"val_Jigsaw_1": ServerDown("gone")})
    end = await ended(with_model(run, model))
    assert (end.answered, str(end.stopped)) == (6, "gone")
    assert model.asked == ["val_Jigsaw_1"]
    assert run.folder.solvers() == ("mllm", "specialist")


async def test_from_python_the_end_of_a_run_is_raised(config: RunConfig, fakes: Any) -> None:
    run = failing(config, fakes, val_Jigsaw_3=ServerDown("gone"))
    with pytest.raises(ServerDown, match="gone"):
        await execute(run, lambda *_: None)
    assert len(finished(run)) == 4


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SystemExit(0), "SystemExit: 0"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
        (BaseExceptionGroup("one", [SystemExit("out")]), "SystemExit: out"),
        (ExceptionGroup("one", [Outage("503")]), "503"),
        (asyncio.CancelledError("a library's own"), "CancelledError: a library's own"),
        (RecursionError("too deep"), "RecursionError: too deep"),
    ],
)
async def test_any_error_costs_its_own_question(config: RunConfig, fakes: Any, error: BaseException, told: str) -> None:
    run = failing(config, fakes, val_Jigsaw_2=error)
    end = await ended(run)
    assert end == RunEnd((UnfinishedQuestion("mllm", "val_Jigsaw_2", told),), 5)
    ((identity, why),) = run.folder.recorded("mllm").unfinished.items()
    assert identity == "val_Jigsaw_2"
    assert f'{Path("tests") / "fakes.py"}", line ' in why


async def test_an_error_says_no_secret(config: RunConfig, fakes: Any) -> None:
    keep_secret("sk-ends-secret")
    run = failing(config, fakes, val_Jigsaw_2=Outage("401: sk-ends-secret is wrong"))
    end = await ended(run)
    assert end.failures[0].error == "401: [redacted] is wrong"
    assert b"sk-ends-secret" not in (run.folder.path / "mllm" / "attempts.jsonl").read_bytes()


COUNTED = TokenUsage(7, 2)
"""The usage of every reply of a `Listening` model."""


@dataclass
class ListeningModel:
    """Another model that keeps what it says, and ends some calls after it has been said."""

    inner: ChatModel
    lost: Sequence[str] = ()
    asked: list[str] = field(default_factory=list)
    log: ReplyLog | None = None

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def provider(self) -> str:
        return "remote"

    def listen(self, log: ReplyLog) -> None:
        self.log = log

    def metadata(self) -> Mapping[str, Json]:
        return self.inner.metadata()

    def connection(self) -> Mapping[str, Json]:
        return {"base_url": f"http://127.0.0.1:{8000 + len(self.lost)}/v1"}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        assert self.log is not None
        sha256 = hashlib.sha256(str(messages).encode()).hexdigest()
        if (said := self.log.said(call, sha256)) is not None:
            return AssistantMessage(said.decode(), usage=COUNTED)
        if call.question != SIGHT_PROBE:
            self.asked.append(call.question)
        reply = replace(await self.inner.chat(messages, tools, call), usage=COUNTED)
        self.log.keep(call, sha256, reply.text.encode())
        if call.question in self.lost:
            raise Outage("the process died here")
        return reply

    async def close(self) -> None:
        await self.inner.close()


def listening(config: RunConfig, *lost: str) -> tuple[ResolvedRun, ListeningModel]:
    run = prepare(config)
    assert run.resources.model is not None
    model = ListeningModel(run.resources.model, lost)
    return with_model(run, model), model


async def test_what_was_said_is_not_asked_again(config: RunConfig) -> None:
    run, model = listening(config, "val_Jigsaw_2", "val_Jigsaw_3")
    end = await ended(run)
    assert len(end.failures) == 2
    replies = run.folder.path / "replies.jsonl"
    assert replies.read_bytes().count(b"\n") == 6
    run, model = listening(config)
    assert await ended(run) == RunEnd((), 2)
    assert model.asked == []
    usage = {one.id: one.exchanges[0].reply.usage for one in run.folder.attempts("mllm")}
    assert {(one.model_calls, one.input_tokens, one.output_tokens) for one in usage.values()} == {(1, 7, 2)}
    assert not replies.exists()


async def test_what_was_said_belongs_to_one_solver(config: RunConfig) -> None:
    run, _ = listening(config, "val_Jigsaw_2")
    await ended(run)
    run, model = listening(replace(config, solvers=("arbiter",)))
    await ended(run)
    assert "val_Jigsaw_2" in model.asked
    assert (run.folder.path / "replies.jsonl").exists()
    run, model = listening(config)
    await ended(run)
    assert model.asked == []


async def test_the_manifest_says_over_what_the_model_was_reached(config: RunConfig) -> None:
    for lost in (("val_Jigsaw_2",), ("val_Jigsaw_2",), ()):
        run, _ = listening(config, *lost)
        await ended(run)
    urls = [used["base_url"] for used in run.folder.manifest["connection"]]
    assert urls == ["http://127.0.0.1:8001/v1", "http://127.0.0.1:8000/v1"]
    assert "base_url" not in json.dumps(run.folder.manifest["identity"])


async def test_a_wall_clock_that_jumps_moves_no_question(
    config: RunConfig, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepare(config)
    clock = fakes.Clock(100.0)
    run = replace(run, resources=replace(run.resources, clock=clock))
    jumps = iter((2e9, 1e9, 3e9, 0.0, -5.0, 1.0))
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    made = []
    for question in run.sound[:3]:
        made.append(await attempt_question(run, run.solvers["mllm"], question))
        clock.passes(10.0)
    assert [one.seconds for one in made] == [0.0, 0.0, 0.0]
    began = [one.started or 0.0 for one in made]
    assert [later - began[0] for later in began] == pytest.approx([0.0, 10.0, 20.0])


async def test_scores_are_the_same_bytes_at_any_concurrency(config: RunConfig, tmp_path: Path) -> None:
    scores = []
    for count in (1, 64):
        run = prepare(replace(config, concurrency=count, out=tmp_path / f"c{count}"))
        await ended(run)
        score_run(run.folder, ScoreOptions())
        scores.append((run.folder.path / "mllm" / "scores.jsonl").read_bytes())
    assert scores[0] == scores[1]


def attempt(identity: str) -> Attempt:
    return Attempt(identity, (Exchange(Prompt(("What?",), Kind.CHOICE), Reply("(A)")),), 1.0)


async def test_what_waits_for_the_disk_is_written_together(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "mllm" / "attempts.jsonl")
    await asyncio.gather(
        *(recorder.write(attempt(f"q{number}")) for number in range(64)),
        *(recorder.write(Unfinished(f"f{number}", "no")) for number in range(64)),
    )
    await recorder.close()
    recorded = RunFolder(tmp_path).recorded("mllm")
    assert list(recorded.by_id) == [f"q{number}" for number in range(64)]
    assert dict(recorded.unfinished) == {f"f{number}": "no" for number in range(64)}


async def test_a_question_is_finished_when_its_line_is_on_disk(config: RunConfig) -> None:
    run = prepare(replace(config, concurrency=6))
    path = run.folder.path / "mllm" / "attempts.jsonl"
    seen: list[tuple[int, int]] = []

    def progress(_: str, count: int, __: int) -> None:
        lines = path.read_bytes().count(b"\n") if path.exists() else 0
        seen.append((count, lines))

    await carry_out(run, progress, print)
    assert [count for count, _ in seen] == list(range(7))
    assert all(count <= lines for count, lines in seen)


async def test_an_attempt_that_has_no_form_costs_nobody_else(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "mllm" / "attempts.jsonl")
    odd = replace(attempt("odd"), exchanges=(object(),))  # type: ignore[arg-type]
    ends = await asyncio.gather(*map(recorder.write, (attempt("q1"), odd, attempt("q2"))), return_exceptions=True)
    await recorder.close()
    assert [end is None for end in ends] == [True, False, True]
    assert [one.id for one in RunFolder(tmp_path).attempts("mllm")] == ["q1", "q2"]


async def test_thousands_of_errors_take_a_moment(tmp_path: Path) -> None:
    """They took 188 s when the file was opened and read for each."""
    recorder = Recorder(tmp_path / "mllm" / "attempts.jsonl")
    text = "Traceback\n" * 400
    began = time.monotonic()
    for start in range(0, 4000, 64):
        await asyncio.gather(*(recorder.write(Unfinished(f"q{start + number}", text)) for number in range(64)))
    await recorder.close()
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("code", ["raise RuntimeError('at import')", "import no_such_package", "TOOL"])
def test_a_tool_that_cannot_be_imported_is_a_fault_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    import tools

    (tmp_path / "broken_tool.py").write_text(code)
    places = [*tools.__path__, str(tmp_path)]
    monkeypatch.setattr(tools, "__path__", places)
    monkeypatch.setattr(tools.__spec__, "submodule_search_locations", places)
    with pytest.raises(ToolError, match="broken_tool cannot be imported") as caught:
        find_tool("broken_tool")
    assert caught.value.fault is Fault.TOOL_ERROR


def test_an_unwritable_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with (
        pytest.raises(UsageError, match=r"run cannot be written: (File exists|Not a directory)"),
        RunFolder(tmp_path / "run").locked(),
    ):
        pytest.fail("a file was locked as a folder")
