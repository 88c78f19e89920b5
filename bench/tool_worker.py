"""Measure the worker process of the tools: CPU and latency of a call, compared with a call in the run's process.

    uv run python -m bench.tool_worker [--calls 400] [--flight 16]

`crop` runs on a JPEG file of about 50 kB, with a different box in each call. The table shows the CPU time of both
processes together and of the run's process, one call at a time and with several in flight. Tool outputs are computed,
read again by the same runner, and read from the cache by another runner, as in the next run (`kept`). The first line is
the cost of starting a worker.
"""

from __future__ import annotations

import asyncio
import io
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from bench._frame import family, options, resident_mb, table
from hybrid.config import ServiceOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import ImageRef
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import Tool

SIDE = 320


@dataclass(frozen=True)
class Cost:
    """Cost of a call: elapsed time, CPU in all processes, CPU in the run's process."""

    findings: str
    in_flight: int
    process: str
    latency_ms: float
    cpu_ms: float
    own_cpu_ms: float


def photograph() -> bytes:
    """Return a JPEG of smooth noise, about 50 kB."""
    small = np.random.default_rng(3).integers(0, 256, (SIDE // 4, SIDE // 4, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(small).resize((2 * SIDE, 2 * SIDE)).save(buffer, "JPEG", quality=50)
    return buffer.getvalue()


def workers() -> dict[int, float]:
    """Return the CPU seconds of the processes that this one has started."""
    return {pid: spent for pid, spent in family(os.getpid()).items() if pid != os.getpid()}


async def measure(runner: CachedTools, ref: ImageRef, calls: int, flight: int) -> tuple[float, float, float]:
    """Measure milliseconds per call with `flight` calls in flight: elapsed, CPU in all processes, CPU in this one."""
    tool: Tool = load("tools", "crop")
    offsets = iter(range(calls))

    async def one(offset: float) -> None:
        box = {"x0": offset, "y0": flight, "x1": offset + 60, "y1": flight + 60}
        await runner.call(tool, tool.parse({"box": box}), [ref])

    async def ask() -> None:
        for offset in offsets:
            await one(offset * 100 / calls)

    await one(0.001 * flight)
    start, others, other_start = time.process_time(), sum(workers().values()), time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(flight)))
    passed = time.perf_counter() - other_start
    start, others = time.process_time() - start, sum(workers().values()) - others
    return 1000 * passed / calls, 1000 * (start + others) / calls, 1000 * start / calls


async def compare(folder: Path, calls: int, flight: int) -> None:
    """Print the cost of starting a worker, and the table."""
    store, photo = ImageStore(folder / "images"), photograph()
    ref = ImageRef("img:1", store.put(photo, "bench"))
    choices = {"this process": ServiceOptions("classical"), "worker": ServiceOptions("classical", isolated=True)}
    caches = {name: FindingCache(folder / name, store) for name in choices}
    runners = {name: CachedTools(store, caches[name], choice) for name, choice in choices.items()}
    tool: Tool = load("tools", "crop")
    start = time.perf_counter()
    await runners["worker"].call(tool, tool.parse({"box": {"x0": 0, "y0": 0, "x1": 50, "y1": 50}}), [ref])
    passed = time.perf_counter() - start
    [(pid, spent)] = workers().items()
    text = f"{passed:.2f} s, {spent:.2f} s of CPU, {resident_mb(pid):.0f} MB"
    print(f"JPEG of {len(photo) / 1000:.0f} kB; start of a worker {text}")
    rows = []
    for mode in ("made", "read", "kept"):
        for many in (1, flight):
            for name, choice in choices.items():
                if mode == "kept":
                    runners[name].close()
                    runners[name] = CachedTools(store, caches[name], choice)
                rows.append(Cost(mode, many, name, *await measure(runners[name], ref, calls, many)))
    print(table(rows))
    for runner in runners.values():
        runner.close()


def main() -> None:
    """Measure and print the results."""
    flags = options(__doc__, {"--calls": 400, "--flight": 16})
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder), flags.calls, flags.flight))


if __name__ == "__main__":
    main()
