"""The networks that a backend has loaded, and the input that they expect; checks of weights use both.

    with collecting() as networks:              # `hybrid.tool.backends.Learned.setup` does this
        model = DepthModel(weights, "cpu")      # code that loads a network announces it: `announce(Network(...))`

`load_verified` in `hybrid/tool/checkpoint.py` announces every checkpoint of transformers, with the preprocessing of the
checkpoint's own processor. Code that loads weights in another way calls `announce` itself and gives the normalisation
with which the weights were trained, for example `normalised(IMAGENET_MEAN, IMAGENET_STD)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PictureInput:
    """The values of a colour in the tensor: channel i is `offsets[i] + sum over k of weights[i][k] * rgb[k] / 255`.

    `rgb` are the values 0..255 of a pixel. Each row of weights gives one channel of the tensor: a colour network has
    three rows, a grey network has one.
    """

    weights: tuple[tuple[float, float, float], ...]
    offsets: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Network:
    """A torch module that was loaded from a file, and the picture input that it expects.

    `wants` is called when a check runs. It is None for a network that gets no pictures (a text encoder), or only small
    parts of them (a reader of text lines); the check skips these.
    """

    # Name for errors: the weights, and which part of them if they have several parts.
    name: str
    module: Any
    wants: Callable[[], PictureInput] | None = None


def in_float32(module: Any) -> None:
    """Make a part of a network compute in float32, even if the rest uses fewer bits (`hybrid/serving/precision.py`).

    Use it for code that depends on small differences: points of a depth map, positions of key points.
    """
    import torch

    forward = module.forward

    def exact(*args: Any, **options: Any) -> Any:
        kind = next(module.parameters()).device.type
        if not torch.is_autocast_enabled(kind):
            return forward(*args, **options)
        with torch.autocast(kind, enabled=False):
            return forward(*_floats(args), **_floats(options))

    module.forward = exact


def _floats(value: Any) -> Any:
    """Return the value with every lower-precision tensor converted to float32."""
    if isinstance(value, list | tuple):
        return type(value)(_floats(item) for item in value)
    if isinstance(value, dict):
        return {name: _floats(item) for name, item in value.items()}
    return value.float() if hasattr(value, "is_floating_point") and value.is_floating_point() else value


def normalised(
    mean: Sequence[float] = (0.0, 0.0, 0.0), deviation: Sequence[float] = (1.0, 1.0, 1.0), *, order: str = "RGB"
) -> PictureInput:
    """Scale values to 0..1, subtract `mean` and divide by `deviation`, per channel in the given `order`."""
    weights = tuple(
        tuple(1 / spread if channel == colour else 0.0 for channel in "RGB")
        for colour, spread in zip(order, deviation, strict=True)
    )
    offsets = tuple(-centre / spread for centre, spread in zip(mean, deviation, strict=True))
    return PictureInput(tuple((row[0], row[1], row[2]) for row in weights), offsets)


def grey(mean: float = 0.0, deviation: float = 1.0) -> PictureInput:
    """Luma of ITU-R BT.601 as OpenCV and Pillow compute it, scaled to 0..1, minus `mean`, divided by `deviation`."""
    return PictureInput(((0.299 / deviation, 0.587 / deviation, 0.114 / deviation),), (-mean / deviation,))


_COLLECTED: ContextVar[list[Network] | None] = ContextVar("collected_networks", default=None)


@contextmanager
def collecting() -> Iterator[list[Network]]:
    """Collect the networks that are loaded within the context, in the order of their announcements."""
    networks: list[Network] = []
    token = _COLLECTED.set(networks)
    try:
        yield networks
    finally:
        _COLLECTED.reset(token)


def announce(network: Network) -> None:
    """Announce that a network was loaded; ignored outside of `collecting`."""
    if (networks := _COLLECTED.get()) is not None:
        networks.append(network)
