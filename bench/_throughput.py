"""Throughput of the tool service compared with a bare loop: networks of real size with random weights.

    python bench/tools.py --device cuda --backend learned --weights random
    python bench/tools.py --backend learned --weights random --network depth_anything_v2_small --requests 16

Both process the same images in one run, in turn; the first turn of each is not timed, and the median of the others is
printed. The service does the full work: it reads and decodes JPEG files, prepares inputs, runs the network and records
the output. Each network has a row with overlays, which are drawn and encoded, and one without, as in a run in which
nobody looks at them. The outputs of other tools (`needs`) are already in its cache. The bare loop (`_bare_loops.py`)
only runs the network. Random weights match little, so `correspondence` and `motion` also match each pair with its
second view mirrored, as in a run (`tools/_shared/reflection.py`); the bare loop does the same.
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
from datetime import UTC, datetime
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

# Width and height of every image; a single size keeps batches together.
SIZE = (640, 480)
TEXTS: tuple[str, ...] = tuple(NETWORKS["siglip2_base"].loop["given"]["text"])
# As many names as the bare loop uses (networks.toml).
NAMES = ("ball", "cube")
# A box inside every image.
BOX_PX = (100, 90, 420, 360)
# Images per pass of the bare loop; a pair counts as two.
BATCH = 8
# Tools that match a pair again with its second view mirrored if they find few matches.
MATCHERS = ("correspondence", "motion")
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

    module_class: str
    sizes: list[int] = field(default_factory=list)

    def note(self, module: Any, args: Any, kwargs: Any, _: Any) -> None:
        """Torch hook that is called after every forward pass of the module."""
        if type(module).__name__ != self.module_class:
            return
        values = next((value for name, value in kwargs.items() if name == "pixel_values"), None)
        self.sizes.append(int((args[0] if values is None else values).shape[0]))


@dataclass(frozen=True)
class Measured:
    """Images per second, as medians over the repeats; seconds of loading; sizes of the batches with overlays."""

    network: Network
    bare: float
    service: float
    without_overlays: float
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


def machine_and_date(device: str) -> str:
    """Return the name of the processor and today's date (UTC), for the title of a table."""
    return f"{machine(device)}, {datetime.now(UTC).date()}"


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
    """Measure the service and the bare loop over one network. Raises `UsageError` for an unknown network."""
    if name not in NETWORKS:
        raise UsageError(f"--network {name}: there are {', '.join(NETWORKS)}")
    # The worker process of a run does this, too.
    keep_freed_memory()
    network = NETWORKS[name]
    tool: Tool = load("tools", network.tool)
    # The seed is part of the cache key, so each turn is computed.
    tool = replace(tool, card=replace(tool.card, uses_seed=True))
    with tempfile.TemporaryDirectory() as folder, counting(network.module_class) as passes:
        checkpoint = Path(folder) / "checkpoint"
        checkpoint.mkdir()
        network.build(checkpoint, setting.real, setting.device)
        built, groups = make_requests(tool, setting.requests)
        inputs = [*built, *mirrored_pairs(built)] if network.tool in MATCHERS else built
        bare = replace(bare_loop(name, checkpoint, setting.device, inputs, BATCH), images=len(built))
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
) -> tuple[float, float, float]:
    """Return the images per second of the bare loop, and of the service with and without overlays."""
    seconds: tuple[list[float], list[float], list[float]] = ([], [], [])
    for turn in range(repeats + 1):
        started = time.perf_counter()
        for batch in bare.batches:
            bare.forward(batch)
        seconds[0].append(time.perf_counter() - started)
        for timed, overlays in ((seconds[2], False), (seconds[1], True)):
            passes.sizes.clear()
            # Arguments and seeds differ, because a cached output with overlays would also answer a call without
            # overlays.
            number = 2 * turn + overlays
            args = tool.args.model_validate(arguments(NETWORKS[name], name, number))
            # The seed is part of the cache key, but also of the keys of needed tools, whose outputs should come from
            # the cache.
            seed = 0 if tool.card.needs else number
            started = time.perf_counter()
            await asyncio.gather(*(service.call(tool, args, refs, seed, overlays=overlays) for refs in requests))
            timed.append(time.perf_counter() - started)
    bare_s, drawn_s, plain_s = (statistics.median(timed[1:]) for timed in seconds)
    return bare.images / bare_s, bare.images / drawn_s, bare.images / plain_s


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


def mirrored_pairs(built: Sequence[Pixels]) -> list[Pixels]:
    """Return pairs of neighbouring images, the second of each mirrored."""
    return [np.ascontiguousarray(item[:, ::-1]) if place % 2 else item for place, item in enumerate(built)]


def rows_of(measured: Measured) -> tuple[tuple[str, ...], ...]:
    """Return the rows of the table, with and without overlays."""
    sizes = sorted(set(measured.passes), reverse=True)
    text = ", ".join(f"{measured.passes.count(size)} of {size}" for size in sizes)
    return tuple(
        (
            measured.network.title,
            measured.network.tool,
            overlays,
            f"{measured.bare:.3g}",
            f"{rate:.3g}",
            f"{rate / measured.bare:.2f}",
            str(measured.requests),
            text,
        )
        for overlays, rate in (("with", measured.service), ("without", measured.without_overlays))
    )


def table(setting: Load) -> Table:
    """Return the table of all requested networks, with the machine's name. Raises `UsageError`."""
    name = machine_and_date(setting.device)
    names = ("network", "tool", "overlays", "bare images/s", "service images/s", "ratio", "requests", "forward passes")
    columns = tuple(
        Column(word, "left" if word in ("network", "tool", "overlays", "forward passes") else "right") for word in names
    )
    size = "real size" if setting.real else "tiny"
    title = (
        f"Throughput on {name}: {size}, random weights, bare loop in batches of {BATCH} images, median of "
        f"{setting.repeats} (target: a ratio of {MIN_RATIO})"
    )
    return Table(title, columns, rows(setting))


def rows(setting: Load) -> tuple[tuple[str, ...], ...]:
    """Return two rows per network; they are printed on stderr at once, so that an interrupted bench keeps them."""
    results: list[tuple[str, ...]] = []
    for number, name in enumerate(setting.networks, 1):
        for row in rows_of(measure(name, setting)):
            results.append(row)
            print(f"{number}/{len(setting.networks)}", *row, sep="  ", file=sys.stderr, flush=True)
    return tuple(results)
