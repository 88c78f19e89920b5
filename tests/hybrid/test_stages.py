"""A backend in stages, in the service: what runs where, and that an error costs only the request it belongs to."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.cache import FindingCache
from hybrid.images import ImageStore
from hybrid.service import ServiceOptions, ToolService
from hybrid.stages import Stages
from hybrid.tool import Args, BackendCard, Card, Evidence, Picture, Request, Tool
from hybrid.types import Finding

SIZE = 4
PATIENCE_S = 20


class NumberArgs(Args):
    """Arguments of the tool `staged`."""

    number: int = 0


class OutOfMemoryError(RuntimeError):
    """What torch raises when a GPU is full; known by this name."""


class Staged(Stages[NumberArgs, int, int]):
    """Doubles a number in three stages and notes where each ran; some numbers fail in one of them.

    13 cannot be prepared, 14 and a batch with it not computed, 15 not finished, 16 has no confidence; 9 does not fit a
    device that is no CPU.
    """

    def __init__(self, computing: Callable[["Staged"], None] = lambda _: None) -> None:
        self.batches: list[list[int]] = []
        self.threads: dict[str, set[str]] = {"prepare": set(), "compute": set(), "finish": set()}
        self.prepared = threading.Semaphore(0)
        self.devices: list[str] = []
        self._computing = computing

    def setup(self, device: str, weights: str | None) -> None:
        self.devices.append(device)

    def prepare(self, request: Request[NumberArgs]) -> int:
        self.threads["prepare"].add(threading.current_thread().name.split("_")[0])
        if request.args.number == 13:
            raise ZeroDivisionError("not prepared")
        self.prepared.release()
        return request.args.number

    def compute(self, prepared: Sequence[int]) -> list[int]:
        self.threads["compute"].add(threading.current_thread().name.split("_")[0])
        self.batches.append(list(prepared))
        self._computing(self)
        if self.devices[-1] != "cpu" and 9 in prepared:
            raise OutOfMemoryError("CUDA out of memory")
        if 14 in prepared:
            raise ZeroDivisionError("not computed")
        return [2 * number for number in prepared]

    def finish(self, request: Request[NumberArgs], prepared: int, output: int) -> Evidence:
        self.threads["finish"].add(threading.current_thread().name.split("_")[0])
        if prepared == 15:
            raise ZeroDivisionError("not finished")
        confidence = 1.5 if prepared == 16 else 0.5
        return Evidence(f"{prepared} -> {output}", {"count": output}, confidence, (Picture(request.images[0]),))


@pytest.fixture
def ask(tmp_path: Path, fakes: Any) -> Iterator[Callable[..., Any]]:
    """`await ask(backend, numbers)`: the findings or errors, all asked at once."""
    made: list[ToolService] = []
    (tmp_path / "weights").mkdir()

    async def all_of_them(backend: Staged, numbers: Sequence[int], device: str = "cpu") -> list[Finding | Exception]:
        card = BackendCard("learned", "1", lambda: backend, "doubles", batch=SIZE)
        tool = Tool(Card("staged", "Doubles.", "None.", (card,)), NumberArgs)
        store = ImageStore(tmp_path / "images")
        options = ServiceOptions("learned", {"staged": str(tmp_path / "weights")}, device, threads=2)
        made.append(ToolService(store, FindingCache(tmp_path / "findings", store), options))
        refs = fakes.refs(store, 1)
        asked = (made[-1].call(tool, NumberArgs(number=number), refs) for number in numbers)
        return list(await asyncio.gather(*asked, return_exceptions=True))

    yield all_of_them
    for service in made:
        service.close()


def said(found: Sequence[Finding | Exception]) -> list[str]:
    return [one.text if isinstance(one, Finding) else str(one) for one in found]


async def test_only_the_network_runs_in_the_thread_of_the_device(ask: Callable[..., Any]) -> None:
    backend = Staged()
    assert said(await ask(backend, range(7))) == [f"{n} -> {2 * n}" for n in range(7)]
    assert backend.threads == {"prepare": {"tools"}, "compute": {"device"}, "finish": {"tools"}}
    assert [len(batch) for batch in backend.batches] == [4, 3]


async def test_the_next_batch_is_prepared_while_one_is_computed(ask: Callable[..., Any]) -> None:
    waited: list[bool] = []

    def until_all_are_prepared(backend: Staged) -> None:
        # Only the first batch is computed here: it waits for a second one, which nobody else can have prepared.
        if len(backend.batches) == 1:
            waited.extend(backend.prepared.acquire(timeout=PATIENCE_S) for _ in range(2 * SIZE))

    found = await ask(Staged(until_all_are_prepared), range(2 * SIZE))
    assert said(found) == [f"{n} -> {2 * n}" for n in range(2 * SIZE)]
    assert waited == [True] * 2 * SIZE


async def test_an_error_in_any_stage_costs_nobody_else(ask: Callable[..., Any]) -> None:
    found = said(await ask(Staged(), [1, 13, 2, 14, 3, 15, 16, 4]))
    assert [found[place] for place in (0, 2, 4, 7)] == ["1 -> 2", "2 -> 4", "3 -> 6", "4 -> 8"]
    assert found[1] == "the tool failed: ZeroDivisionError: not prepared"
    assert found[3] == "the tool failed: ZeroDivisionError: not computed"
    assert found[5] == "the tool failed: ZeroDivisionError: not finished"
    assert found[6] == "the tool gave a confidence of 1.5, which is outside 0..1"


async def test_what_a_full_device_cannot_take_is_computed_on_the_cpu(ask: Callable[..., Any]) -> None:
    backend = Staged()
    assert said(await ask(backend, [1, 9, 3], "cuda:0")) == ["1 -> 2", "9 -> 18", "3 -> 6"]
    assert backend.devices == ["cuda:0", "cpu"]


async def test_a_second_service_finds_it_in_the_cache(ask: Callable[..., Any]) -> None:
    first, second = Staged(), Staged()
    assert await ask(first, [1, 2]) == await ask(second, [1, 2])
    assert sorted(number for batch in first.batches for number in batch) == [1, 2]
    assert second.batches == []
