"""A question's time: running counts, and waiting does not; nothing here looks at the wall clock."""

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
from hybrid.errors import Outage, ToolError
from hybrid.images import ImageStore
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ToolService
from hybrid.timing import FREE_LOAD_S, CallTime, Stopwatch, Timeouts, counted, finished, running, waiting
from hybrid.tool import Need, Tool
from hybrid.types import Fault, Finding

PATIENT = Timeouts(60.0, 60.0)
Make = Callable[..., ToolService]


@pytest.fixture
def clock(fakes: Any) -> Any:
    return fakes.Clock()


@pytest.fixture
def service(tmp_path: Path, clock: Any) -> Iterator[Make]:
    """`service(**options)` runs weight-free tools in one thread and keeps nothing."""
    made: list[ToolService] = []

    def make(timed_with: Any = clock, **options: Any) -> ToolService:
        store = ImageStore(tmp_path / "images")
        chosen = ServiceOptions("classical", **{"threads": 1, "coming_s": 60.0, **options})
        made.append(ToolService(store, FindingCache(None, store), chosen, timed_with))
        return made[-1]

    yield make
    for one in made:
        one.close()


async def warmed(fakes: Any, one: ToolService, tool: Tool) -> None:
    """Let a tool run once: its first run loads what it needs."""
    await one.call(tool, fakes.NumberArgs(number=99), fakes.refs(one.store, 1))


async def asked(fakes: Any, one: ToolService, tool: Tool, spent: list[CallTime]) -> list[Finding | BaseException]:
    refs = fakes.refs(one.store, 1)
    calls = (one.call(tool, fakes.NumberArgs(number=n), refs, 0, spell) for n, spell in enumerate(spent))
    return list(await asyncio.gather(*calls, return_exceptions=True))


async def test_waiting_for_a_turn_is_not_charged(fakes: Any, service: Make, clock: Any) -> None:
    backend = fakes.CountingBackend(takes=lambda: clock.passes(2.0))
    one, tool, spent = service(), fakes.counter(backend), [CallTime(3.0) for _ in range(12)]
    await warmed(fakes, one, tool)
    found = await asked(fakes, one, tool, spent)
    assert [type(one) for one in found] == [Finding] * 12
    assert [spell.busy for spell in spent] == [2.0] * 12
    assert clock.now == 26.0


async def test_a_batch_is_shared_by_what_is_in_it(fakes: Any, service: Make, clock: Any) -> None:
    backend = fakes.CountingBackend(takes=lambda: clock.passes(2.0))
    one, tool, spent = service(), fakes.counter(backend, batch=4), [CallTime() for _ in range(6)]
    await warmed(fakes, one, tool)
    await asked(fakes, one, tool, spent)
    assert backend.batches == [1, 4, 2]
    assert sorted(spell.busy for spell in spent) == [0.5] * 4 + [1.0] * 2


async def test_loading_weights_is_charged_to_nobody(fakes: Any, service: Make, clock: Any, tmp_path: Path) -> None:
    backend = fakes.CountingBackend(takes=lambda: clock.passes(2.0))

    class Slow:
        """Takes a minute to load."""

        def setup(self, device: str, weights: str | None) -> None:
            clock.passes(60.0)

        run = backend.run

    tool = fakes.counter(backend, kind="learned", weights=str(tmp_path))
    card = fakes.BackendCard("learned", "1", Slow, "counts slowly", weights=str(tmp_path))
    slow = Tool(fakes.Card("counter", "Counts.", "None.", (card,)), tool.args)
    one = service(unchecked=True)
    learned = ToolService(one.store, one.cache, ServiceOptions("learned", threads=1), clock)
    first, second = CallTime(1.0), CallTime(3.0)
    (found,) = await asked(fakes, learned, slow, [first])
    await learned.call(slow, slow.args.model_validate({"number": 7}), fakes.refs(one.store, 1), 0, second)
    learned.close()
    assert isinstance(found, Finding)
    # Nor is the first run: it took longer than its question had.
    assert (first.busy, second.busy, clock.now) == (0.0, 2.0, 64.0)


class Ticking:
    """Ticks once whenever a worker of the tools looks at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        if threading.current_thread().name.startswith("tools"):
            self.now += 1.0
        return self.now


async def test_what_a_tool_needs_is_charged_with_it(fakes: Any, service: Make) -> None:
    needs = (Need("markers", lambda _: {}),)
    plain, needy = CallTime(), CallTime()
    for spent, tool in (
        (plain, fakes.counter(fakes.CountingBackend())),
        (needy, fakes.counter(fakes.CountingBackend(), needs=needs)),
    ):
        one = service(Ticking())
        await warmed(fakes, one, tool)
        await one.call(tool, fakes.NumberArgs(), fakes.refs(one.store, 2), 0, spent)
    # One tick each to prepare, to run and to keep a finding.
    assert (plain.busy, needy.busy) == (3.0, 6.0)


async def test_a_cached_finding_costs_what_reading_it_takes(fakes: Any, clock: Any, tmp_path: Path) -> None:
    backend = fakes.CountingBackend(takes=lambda: clock.passes(2.0))
    store = ImageStore(tmp_path / "images")
    one = ToolService(store, FindingCache(tmp_path / "findings", store), ServiceOptions("classical"), clock)
    first, second = CallTime(), CallTime()
    await warmed(fakes, one, fakes.counter(backend))
    for spent in (first, second):
        await asked(fakes, one, fakes.counter(backend), [spent])
    one.close()
    assert (first.busy, second.busy) == (2.0, 0.0)


async def test_running_beyond_the_questions_time_is_a_timeout(fakes: Any, service: Make) -> None:
    gate = threading.Event()
    backend = fakes.CountingBackend(takes=lambda: gate.wait(60))
    gate.set()
    one, tool = service(time.monotonic), fakes.counter(backend)
    await warmed(fakes, one, tool)
    gate.clear()
    (late,) = await asked(fakes, one, tool, [CallTime(0.01)])
    gate.set()
    assert isinstance(late, ToolError)
    assert (str(late), late.fault) == ("counter did not answer within the question's time", Fault.TIMEOUT)


async def test_what_does_not_get_its_turn_is_an_outage(fakes: Any, service: Make) -> None:
    gate = threading.Event()
    backend = fakes.CountingBackend(takes=lambda: gate.wait(60))
    one, tool = service(time.monotonic, queue_s=0.01), fakes.counter(backend)
    # Loading may take longer than this service waits.
    await one.executor.load(tool, Stopwatch(time.monotonic))
    first = asyncio.create_task(asked(fakes, one, tool, [CallTime()]))
    while not backend.batches:
        await asyncio.sleep(0)
    with pytest.raises(Outage, match=r"counter waited 0.01 s for its turn"):
        await one.call(tool, fakes.NumberArgs(number=7), fakes.refs(one.store, 2))
    gate.set()
    await first


async def test_a_closed_service_is_an_outage(fakes: Any, service: Make) -> None:
    one, tool = service(), fakes.counter(fakes.CountingBackend())
    refs = fakes.refs(one.store, 1)
    await one.call(tool, fakes.NumberArgs(), refs)
    one.close()
    with pytest.raises(Outage, match="the tool service is closed"):
        await one.call(tool, fakes.NumberArgs(number=2), refs)


async def test_who_joins_pays_from_then_on(clock: Any) -> None:
    watch, spent = Stopwatch(clock), CallTime(10.0)
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    watch.start()
    clock.passes(5.0)
    waiter = asyncio.create_task(finished("it", work, watch, spent, PATIENT, clock))
    await asyncio.sleep(0)
    clock.passes(2.0)
    watch.stop()
    clock.passes(100.0)
    work.set_result("found")
    assert await waiter == "found"
    assert spent.busy == 2.0


async def test_what_is_cancelled_is_an_outage_and_what_fails_is_its_error(clock: Any) -> None:
    for end, error in ((asyncio.Future.cancel, Outage), (_fail, ToolError)):
        work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        end(work)
        with pytest.raises(error):
            await finished("it", work, Stopwatch(clock), CallTime(), PATIENT, clock)


def _fail(work: "asyncio.Future[str]") -> None:
    work.set_exception(ToolError("no"))


async def test_the_work_goes_on_when_a_waiter_gives_up(clock: Any) -> None:
    watch = Stopwatch(clock)
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    waiter = asyncio.create_task(finished("it", work, watch, CallTime(), PATIENT, clock))
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    assert not work.done()


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


async def test_a_first_run_is_free_for_as_long_as_loading_takes(clock: Any) -> None:
    watch, spent = Stopwatch(clock), CallTime(0.0)
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with running([watch], loads=True):
        clock.passes(FREE_LOAD_S - 1.0)
        assert watch.read().share == 0.0
        assert watch.read().free == 1.0
        clock.passes(1.0 + 5.0)
        assert watch.read().share == 5.0
        with pytest.raises(ToolError, match="within the question's time"):
            await finished("it", work, watch, spent, PATIENT, clock)


def test_a_worker_may_end_after_its_loop(clock: Any) -> None:
    async def made() -> Stopwatch:
        return Stopwatch(clock)

    watch = asyncio.run(made())
    with running([watch]):
        clock.passes(1.0)
    assert watch.read().ran == 1.0


async def test_a_model_call_counts_without_its_waiting(clock: Any) -> None:
    spent = CallTime(10.0)
    async with counted(spent, clock):
        clock.passes(1.0)
        with waiting():
            clock.passes(100.0)
            with waiting():
                clock.passes(100.0)
        clock.passes(2.0)
    assert spent.busy == 3.0


async def test_waiting_outside_of_a_model_call_is_nothing(clock: Any) -> None:
    spent = CallTime(10.0)
    with waiting():
        clock.passes(1.0)
        async with counted(spent, clock):
            clock.passes(2.0)
    assert spent.busy == 2.0


async def test_a_model_call_ends_with_the_questions_time_and_not_while_it_waits() -> None:
    spent, turns = CallTime(0.05), []

    async def call() -> None:
        async with counted(spent, time.monotonic):
            with waiting():
                # Longer than the question has: it is not running.
                await asyncio.sleep(0.1)
            turns.append(1)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await call()
    assert turns == [1]
    assert spent.busy >= 0.05


async def test_a_model_call_that_does_not_get_its_turn_is_an_outage() -> None:
    async def call() -> None:
        async with counted(CallTime(60.0), time.monotonic, queue_s=0.01):
            with waiting():
                await asyncio.Event().wait()

    with pytest.raises(Outage, match=r"a model call waited 0.01 s for its turn"):
        await call()


async def test_who_is_cancelled_from_outside_is_not_late() -> None:
    limits = []

    async def call() -> None:
        async with counted(CallTime(60.0), time.monotonic) as limit:
            limits.append(limit)
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    while not limits:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not limits[0].expired()
