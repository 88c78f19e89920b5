"""Tensors of many images through a network in as few passes as their shapes allow.

`in_batches(tensors, run)`, or `by_shape(tensors)` for inputs of several tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

MOST_AT_ONCE = 32
"""Images in one pass, so that requests of several images each do not fill a device."""

R = TypeVar("R")


def by_shape(tensors: Sequence[Any], most: int = MOST_AT_ONCE) -> list[list[int]]:
    """The places of tensors that may be run together: of one shape, at most `most` at once."""
    return by_form([shape(tensor) for tensor in tensors], most)


def by_form(forms: Sequence[Hashable], most: int) -> list[list[int]]:
    """The places of equal forms, at most `most` together."""
    places: dict[Hashable, list[int]] = {}
    for place, form in enumerate(forms):
        places.setdefault(form, []).append(place)
    return [members[start : start + most] for members in places.values() for start in range(0, len(members), most)]


def shape(*tensors: Any) -> Hashable:
    """The shapes of some tensors, for `Stages.alike`."""
    return tuple(tuple(tensor.shape) for tensor in tensors)


def in_batches(
    tensors: Sequence[Any], run: Callable[[Any, Sequence[int]], Sequence[R]], most: int = MOST_AT_ONCE
) -> list[R]:
    """Return one result per tensor, in order.

    Args:
        tensors: each (1, ...); those of one shape are run together.
        run: gets a batch (n, ...) and the places in `tensors` that it holds; gives n results.
        most: images in one pass.
    """
    import torch

    results: dict[int, R] = {}
    for members in by_shape(tensors, most):
        results.update(zip(members, run(torch.cat([tensors[place] for place in members]), members), strict=True))
    return [results[place] for place in range(len(tensors))]
