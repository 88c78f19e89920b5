"""The tool service: what is computed, how often and in which batch; a bad request does not affect others."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ServiceOptions
from hybrid.core.errors import ToolError
from hybrid.core.images import ImageStore
from hybrid.core.timing import Stopwatch
from hybrid.core.types import Fault, Finding
from hybrid.plugins.registry import load, names
from hybrid.serving.cache import FindingCache, key_of
from hybrid.serving.pipeline import ThreadExecutor
from hybrid.serving.service import CachedTools
from hybrid.serving.tool_server import attached
from hybrid.tool import Args, Need, Tool

Make = Callable[..., CachedTools]
# Longer than anything here takes, however busy the machine is.
PATIENCE_S = 600.0


@pytest.fixture
def service(tmp_path: Path, store: ImageStore) -> Iterator[Make]:
    """`service(**options)` makes a service over the same store and cache as the test's other services.

    A service that `keeps` nothing does not look for files first, so simultaneous requests arrive together.
    """
    tools: list[CachedTools] = []

    def make(*, keeps: bool = True, **options: Any) -> CachedTools:
        cache = FindingCache(tmp_path / "findings" if keeps else None, store)
        tools.append(CachedTools(store, cache, ServiceOptions(**{"threads": 2, "coming_s": PATIENCE_S, **options})))
        return tools[-1]

    yield make
    for item in tools:
        item.close()


async def calls(
    fakes: Any, service: CachedTools, tool: Tool, numbers: list[int], seed: int = 1
) -> list[Finding | BaseException]:
    refs = fakes.refs(service.store, seed)
    # Calls made while the code is hashed and the weights load would arrive one by one.
    await service._answering_for(tool)
    await service.executor.load(tool, Stopwatch(time.monotonic))
    values = (service.call(tool, fakes.NumberArgs(number=number), refs) for number in numbers)
    return list(await asyncio.gather(*values, return_exceptions=True))


def texts(findings: list[Finding | BaseException]) -> list[str]:
    return [
        item.text.split(",")[0] if isinstance(item, Finding) else f"{type(item).__name__}: {item}" for item in findings
    ]


OTHER_PROCESS = """
import asyncio, sys
from pathlib import Path
from hybrid.serving.cache import FindingCache
from hybrid.core.images import ImageStore
from hybrid.plugins.registry import load, names
from hybrid.serving.executor import QueuedCall
from hybrid.serving.loader import BackendIdentity
from hybrid.serving.pipeline import ThreadExecutor
from hybrid.serving.service import ServiceOptions, CachedTools
from hybrid.core.types import ImageRef
root = Path(sys.argv[1])
store = ImageStore(root / "images")
service = CachedTools(store, FindingCache(root / "findings", store), ServiceOptions("classical"))
refs = [ImageRef(f"img:{n}", store.put(Path(p).read_bytes(), p)) for n, p in enumerate(sys.argv[2:], 1)]
tool = load("tools", "jigsaw")
print(asyncio.run(service.call(tool, tool.args(), refs)).text)
service.close()
"""


@pytest.mark.system
async def test_another_process_finds_it_in_the_cache(fakes: Any, service: Make, tmp_path: Path) -> None:
    paths = [tmp_path / f"{place}.png" for place in range(3)]
    for path, piece in zip(paths, fakes.puzzle(1), strict=True):
        path.write_bytes(fakes.encoded(piece))
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path), *map(str, paths)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    item = service(backend="classical")
    refs = [fakes.ImageRef(f"img:{n}", item.store.put(path.read_bytes(), "x")) for n, path in enumerate(paths, 1)]
    tool = load("tools", "jigsaw")
    output = await item.call(tool, tool.args(), refs)
    assert output.text == result.stdout.rstrip("\n")
    assert item.computed == 0


async def test_a_backend_that_loses_a_finding_is_an_error_and_no_wait(fakes: Any, service: Make) -> None:
    for batch in (1, 4):
        backend = fakes.CountingBackend(lose=1)
        result = await calls(fakes, service(timeout_s=PATIENCE_S), fakes.counter(backend, batch=batch), [1, 2])
        assert texts(result) == ["ToolError: the tool returned 0 outputs for 1 request"] * 2


async def test_a_tool_that_takes_too_long_is_given_up_and_its_finding_kept(fakes: Any, service: Make) -> None:
    backend = fakes.CountingBackend()
    item, tool = service(timeout_s=0.05), fakes.counter(backend)
    (late,) = await calls(fakes, item, tool, [15])
    assert isinstance(late, ToolError)
    assert (str(late), late.fault) == ("counter did not answer within 0.05 s", Fault.TIMEOUT)
    backend.gate.set()
    other = service()
    assert other.cache.folder is not None
    while not list(other.cache.folder.rglob("*.json")):
        await asyncio.sleep(0.001)
    assert texts(await calls(fakes, other, tool, [15])) == ["number 15"]
    assert (other.computed, backend.batches) == (0, [1])


async def test_arguments_that_a_needed_tool_does_not_take_are_an_error_of_the_call(
    fakes: Any, service: Make, store: ImageStore
) -> None:
    tool = fakes.counter(fakes.CountingBackend(), needs=(Need("depth", lambda _: {"points": 3}),))
    with pytest.raises(ToolError, match="wrong arguments for depth: points: ") as caught:
        await service(backend="classical").call(tool, fakes.NumberArgs(), fakes.refs(store, 1))
    assert caught.value.fault is Fault.BAD_ARGUMENTS


async def test_what_another_backend_found_in_the_meantime_is_not_kept(
    fakes: Any, service: Make, store: ImageStore, tmp_path: Path
) -> None:
    item, weights = service(), tmp_path / "weights"
    pipeline = item.executor
    assert isinstance(pipeline, ThreadExecutor)
    weights.mkdir()

    def taken_away(_: Args) -> None:
        # Simulate an eviction while the needed tools are called, so that the weights are gone afterwards.
        assert pipeline.loader.loaded == ("counter",)
        pipeline.loader._loaded.clear()
        weights.rmdir()

    learned, fallback = fakes.CountingBackend(), fakes.CountingBackend()
    needs = (Need("markers", taken_away),)
    tool = fakes.counter(learned, kind="learned", weights=str(weights), needs=needs, fallback=fallback)
    with pytest.raises(ToolError, match="were removed while it answered"):
        await item.call(tool, fakes.NumberArgs(), fakes.refs(store, 1))
    assert (learned.batches, fallback.batches) == ([], [1])
    assert item.cache.folder is not None
    assert not list(item.cache.folder.rglob("*.json"))


def test_keys_do_not_depend_on_the_order_of_a_mapping() -> None:
    assert key_of("t", {"a": 1, "b": [1, 2]}) == key_of("t", {"b": [1, 2], "a": 1})
    assert key_of("t", {"a": 1, "b": [1, 2]}) != key_of("t", {"a": 1, "b": [2, 1]})
    assert key_of("ab", "c") != key_of("a", "bc")


async def test_a_tool_that_does_not_use_the_seed_answers_another_seed_from_the_cache(
    fakes: Any, service: Make, store: ImageStore
) -> None:
    tool = fakes.counter(fakes.CountingBackend())
    tool = replace(tool, card=replace(tool.card, uses_seed=False))
    (ref,), args = fakes.refs(store, 1), fakes.NumberArgs(number=4)
    findings = [await service(backend="classical").call(tool, args, [ref], seed) for seed in (1, 2)]
    assert findings[0] == findings[1]
    unused = service(backend="classical")
    await unused.call(tool, args, [ref], 3)
    assert unused.computed == 0


@pytest.mark.parametrize("name", names("tools"))
def test_only_tools_that_do_not_read_the_seed_say_so(name: str) -> None:
    tool = load("tools", name)
    file = Path(sys.modules[f"tools.{name}"].__file__ or "")
    files = file.parent.glob("*.py") if file.name == "__init__.py" else [file]
    assert any("request.seed" in path.read_text() for path in files) == tool.card.uses_seed


async def test_each_part_of_a_request_is_part_of_its_key(fakes: Any, service: Make, store: ImageStore) -> None:
    tool = fakes.counter(fakes.CountingBackend(draw=True), images=(1, 2))
    ref, another = fakes.refs(store, 1, 2)
    item, args = service(backend="classical"), fakes.NumberArgs(number=4)
    finding = await item.call(tool, args, [ref], 3)

    async def is_kept(other_options: Any = args, images: Any = (ref,), seed: int = 3, **options: Any) -> bool:
        other = service(backend="classical", **options)
        result = await other.call(tool, other_options, images, seed)
        assert other.computed or result.data == finding.data
        return other.computed == 0

    assert await is_kept()
    assert not await is_kept(seed=4)
    assert not await is_kept(other_options=fakes.NumberArgs(number=5))
    assert not await is_kept(images=(another,))
    assert not await is_kept(images=(ref, another))
    assert not await is_kept(images=(another, ref))
    # The image's name is not part of the key.
    assert await is_kept(images=(fakes.ImageRef("img:9", ref.image),))
    assert not await is_kept(pictures="png")
    assert not await is_kept(keeps=False)


async def test_what_a_tool_needs_is_part_of_its_key(fakes: Any, service: Make, store: ImageStore) -> None:
    refs, args = fakes.refs(store, 1), fakes.NumberArgs()
    for place, needs in enumerate((Need("markers", lambda _: {}), Need("markers", lambda _: None))):
        tool = fakes.counter(fakes.CountingBackend(), needs=(needs,))
        first, second = service(backend="classical"), service(backend="classical")
        finding = await first.call(tool, args, refs)
        assert first.computed == (2, 1)[place]
        assert await second.call(tool, args, refs) == finding
        assert second.computed == 0


async def test_an_early_start_looks_for_a_tool_server_only_once(
    service: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = service()
    looks: list[Path] = []

    def place() -> Path:
        looks.append(tmp_path / "socket")
        return looks[-1]

    monkeypatch.setattr(attached, "socket_path", place)
    (tmp_path / "socket").touch()
    for _ in range(2):
        runner.warm()
    (tmp_path / "socket").unlink()
    for _ in range(3):
        runner.warm()
    assert len(looks) == 3
