"""Finds the networks of a backend that does not list them itself, such as a custom tool's, among its attributes.

    networks_of(backend)                    # the listed ones, else the torch modules that it holds
    refuse_unfilled(backend, folder)        # raises for a tensor that no weight file holds

`from_pretrained` and `load_state_dict(strict=False)` leave tensors that a file lacks, or has in another shape, at their
random initial values, so that a damaged checkpoint looks like a sound one. Tensors are compared by value, because their
names may change during loading.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hybrid.core.errors import WeightsError
from hybrid.tool import Backend
from hybrid.tool.networks import Network

# Maximum depth of nested attributes and container items that are searched.
DEPTH = 4
# Maximum number of items of a container that is searched; longer containers hold data.
MAX_ITEMS = 100
# Number of compared values per tensor, evenly spaced.
SAMPLED = 256
# Maximum tensor names listed in an error.
SHOWN = 5


def networks_of(backend: Backend[Any]) -> tuple[Network, ...]:
    """Return the networks that a backend lists, else the torch modules found in it, named by their path.

    The expected pictures of a found network are unknown: its `wants` is None.
    """
    networks = tuple(getattr(backend, "networks", ()))
    if networks or "torch" not in sys.modules:
        return networks
    modules = _modules(backend, "", DEPTH, set())
    return tuple(Network(place.removeprefix("_backend."), module) for place, module in modules)


def refuse_unfilled(backend: Backend[Any], folder: Path) -> None:
    """Compare the networks found in a backend with the weight files that it should have loaded.

    Skips a backend that lists its networks, because it has loaded and checked them itself, and a folder without
    safetensors.

    Raises:
        WeightsError: the values of some parameters match no tensor in these files.
    """
    if getattr(backend, "networks", ()) or not any(folder.rglob("*.safetensors")):
        return
    for network in networks_of(backend):
        missing = list(_unfilled(network.module, folder))
        if missing:
            names = ", ".join(missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
            raise WeightsError(
                f"{folder} does not fit the network {network.name}: {len(missing)} of its tensors are in no weight "
                f"file ({names}); a backend that derives these from other tensors must list its `networks` itself "
                "(hybrid/tool/networks.py)"
            )


def _modules(root: Any, place: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield torch modules with their paths, only the outermost modules, each module once."""
    import torch

    if id(root) in seen or isinstance(root, type | torch.Tensor):
        return
    seen.add(id(root))
    if isinstance(root, torch.nn.Module):
        yield place, root
        return
    if depth == 0:
        return
    if isinstance(root, Mapping):
        inner = root
    elif isinstance(root, list | tuple):
        inner = dict(enumerate(root))
    else:
        inner = getattr(root, "__dict__", {})
    for name, value in list(inner.items())[:MAX_ITEMS]:
        yield from _modules(value, f"{place}.{name}" if place else str(name), depth - 1, seen)


def _unfilled(module: Any, folder: Path) -> Iterator[str]:
    """Yield the names of parameters whose values match no tensor of the same size in the files."""
    import torch
    from safetensors import safe_open

    by_size: dict[int, list[Any]] = defaultdict(list)
    for path in sorted(folder.rglob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - no mapping
                tensor = file.get_tensor(name)
                by_size[tensor.numel()].append(_sampled(tensor))
    for name, values in module.named_parameters():
        sample = _sampled(values.detach()).cpu()
        if not any(torch.equal(other.to(sample.dtype), sample) for other in by_size[values.numel()]):
            yield name


def _sampled(tensor: Any) -> Any:
    """Return some values of a tensor, in order; copied, so that the rest is not kept in memory."""
    flat = tensor.reshape(-1)
    return flat[:: max(1, flat.numel() // SAMPLED)].clone()
