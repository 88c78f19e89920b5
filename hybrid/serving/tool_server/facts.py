"""The facts on which the outputs of a tool server depend, and whether a run may use it.

versions(), environment(), weights_facts(tool, options)      # the same on both sides
mismatch(facts, tool, options)                               # reason against it, with the fix; None if it may
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from hybrid.config import AUTO, BackendChoice, ServiceOptions
from hybrid.plugins.weights import weights_of
from hybrid.serving.loader import CUDA
from hybrid.serving.protocol import ServerFacts
from hybrid.serving.sources import code_of
from hybrid.tool import Tool
from hybrid.version import __version__

# Environment variables that select devices or affect the rounding of networks.
VARIABLES: Final = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
)
# Maximum names listed in a message.
SHOWN: Final = 3


@cache
def versions() -> tuple[str, ...]:
    """Return the versions of Python, hybrid, the code that serves tools, and all installed packages."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        code.update(path.read_bytes())
    folders = (place for place in sys.path if Path(place).name in ("site-packages", "dist-packages"))
    installed = {
        name.removesuffix(".dist-info") for place in folders for name in _names(place) if name.endswith(".dist-info")
    }
    hybrid_version = f"hybrid-{__version__} ({code.hexdigest()[:8]})"
    return (f"Python-{platform.python_version()}", hybrid_version, *sorted(installed))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def environment() -> dict[str, str]:
    """Return the environment variables on which outputs depend, as far as they are set."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def weights_facts(tool: Tool, options: BackendChoice) -> tuple[str, str, int] | None:
    """Return the place of a tool's weights, a hash of their files, and their size; None if the tool loads no network.

    The hash covers names, sizes, times and inodes, not contents, which may be many GB.

    Raises:
        WeightsError: the weights are not on disk.
    """
    learned = tool.backend("learned")
    if learned is None:
        return None
    folder = weights_of(tool, learned, options.weights, download=False)
    if folder is None:
        version = importlib.metadata.version(learned.package) if learned.package else None
        return None if version is None else (f"{learned.package}=={version}", version, 0)
    digest, size = hashlib.sha256(), 0
    for path in sorted(folder.rglob("*")):
        status = path.stat()
        if path.is_file():
            facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            digest.update(f"{path.relative_to(folder).as_posix()}\x1f{facts}\x1e".encode("utf-8", "surrogateescape"))
            size += status.st_size if path.suffix == ".safetensors" else 0
    return str(folder.resolve()), digest.hexdigest(), size


def mismatch(facts: ServerFacts, tool: Tool, options: ServiceOptions) -> str | None:
    """Return why a run must not use the server for a tool, with the fix; None if outputs are the same.

    Args:
        facts: the server's facts.
        tool: a tool whose weights are on disk.
        options: the run's options.
    """
    name = tool.card.name
    if name in facts.failed:
        return f"could not load it ({facts.failed[name]})"
    if name in facts.loading:
        return "is still loading it"
    if (served := facts.tools.get(name)) is None:
        return "has not loaded it: " + _restart(f"--tools {','.join(sorted({*facts.tools, name}))}")
    requirements: list[tuple[str, object, object, str]] = [
        ("runs other code", facts.versions, versions(), _restart()),
        ("has another environment", facts.environment, environment(), _restart()),
        (
            "computes on another device",
            _devices(facts.device, facts.auto),
            _devices(options.device, facts.auto),
            f"give --device {facts.device}",
        ),
        ("computes in another precision", facts.dtype, options.dtype, f"give --tool-dtype {facts.dtype}"),
        (
            "compiles its networks" if facts.compiled else "does not compile its networks",
            facts.compiled,
            options.compiled,
            _restart("--tool-compile" if options.compiled else ""),
        ),
        ("runs different code of this tool", served.code[:12], code_of(tool)[:12], _restart()),
    ]
    place, files, _ = weights_facts(tool, options) or ("none", "", 0)
    requirements += [
        ("has loaded other weights", served.weights, place, f"give --weights {name}={served.weights}"),
        ("has loaded weights that have changed", served.files[:12], files[:12], _restart()),
    ]
    for what, served_value, run_value, fix in requirements:
        if served_value != run_value:
            return f"{what} ({_difference(served_value, run_value)}): {fix}"
    if facts.unchecked and not options.unchecked:
        return f"did not check its weights: {_restart()} without --unchecked-weights"
    return None


def _restart(options: str = "") -> str:
    return f"`hybrid tools down`, then `hybrid tools up{' ' * bool(options)}{options}`"


def _devices(words: str, auto: str) -> str:
    """Return the devices that an option means; `auto` lists the devices for the word `auto`, if known."""
    means_all = words == AUTO or (words == CUDA and auto.startswith(CUDA))
    return auto if auto and means_all else ",".join(dict.fromkeys(words.split(",")))


def _difference(served_value: object, run_value: object) -> str:
    """Describe the difference in a few words."""
    if isinstance(served_value, tuple) and isinstance(run_value, tuple):
        return f"there {_some(set(served_value) - set(run_value))}, here {_some(set(run_value) - set(served_value))}"
    if isinstance(served_value, dict) and isinstance(run_value, dict):
        pairs = [{f"{name}={value}" for name, value in side.items()} for side in (served_value, run_value)]
        return f"there {_some(pairs[0] - pairs[1])}, here {_some(pairs[1] - pairs[0])}"
    return f"there {served_value}, here {run_value}"


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return ", ".join(ordered[:SHOWN]) + more or "nothing"
