"""The programs that `bench.peers` compares: each sends the same images through the same network.

    python -m bench._peer_clients loader depth --images FOLDER --checkpoint FOLDER --out FOLDER

A program loads what it needs, writes `started`, processes all images, writes `answers.json` (a number per request) and
then waits to be killed, so that the CPU time of all its processes can be read.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench._frame import options
from bench._peer_network import BATCH, WORK, PeerNetwork, decode, read_requests, spread

ROOT = Path(__file__).resolve().parents[1]
STARTED, ANSWERS = "started", "answers.json"
# Worker processes of the DataLoader.
WORKERS = 2
# Number of requests in flight, for the programs that are asked concurrently.
IN_FLIGHT = 32
# Time limits of the tool service in seconds: a busy machine takes minutes to import torch.
LIMITS: Mapping[str, Any] = dict.fromkeys(("timeout_s", "silence_s", "import_s", "load_s"), 600.0)
HEALTH_S = 0.05
HEALTH_TRIES = 4_000
# For each kind of work, this project's tool and the pipeline of transformers.
TOOLS = {"depth": "depth", "detection": "detection", "matching": "correspondence"}
PIPELINES = {"depth": "depth-estimation", "detection": "zero-shot-object-detection", "matching": "keypoint-matching"}


@dataclass(frozen=True)
class Job:
    """The input of a program: the work, the checkpoint, the images of each request, and its folder."""

    work: str
    checkpoint: Path
    requests: Sequence[tuple[Path, ...]]
    out: Path

    def started(self) -> None:
        """Record that everything is loaded, by writing a file with the id of this process, the parent of all others."""
        part = self.out / "started.part"
        part.write_text(str(os.getpid()))
        part.rename(self.out / STARTED)

    def network(self) -> PeerNetwork:
        """Load the network."""
        return PeerNetwork(WORK[self.work], self.checkpoint)


def loop(job: Job) -> list[float]:
    """Run a loop over batches in one process."""
    network = job.network()
    job.started()
    groups = (job.requests[start : start + BATCH] for start in range(0, len(job.requests), BATCH))
    return [value for group in groups for value in network.answers(group)]


def loader(job: Job) -> list[float]:
    """Read and prepare batches in the workers of a DataLoader."""
    from torch.utils.data import DataLoader

    network = job.network()
    job.started()

    def prepare(group: Sequence[tuple[Path, ...]]) -> Any:
        return network.prepare([[decode(path.read_bytes()) for path in request] for request in group])

    requests: Any = list(job.requests)
    batches = DataLoader(requests, batch_size=BATCH, num_workers=WORKERS, collate_fn=prepare)
    return [value for batch in batches for value in network.run(*batch)]


def pipeline(job: Job) -> list[float]:
    """Use the pipeline of transformers with `batch_size=8`."""
    import transformers
    from PIL import Image

    make: Any = transformers.pipeline
    task = PIPELINES[job.work]
    processor = job.network().processor
    # Unlike a published checkpoint, a random one does not name its parts.
    parts = {"image_processor": getattr(processor, "image_processor", processor)}
    if job.work == "detection":
        parts["tokenizer"] = processor.tokenizer
    run = make(task, model=str(job.checkpoint), device="cpu", **parts)
    job.started()
    images = [[Image.open(path) for path in request] for request in job.requests]
    if job.work == "matching":
        # This pipeline raises TypeError for every batch size above 1.
        return [float(len(matches)) for matches in run(images, threshold=0.0)]
    singles: list[Any] = [image for (image,) in images]
    if job.work == "depth":
        rows = run(singles, batch_size=BATCH)
        return [spread(row["predicted_depth"]) for row in rows]
    labels = [f"a photo of a {name}" for name in ("ball", "cube")]
    inputs = [{"image": image, "candidate_labels": labels} for image in singles]
    return [max(box["score"] for box in boxes) for boxes in run(inputs, threshold=0.0, batch_size=BATCH)]


def http(job: Job) -> list[float]:
    """Ask an HTTP server of the network, one request after the other."""
    return ask_server("http", job, in_flight=1)


def litserve(job: Job) -> list[float]:
    """Ask a LitServe server, which forms batches."""
    return ask_server("litserve", job, in_flight=IN_FLIGHT)


def ask_server(server: str, job: Job, in_flight: int) -> list[float]:
    """Start a server and send it all requests."""
    import aiohttp

    async def ask_all(url: str) -> list[float]:
        slots = asyncio.Semaphore(in_flight)
        async with aiohttp.ClientSession() as session:

            async def ask(request: Sequence[Path]) -> float:
                async with slots:
                    images = [base64.b64encode(path.read_bytes()).decode() for path in request]
                    async with session.post(f"{url}/predict", json={"images": images}) as reply:
                        return float((await reply.json())["value"])

            return await asyncio.gather(*map(ask, job.requests))

    with running_server(server, job) as url:
        job.started()
        return asyncio.run(ask_all(url))


@contextmanager
def running_server(server: str, job: Job) -> Iterator[str]:
    """Yield the address of a server that answers. It stays until this process is killed, so that its cost counts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "bench._peer_servers", server, job.work]
    process = subprocess.Popen([*words, "--checkpoint", str(job.checkpoint), "--port", str(port)], cwd=ROOT)  # noqa: S603
    url = f"http://127.0.0.1:{port}"
    for _ in range(HEALTH_TRIES):
        if process.poll() is not None:
            raise SystemExit(f"the server {server} ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):  # noqa: S310 - this machine
                break
        except OSError:
            time.sleep(HEALTH_S)
    yield url


def inspect(job: Job) -> list[float]:
    """Let Inspect AI run a model that always calls the network once, as a tool; Inspect writes its log to disk."""
    from inspect_ai import Task, eval  # noqa: A004
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import tool

    network, values = job.network(), dict[int, float]()
    job.started()

    def look() -> Any:
        async def execute(request: int) -> str:
            """Run the network.

            Args:
                request: The number of the request.
            """
            (value,) = await asyncio.to_thread(network.answers, [job.requests[request]])
            values[request] = value
            return str(value)

        return execute

    def reply(messages: Any, *_: Any) -> Any:
        if messages[-1].role == "tool":
            output = ModelOutput.from_content("mockllm/model", messages[-1].text)
        else:
            output = ModelOutput.for_tool_call("mockllm/model", "look", {"request": int(messages[-1].text)})
        # Without usage numbers, Inspect downloads a tokenizer to count the tokens of its own model.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    samples = [Sample(str(number), id=number) for number in range(len(job.requests))]
    task = Task(dataset=samples, solver=[use_tools(tool(look)()), generate()])
    model = get_model("mockllm/model", custom_outputs=reply)
    in_flight = {"max_connections": IN_FLIGHT, "max_samples": IN_FLIGHT}
    (log,) = eval(task, model=model, log_dir=str(job.out / "log"), display="none", **in_flight)
    if log.status != "success":
        raise SystemExit(f"Inspect ended with {log.status}: {log.error}")
    return [values[number] for number in range(len(job.requests))]


def ours(job: Job, *, overlays: bool = False) -> list[float]:
    """Ask the tool service, with a worker process as in `hybrid run`; outputs go to the cache."""
    from bench._networks import NETWORKS
    from bench._throughput import arguments
    from hybrid.config import ServiceOptions
    from hybrid.core.images import ImageStore
    from hybrid.core.timing import Stopwatch
    from hybrid.core.types import ImageRef
    from hybrid.plugins.registry import load
    from hybrid.serving.cache import FindingCache
    from hybrid.serving.service import CachedTools

    name = WORK[job.work]
    tool = load("tools", TOOLS[job.work])
    store = ImageStore(job.out / "images")
    options = ServiceOptions(
        "auto", {tool.card.name: str(job.checkpoint)}, "cpu", unchecked=True, isolated=True, **LIMITS
    )
    service = CachedTools(store, FindingCache(job.out / "cache", store), options)
    args = tool.args.model_validate(arguments(NETWORKS[name], name, 0))

    async def ask_all() -> list[float]:
        await service.executor.load(tool, Stopwatch(time.monotonic))
        job.started()
        slots = asyncio.Semaphore(IN_FLIGHT)

        async def ask(request: Sequence[Path]) -> float:
            async with slots:
                files = enumerate((path.read_bytes() for path in request), 1)
                refs = [ImageRef(f"img:{place}", store.put(data, "file")) for place, data in files]
                finding = await service.call(tool, args, refs, overlays=overlays)
                return finding.confidence or 0.0

        return await asyncio.gather(*map(ask, job.requests))

    return asyncio.run(ask_all())


PROGRAMS: Mapping[str, Callable[[Job], list[float]]] = {
    "loop": loop,
    "loader": loader,
    "pipeline": pipeline,
    "litserve": litserve,
    "http": http,
    "inspect": inspect,
    "hybrid": ours,
    "hybrid-overlays": partial(ours, overlays=True),
}


def main() -> None:
    """Run one program."""
    flags = {"program": tuple(PROGRAMS), "work": tuple(WORK)}
    arguments = options(__doc__, {**flags, "--images": ..., "--checkpoint": ..., "--out": ...})
    requests = read_requests(arguments.work, arguments.images)
    job = Job(arguments.work, arguments.checkpoint, requests, arguments.out)
    try:
        answers = PROGRAMS[arguments.program](job)
    except BaseException:
        # Kill the process group: otherwise, the servers that this process started would keep running.
        traceback.print_exc()
        os.killpg(0, signal.SIGKILL)
        raise
    part = arguments.out / "answers.part"
    part.write_text(json.dumps(answers))
    part.rename(arguments.out / ANSWERS)
    # End with `bench.peers`, because otherwise nobody would kill this process and its servers.
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
