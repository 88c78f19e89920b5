"""The three stages of a request (`hybrid.tool.Stages`), for every backend, and how a failure in one becomes an error.

backend = staged(card.make())                 # one that answers a batch at once computes all of it
with tool_errors(): inputs = backend.prepare(request)
outputs = compute(backend, [inputs])
with tool_errors(): evidence = checked(backend.finish(request, inputs, outputs[0]), len(request.images))

What a tool gives is untrusted: a text is at most `MAX_TEXT` characters, data at most `MAX_DATA` bytes of JSON and
`MAX_DEPTH` containers deep, a picture an RGB array of one of the images. Anything else is the tool's fault, at once.
"""

from __future__ import annotations

import json
import logging
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hybrid.core.errors import (
    HybridError,
    NoBackend,
    ToolError,
    is_device_lost,
    is_out_of_memory,
    missing_package,
    needs_package,
)
from hybrid.core.secrets import redact
from hybrid.core.types import MAX_PIXELS, Fault
from hybrid.tool import Backend, Evidence, Picture, Request, Stages
from hybrid.tool.networks import Network

log = logging.getLogger("hybrid.serving.service")

# Characters of a finding's text: a model reads all of it.
MAX_TEXT = 20_000
# Characters of an error of its own.
MAX_ERROR = 2_000
# Characters of the traceback of a defect, the last ones.
MAX_TRACE = 20_000
# Bytes of a finding's data as JSON.
MAX_DATA = 5_000_000
# Pixels of a picture's longer side: what can be written as PNG.
MAX_SIDE = 1_000_000
# Containers of a finding's data inside of each other: JSON that is much deeper cannot be read back.
MAX_DEPTH = 32


class OutOfMemory(ToolError):
    """A device has no memory left for this request."""


class DeviceLost(ToolError):
    """A kernel failed on the device, which is of no use to this process any more."""


class OneStage(Stages[Any, Request[Any], Evidence]):
    """A backend that answers a batch at once, in the form of stages: `compute` does everything."""

    def __init__(self, backend: Backend[Any]) -> None:
        self._backend = backend

    def setup(self, device: str, weights: str | None) -> None:
        """Set up the backend itself."""
        self._backend.setup(device, weights)

    @property
    def networks(self) -> Sequence[Network]:
        """The networks that the backend lists as loaded."""
        return tuple(getattr(self._backend, "networks", ()))

    def prepare(self, request: Request[Any]) -> Request[Any]:
        """The request as it is: decoded."""
        return request

    def compute(self, prepared: Sequence[Request[Any]]) -> list[Evidence]:
        """The evidence of each request."""
        return self._backend.run(prepared)

    def finish(self, request: Request[Any], prepared: Request[Any], output: Evidence) -> Evidence:
        """The evidence as it is."""
        return output


def staged(backend: Backend[Any] | Stages[Any, Any, Any]) -> Stages[Any, Any, Any]:
    """A backend in stages, as which one that answers at once is taken too."""
    return backend if isinstance(backend, Stages) else OneStage(backend)


def compute(
    backend: Stages[Any, Any, Any], inputs: Sequence[Any], halved: Callable[[int], None] = lambda most: None
) -> list[Any]:
    """One batch: for each of its inputs the output, or the `HybridError` that it fails with.

    A batch that the memory of the device does not suffice for runs in two halves, and `halved` is told how large they
    are. When it fails for another reason each input runs alone, so that one bad request costs no other.

    Raises:
        DeviceLost: nothing more can run on the device.
    """
    size, short = 1, False
    try:
        outputs = backend.compute(inputs)
    except BaseException as error:
        if is_device_lost(error):
            raise _tool_error(error) from error
        if len(inputs) == 1:
            return [_tool_error(error)]
        if short := is_out_of_memory(error):
            size = -(-len(inputs) // 2)
    else:
        if len(outputs) == len(inputs):
            return list(outputs)
        if len(inputs) == 1:
            return [ToolError(f"the tool gave {len(outputs)} findings for 1 requests")]
    # Not while the error is handled: it holds what its batch has on the device.
    if short:
        halved(size)
    parts = (inputs[start : start + size] for start in range(0, len(inputs), size))
    return [output for part in parts for output in compute(backend, part, halved)]


@contextmanager
def tool_errors() -> Iterator[None]:
    """Turn what a tool raises inside into a `ToolError`; errors of our own stay as they are.

    That holds for `SystemExit` and `KeyboardInterrupt` too: in a worker thread they come from the tool alone, and would
    end the whole run where its result is awaited.
    """
    try:
        yield
    except BaseException as error:
        tool_error = _tool_error(error)
        if tool_error is error:
            raise
        raise tool_error from error


def _tool_error(error: BaseException) -> HybridError:
    if isinstance(error, HybridError):
        words = _words(error)[:MAX_ERROR]
        return error if words == str(error) else ToolError(words, getattr(error, "fault", Fault.TOOL_ERROR))
    if is_out_of_memory(error):
        return OutOfMemory(f"the memory of the device does not suffice: {_words(error)[:200]}")
    if is_device_lost(error):
        return DeviceLost(f"the device failed: {_words(error)[:300]}")
    if package := missing_package(error):
        return NoBackend(needs_package("the tool", package))
    log.debug("a tool failed", exc_info=error)
    defect = ToolError(f"the tool failed: {type(error).__name__}: {_words(error)[:300]}")
    # As text: the frames of the error hold what its batch has on the device.
    defect.trace = redact("".join(traceback.format_exception(error)))[-MAX_TRACE:]
    return defect


def _words(error: BaseException) -> str:
    """The message of an error, as text that can be encoded."""
    try:
        words = str(error)
    except Exception:
        return "(an error without words)"
    return words.encode("utf-8", "replace").decode()


def checked(evidence: Evidence, images: int, *, overlays: bool = True) -> Evidence:
    """The evidence, once its form is checked.

    Args:
        evidence: as a backend gave it.
        images: how many the request had.
        overlays: whether they are drawn; else they are left out.

    Raises:
        ToolError: it does not.
    """
    if not isinstance(evidence, Evidence):
        raise ToolError(f"the tool gave a {type(evidence).__name__} instead of evidence")
    if not 0.0 <= evidence.confidence <= 1.0:
        raise ToolError(f"the tool gave a confidence of {evidence.confidence}, which is outside 0..1")
    if not isinstance(evidence.text, str):
        raise ToolError(f"the tool gave a text that is a {type(evidence.text).__name__}")
    if len(evidence.text) > MAX_TEXT:
        raise ToolError(f"the tool gave a text of {len(evidence.text):,} characters; {MAX_TEXT:,} is the most")
    try:
        evidence.text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"the tool gave a text that is no Unicode: {error.reason} at {error.start}") from error
    if not isinstance(evidence.data, Mapping) or not _has_plain_keys(evidence.data, MAX_DEPTH):
        raise ToolError(f"the tool gave data that is no JSON object with names as keys, at most {MAX_DEPTH} deep")
    try:
        # A number that is not finite would be another one when it is read from the cache, a half of a character none.
        size = len(json.dumps(evidence.data, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        raise ToolError(f"the tool gave data that is no JSON: {_words(error)[:300]}") from error
    if size > MAX_DATA:
        raise ToolError(f"the tool gave {size:,} bytes of data; {MAX_DATA:,} is the most")
    if not overlays:
        evidence = replace(
            evidence, pictures=tuple(picture for picture in evidence.pictures if picture.box is not None)
        )
    for picture in evidence.pictures:
        _check_picture(picture, images)
    return evidence


def _has_plain_keys(value: Any, depth: int) -> bool:
    """Whether all keys in some data are texts and no container lies deeper than that."""
    if not isinstance(value, Mapping | list | tuple):
        return True
    inner = value.values() if isinstance(value, Mapping) else value
    names = all(isinstance(key, str) for key in value) if isinstance(value, Mapping) else True
    return depth > 0 and names and all(_has_plain_keys(item, depth - 1) for item in inner)


def _check_picture(picture: Picture, images: int) -> None:
    import numpy as np

    pixels = picture.pixels
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        what = f"shape {getattr(pixels, 'shape', None)} and type {getattr(pixels, 'dtype', type(pixels).__name__)}"
        raise ToolError(f"the tool gave a picture of {what}; an RGB picture of 8 bits is (H, W, 3) uint8")
    if not 0 < pixels.shape[0] * pixels.shape[1] <= MAX_PIXELS or max(pixels.shape) > MAX_SIDE:
        raise ToolError(f"the tool gave a picture of {pixels.shape[1]} x {pixels.shape[0]} pixels")
    if not isinstance(picture.of, int) or not 0 <= picture.of < images:
        raise ToolError(f"the tool gave a picture of image {picture.of}; the images are counted from 0 to {images - 1}")
    box = picture.box
    corners = () if box is None else (box.x0, box.y0, box.x1, box.y1)
    if not all(math.isfinite(number) for number in (*corners, picture.scale)) or picture.scale <= 0:
        raise ToolError(f"the tool gave a picture with the box {corners} and the scale {picture.scale}")
