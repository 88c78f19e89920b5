"""A backend in stages, in the service: where each stage runs, and that an error costs only its request."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest

from hybrid.config import ServiceOptions
from hybrid.core.errors import Outage, ToolError
from hybrid.core.images import ImageStore
from hybrid.core.types import Box, Fault, Finding
from hybrid.serving.cache import FindingCache
from hybrid.serving.executor import QueuedCall
from hybrid.serving.loader import BackendIdentity
from hybrid.serving.pipeline import ThreadExecutor
from hybrid.serving.protocol import ToolRequest
from hybrid.serving.service import CachedTools
from hybrid.serving.stages import checked, tool_errors
from hybrid.tool import Args, BackendCard, Card, Evidence, Picture, Request, Stages, Tool

SIZE = 4
# Longer than anything here takes, however busy the machine is.
PATIENCE_S = 600


class NumberArgs(Args):
    """Arguments of the tool `staged`."""

    number: int = 0


class OutOfMemoryError(RuntimeError):
    """The error of torch when a GPU is full, recognised by this name."""


class Activation:
    """The tensors of a batch on the device."""


class Staged(Stages[NumberArgs, int, int]):
    """Doubles a number in three stages; some numbers fail in one of the stages. Copies share the record of threads by
    stage.

    13 cannot be prepared, 12 is refused, 14 and any batch with it cannot be computed, 15 cannot be finished, 16 has no
    confidence, 17 gives no number; 9 and 900 to 999 only fit a CPU.
    """

    def __init__(self, computing: Callable[["Staged"], None] = lambda _: None) -> None:
        self.batches: list[list[int]] = []
        self.threads: dict[str, set[str]] = {"prepare": set(), "compute": set(), "finish": set()}
        self.prepared = threading.Semaphore(0)
        self.device = ""
        self.devices: list[str] = []
        self.tried: list[tuple[str, str]] = []
        self.held: WeakSet[Activation] = WeakSet()
        self.held_before: list[int] = []
        self._computing = computing

    def setup(self, device: str, weights: str | None) -> None:
        self.device = device
        self.devices.append(device)

    def prepare(self, request: Request[NumberArgs]) -> int:
        self.threads["prepare"].add(threading.current_thread().name.split("_")[0])
        if request.args.number == 12:
            raise ToolError("12 is refused")
        if request.args.number == 13:
            raise ZeroDivisionError("not prepared")
        self.prepared.release()
        return request.args.number

    def compute(self, prepared: Sequence[int]) -> list[int]:
        self.threads["compute"].add(threading.current_thread().name.split("_")[0])
        self.batches.append(list(prepared))
        self.tried.append((self.device, threading.current_thread().name))
        self.held_before.append(len(self.held))
        activation = Activation()
        self.held.add(activation)
        self._computing(self)
        if self.device != "cpu" and any(number == 9 or number // 100 == 9 for number in prepared):
            raise OutOfMemoryError("CUDA out of memory")
        if 14 in prepared:
            raise ZeroDivisionError("not computed")
        return [2 * number for number in prepared]

    def finish(self, request: Request[NumberArgs], prepared: int, output: int) -> Evidence:
        self.threads["finish"].add(threading.current_thread().name.split("_")[0])
        if prepared == 15:
            raise ZeroDivisionError("not finished")
        confidence = 1.5 if prepared == 16 else 0.5
        data = {"count": float("nan") if prepared == 17 else output}
        return Evidence(f"{prepared} -> {output}", data, confidence, (Picture(request.images[0]),))


Make = Callable[..., tuple[CachedTools, Callable[[Sequence[int]], Awaitable[list[Finding | Exception]]]]]


@pytest.fixture
def make(tmp_path: Path, fakes: Any) -> Iterator[Make]:
    """`service, ask = make(backend)`; `await ask(numbers)` returns the outputs or errors of simultaneous requests.

    A service that `keeps` nothing does not look for files first, so simultaneous requests arrive together.
    """
    tools: list[CachedTools] = []
    (tmp_path / "weights").mkdir()

    def service_of(
        backend: Staged, device: str = "cpu", *, keeps: bool = False, **options: Any
    ) -> tuple[CachedTools, Callable[[Sequence[int]], Awaitable[list[Finding | Exception]]]]:
        card = BackendCard("learned", "1", lambda: copy(backend), "doubles", batch=SIZE)
        tool = Tool(Card("staged", "Doubles.", "None.", (card,)), NumberArgs)
        store = ImageStore(tmp_path / "images")
        patient: dict[str, Any] = {"threads": 2, "coming_s": PATIENCE_S, **options}
        selected = ServiceOptions("learned", {"staged": str(tmp_path / "weights")}, device, **patient)
        service = CachedTools(store, FindingCache(tmp_path / "findings" if keeps else None, store), selected)
        tools.append(service)
        refs = fakes.refs(store, 1)

        async def all_of_them(numbers: Sequence[int]) -> list[Finding | Exception]:
            # Calls made while the code is hashed and the weights load would arrive one by one.
            await service._answering_for(tool)
            values = (service.call(tool, NumberArgs(number=number), refs) for number in numbers)
            return list(await asyncio.gather(*values, return_exceptions=True))

        return service, all_of_them

    yield service_of
    for service in tools:
        service.close()


@pytest.fixture
def ask(make: Make) -> Callable[..., Any]:
    """`await ask(backend, numbers)` returns the outputs of a new service."""

    async def of_its_own(backend: Staged, numbers: Sequence[int], device: str = "cpu") -> list[Finding | Exception]:
        return await make(backend, device)[1](numbers)

    return of_its_own


def texts_of(findings: Sequence[Finding | Exception]) -> list[str]:
    return [item.text if isinstance(item, Finding) else str(item) for item in findings]


def until(gate: threading.Event) -> Callable[[Staged], None]:
    def wait(_: Staged) -> None:
        gate.wait(PATIENCE_S)

    return wait


async def test_an_error_in_any_stage_costs_nobody_else(ask: Callable[..., Any]) -> None:
    result = texts_of(await ask(Staged(), [1, 13, 2, 14, 3, 15, 16, 4]))
    assert [result[place] for place in (0, 2, 4, 7)] == ["1 -> 2", "2 -> 4", "3 -> 6", "4 -> 8"]
    assert result[1] == "the tool failed: ZeroDivisionError: not prepared"
    assert result[3] == "the tool failed: ZeroDivisionError: not computed"
    assert result[5] == "the tool failed: ZeroDivisionError: not finished"
    assert result[6] == "the tool returned a confidence of 1.5, which is outside 0..1"


class SingleCalls:
    """Calls of a tool with a weight-free backend, each with a number, and the jobs that they cause."""

    def __init__(self, folder: Path, fakes: Any, batch: int, weights: Path | None = None) -> None:
        cards = [BackendCard("classical", "1", Staged, "doubles", batch=batch)]
        cards += [BackendCard("learned", "2", Staged, "doubles")] if weights else []
        self.tool = Tool(Card("staged", "Doubles.", "None.", tuple(cards)), NumberArgs)
        store = ImageStore(folder / "images")
        self.refs = tuple(fakes.refs(store, 1))
        by_name = {"staged": str(weights)} if weights else {}
        options = ServiceOptions("learned" if weights else "classical", by_name, threads=2, coming_s=PATIENCE_S)
        self.executor = ThreadExecutor(FindingCache(None, store), options, self._timed)
        self.jobs: list[str] = []

    def _timed(self, tool: str, stage: str, tokens: Sequence[int], first: bool) -> AbstractContextManager[None]:
        self.jobs.append(stage)
        return nullcontext()

    async def find(self, number: int) -> tuple[Finding, BackendIdentity]:
        answering = BackendIdentity("classical", "1", "cpu")
        request = ToolRequest(0, "staged", answering, {"number": number}, self.refs, {}, 0, "")
        return await self.executor.find(QueuedCall(self.tool, NumberArgs(number=number), request), number)


@pytest.mark.parametrize(("batch", "jobs"), [(1, ["cpu"]), (SIZE, ["prepare", "cpu", "finish"])])
async def test_a_weight_free_call_without_batches_is_one_job(
    tmp_path: Path, fakes: Any, batch: int, jobs: list[str]
) -> None:
    calls = SingleCalls(tmp_path, fakes, batch)
    result, answering = await calls.find(3)
    assert (result.text, result.data, answering.backend) == ("3 -> 6", {"count": 6}, "classical")
    assert calls.jobs == ["load", *jobs]
    calls.executor.close()


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (12, "12 is refused"),
        (13, "the tool failed: ZeroDivisionError: not prepared"),
        (14, "the tool failed: ZeroDivisionError: not computed"),
        (15, "the tool failed: ZeroDivisionError: not finished"),
    ],
)
async def test_an_error_in_any_stage_of_one_job_names_its_reason(
    tmp_path: Path, fakes: Any, number: int, message: str
) -> None:
    calls = SingleCalls(tmp_path, fakes, batch=1)
    with pytest.raises(ToolError) as caught:
        await calls.find(number)
    assert str(caught.value) == message
    assert (await calls.find(2))[0].text == "2 -> 4"
    calls.executor.close()


async def test_a_flood_of_single_calls_does_not_fill_the_threads(
    tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of single calls of one tool does not fill the threads: calls of other tools wait behind at most a few of
    them."""
    calls, event, submitted = SingleCalls(tmp_path, fakes, batch=1), threading.Event(), list[object]()
    await calls.find(1)
    in_thread = calls.executor._in_thread

    def submit(pool: Any, run: Callable[..., Any], *args: Any) -> Any:
        submitted.append(run)
        return in_thread(pool, lambda: event.wait(PATIENCE_S) and run(*args))

    monkeypatch.setattr(calls.executor, "_in_thread", submit)
    flood = [asyncio.ensure_future(calls.find(number)) for number in range(20, 60)]
    for _ in range(100):
        await asyncio.sleep(0)
    assert 0 < len(submitted) < 10
    event.set()
    assert len(await asyncio.gather(*flood)) == len(submitted) == 40
    calls.executor.close()


async def test_weights_that_arrive_between_request_and_call_are_not_used(tmp_path: Path, fakes: Any) -> None:
    calls = SingleCalls(tmp_path, fakes, batch=1, weights=tmp_path)
    with pytest.raises(ToolError, match="were installed while it was called"):
        await calls.find(3)
    calls.executor.close()


async def test_closing_the_service_is_an_outage_to_what_waits(make: Make) -> None:
    event = threading.Event()
    backend = Staged(until(event))
    service, ask = make(backend)
    request = asyncio.ensure_future(ask(range(20, 20 + 5 * SIZE)))
    while not backend.batches:
        await asyncio.sleep(0.001)
    service.close()
    event.set()
    result = await request
    assert [repr(item) for item in result if not isinstance(item, Finding | Outage)] == []
    assert any(isinstance(entry, Outage) for entry in result)


def nested(depth: int) -> Any:
    result: Any = 1
    for _ in range(depth):
        result = [result]
    return result


PIXELS = np.zeros((4, 6, 3), np.uint8)


class Unsaid(Exception):
    """An error whose message cannot be computed."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": 3}, "a int as text"),
        (
            {"text": "half a character: \ud800"},
            r"a text that is not valid Unicode: surrogates not allowed \(character 19\)",
        ),
        ({"text": "x" * 20_001}, "a text of 20,001 characters; the limit is 20,000"),
        ({"confidence": None}, "the tool failed: TypeError"),
        ({"data": [1]}, "data that is not a JSON object with string keys"),
        ({"data": {"a": {1: 2}}}, "data that is not a JSON object with string keys"),
        ({"data": {"a": nested(32)}}, "data that is not a JSON object with string keys, at most 32 deep"),
        ({"data": {"a": nested(100_000)}}, "data that is not a JSON object with string keys, at most 32 deep"),
        ({"data": {"a": float("inf")}}, "data that is not JSON: Out of range float values"),
        ({"data": {"a": np.float32(1)}}, "data that is not JSON: Object of type float32 is not JSON serializable"),
        ({"data": {"a": "\udfff"}}, "data that is not JSON: 'utf-8' codec can't encode"),
        ({"data": {"a": "x" * 5_000_000}}, "5,000,009 bytes of data; the limit is 5,000,000"),
        ({"pictures": (Picture(PIXELS.astype(float)),)}, r"a picture of shape \(4, 6, 3\) and type float64"),
        ({"pictures": (Picture(PIXELS[..., 0]),)}, r"a picture of shape \(4, 6\) and type uint8"),
        ({"pictures": (Picture(PIXELS[:0]),)}, "a picture of 6 x 0 pixels"),
        ({"pictures": (Picture([[1]]),)}, "a picture of shape None and type list"),
        ({"pictures": (Picture(np.zeros((1, 1_000_001, 3), np.uint8)),)}, "a picture of 1000001 x 1 pixels"),
        ({"pictures": (Picture(PIXELS, of=1),)}, "a picture of image 1; the images are counted from 0 to 0"),
        ({"pictures": (Picture(PIXELS, of=-1),)}, "a picture of image -1"),
        ({"pictures": (Picture(PIXELS, scale=0.0),)}, "a picture with the box .* and the scale 0.0"),
        ({"pictures": (Picture(PIXELS, box=Box(0, 0, float("nan"), 1)),)}, "a picture with the box .*nan"),
        ({"pictures": 3}, "the tool failed: TypeError"),
    ],
    ids=range(22),
)
def test_bad_evidence_is_the_fault_of_the_tool_at_once(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolError, match=message) as caught, tool_errors():
        checked(replace(Evidence("text", {}, 0.5), **change), 1)
    assert caught.value.fault is Fault.TOOL_ERROR


def test_what_is_no_evidence_is_the_fault_of_the_tool() -> None:
    with pytest.raises(ToolError, match="a dict instead of evidence"):
        checked({"text": "found"}, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error", [SystemExit(0), KeyboardInterrupt(), GeneratorExit(), Exception("\ud800"), Unsaid()], ids=range(5)
)
async def test_whatever_a_tool_raises_costs_its_request_alone(make: Make, error: BaseException) -> None:
    def fail(backend: Staged) -> None:
        if 3 in backend.batches[-1]:
            raise error

    _, ask = make(Staged(fail))
    output = await ask([1, 2, 3])
    assert [isinstance(item, Finding) for item in output] == [True, True, False]
    assert str(output[2]).startswith(f"the tool failed: {type(error).__name__}: ")


async def test_a_disk_that_cannot_be_written_is_an_outage_and_no_fault(make: Make, tmp_path: Path) -> None:
    service, ask = make(Staged(), keeps=True)
    (tmp_path / "findings").write_text("no folder")
    (output,) = await ask([1])
    assert isinstance(output, Outage)
    assert str(output).startswith(f"images and findings cannot be written: {tmp_path / 'findings'}")
    assert service.computed == 0
