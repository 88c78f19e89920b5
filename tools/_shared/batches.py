"""Run tensors of many images through a network in as few passes as their shapes allow.

Use `in_batches(tensors, device, run)`, or `by_shape(tensors)` and `together(tensors, device)` for inputs of several
tensors. `on_host(output)` returns an array, whatever the precision of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

# Largest number of images per pass, so that requests with several images each do not exhaust device memory.
MAX_AT_ONCE = 32

R = TypeVar("R")
T = TypeVar("T")


def by_shape(tensors: Sequence[Any], most: int = MAX_AT_ONCE) -> list[list[int]]:
    """Group the indices of tensors by shape, at most `most` per group."""
    return by_form([shape(tensor) for tensor in tensors], most)


def by_form(forms: Sequence[Hashable], most: int) -> list[list[int]]:
    """Group the indices of items with equal forms, at most `most` per group."""
    places: dict[Hashable, list[int]] = {}
    for place, form in enumerate(forms):
        places.setdefault(form, []).append(place)
    return [members[start : start + most] for members in places.values() for start in range(0, len(members), most)]


def shape(*tensors: Any) -> Hashable:
    """Return the shapes of the tensors, for `Stages.batch_key`."""
    return tuple(tuple(tensor.shape) for tensor in tensors)


def in_batches(
    tensors: Sequence[Any], device: str, run: Callable[[Any, Sequence[int]], Sequence[R]], most: int = MAX_AT_ONCE
) -> list[R]:
    """Return one result per tensor, in order.

    Args:
        tensors: each (1, ...); those of one shape run together.
        device: device of the network.
        run: gets a batch (n, ...) on the device and its indices in `tensors`; returns n results.
        most: most images per pass.
    """
    return by_members(
        by_shape(tensors, most),
        lambda members: run(together([tensors[place] for place in members], device), members),
    )


def by_members(groups: Sequence[Sequence[int]], run: Callable[[Sequence[int]], Sequence[R]]) -> list[R]:
    """Run the groups of indices one after the other, without gradients, and return one result per index, in order."""
    import torch

    results: dict[int, R] = {}
    with torch.inference_mode():
        for members in groups:
            results.update(zip(members, run(members), strict=True))
    return [results[place] for place in range(len(results))]


def side_by_side(run: Callable[[list[T]], Sequence[R]], groups: Sequence[Sequence[T]]) -> list[list[R]]:
    """Run the members of all groups in one call and return the results of each group."""
    results = iter(run([member for group in groups for member in group]))
    return [[next(results) for _ in group] for group in groups]


def together(tensors: Sequence[Any], device: str) -> Any:
    """Concatenate tensors (n, ...) on a device; copies to CUDA use pinned memory and do not block."""
    import torch

    if not device.startswith("cuda") or any(tensor.device.type != "cpu" for tensor in tensors):
        return torch.cat([tensor.to(device) for tensor in tensors])
    shape = (sum(len(tensor) for tensor in tensors), *tensors[0].shape[1:])
    # torch keeps the pinned memory until the copy from it has finished, so the buffer need not be kept here.
    pinned = torch.empty(shape, dtype=tensors[0].dtype, pin_memory=True)
    return torch.cat(list(tensors), out=pinned).to(device, non_blocking=True)


def on_host(tensor: Any) -> npt.NDArray[np.float32]:
    """Copy a tensor of any device and precision to a float32 array (numpy has no bfloat16)."""
    return np.asarray(tensor.detach().float().cpu().numpy(), np.float32)


def doubles(tensor: Any) -> npt.NDArray[np.float64]:
    """Copy a tensor to a float64 array in host memory."""
    return on_host(tensor).astype(np.float64)
