"""The cluster of a run: connect to it or start it, size its actors, and check that they run the same program.

async with connected(None): ...                              # a local cluster that ends with the run
async with connected("10.0.0.4:6379"): ...                   # an existing cluster
sizes(cpus=16, gpus=0, concurrency=64, learned=False, in_process=False)
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import os
import select
import socket
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import cast

import ray

from hybrid.config import MAX_THREADS
from hybrid.config.command_options import PATH
from hybrid.core.errors import ServerDown, UsageError
from hybrid.core.repetitions import word_of
from hybrid.display.notes import tell
from hybrid.engines.ray.messages import NodeCode
from hybrid.models.providers import IN_PROCESS, PROVIDERS
from hybrid.plugins.discovery import KINDS, TOOLS, add_search_path, folders, outside, outside_folders
from hybrid.plugins.registry import load, package_of_solver
from hybrid.running.identity import invocation
from hybrid.running.resolve import ResolvedRun
from hybrid.serving.sources import code_hash_of_plugin, plugin_code_hashes

ROOMS = ("hybrid", "tools", "graphs", "baselines")
# Questions in flight per worker above which another worker is worth its memory; questions mostly wait for models.
MIN_IN_FLIGHT = 16
# The exit code of a run that left questions unanswered.
SOME_FAILED = 3
# Seconds that the head node may take to accept a connection.
REACH_S = 10.0
# Environment variables that a provider without a row in `PROVIDERS` reads.
OTHER_NAMES = {"hf": ("HF_TOKEN",)}


class ClusterDown(ServerDown):
    """The cluster provides no worker: the run ends, and finished questions are kept."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error."""
    return str(error).strip().partition("\n")[0]


@dataclass(frozen=True)
class Sizes:
    """Number of actors of each kind, and GPUs per actor (a fraction if both kinds need one)."""

    workers: int
    tools: int
    # Number of threads in which a tool actor decodes, draws, and runs tools without weights.
    tool_threads: int = 1
    worker_gpus: float = 0.0
    tool_gpus: float = 0.0


def loads_weights(model: str | None) -> bool:
    """Return whether this model runs inside the process that calls it (`hf:`, `embedded`)."""
    return model is not None and model.partition(":")[0] in IN_PROCESS


def sizes(*, cpus: int, gpus: int, concurrency: int, learned: bool, in_process: bool, gpu_share: float = 1.0) -> Sizes:
    """Return the actors of a run.

    Questions wait for models, so a worker takes many questions and reserves no CPU. Tools compute: one actor per GPU if
    a learned backend answers (the CPUs decode and draw for it), else one per CPU.

    Args:
        cpus: number of CPUs in the cluster.
        gpus: number of GPUs in the cluster.
        concurrency: questions in flight, over all workers.
        learned: whether a learned backend answers for any tool.
        in_process: whether each worker loads the model itself (`hf:`, `embedded`).
        gpu_share: largest fraction of a GPU that one tool actor takes.
    """
    share = 1 / max(1, learned + in_process) if gpus else 0.0
    workers = max(1, gpus) if in_process else min(max(1, cpus), math.ceil(concurrency / MIN_IN_FLIGHT))
    tools = gpus if learned and gpus else max(1, cpus)
    return Sizes(
        workers=min(workers, concurrency),
        tools=min(tools, concurrency),
        tool_threads=min(MAX_THREADS, max(1, cpus // tools)),
        worker_gpus=share if in_process else 0.0,
        tool_gpus=min(share, gpu_share) if learned else 0.0,
    )


def environment_of(model: str | None) -> dict[str, str]:
    """Return the environment variables that a worker needs to reach a model: its key and its address."""
    word = (model or "").partition(":")[0]
    names: tuple[str, ...] = OTHER_NAMES.get(word, ())
    if (provider := PROVIDERS.get(word)) is not None:
        names += (*provider.key_env, *provider.url_env, *provider.other_env)
    return {name: os.environ[name] for name in names if name in os.environ}


def code() -> str:
    """Return the hex sha256 of the program's source files on this machine, independent of the folder."""
    own_folders = {
        room: tuple(place for place in folders(room) if place not in outside_folders(room)) for room in ROOMS
    }
    return _code(tuple(own_folders.items()), ("**/*.py",))


def plugin_code_hash() -> str:
    """Return the hex sha256 of the Python files in the folders of `--path`."""
    # Hash only Python files, because a user's folder may contain anything else.
    return _code(tuple((kind.package, outside_folders(kind.package)) for kind in KINDS), ("*.py", "*/*.py"))


@cache
def _code(rooms: tuple[tuple[str, tuple[str, ...]], ...], forms: tuple[str, ...]) -> str:
    total = hashlib.sha256()
    for room, places in rooms:
        for folder in map(Path, places):
            for path in sorted(path for form in forms for path in folder.glob(form)):
                content = hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
                total.update(f"{room}/{path.relative_to(folder).as_posix()} {content}\n".encode())
    return total.hexdigest()


def place_of_run(run: ResolvedRun) -> NodeCode:
    """Return hashes of this process's program and the run's plug-ins, with which each actor compares its own."""
    solvers = ((package_of_solver(word), word) for word in map(word_of, run.solvers))
    plugin_codes = plugin_code_hashes((*solvers, *((TOOLS, name) for name in run.tools.tools)))
    of_identity = cast("Mapping[str, str]", run.identity.get("plugins", {}))
    return NodeCode(code(), Path.cwd(), outside(), plugin_code_hash(), {**of_identity, **plugin_codes})


def other_program(place: NodeCode, node: str) -> str | None:
    """Return why an actor must not be used (its program or plug-ins differ from the run's), or None.

    Args:
        place: the run's program. Its plug-in folders are added to the search path.
        node: the actor's node.
    """
    try:
        add_search_path(place.plugin_folders, PATH.name)
    except UsageError as error:
        return f"node {node}: {error}"
    if code() != place.code:
        location = Path(folders("hybrid")[0]).parent
        return f"node {node} runs another version of this program ({location}): install the same one on every node"
    for plugin, code_there in place.plugins.items():
        folder, _, name = plugin.partition("/")
        package = next(kind.package for kind in KINDS if kind.folder == folder)
        try:
            load(package, name)
            code_here = code_hash_of_plugin(package, name)
            problem = f"has the code {code_here}, but {code_there} in this run" if code_here != code_there else ""
        except UsageError as error:
            problem = f"of this run (code {code_there}) cannot be loaded: {error}"
        if problem:
            install = "install the same package, or copy the same folder, on every node"
            return f"on node {node} the plug-in {plugin} {problem}: {install}"
    if plugin_code_hash() != place.plugins_hash:
        names = ", ".join(map(str, place.plugin_folders))
        return (
            f"on node {node}, the files in the folders of {PATH.name} ({names}) differ from those of this "
            "run: copy them there"
        )
    return None


@asynccontextmanager
async def connected(address: str | None) -> AsyncIterator[None]:
    """Connect to the cluster at the address, or start a local one that ends with the `with` block.

    If this process is already connected to a cluster, that one is used and stays connected. What Ray writes to stdout
    goes to stderr: stdout is for results.

    Raises:
        UsageError: nothing answers at the address, or no cluster can be started.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's default niceness of 15 would starve its workers next to any other load.
    os.environ.setdefault("RAY_worker_niceness", "0")
    logging.getLogger("ray").setLevel(logging.ERROR)
    with redirect_stdout(sys.stderr):
        # Start Ray in a thread, because it takes seconds, and in the main thread Ray would replace the run's SIGTERM
        # handler.
        await asyncio.to_thread(_connect, address)
        stop_event = threading.Event()
        threading.Thread(target=_watch_node, args=(stop_event,), daemon=True, name="node of Ray").start()
        try:
            yield
        finally:
            stop_event.set()
            await asyncio.to_thread(ray.shutdown)


def _watch_node(stop_event: threading.Event) -> None:
    """Print a message if the node that this process started dies: Ray would end the process silently."""
    nodes = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            if name.endswith("(raylet") and int(rest.split()[1]) == os.getpid():
                nodes.append(path)
    if not nodes:
        return
    process, command = os.pidfd_open(int(nodes[0].parent.name)), invocation().command
    select.select([process], [], [])
    if stop_event.is_set():
        return
    tell(
        "\nhybrid: Ray's node on this machine has died (its raylet, or an agent of it): questions in flight are lost, "
        f"finished answers are saved. To resume: {command}"
    )
    os._exit(SOME_FAILED)


def _connect(address: str | None) -> None:
    if address is not None:
        # Without a listening server, Ray itself would retry for minutes.
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isdigit()) or "/" in host:
            raise UsageError(f"--address {address}: write HOST:PORT, as printed by `ray start --head` (HOST:6379)")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
        except (OSError, OverflowError) as error:
            raise UsageError(f"--address {address}: no Ray cluster answers there: {error}") from error
    init = partial(ray.init, log_to_driver=False, configure_logging=False)
    try:
        if address is None:
            init("local", include_dashboard=False)
        else:
            init(address)
    except Exception as error:
        what = "no Ray cluster can be started" if address is None else f"--address {address}: no Ray cluster answers"
        raise UsageError(f"{what}: {first_line(error)}") from error
