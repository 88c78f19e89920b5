"""Measures the cost of a finding that is in the cache, and the forward passes that a second solver makes.

    uv run python -m bench.cache [--calls 400] [--flight 16] [--json FILE]

Two parts. First the calls: `crop` on a JPEG of about 60 kB, each call another box, `--calls` of them; made once, then
read by another runner over the same cache, as the next run is: with the worker process of the tools (`hybrid run`) and
in this process. CPU is of all processes together, after the first call, which may start a worker.

Then a network with random weights on 40 images: its forward passes for a first solver, for a second one, whose calls
reach the service like those of the first (same arguments, images and seed of the run), and for both in a second run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench.tool_worker import children, others_cpu_s, photograph
from hybrid.config import ServiceOptions
from hybrid.display.tables import Column, Table, as_text
from hybrid.images import ImageStore
from hybrid.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ToolRunner, ToolService
from hybrid.solving.controls import AskedQuestion, ToolCondition
from hybrid.tool import Args, BackendCard, Card, Evidence, Request, Stages, Tool
from hybrid.types import ImageRef, Kind, Prompt

QUESTIONS = 40
SEED = 0
LAYERS = 3
CHANNELS = 8


@dataclass(frozen=True)
class Cost:
    """A call, in milliseconds: CPU of all processes, of which in the run's own, and from outside."""

    where: str
    findings: str
    in_flight: int
    cpu_ms: float
    own_cpu_ms: float
    latency_ms: float
    computed: int

    @property
    def milliseconds(self) -> tuple[float, float, float]:
        """The three times."""
        return self.cpu_ms, self.own_cpu_ms, self.latency_ms


@dataclass(frozen=True)
class Passes:
    """A solver's findings, and the forward passes that were made for them."""

    run: int
    solver: str
    findings: int
    forward_passes: int


class CountedNetwork(Stages[Args, Any, float]):
    """A few layers with random weights; counts its forward passes."""

    def __init__(self) -> None:
        self.passes = 0

    def setup(self, device: str, weights: str | None) -> None:
        """Make the weights, always the same."""
        import torch

        torch.manual_seed(0)
        sizes = [3, *[CHANNELS] * LAYERS]
        layers = [torch.nn.Conv2d(a, b, 3, 2) for a, b in pairwise(sizes)]
        self._network = torch.nn.Sequential(*layers).to(device).eval()

    def prepare(self, request: Request[Args]) -> Any:
        """The image as the network takes it."""
        import torch

        return torch.tensor(request.images[0].transpose(2, 0, 1)[None], dtype=torch.float32) / 255

    def compute(self, prepared: Sequence[Any]) -> list[float]:
        """One forward pass for each image: their sizes differ."""
        import torch

        self.passes += len(prepared)
        with torch.inference_mode():
            return [float(self._network(one).mean()) for one in prepared]

    def finish(self, request: Request[Args], prepared: Any, output: float) -> Evidence:
        """A number."""
        return Evidence(f"{output:.4f}", {"mean": output}, 0.5)


async def calls(runner: ToolRunner, ref: ImageRef, many: int, flight: int) -> tuple[float, float, float]:
    """Milliseconds a call: CPU of all processes, of this one, and wall."""
    tool: Tool = load("tools", "crop")
    starts = iter([100 * place / many for place in range(many)])

    async def ask() -> None:
        for start in starts:
            box = {"x0": start, "y0": 7, "x1": start + 60, "y1": 67}
            await runner.call(tool, tool.parse({"box": box}), [ref])

    await runner.call(tool, tool.parse({"box": {"x0": 0, "y0": 0, "x1": 9, "y1": 9}}), [ref])
    own, others, began = time.process_time(), others_cpu_s(children()), time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(flight)))
    wall, own = time.perf_counter() - began, time.process_time() - own
    spent = own + others_cpu_s(children()) - others
    return 1000 * spent / many, 1000 * own / many, 1000 * wall / many


async def costs(folder: Path, many: int, flight: int) -> list[Cost]:
    """Each kind of runner: once to make the findings, then new ones that find them."""
    store = ImageStore(folder / "images")
    ref = ImageRef("img:1", store.put(photograph(), "bench"))
    rows = []
    for where, isolated in (("worker", True), ("this process", False)):
        cache = FindingCache(folder / f"findings of {where}", store)
        for findings, each in (("made", flight), ("kept", 1), ("kept", flight)):
            runner: ToolRunner = ToolService(store, cache, ServiceOptions("classical", isolated=isolated))
            rows.append(Cost(where, findings, each, *await calls(runner, ref, many, each), runner.computed))
            runner.close()
    return rows


async def passes(folder: Path) -> list[Passes]:
    """Two runs of two solvers over the same images."""
    store = ImageStore(folder / "images")
    rng = np.random.default_rng(0)
    images = [store.put_pixels(rng.integers(0, 256, (90, 120, 3), dtype=np.uint8)) for _ in range(QUESTIONS)]
    rows = []
    for run in (1, 2):
        network = CountedNetwork()
        card = BackendCard("classical", "random-1", lambda: network, "Random weights.")  # noqa: B023
        tool = Tool(Card("counted", "A number.", "Means nothing.", (card,)), Args)
        service = ToolService(store, FindingCache(folder / "findings", store), ServiceOptions("classical"))
        for solver in ("first", "second"):
            before, control = network.passes, ToolCondition(service)
            found = []
            for number, image in enumerate(images):
                ref, subject = (
                    ImageRef("img:1", image),
                    AskedQuestion(f"question {number}", f"question {number}", (image,)),
                )
                prompt = Prompt((f"What does {solver} see?", ref), Kind.FREE)
                found.append(await control.find(tool, Args(), [ref], subject, prompt, SEED))
            rows.append(Passes(run, solver, len(found), network.passes - before))
        service.close()
    return rows


def shown(costs: Sequence[Cost], passes: Sequence[Passes]) -> str:
    """Both tables."""
    texts = Column("where", "left"), Column("findings", "left")
    first = Table(
        "CPU of a call",
        (*texts, *map(Column, ("in flight", "CPU ms", "of which in the run", "latency ms", "computed"))),
        tuple(
            (row.where, row.findings, str(row.in_flight), *map("{:.2f}".format, row.milliseconds), str(row.computed))
            for row in costs
        ),
    )
    second = Table(
        "Forward passes",
        (Column("run"), Column("solver", "left"), Column("findings"), Column("forward passes")),
        tuple((f"{row.run}", row.solver, f"{row.findings}", f"{row.forward_passes}") for row in passes),
    )
    return f"{as_text(first)}\n{as_text(second)}"


async def both(folder: Path, many: int, flight: int) -> tuple[list[Cost], list[Passes]]:
    """Both parts, each in a separate folder."""
    return await costs(folder / "calls", many, flight), await passes(folder / "passes")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--flight", type=int, default=16)
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        costs, counted = asyncio.run(both(Path(folder), options.calls, options.flight))
    print(shown(costs, counted), end="")
    if options.json is not None:
        numbers = {"calls": [asdict(row) for row in costs], "passes": [asdict(row) for row in counted]}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
