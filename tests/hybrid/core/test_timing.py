"""A question's time includes running but not waiting. No test here uses the wall clock."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import ServiceOptions
from hybrid.core.errors import Outage, ToolError
from hybrid.core.images import ImageStore
from hybrid.core.timing import CallTime, Stopwatch, Timeouts, count_call, finished, running, waiting
from hybrid.core.types import Finding
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import Tool

PATIENT = Timeouts(60.0, 60.0)
Make = Callable[..., CachedTools]


@pytest.fixture
def clock(fakes: Any) -> Any:
    return fakes.Clock()


@pytest.fixture
def service(tmp_path: Path, clock: Any) -> Iterator[Make]:
    """`service(**options)` runs weight-free tools in one thread and stores nothing."""
    tools: list[CachedTools] = []

    def make(timed_with: Any = clock, **options: Any) -> CachedTools:
        store = ImageStore(tmp_path / "images")
        selected = ServiceOptions("classical", **{"threads": 1, "coming_s": 60.0, **options})
        tools.append(CachedTools(store, FindingCache(None, store), selected, timed_with))
        return tools[-1]

    yield make
    for item in tools:
        item.close()


async def call_tool(fakes: Any, tools: CachedTools, tool: Tool, spent: list[CallTime]) -> list[Finding | BaseException]:
    refs = fakes.refs(tools.store, 1)
    calls = (tools.call(tool, fakes.NumberArgs(number=n), refs, 0, spell) for n, spell in enumerate(spent))
    return list(await asyncio.gather(*calls, return_exceptions=True))


async def test_what_does_not_get_its_turn_is_an_outage(fakes: Any, service: Make) -> None:
    gate = threading.Event()
    backend = fakes.CountingBackend(takes=lambda: gate.wait(600))
    item, tool = service(time.monotonic, queue_s=0.01), fakes.counter(backend)
    # Loading may take longer than this service waits.
    await item.executor.load(tool, Stopwatch(time.monotonic))
    first = asyncio.create_task(call_tool(fakes, item, tool, [CallTime()]))
    while not backend.batches:
        await asyncio.sleep(0)
    with pytest.raises(Outage, match=r"counter waited 0.01 s for its turn"):
        await item.call(tool, fakes.NumberArgs(number=7), fakes.refs(item.store, 2))
    gate.set()
    await first


async def test_what_is_cancelled_is_an_outage_and_what_fails_is_its_error(clock: Any) -> None:
    for end, error in ((asyncio.Future.cancel, Outage), (_fail, ToolError)):
        work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        end(work)
        with pytest.raises(error):
            await finished("it", work, Stopwatch(clock), CallTime(), PATIENT, clock)


def _fail(work: "asyncio.Future[str]") -> None:
    work.set_exception(ToolError("no"))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), max_size=8))
def test_a_watch_adds_up_what_ran_and_nothing_else(spells: list[tuple[int, int, int]]) -> None:
    moments = [0.0]

    async def watched() -> Stopwatch:
        watch = Stopwatch(lambda: moments[-1])
        for waits, runs, among in spells:
            moments.append(moments[-1] + waits)
            with running([watch, *(Stopwatch(lambda: 0.0) for _ in range(among - 1))], loads=among == 5):
                moments.append(moments[-1] + runs)
        return watch

    read = asyncio.run(watched()).read()
    assert read.ran == sum(runs for _, runs, _ in spells)
    assert read.share == pytest.approx(sum(runs / among for _, runs, among in spells if among < 5))
    assert not read.runs


async def test_a_model_call_counts_without_its_waiting(clock: Any) -> None:
    spent = CallTime(10.0)
    async with count_call(spent, clock):
        clock.passes(1.0)
        with waiting():
            clock.passes(100.0)
            with waiting():
                clock.passes(100.0)
        clock.passes(2.0)
    assert spent.busy == 3.0


async def test_a_model_call_that_does_not_get_its_turn_is_an_outage() -> None:
    async def call() -> None:
        async with count_call(CallTime(60.0), time.monotonic, queue_s=0.01):
            with waiting():
                await asyncio.Event().wait()

    with pytest.raises(Outage, match=r"a model call waited 0.01 s for its turn"):
        await call()
