"""Tensors of many images through a network in as few passes as their shapes allow, to its device and back.

`in_batches(tensors, device, run)`, or `by_shape(tensors)` and `together(tensors, device)` for inputs of several
tensors. `on_host(output)` is an array, whatever the precision of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

# Images in one pass, so that requests of several images each do not fill a device.
MAX_AT_ONCE = 32

R = TypeVar("R")
T = TypeVar("T")


def by_shape(tensors: Sequence[Any], most: int = MAX_AT_ONCE) -> list[list[int]]:
    """The places of tensors that may be run together: of one shape, at most `most` at once."""
    return by_form([shape(tensor) for tensor in tensors], most)


def by_form(forms: Sequence[Hashable], most: int) -> list[list[int]]:
    """The places of equal forms, at most `most` together."""
    places: dict[Hashable, list[int]] = {}
    for place, form in enumerate(forms):
        places.setdefault(form, []).append(place)
    return [members[start : start + most] for members in places.values() for start in range(0, len(members), most)]


def shape(*tensors: Any) -> Hashable:
    """The shapes of some tensors, for `Stages.batch_key`."""
    return tuple(tuple(tensor.shape) for tensor in tensors)


def in_batches(
    tensors: Sequence[Any], device: str, run: Callable[[Any, Sequence[int]], Sequence[R]], most: int = MAX_AT_ONCE
) -> list[R]:
    """Return one result per tensor, in order.

    Args:
        tensors: each (1, ...); those of one shape are run together.
        device: of the network.
        run: gets a batch (n, ...) on the device and the places in `tensors` that it holds; gives n results.
        most: images in one pass.
    """
    return by_members(
        by_shape(tensors, most),
        lambda members: run(together([tensors[place] for place in members], device), members),
    )


def by_members(groups: Sequence[Sequence[int]], run: Callable[[Sequence[int]], Sequence[R]]) -> list[R]:
    """One result a place, in order, of places in groups that are run one after the other, without gradients."""
    import torch

    results: dict[int, R] = {}
    with torch.inference_mode():
        for members in groups:
            results.update(zip(members, run(members), strict=True))
    return [results[place] for place in range(len(results))]


def side_by_side(run: Callable[[list[T]], Sequence[R]], groups: Sequence[Sequence[T]]) -> list[list[R]]:
    """The results of each group, of which all members are run at once."""
    results = iter(run([member for group in groups for member in group]))
    return [[next(results) for _ in group] for group in groups]


def together(tensors: Sequence[Any], device: str) -> Any:
    """Tensors, each (n, ...), as one on a device; to CUDA through pinned memory, without waiting for the copy."""
    import torch

    if not device.startswith("cuda") or any(tensor.device.type != "cpu" for tensor in tensors):
        return torch.cat([tensor.to(device) for tensor in tensors])
    shape = (sum(len(tensor) for tensor in tensors), *tensors[0].shape[1:])
    # torch keeps a pinned block until the copy from it has ended.
    pinned = torch.empty(shape, dtype=tensors[0].dtype, pin_memory=True)
    return torch.cat(list(tensors), out=pinned).to(device, non_blocking=True)


def on_host(tensor: Any) -> npt.NDArray[np.float32]:
    """A tensor of a device in any precision as an array: numpy has no bfloat16."""
    return np.asarray(tensor.detach().float().cpu().numpy(), np.float32)


def doubles(tensor: Any) -> npt.NDArray[np.float64]:
    """A tensor as an array of 64 bits in host memory."""
    return on_host(tensor).astype(np.float64)
