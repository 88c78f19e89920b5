"""Loaded backends: the memory budget, a GPU that is full, and two hundred simultaneous requests."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.config import BackendChoice, ServiceOptions
from hybrid.core.errors import WeightsError
from hybrid.core.images import ImageStore
from hybrid.core.types import ImageRef
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache, entries
from hybrid.serving.loader import Loader
from hybrid.serving.service import CachedTools
from hybrid.tool import Evidence, Request
from tests.time_limits import running_process


class OutOfMemoryError(RuntimeError):
    """The error of torch when a GPU is full, recognised by this name."""


def weights(folder: Path, size: int) -> str:
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"\0" * size)
    return str(folder)


def test_what_was_used_longest_ago_is_evicted(fakes: Any, tmp_path: Path) -> None:
    by_name = {name: weights(tmp_path / name, 100) for name in ("a", "b", "c")}
    loader = Loader(BackendChoice("learned", by_name, memory_bytes=200))
    tools = {name: fakes.counter(fakes.CountingBackend(), name=name, kind="learned", weights=name) for name in by_name}
    loader.load(tools["a"])
    loader.load(tools["b"])
    loader.load(tools["a"])
    loader.load(tools["c"])
    assert loader.loaded == ("a", "c")
    loader.load(tools["b"])
    assert loader.loaded == ("c", "b")


class Lacking:
    """A backend that imports a package that is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def setup(self, device: str, weights: str | None) -> None:
        raise ModuleNotFoundError(f"No module named {self.package!r}", name=self.package)

    def run(self, requests: Sequence[Request[Any]]) -> list[Evidence]:
        raise AssertionError


def test_without_torch_weights_on_disk_are_an_error_and_never_another_backend(fakes: Any, tmp_path: Path) -> None:
    loader = Loader(BackendChoice("auto", {"counter": weights(tmp_path / "w", 10)}))
    text = (
        r"^the learned backend of counter needs torch, which the extra `local` installs: "
        r"uv pip install -e '\.\[local\]'$"
    )
    with pytest.raises(WeightsError, match=text):
        loader.load(fakes.counter(Lacking("torch.nn"), kind="learned", weights="w"))
    # The project has no install command for other packages, so one that is missing is a defect of the tool.
    with pytest.raises(ModuleNotFoundError):
        loader.load(fakes.counter(Lacking("torch_geometric"), kind="learned", weights="w"))
    assert (loader.loaded, loader.notices) == ((), [])


class FullGpu:
    """A backend whose device takes at most two requests on cuda:0, and not number 9; the CPU takes all."""

    def __init__(self) -> None:
        self.device = ""
        self.batches: list[int] = []

    def setup(self, device: str, weights: str | None) -> None:
        self.device = device

    def run(self, requests: Sequence[Request[Any]]) -> list[Evidence]:
        self.batches.append(len(requests))
        if self.device != "cpu" and (len(requests) > 2 or any(request.args.number == 9 for request in requests)):
            raise OutOfMemoryError("CUDA out of memory")
        return [Evidence(self.device, {"number": request.args.number}, 0.5) for request in requests]


async def answers(
    fakes: Any, tmp_path: Path, numbers: Sequence[int], backend: FullGpu, *later: Sequence[int]
) -> tuple[list[str], CachedTools]:
    tool = fakes.counter(backend, kind="learned", weights="w", batch=8)
    store = ImageStore(tmp_path / "images")
    payload = {"counter": weights(tmp_path / "w", 10)}
    options = ServiceOptions("learned", payload, "cuda:0", coming_s=60.0)
    service = CachedTools(store, FindingCache(None, store), options)
    refs = fakes.refs(store, 1)
    # Calls made while the code is hashed and the weights load would arrive one by one.
    await service._answering_for(tool)
    results = []
    for request in (numbers, *later):
        results += await asyncio.gather(*(service.call(tool, fakes.NumberArgs(number=n), refs) for n in request))
    service.close()
    return [finding.text for finding in results], service


async def test_a_batch_that_does_not_fit_is_halved_and_said_once(fakes: Any, tmp_path: Path) -> None:
    backend = FullGpu()
    result, service = await answers(fakes, tmp_path, [1, 2, 3, 4], backend, [5, 6, 7, 8])
    assert result == ["cuda:0"] * 8
    # The second batch is not tried as a whole.
    assert backend.batches == [4, 2, 2, 2, 2]
    text = "counter: not enough memory on cuda:0 for full batches; they are halved"
    assert service.notices == [text]


FILL = """
import asyncio, sys
from pathlib import Path
import numpy as np
from hybrid.serving.cache import FindingCache
from hybrid.core.images import ImageStore
from hybrid.plugins.registry import load
from hybrid.config import ServiceOptions
from hybrid.serving.service import CachedTools
from hybrid.core.types import ImageRef

async def ask(service, number):
    pixels = np.random.default_rng(number).integers(0, 255, (40, 50, 3), dtype=np.uint8)
    tool = load("tools", "crop")
    found = await service.call(tool, tool.args(), [ImageRef("img:1", service.store.put_pixels(pixels))])
    print(number, flush=True)
    return found

async def main(root, end):
    store = ImageStore(root / "images")
    service = CachedTools(store, FindingCache(root / "findings", store), ServiceOptions("classical", threads=4))
    await asyncio.gather(*(ask(service, number) for number in range(end)))

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


async def pictures_asked_again(folder: Path, count: int) -> int:
    """Return how many of the requests of `FILL` a new service computes."""
    store = ImageStore(folder / "images")
    service = CachedTools(store, FindingCache(folder / "findings", store), ServiceOptions("classical"))
    tool = load("tools", "crop")
    noise = [np.random.default_rng(number).integers(0, 255, (40, 50, 3), dtype=np.uint8) for number in range(count)]
    refs = [ImageRef("img:1", store.put_pixels(pixels)) for pixels in noise]
    await asyncio.gather(*(service.call(tool, tool.args(), [ref]) for ref in refs))
    service.close()
    return service.computed


@pytest.mark.system
def test_a_process_killed_amid_two_hundred_requests_leaves_a_cache_that_is_gone_on_with(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path), "200"]
    with running_process(command, stdout=subprocess.PIPE, text=True) as filling:
        for _ in range(12):
            filling.stdout.readline()
        os.kill(filling.pid, signal.SIGKILL)
    store = ImageStore(tmp_path / "images")
    cache = FindingCache(tmp_path / "findings", store)
    items = list(entries(cache))
    assert 12 <= len(items) < 200
    by_stem = {path.stem: cache.get(path.stem) for path in items}
    assert None not in by_stem.values()
    assert asyncio.run(pictures_asked_again(tmp_path, 200)) == 200 - len(items)
    assert len(list(entries(cache))) == 200
    assert all(cache.get(key) == finding for key, finding in by_stem.items())


class Loading:
    """A backend that records what is loaded during its setup; a `full` one does not fit on cuda:0."""

    def __init__(self, seen: list[tuple[str, ...]], loader: Loader, *, full: bool = False) -> None:
        self.seen, self.loader, self.full, self.devices = seen, loader, full, list[str]()

    def setup(self, device: str, weights: str | None) -> None:
        self.seen.append(self.loader.loaded)
        self.devices.append(device)
        if self.full and device != "cpu":
            raise OutOfMemoryError("CUDA out of memory")

    def run(self, requests: Sequence[Request[Any]]) -> list[Evidence]:
        return [Evidence("", {}, 0.5) for _ in requests]


def test_room_is_made_before_weights_are_loaded(fakes: Any, tmp_path: Path) -> None:
    by_name = {name: weights(tmp_path / name, 100) for name in ("a", "b", "c")}
    loader = Loader(BackendChoice("learned", by_name, memory_bytes=200))
    seen: list[tuple[str, ...]] = []
    for name in by_name:
        loader.load(fakes.counter(Loading(seen, loader), name=name, kind="learned", weights=name))
    assert seen == [(), ("a",), ("b",)]
