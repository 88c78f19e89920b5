"""A run that ends early leaves finished questions, open questions, and the replies that it has received."""

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import RunConfig
from hybrid.core.errors import Outage, ToolError, UsageError
from hybrid.core.secrets import keep_secret
from hybrid.core.types import Attempt, Exchange, Fault, Kind, Prompt, Reply
from hybrid.log.attempts import Recorder
from hybrid.log.folder import RunFolder
from hybrid.running.engine import attempt_question
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import RunEnd, UnfinishedQuestion, run_until_complete
from hybrid.scoring.runs import score_run
from hybrid.solving.call_tool import find_tool


@pytest.fixture
def config(config: RunConfig) -> RunConfig:
    """Configuration of a run that asks one question at a time."""
    return replace(config, concurrency=1)


def failing(config: RunConfig, fakes: Any, **errors: BaseException) -> ResolvedRun:
    run = prepare(config)
    return replace(run, resources=replace(run.resources, model=fakes.WatchedModel(run.resources.model, errors)))


async def finish_run(run: ResolvedRun, names: list[str] | None = None) -> RunEnd:
    return await run_until_complete(run, lambda *_: None, (names if names is not None else []).append)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SystemExit(0), "SystemExit: 0 (AT)"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup: two (2 sub-exceptions) (AT)"),
        (BaseExceptionGroup("one", [SystemExit("out")]), "SystemExit: out"),
        (ExceptionGroup("one", [Outage("503")]), "503"),
        (asyncio.CancelledError("a library's own"), "CancelledError: a library's own (AT)"),
        (RecursionError("too deep"), "RecursionError: too deep (AT)"),
    ],
)
async def test_any_error_costs_its_own_question(
    config: RunConfig, fakes: Any, error: BaseException, message: str
) -> None:
    run = failing(config, fakes, val_Jigsaw_2=error)
    end = await finish_run(run)
    (failure,) = end.failures
    placed = replace(failure, error=re.sub(r"tests/fakes\.py, line \d+", "AT", failure.error))
    assert (placed, end.answered) == (UnfinishedQuestion("mllm", "val_Jigsaw_2", message), 5)
    ((identity, reason),) = run.folder.recorded("mllm").unfinished.items()
    assert identity == "val_Jigsaw_2"
    assert f'{Path("tests") / "fakes.py"}", line ' in reason


async def test_an_error_says_no_secret(config: RunConfig, fakes: Any) -> None:
    keep_secret("sk-ends-secret")
    run = failing(config, fakes, val_Jigsaw_2=Outage("401: sk-ends-secret is wrong"))
    assert (await finish_run(run)).failures[0].error == "401: [redacted] is wrong"
    assert b"sk-ends-secret" not in (run.folder.path / "mllm" / "attempts.jsonl").read_bytes()


async def test_a_wall_clock_that_jumps_moves_no_question(
    config: RunConfig, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepare(config)
    clock = fakes.Clock(100.0)
    run = replace(run, resources=replace(run.resources, clock=clock))
    jumps = iter((2e9, 1e9, 3e9, 0.0, -5.0, 1.0))
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    results = []
    for question in run.sound[:3]:
        results.append(await attempt_question(run.benchmark, run.resources, run.solvers["mllm"], question))
        clock.passes(10.0)
    assert [item.seconds for item in results] == [0.0, 0.0, 0.0]
    values = [entry.started or 0.0 for entry in results]
    assert [later - values[0] for later in values] == pytest.approx([0.0, 10.0, 20.0])


async def test_scores_are_the_same_bytes_at_any_concurrency(config: RunConfig, tmp_path: Path) -> None:
    scores = []
    for count in (1, 64):
        run = prepare(replace(config, concurrency=count, out=tmp_path / f"c{count}"))
        await finish_run(run)
        score_run(run.folder, ScoreOptions())
        scores.append((run.folder.path / "mllm" / "scores.jsonl").read_bytes())
    assert scores[0] == scores[1]


def attempt(identity: str) -> Attempt:
    return Attempt(identity, (Exchange(Prompt(("What?",), Kind.CHOICE), Reply("(A)")),), 1.0)


async def test_an_attempt_that_has_no_form_costs_nobody_else(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "mllm" / "attempts.jsonl")
    odd = replace(attempt("odd"), exchanges=(object(),))  # type: ignore[arg-type]
    ends = await asyncio.gather(*map(recorder.write, (attempt("q1"), odd, attempt("q2"))), return_exceptions=True)
    await recorder.close()
    assert [end is None for end in ends] == [True, False, True]
    assert [item.id for item in RunFolder(tmp_path).attempts("mllm")] == ["q1", "q2"]


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
