"""Several devices, simulated by counting copies on the CPU: the device that computes, and moves when memory is
short."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ServiceOptions
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.serving.cache import FindingCache
from hybrid.serving.loader import Loader, refuse_absent
from hybrid.serving.service import CachedTools
from hybrid.tool import BackendCard, Card, Evidence, Request, Tool
from hybrid.tool.args import Args
from tests.tables import cases

BOTH = "cuda:0,cuda:1"
PATIENCE_S = 600.0


class OutOfMemoryError(RuntimeError):
    """The error of torch when a GPU is full, recognised by this name."""


class Number(Args):
    """The number of a request."""

    number: int


class Machine:
    """Devices with a limited number of places: a copy takes one, a request of 100 or more takes two while it runs."""

    def __init__(self, **room: int) -> None:
        self.room = {name.replace("_", ":"): places for name, places in room.items()}
        self.copies: dict[str, list[str]] = {}
        self.computed: Counter[tuple[str, str]] = Counter()
        self.threads: dict[str, set[str]] = {}
        self.together: threading.Barrier | None = None

    def take(self, tool: str, device: str) -> None:
        """Load a copy."""
        if len(self.copies.get(device, ())) >= self.room.get(device, 99):
            raise OutOfMemoryError("CUDA out of memory")
        self.copies.setdefault(device, []).append(tool)

    def compute(self, tool: str, device: str, numbers: Sequence[int]) -> None:
        """Run a batch."""
        self.threads.setdefault(device, set()).add(threading.current_thread().name)
        if self.together is not None:
            self.together.wait(PATIENCE_S)
        needed = len(self.copies[device]) + sum(2 for number in numbers if number >= 100)
        if needed > self.room.get(device, 99):
            raise OutOfMemoryError("CUDA out of memory")
        self.computed[tool, device] += len(numbers)


class Copy:
    """A copy of a tool on one of the devices; its place is free again when nothing refers to it."""

    def __init__(self, tool: str, machine: Machine) -> None:
        self.tool, self.machine, self.device = tool, machine, ""

    def setup(self, device: str, weights: str | None) -> None:
        self.machine.take(self.tool, device)
        self.device = device

    def run(self, requests: Sequence[Request[Number]]) -> list[Evidence]:
        numbers = [request.args.number for request in requests]
        self.machine.compute(self.tool, self.device, numbers)
        return [Evidence(self.device, {"number": number}, 0.5) for number in numbers]

    def __del__(self) -> None:
        if self.device:
            self.machine.copies[self.device].remove(self.tool)


Ask = Callable[[str, Sequence[int]], Awaitable[list[str]]]


@pytest.fixture
def service_on(tmp_path: Path, fakes: Any) -> Iterator[Callable[..., tuple[CachedTools, Ask]]]:
    """`service, ask = service_on(machine, devices)`; `await ask("a", numbers)` returns the device that computed each
    number."""
    results: list[CachedTools] = []

    def start(machine: Machine, devices: str, **options: Any) -> tuple[CachedTools, Ask]:
        store = ImageStore(tmp_path / "images")
        by_name = {name: str(tmp_path / name) for name in "ab"}
        for folder in by_name.values():
            Path(folder).mkdir()
            (Path(folder) / "model.safetensors").write_bytes(b"\0" * 10)
        tools = {
            name: Tool(
                Card(
                    name,
                    "Counts.",
                    "None.",
                    (BackendCard("learned", "1", lambda n=name: Copy(n, machine), "", batch=2),),
                ),
                Number,
            )
            for name in by_name
        }
        service = CachedTools(
            store,
            FindingCache(None, store),
            ServiceOptions("learned", by_name, devices, **{"coming_s": PATIENCE_S, **options}),
        )
        results.append(service)
        refs = fakes.refs(store, 1)

        async def ask(name: str, numbers: Sequence[int]) -> list[str]:
            values = (service.call(tools[name], Number(number=number), refs) for number in numbers)
            outputs = await asyncio.gather(*values)
            assert [item.data["number"] for item in outputs] == list(numbers)
            return [entry.text for entry in outputs]

        return service, ask

    yield start
    for service in results:
        service.close()


async def test_a_device_without_memory_for_a_copy_leaves_the_tool_to_the_others(service_on: Any) -> None:
    machine = Machine(cuda_1=0)
    service, ask = service_on(machine, BOTH)
    for start in (0, 8):
        assert await ask("a", range(start, start + 8)) == ["cuda:0"] * 8
    assert service.notices == ["a: not enough memory on cuda:1; it runs on cuda:0 from now on"]


async def test_the_tool_used_longest_ago_makes_room_for_a_request_and_answers_elsewhere(service_on: Any) -> None:
    machine = Machine(cuda_0=3)
    service, ask = service_on(machine, "cuda:0")
    assert await ask("a", [1]) == await ask("b", [2]) == ["cuda:0"]
    assert await ask("b", [100]) == ["cuda:0"]
    assert await ask("a", [3]) == ["cpu"]
    assert await ask("b", [101]) == ["cuda:0"]
    text = "not enough memory on cuda:0 for b as well"
    assert service.notices == [f"a: {text}; it runs on the CPU from now on"]


async def test_weights_that_find_no_room_move_the_tool_used_longest_ago_to_another_device(service_on: Any) -> None:
    machine = Machine(cuda_0=1)
    service, ask = service_on(machine, BOTH)
    assert await ask("a", [1]) == await ask("b", [2]) == ["cuda:0"]
    assert await ask("a", [3]) == ["cuda:1"]
    text = "not enough memory on cuda:0 for b as well"
    assert service.notices == [f"a: {text}; it runs on cuda:1 from now on"]


async def test_what_no_device_takes_is_computed_on_the_cpu_and_no_question_fails(service_on: Any) -> None:
    machine = Machine(cuda_0=2, cuda_1=2)
    service, ask = service_on(machine, BOTH)
    await ask("a", [1, 100, 101, 2, 3, 102])
    assert machine.computed["a", "cpu"] >= 3
    assert await ask("a", [4]) == ["cpu"]
    assert [line.split("; ")[1] for line in service.notices if "runs" in line][-1] == "it runs on the CPU from now on"


@pytest.mark.parametrize(*cases(__file__, "test_what_a_word_for_devices_means_on_a_machine"))
def test_what_a_word_for_devices_means_on_a_machine(
    device: str, cuda: int, mps: bool, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert Loader(ServiceOptions(device=device)).devices == expected


def test_each_of_several_devices_must_be_here(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    refuse_absent(BOTH)
    with pytest.raises(UsageError, match=r"--device cuda:2: torch sees no device beyond cuda:1"):
        refuse_absent("cuda:0,cuda:2")
