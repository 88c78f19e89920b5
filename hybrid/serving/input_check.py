"""Inputs of a network when a backend is shown a picture, and checks that they are right.

`run_probes(tool, backend)` asks the tool about a chart of eight colours, of two sizes, and watches every network of the
backend with forward hooks. The chart's eight colours become eight points (one value a channel) of the input tensor,
wherever the tool scales, pads or cuts. They are compared with the points that the checkpoint's own processor would give
(`hybrid.tool.networks.PictureInput`): channels in another order, an inverted picture and another mean or standard
deviation all move them, each in its own way, so that the error can name what was done.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.core.errors import WeightsError, is_out_of_memory
from hybrid.tool import Backend, CheckCase, Pixels, Request, Tool
from hybrid.tool.networks import Network, PictureInput

Values = npt.NDArray[np.float64]

# The two values of each channel of the chart: no two channels, and no channel and an inverted one, are alike.
LEVELS = ((40, 150), (90, 235), (15, 200))
COLOURS = np.array(list(itertools.product(*LEVELS)), np.uint8)
# Cells along the shorter side of the chart: each stays flat inside, however a network's input is scaled.
CELLS = 6
# Height and width of the charts, pixels; the larger one is reduced by every tool that reduces.
SIZES = ((480, 640), (1152, 1536))
# Greatest distance of a value from its colour's, in units of 0..255: rounding, and what is left of ringing.
TOLERANCE = 8.0
# Of the values of a tensor, how many each of the eight colours must have: 0.125 where nothing is padded or blurred.
MIN_SHARE = 0.02
# Of a tensor that are looked at, evenly spread.
MAX_PIXELS = 20_000
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
STATISTICS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "no mean and standard deviation (0..1)": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "ImageNet's mean and standard deviation": IMAGENET,
    "CLIP's mean and standard deviation": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "a mean and standard deviation of 0.5 (-1..1)": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "values 0..255 that are not scaled": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
}


@dataclass(frozen=True)
class Seen:
    """One network of a backend: what is wrong with the pictures that it was given (None: nothing)."""

    network: str
    wrong: str | None


def chart(height: int, width: int) -> Pixels:
    """A picture (height, width, 3) of square cells in eight colours: every combination of the `LEVELS`."""
    side = max(1, min(height, width) // CELLS)
    rows, columns = (np.arange(length) // side for length in (height, width))
    number = (3 * rows[:, None] + columns[None, :]) % 8
    return np.asarray(COLOURS[number], np.uint8)


def run_probes(tool: Tool, backend: Backend[Any]) -> list[Seen]:
    """Show the charts to a backend that is set up; one entry for each of its networks that is given pictures.

    Raises:
        Exception: the device's own error when its memory does not suffice.
    """
    watched: list[_Watched] = []
    unreadable: list[Seen] = []
    networks: Sequence[Network] = getattr(backend, "networks", ())
    for network in networks:
        if network.wants is None:
            continue
        try:
            watched.append(_Watched(network.name, network.module, network.wants()))
        except WeightsError as error:
            # Its checkpoint does not say how it wants them.
            unreadable.append(Seen(network.name, str(error)))
    if not watched:
        return unreadable
    # The pictures are kept that enter each network from outside, wherever the tool enters it.
    hooks = [hook for network in watched for hook in _add_hooks(network)]
    try:
        troubles = [trouble for size in SIZES for trouble in _run_probes(tool, backend, chart(*size), watched)]
    finally:
        for hook in hooks:
            hook.remove()
    return unreadable + [Seen(network.name, _judged(network, troubles)) for network in watched]


@dataclass(frozen=True, eq=False)
class _Watched:
    """A network, what should become of colours, and the tensors that were given to it."""

    name: str
    module: Any
    wants: PictureInput
    given: list[Any] = field(default_factory=list)


def _run_probes(tool: Tool, backend: Backend[Any], picture: Pixels, watched: Sequence[_Watched]) -> list[str]:
    """Put questions about a picture until every network has been given something; what they raised."""
    counts = [len(network.given) for network in watched]
    troubles: list[str] = []
    for check_case in probes(tool, picture):
        try:
            backend.run([Request(check_case.images, tool.args.model_validate(check_case.args))])
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # It matters only where no picture reached the network.
            troubles.append(f"{type(error).__name__}: {str(error)[:150]}")
        if all(len(network.given) > count for network, count in zip(watched, counts, strict=True)):
            break
    return troubles


def probes(tool: Tool, picture: Pixels) -> Iterator[CheckCase]:
    """The tool's own probe; without one, its known answers with the picture in the place of every image."""
    if tool.probe is not None:
        yield tool.probe(picture)
    elif not tool.checks:
        yield CheckCase((picture,) * tool.card.images[0], {}, lambda _: None)
    else:
        for check in tool.checks:
            check_case = check.pose()
            yield CheckCase((picture,) * len(check_case.images), check_case.args, check_case.wrong)


def _add_hooks(network: _Watched) -> list[Any]:
    channels, inside = len(network.wants.offsets), list[Any]()

    def on_enter(module: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        if inside:
            return
        pictures = [tensor for tensor in _tensors((args, keywords)) if _is_picture(tensor, channels)]
        if pictures:
            inside.append(module)
            network.given.extend(tensor.detach().float().cpu() for tensor in pictures)

    def on_leave(module: Any, _args: Any, _output: Any) -> None:
        if inside and inside[-1] is module:
            inside.pop()

    parts = list(network.module.modules())
    hooks = [part.register_forward_pre_hook(on_enter, with_kwargs=True) for part in parts]
    # A pass that fails half-way must not leave the watch believing that it is still inside.
    return hooks + [part.register_forward_hook(on_leave, always_call=True) for part in parts]


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(item)
    elif hasattr(value, "is_floating_point") and value.is_floating_point():
        yield value


def _is_picture(tensor: Any, channels: int) -> bool:
    """(..., C, h, w) of pixels, or (1, patches, side * side * 3) of a network that takes patches in a row."""
    if tensor.ndim >= 4:
        return bool(tensor.shape[-3] in (channels, 3) and min(tensor.shape[-2:]) >= MIN_SIDE)
    return bool(tensor.ndim == 3 and channels == 3 and int(tensor.shape[-1]) in PATCHES)


# Pixels of a tensor that is taken for a picture: a map of 3 features is smaller.
MIN_SIDE = 24
# Values of one patch.
PATCHES = tuple(side * side * 3 for side in (14, 16, 32))


def _judged(network: _Watched, troubles: Sequence[str]) -> str | None:
    pictures: list[Values] = []
    for tensor in network.given:
        values = np.asarray(tensor.numpy(), np.float64)
        if values.ndim == 3:
            pictures += [array.reshape(-1, 3) for array in values]
        else:
            pictures += [image.reshape(image.shape[0], -1).T for image in values.reshape(-1, *values.shape[-3:])]
    if not pictures:
        return f"no picture reached the network{f' ({troubles[0]})' if troubles else ''}"
    problems = (wrong_colours(values, network.wants) for values in pictures)
    return next((wrong for wrong in problems if wrong is not None), None)


def wrong_colours(pixels: Values, wants: PictureInput) -> str | None:
    """The error in the chart's colours; None where its eight colours arrived as they should.

    Args:
        pixels: of an input tensor, (n, C).
        wants: what should have become of them.
    """
    pixels = pixels[:: max(1, len(pixels) // MAX_PIXELS)]
    weights, offsets = np.asarray(wants.weights, np.float64), np.asarray(wants.offsets, np.float64)
    expected = f"expected is {_summary(_points(weights, offsets))}"
    shares = weights / np.abs(weights).sum(axis=1, keepdims=True)
    # By the colour that a channel shows, whatever its place; a grey channel shows most of green.
    dominant = np.abs(shares).argmax(axis=1)
    normalised = {"": (weights, offsets)}
    for name, (mean, deviation) in STATISTICS.items():
        spread, centre = np.asarray(deviation)[dominant], np.asarray(mean)[dominant]
        normalised[f"with {name}"] = (shares / spread[:, None], -centre / spread)
    # By no mistake, by one or by two.
    ways = itertools.product(normalised.items(), CHANGES.items()) if pixels.shape[1] == len(offsets) else ()
    for (range_text, right), (order_text, change) in ways:
        text, transform = " and ".join(filter(None, (order_text, range_text))), change(*right)
        gains = np.abs(transform[0]).sum(axis=1)
        off = [(np.abs(pixels - point) / gains).max(axis=1) for point in _points(*transform)]
        # All eight colours are there.
        if all(float((difference * 255 <= TOLERANCE).mean()) >= MIN_SHARE for difference in off):
            return f"the picture reaches the network {text}; {expected}" if text else None
    return f"the picture reaches the network changed: {_summary(pixels)}; {expected}"


def _points(weights: Values, offsets: Values) -> Values:
    """The values (8, C) of the chart's colours in a tensor, by weights (C, 3) and offsets (C,)."""
    return np.asarray(COLOURS / 255 @ weights.T + offsets, np.float64)


# Mistakes that a tool may make with weights and offsets.
CHANGES: Mapping[str, Callable[[Values, Values], tuple[Values, Values]]] = {
    "": lambda weights, offsets: (weights, offsets),
    "with red and blue exchanged (BGR)": lambda weights, offsets: (weights[:, ::-1], offsets),
    "with red and blue exchanged (BGR) after normalisation": lambda weights, offsets: (weights[::-1], offsets[::-1]),
    "inverted": lambda weights, offsets: (-weights, offsets + weights.sum(axis=1)),
    "inverted, with red and blue exchanged (BGR)": lambda weights, offsets: (
        -weights[:, ::-1],
        offsets + weights.sum(axis=1),
    ),
}


def _summary(pixels: Values) -> str:
    means, spreads = (", ".join(f"{value:.2f}" for value in ones) for ones in (pixels.mean(axis=0), pixels.std(axis=0)))
    return f"channels of mean {means} and spread {spreads}"
