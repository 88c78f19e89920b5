"""Checks of what a backend's networks receive when it is shown a picture.

`run_probes(tool, backend)` asks the tool about a chart of eight colours, in two sizes, and observes every network of
the backend with forward hooks. The chart's eight colours become eight points (one value per channel) of the input
tensor, however the tool scales, pads or crops. They are compared with the points that the checkpoint's own processor
would give (`hybrid.tool.networks.PictureInput`): another order of channels, an inverted picture and another mean or
standard deviation each move these points in a different way, so that the error can name the mistake.
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

# The two values of each channel of the chart: all channels differ from each other and from every inverted channel.
LEVELS = ((40, 150), (90, 235), (15, 200))
COLOURS = np.array(list(itertools.product(*LEVELS)), np.uint8)
# Cells along the chart's shorter side; each keeps a flat interior, however a network's input is scaled.
CELLS = 6
# Height and width of the charts in pixels; every tool that reduces pictures reduces the larger one.
SIZES = ((480, 640), (1152, 1536))
# Maximum distance of a value from its colour, in units of 0..255, to allow for rounding and residual ringing.
TOLERANCE = 8.0
# Minimum share of a tensor's values for each of the eight colours. Without padding or blur, each has a share of 0.125.
MIN_SHARE = 0.02
# Maximum number of values examined per tensor, evenly spaced.
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
    """One network of a backend, and the error in the pictures that it received (None if they are right)."""

    network: str
    wrong: str | None


def chart(height: int, width: int) -> Pixels:
    """Return a picture (height, width, 3) of square cells in eight colours: all combinations of the `LEVELS`."""
    side = max(1, min(height, width) // CELLS)
    rows, columns = (np.arange(length) // side for length in (height, width))
    number = (3 * rows[:, None] + columns[None, :]) % 8
    return np.asarray(COLOURS[number], np.uint8)


def run_probes(tool: Tool, backend: Backend[Any]) -> list[Seen]:
    """Show the charts to a backend that is set up; return one entry per network that receives pictures.

    Raises:
        Exception: the device's own error if its memory does not suffice.
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
            # Skip this network, because its checkpoint does not specify the input.
            unreadable.append(Seen(network.name, str(error)))
    if not watched:
        return unreadable
    # Record pictures as they enter each network from outside, whichever part of the network the tool calls.
    hooks = [hook for network in watched for hook in _add_hooks(network)]
    try:
        troubles = [trouble for size in SIZES for trouble in _run_probes(tool, backend, chart(*size), watched)]
    finally:
        for hook in hooks:
            hook.remove()
    return unreadable + [Seen(network.name, _judged(network, troubles)) for network in watched]


@dataclass(frozen=True, eq=False)
class _Watched:
    """A network, the expected input, and the tensors that it received."""

    name: str
    module: Any
    wants: PictureInput
    inputs: list[Any] = field(default_factory=list)


def _run_probes(tool: Tool, backend: Backend[Any], picture: Pixels, watched: Sequence[_Watched]) -> list[str]:
    """Ask about a picture until every network has received input; return the errors that were raised."""
    counts = [len(network.inputs) for network in watched]
    troubles: list[str] = []
    for check_case in probes(tool, picture):
        try:
            backend.run([Request(check_case.images, tool.args.model_validate(check_case.args))])
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # An error matters only if no picture reached the network.
            troubles.append(f"{type(error).__name__}: {str(error)[:150]}")
        if all(len(network.inputs) > count for network, count in zip(watched, counts, strict=True)):
            break
    return troubles


def probes(tool: Tool, picture: Pixels) -> Iterator[CheckCase]:
    """Yield the tool's own probe, or, if there is none, its known answers with the picture in place of every image."""
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
            network.inputs.extend(tensor.detach().float().cpu() for tensor in pictures)

    def on_leave(module: Any, _args: Any, _output: Any) -> None:
        if inside and inside[-1] is module:
            inside.pop()

    parts = list(network.module.modules())
    hooks = [part.register_forward_pre_hook(on_enter, with_kwargs=True) for part in parts]
    # `always_call` keeps the state correct if a forward pass fails halfway.
    return hooks + [part.register_forward_hook(on_leave, always_call=True) for part in parts]


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(item)
    elif hasattr(value, "is_floating_point") and value.is_floating_point():
        yield value


def _is_picture(tensor: Any, channels: int) -> bool:
    """Return whether a tensor is (..., C, h, w) pixels, or (1, patches, side * side * 3) of a patch network."""
    if tensor.ndim >= 4:
        return bool(tensor.shape[-3] in (channels, 3) and min(tensor.shape[-2:]) >= MIN_SIDE)
    return bool(tensor.ndim == 3 and channels == 3 and int(tensor.shape[-1]) in PATCHES)


# Minimum side, in pixels, of a tensor that counts as a picture; feature maps with 3 channels are smaller.
MIN_SIDE = 24
# Possible numbers of values per patch.
PATCHES = tuple(side * side * 3 for side in (14, 16, 32))


def _judged(network: _Watched, troubles: Sequence[str]) -> str | None:
    pictures: list[Values] = []
    for tensor in network.inputs:
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
    """Return the error in the chart's colours; None if all eight arrived as expected.

    Args:
        pixels: values of an input tensor, (n, C).
        wants: the expected transformation.
    """
    pixels = pixels[:: max(1, len(pixels) // MAX_PIXELS)]
    weights, offsets = np.asarray(wants.weights, np.float64), np.asarray(wants.offsets, np.float64)
    expected = f"expected is {_summary(_points(weights, offsets))}"
    shares = weights / np.abs(weights).sum(axis=1, keepdims=True)
    # Each channel takes the mean and deviation of the colour (R, G or B) that has the largest weight in it, whatever
    # the channel's index; in a grey channel that is green.
    dominant = np.abs(shares).argmax(axis=1)
    normalised = {"": (weights, offsets)}
    for name, (mean, deviation) in STATISTICS.items():
        spread, centre = np.asarray(deviation)[dominant], np.asarray(mean)[dominant]
        normalised[f"with {name}"] = (shares / spread[:, None], -centre / spread)
    # Try the input without a mistake, with one mistake, and with two.
    ways = itertools.product(normalised.items(), CHANGES.items()) if pixels.shape[1] == len(offsets) else ()
    for (range_text, right), (order_text, change) in ways:
        text, transform = " and ".join(filter(None, (order_text, range_text))), change(*right)
        gains = np.abs(transform[0]).sum(axis=1)
        off = [(np.abs(pixels - point) / gains).max(axis=1) for point in _points(*transform)]
        # All eight colours are present.
        if all(float((difference * 255 <= TOLERANCE).mean()) >= MIN_SHARE for difference in off):
            return f"the picture reaches the network {text}; {expected}" if text else None
    return f"the picture reaches the network changed: {_summary(pixels)}; {expected}"


def _points(weights: Values, offsets: Values) -> Values:
    """Return the values (8, C) of the chart's colours in a tensor, for weights (C, 3) and offsets (C,)."""
    return np.asarray(COLOURS / 255 @ weights.T + offsets, np.float64)


# Mistakes that a tool may make, as changes of weights and offsets.
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
