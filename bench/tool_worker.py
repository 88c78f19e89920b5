"""Measures the worker process of the tools: CPU and latency of a call, against a call in the process of the run.

    uv run python -m bench.tool_worker [--calls 400] [--flight 16]

`crop` on a JPEG file of about 50 kB, each call another box: CPU of both processes together and of the run's own, one
call at a time and so many in flight; the same for findings that the cache has, where messages are most of the work; and
what the start of a worker takes.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from hybrid.config import ServiceOptions
from hybrid.images import ImageStore
from hybrid.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ToolRunner, ToolService
from hybrid.tool import Tool
from hybrid.types import ImageRef

SIDE = 320


@dataclass(frozen=True)
class Cost:
    """Milliseconds a call: from outside, of CPU in all processes, of CPU in this one."""

    latency_ms: float
    cpu_ms: float
    own_ms: float


def photograph() -> bytes:
    """A JPEG of smooth noise, about 50 kB."""
    small = np.random.default_rng(3).integers(0, 256, (SIDE // 4, SIDE // 4, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(small).resize((2 * SIDE, 2 * SIDE)).save(buffer, "JPEG", quality=50)
    return buffer.getvalue()


def others_cpu_s(pids: list[int]) -> float:
    """CPU seconds of some processes that run (Linux)."""
    ticks = 0
    for pid in pids:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def children() -> list[int]:
    """The processes that this one has started."""
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


async def measure(runner: ToolRunner, ref: ImageRef, calls: int, flight: int) -> Cost:
    """The cost of a call with `flight` calls in flight."""
    tool: Tool = load("tools", "crop")
    offsets = iter(range(calls))

    async def one(offset: float) -> None:
        box = {"x0": offset, "y0": flight, "x1": offset + 60, "y1": flight + 60}
        await runner.call(tool, tool.parse({"box": box}), [ref])

    async def ask() -> None:
        for offset in offsets:
            await one(offset * 100 / calls)

    await one(0.001 * flight)
    own, others, began = time.process_time(), others_cpu_s(children()), time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(flight)))
    passed = time.perf_counter() - began
    own, others = time.process_time() - own, others_cpu_s(children()) - others
    return Cost(*(1000 * seconds / calls for seconds in (passed, own + others, own)))


async def start(runner: ToolRunner, ref: ImageRef) -> tuple[float, float, float]:
    """Seconds from nothing to the first finding, CPU seconds of the worker by then, and its memory in MB."""
    tool: Tool = load("tools", "crop")
    began = time.perf_counter()
    await runner.call(tool, tool.parse({"box": {"x0": 0, "y0": 0, "x1": 50, "y1": 50}}), [ref])
    passed = time.perf_counter() - began
    (pid,) = children()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return passed, others_cpu_s([pid]), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def compare(folder: Path, calls: int, flight: int) -> None:
    """Print the table."""
    store = ImageStore(folder / "images")
    photo = photograph()
    ref = ImageRef("img:1", store.put(photo, "bench"))
    options = ServiceOptions("classical")
    here = ToolService(store, FindingCache(folder / "here", store), options)
    there = ToolService(store, FindingCache(folder / "there", store), replace(options, isolated=True))
    wall, cpu, memory = await start(there, ref)
    print(f"JPEG of {len(photo) / 1000:.0f} kB; start of a worker {wall:.2f} s, {cpu:.2f} s of CPU, {memory:.0f} MB")
    print("findings  in flight  where         latency ms  CPU ms  of which in the run")
    for how in ("made", "read"):
        for many in (1, flight):
            for name, runner in (("this process", here), ("worker", there)):
                cost = await measure(runner, ref, calls, many)
                told = f"{cost.latency_ms:10.2f}  {cost.cpu_ms:6.2f}  {cost.own_ms:6.2f}"
                print(f"{how:8}  {many:9}  {name:12}  {told}")
    here.close()
    there.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--flight", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder), options.calls, options.flight))


if __name__ == "__main__":
    main()
