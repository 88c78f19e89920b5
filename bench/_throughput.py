"""Throughput of the tool service next to that of a bare loop: networks of real size with random weights.

    python bench/tools.py --device cuda --backend learned --weights random
    python bench/tools.py --backend learned --weights random --network depth_anything_v2_small --requests 16

Both process the same images in one run, in turn; the first turn of each is not timed, and the median of the others is
printed. The service does the full work: it reads and decodes JPEG files, prepares inputs, runs the network, draws and
encodes the overlay, and records the output. The outputs of other tools (`needs`) are already in its cache. The bare
loop (`_bare_loops.py`) only runs the network.
"""

from __future__ import annotations

import asyncio
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bench._bare_loops import BareLoop, bare_loop
from bench._networks import NETWORKS, Network
from hybrid.config import ServiceOptions
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import ImageRef, Json
from hybrid.display.tables import Column, Table
from hybrid.plugins.registry import load
from hybrid.samples.item import jpeg
from hybrid.samples.seeds import generator
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.serving.threads import keep_freed_memory
from hybrid.tool import Pixels, Tool
from tools._shared import reflection

# Width and height of every image; a single size keeps batches together.
SIZE = (640, 480)
TEXTS: tuple[str, ...] = tuple(NETWORKS["siglip2_base"].loop["given"]["text"])
# As many names as the bare loop uses (networks.toml).
NAMES = ("ball", "cube")
# A box inside every image.
BOX_PX = (100, 90, 420, 360)
# Images per pass of the bare loop; a pair counts as two.
BATCH = 8
MIN_RATIO = 0.8


@dataclass(frozen=True)
class Load:
    """Parameters of a measurement: networks, device, size, number of requests and repeats."""

    networks: tuple[str, ...]
    device: str
    real: bool
    requests: int
    repeats: int
    dtype: Any = "auto"
    compiled: bool = False


@dataclass
class Passes:
    """Forward passes of the modules of one class: the size of each batch."""

    counted: str
    sizes: list[int] = field(default_factory=list)

    def note(self, module: Any, args: Any, kwargs: Any, _: Any) -> None:
        """Torch hook that is called after every forward pass of the module."""
        if type(module).__name__ != self.counted:
            return
        values = next((value for name, value in kwargs.items() if name == "pixel_values"), None)
        self.sizes.append(int((args[0] if values is None else values).shape[0]))


@dataclass(frozen=True)
class Measured:
    """Images per second of both, as medians over the repeats; seconds of loading; the service's batches."""

    network: Network
    bare: float
    service: float
    load_s: float
    requests: int
    passes: tuple[int, ...]
    threads: int


def machine(device: str) -> str:
    """Return the name of the processor that runs the networks. Raises `UsageError` if torch cannot find the device."""
    import torch

    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise UsageError(f"--device {device}: torch sees no CUDA device on this machine")
        number = torch.device(device).index or 0
        if number >= torch.cuda.device_count():
            raise UsageError(f"--device {device}: this machine has {torch.cuda.device_count()} CUDA devices")
        return str(torch.cuda.get_device_name(number))
    threads = torch.get_num_threads()
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    texts = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    processor = next(texts, platform.processor() or platform.machine())
    return f"{processor}, {threads} {'thread' if threads == 1 else 'threads'} of torch"


def pictures(count: int, seed: int) -> list[Pixels]:
    """Return different images of `SIZE`: soft colours with grain, with JPEG files as large as those of photographs."""
    images = []
    for index in range(count):
        rng = generator("evaluate", seed, index)
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        soft = np.asarray(coarse.resize(SIZE, Image.Resampling.BICUBIC), np.int16)
        images.append(np.clip(soft + rng.integers(-12, 13, soft.shape), 0, 255).astype(np.uint8))
    return images


def make_requests(tool: Tool, count: int) -> tuple[list[Pixels], list[tuple[Pixels, ...]]]:
    """Return the images for the network, and the images of each of `count` requests."""
    puzzles = tool.card.name == "jigsaw"
    largest = 2 if puzzles else max(1, tool.card.images[0])
    built = pictures(count * largest, seed=2000)
    groups = [tuple(built[start : start + largest]) for start in range(0, len(built), largest)]
    return built, [puzzle(*group) for group in groups] if puzzles else groups


def puzzle(pixels: Pixels, other: Pixels) -> tuple[Pixels, ...]:
    """Return an image without its lower-right quarter, and two pieces that fit the seams equally well."""
    middle, centre = SIZE[1] // 2, SIZE[0] // 2
    hole, right, wrong = pixels.copy(), pixels[middle:, centre:].copy(), pixels[middle:, centre:].copy()
    hole[middle:, centre:] = 0
    # Change only pixels farther from the seams than the distance over which JPEG mixes pixels.
    wrong[32:, 32:] = other[middle + 32 :, centre + 32 :]
    return hole, right, wrong


def arguments(network: Network, name: str, turn: int) -> dict[str, Json]:
    """Return the arguments of a request in this turn. Points and boxes differ in each turn, so the cache never hits."""
    box: dict[str, Json] = dict(zip(("x0", "y0", "x1", "y1"), (BOX_PX[0] + turn, *BOX_PX[1:]), strict=True))
    spots: list[Json] = [{"x": 120 + turn, "y": 300, "label": "A"}, {"x": 400, "y": 90, "label": "B"}]
    by_tool: dict[str, dict[str, Json]] = {
        "depth": {"points": spots},
        "saliency": {"boxes": [{**box, "label": "A"}]},
        "semantic_correspondence": {"point": spots[0], "candidates": spots},
        "correspondence": {"point": spots[0], "candidates": spots},
        "scanpath": {"target": f"{NAMES[0]} {turn}"},
        "attributes": {"texts": list(TEXTS)},
        "detection": {"names": list(NAMES)},
        "segmentation": {"words": f"{NAMES[0]} {turn}"} if name == "clipseg" else {"box": box},
    }
    return by_tool.get(network.tool, {})


def measure(name: str, setting: Load) -> Measured:
    """Measure both loops over one network. Raises `UsageError` for an unknown network."""
    if name not in NETWORKS:
        raise UsageError(f"--network {name}: there are {', '.join(NETWORKS)}")
    # As in the worker process of a run.
    keep_freed_memory()
    network = NETWORKS[name]
    tool: Tool = load("tools", network.tool)
    # The seed is part of the cache key, so each turn is computed.
    tool = replace(tool, card=replace(tool.card, uses_seed=True))
    with tempfile.TemporaryDirectory() as folder, counting(network.counted) as passes, matched_once():
        checkpoint = Path(folder) / "checkpoint"
        checkpoint.mkdir()
        network.build(checkpoint, setting.real, setting.device)
        built, groups = make_requests(tool, setting.requests)
        bare = bare_loop(name, checkpoint, setting.device, built, BATCH)
        store = ImageStore(Path(folder) / "images")
        requests = [
            [ImageRef(f"img:{place}", store.put(jpeg(item), "made")) for place, item in enumerate(group, 1)]
            for group in groups
        ]
        options = ServiceOptions(
            "auto",
            {network.tool: str(checkpoint)},
            setting.device,
            unchecked=True,
            dtype=setting.dtype,
            compiled=setting.compiled,
        )
        service = CachedTools(store, FindingCache(Path(folder) / "findings", store), options)
        started = time.perf_counter()
        asyncio.run(service.executor.load(tool, None))
        load_s = time.perf_counter() - started
        rates = asyncio.run(_turns(service, tool, name, bare, requests, setting.repeats, passes))
        service.close()
        return Measured(network, *rates, load_s, len(requests), tuple(passes.sizes), options.threads)


async def _turns(
    service: CachedTools,
    tool: Tool,
    name: str,
    bare: BareLoop,
    requests: Sequence[Sequence[ImageRef]],
    repeats: int,
    passes: Passes,
) -> tuple[float, float]:
    """Return the images per second of the bare loop and of the service."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        started = time.perf_counter()
        for batch in bare.batches:
            bare.forward(batch)
        between = time.perf_counter()
        passes.sizes.clear()
        args = tool.args.model_validate(arguments(NETWORKS[name], name, turn))
        # The seed is in the key, too, but also in that of the needs, which should come from the cache.
        seed = 0 if tool.card.needs else turn
        await asyncio.gather(*(service.call(tool, args, refs, seed) for refs in requests))
        seconds[0].append(between - started)
        seconds[1].append(time.perf_counter() - between)
    bare_s, service_s = (statistics.median(timed[1:]) for timed in seconds)
    return bare.images / bare_s, bare.images / service_s


@contextmanager
def counting(counts: str) -> Iterator[Passes]:
    """Count forward passes of modules of a class, whichever code calls them."""
    from torch.nn.modules.module import register_module_forward_hook

    passes = Passes(counts)
    handle = register_module_forward_hook(passes.note, with_kwargs=True)
    try:
        yield passes
    finally:
        handle.remove()


@contextmanager
def matched_once() -> Iterator[None]:
    """Disable the second matching with one view mirrored after few matches, because the bare loop matches once."""
    verified, reflection.VERIFIED = reflection.VERIFIED, 0
    try:
        yield
    finally:
        reflection.VERIFIED = verified


def row(measured: Measured) -> tuple[str, ...]:
    """Return a row of the table."""
    sizes = sorted(set(measured.passes), reverse=True)
    text = ", ".join(f"{measured.passes.count(size)} of {size}" for size in sizes)
    return (
        measured.network.title,
        measured.network.tool,
        f"{measured.bare:.3g}",
        f"{measured.service:.3g}",
        f"{measured.service / measured.bare:.2f}",
        str(measured.requests),
        text,
    )


def table(setting: Load) -> Table:
    """Return the table of all requested networks, with the machine's name. Raises `UsageError`."""
    name = machine(setting.device)
    names = ("network", "tool", "bare images/s", "service images/s", "ratio", "requests", "forward passes")
    columns = tuple(
        Column(word, "left" if word in ("network", "tool", "forward passes") else "right") for word in names
    )
    size = "real size" if setting.real else "tiny"
    title = (
        f"Throughput on {name}: {size}, random weights, bare loop in batches of {BATCH} images, median of "
        f"{setting.repeats} (target: a ratio of {MIN_RATIO})"
    )
    return Table(title, columns, rows(setting))


def rows(setting: Load) -> tuple[tuple[str, ...], ...]:
    """Yield a row per network; each is printed on stderr at once, so that an interrupted bench keeps its rows."""
    results = []
    for number, name in enumerate(setting.networks, 1):
        results.append(row(measure(name, setting)))
        print(f"{number}/{len(setting.networks)}", *results[-1], sep="  ", file=sys.stderr, flush=True)
    return tuple(results)
