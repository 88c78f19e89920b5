"""The tool service on `$HYBRID_TEST_DEVICE`: batches, loads, freed memory, shortage, and workers that end."""

import asyncio
import gc
import importlib
import os
import signal
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tools
from bench._networks import NETWORKS
from bench._throughput import arguments, counting, make_requests
from hybrid.config import ServiceOptions
from hybrid.core.errors import ToolError
from hybrid.core.images import ImageStore
from hybrid.core.types import Finding, ImageRef
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import BackendCard, Card, Evidence, Request, Stages, Tool
from hybrid.tool.args import Args
from tests.tool_source import tool_source

# The tests run one at a time, because they measure the free memory of the whole device.
pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("memory of the device")]

FIVE = ("depth_anything_v2_small", "dinov2_base", "siglip2_base", "owlv2_base", "sam2_tiny")
IN_FLIGHT = 64
# Time within which memory must be free again; less than that of the whole test, so that the failure has a message.
GONE_S = 240.0
HELD_BYTES = 2 * 2**30

HOLDING = tool_source(
    "holding",
    """table = torch.zeros(4, device=self.device)
places = [9 if request.args.out_of_range else 0 for request in requests]
chosen = table[torch.tensor(places, device=self.device)].tolist()
if not (marks := self.folder / "pid").exists():
    held = torch.ones(BYTES if self.device != "cpu" else 1, dtype=torch.uint8, device=self.device)
    held.sum().item()
    marks.write_text(str(os.getpid()))
    time.sleep(10000)
return [Evidence(f"number {one.args.number}", {"count": int(x)}, 0.5) for one, x in zip(requests, chosen)]""".replace(
        "BYTES", str(HELD_BYTES)
    ),
    args="number: int = 0\nout_of_range: bool = False",
    head="import os\nimport time\nfrom pathlib import Path\n\nimport torch\n",
    setup="self.device, self.folder = device, Path(weights)",
    backend='"learned", "1", Backend, "holds memory", batch=4',
)


@pytest.fixture
def serving(store: ImageStore) -> Iterator[Callable[..., CachedTools]]:
    """`serving(weights, device, **options)`: a service that stores nothing."""
    # A tool with a separate process is held until it is closed, because the process would outlive it.
    built, with_process = weakref.WeakSet[CachedTools](), list[CachedTools]()

    def start(weights: dict[str, str], device: str, **options: Any) -> CachedTools:
        selected = ServiceOptions("auto", weights, device, **{"unchecked": True, "timeout_s": 600.0, **options})
        service = CachedTools(store, FindingCache(None, store), selected)
        (with_process.append if selected.isolated else built.add)(service)
        return service

    yield start
    for item in [*built, *with_process]:
        item.close()


@pytest.fixture
def five(tmp_path: Path) -> dict[str, str]:
    """Tiny networks of five tools, in their real format."""
    folders = {NETWORKS[name].tool: tmp_path / name for name in FIVE}
    for name, folder in zip(FIVE, folders.values(), strict=True):
        folder.mkdir()
        NETWORKS[name].build(folder, False)
    return {tool: str(folder) for tool, folder in folders.items()}


def with_load_count(name: str, loads: Counter[str]) -> Tool:
    """Return a tool whose learned backend counts its instances."""
    tool: Tool = load("tools", name)

    def making(card: BackendCard) -> BackendCard:
        def make() -> Any:
            loads[name] += 1
            return card.make()

        return replace(card, make=make) if card.name == "learned" else card

    return replace(tool, card=replace(tool.card, backends=tuple(map(making, tool.card.backends))))


async def many(service: CachedTools, loads: Counter[str], count: int = IN_FLIGHT, seed: int = 0) -> list[Any]:
    """Return calls of all five tools."""
    calls = []
    for place, name in enumerate(FIVE):
        tool = with_load_count(NETWORKS[name].tool, loads)
        for group in make_requests(tool, (count + place) // len(FIVE))[1]:
            refs = [ImageRef(f"img:{n}", service.store.put_pixels(item)) for n, item in enumerate(group, 1)]
            calls.append(service.call(tool, tool.parse(arguments(NETWORKS[name], name, seed)), refs, seed))
    return list(await asyncio.gather(*calls, return_exceptions=True))


def memory_in_use(device: str) -> int:
    """Return the bytes that tensors hold on the device, or 0 on a CPU, where they are unknown."""
    import torch

    gc.collect()
    if not device.startswith("cuda"):
        return 0
    # Memory that cuBLAS keeps for the next product does not belong to a tool.
    torch._C._cuda_clearCublasWorkspaces()
    return torch.cuda.memory_allocated()


async def until(holds: Callable[[], bool], failure: str) -> None:
    """Wait until a condition holds; fail with this message after `GONE_S`."""
    end = time.monotonic() + GONE_S
    while not holds():
        assert time.monotonic() < end, f"after {GONE_S:g} s: {failure}"
        await asyncio.sleep(0.05)


async def test_sixty_four_calls_of_five_tools_fill_batches_and_load_each_once(
    device: str, five: dict[str, str], serving: Callable[..., CachedTools]
) -> None:
    loads: Counter[str] = Counter()
    service = serving(five, device)
    with counting("Dinov2Model") as passes:
        result = await many(service, loads)
    assert [item for item in result if not isinstance(item, Finding)] == []
    assert {entry.backend for entry in result} == {"learned"}
    assert loads == dict.fromkeys(five, 1)
    # A request has two pictures. The passes of depth's backbone are not counted here, because it has another class.
    assert sum(passes.sizes) / len(passes.sizes) >= 8, passes.sizes


async def test_the_memory_of_a_finished_service_comes_back(
    device: str, five: dict[str, str], serving: Callable[..., CachedTools]
) -> None:
    import torch

    previous, seen = memory_in_use(device), list[weakref.ref[torch.nn.Module]]()
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda module, *_: seen.append(weakref.ref(module)) if not seen else None
    )
    try:
        service = serving(five, device)
        assert len(await many(service, Counter(), 5)) == 5
    finally:
        handle.remove()
    assert seen
    assert memory_in_use(device) > previous or device == "cpu"
    service.close()
    del service
    # Other tests may have freed their memory meanwhile.
    await until(lambda: memory_in_use(device) <= previous, "the memory of a closed service is not free")
    await until(lambda: seen[0]() is None, "a network of a closed service is still referenced")


async def test_the_budget_of_weights_holds_and_every_call_is_answered(
    device: str, five: dict[str, str], serving: Callable[..., CachedTools]
) -> None:
    sizes = {name: sum(p.stat().st_size for p in Path(folder).glob("*.safetensors")) for name, folder in five.items()}
    loads: Counter[str] = Counter()
    service = serving(five, device, memory_bytes=max(sizes.values()))
    previous, most = memory_in_use(device), 0
    for turn in range(2):
        for finding in await many(service, loads, 10, turn):
            assert isinstance(finding, Finding), finding
        loaded = service.executor.loader.loaded  # type: ignore[attr-defined]
        assert sum(sizes.get(name, 0) for name in loaded) <= max(sizes.values())
        most = max(most, memory_in_use(device) - previous)
    assert sum(loads.values()) > len(five)
    assert most < sum(sizes.values())


class Large(Stages[Any, Any, Any]):
    """Allocates memory on the device for each picture of a batch, and frees it."""

    version = "1"

    def setup(self, device: str, weights: str | None) -> None:
        self.device, self.sizes = device, list[int]()
        MADE.append(self)

    def prepare(self, request: Request[Any]) -> int:
        return int(request.args.megabytes)

    def compute(self, prepared: Sequence[int]) -> list[int]:
        import torch

        self.sizes.append(len(prepared))
        block = torch.ones(sum(prepared) * 2**20, dtype=torch.uint8, device=self.device)
        return [int(block[0])] * len(prepared)

    def finish(self, request: Request[Any], prepared: int, output: int) -> Evidence:
        return Evidence("one", {"count": output}, 0.5)


MADE: list[Large] = []


class LargeArgs(Args):
    """Amount of memory per call."""

    megabytes: int = 1
    number: int = 0


async def test_a_real_shortage_halves_batches_then_moves_the_tool_and_leaks_nothing(
    card: str, serving: Callable[..., CachedTools], fakes: Any, store: ImageStore, tmp_path: Path
) -> None:
    import torch

    (tmp_path / "model.safetensors").write_bytes(b"")
    cards = (BackendCard("learned", "1", Large, "", batch=8),)
    tool, refs = Tool(Card("large", "Is large.", "None.", cards), LargeArgs), fakes.refs(store, 1)
    service = serving({"large": str(tmp_path)}, card)
    total, previous = torch.cuda.get_device_properties(card).total_memory, memory_in_use(card)

    async def ask(megabytes: int, turn: int, count: int = 8) -> list[Any]:
        values = (tool.parse({"megabytes": megabytes, "number": 8 * turn + n}) for n in range(count))
        return await asyncio.gather(*(service.call(tool, item, refs) for item in values), return_exceptions=True)

    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 700 * 2**20) / total)
    try:
        for turn in range(50):
            assert all(isinstance(entry, Finding) for entry in await ask(150, turn))
            assert memory_in_use(card) == previous
        assert max(MADE[-1].sizes) > 4 >= max(MADE[-1].sizes[-10:])
        assert "they are halved" in service.notices[0]
        # A single request needs more memory than the device has: the CPU answers, and the run continues.
        assert all(isinstance(value, Finding) for value in await ask(800, 50, 2))
        assert "runs on the CPU from now on" in service.notices[-1]
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.fixture
def holding(tmp_path: Path) -> Iterator[Path]:
    """Weights of a tool that keeps memory from its first call, and writes its process id."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "holding.py").write_text(HOLDING)
    tools.__path__.append(str(tmp_path / "tools"))
    importlib.invalidate_caches()
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"")
    yield weights
    tools.__path__.remove(str(tmp_path / "tools"))
    sys.modules.pop("tools.holding", None)
    vars(tools).pop("holding", None)


def free_bytes(device: str) -> int:
    import torch

    return torch.cuda.mem_get_info()[0] if device.startswith("cuda") else 0


@pytest.mark.usefixtures("started_workers")
async def test_a_worker_killed_in_a_pass_gives_its_memory_back_and_the_call_is_answered(
    device: str, holding: Path, serving: Callable[..., CachedTools], fakes: Any, store: ImageStore
) -> None:
    tool, refs = load("tools", "holding"), fakes.refs(store, 1)
    service = serving({"holding": str(holding)}, device, isolated=True, silence_s=120.0)
    request = asyncio.ensure_future(service.call(tool, tool.parse({"number": 7}), refs))
    while not (pid := holding / "pid").exists() or not pid.read_text():
        assert not request.done(), request
        await asyncio.sleep(0.05)
    holds, worker = free_bytes(device), int(pid.read_text())
    os.kill(worker, signal.SIGKILL)
    freed = (HELD_BYTES // 2) * (device != "cpu")
    await until(lambda: not Path(f"/proc/{worker}").exists(), "a killed worker is still there")
    await until(lambda: free_bytes(device) >= holds + freed, "the memory of a killed worker is not free")
    assert (await request).text == "number 7"


@pytest.mark.usefixtures("started_workers")
async def test_a_kernel_assertion_costs_its_own_call_and_no_other(
    device: str, holding: Path, serving: Callable[..., CachedTools], fakes: Any, store: ImageStore
) -> None:
    """A failed assertion in a kernel costs only its own call: on a CPU it is an ordinary error of the tool; on CUDA all
    later work of the process would fail."""
    (holding / "pid").touch()
    tool, refs = load("tools", "holding"), fakes.refs(store, 1)
    service = serving({"holding": str(holding)}, device, isolated=True, silence_s=120.0)
    values = [{"number": n, "out_of_range": n == 2} for n in range(6)]
    results = await asyncio.gather(
        *(service.call(tool, tool.parse(item), refs) for item in values), return_exceptions=True
    )
    assert [type(entry) for entry in results] == [Finding, Finding, ToolError, Finding, Finding, Finding], results
    text = "the tool failed: IndexError" if device == "cpu" else "holding ended its worker process: exit code 70"
    assert str(results[2]).startswith(text)
