"""The three stages of a request (`hybrid.tool.Stages`), for every backend, and the handling of failures.

backend = staged(card.make())                 # a backend without stages does all work in `compute`
with tool_errors(): inputs = backend.prepare(request)
outputs = compute(backend, [inputs])
with tool_errors(): evidence = checked(backend.finish(request, inputs, outputs[0]), len(request.images))

A tool's output is untrusted: a text has at most `MAX_TEXT` characters, data at most `MAX_DATA` bytes of JSON nested up
to `MAX_DEPTH` deep, and a picture is an RGB array of one of the images. Anything else is a fault of the tool.
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

# Maximum characters of an output's text, all of which a model reads.
MAX_TEXT = 20_000
# Maximum characters of a tool's error.
MAX_ERROR = 2_000
# Maximum characters of a defect's traceback; its end is kept.
MAX_TRACE = 20_000
# Maximum bytes of an output's data as JSON.
MAX_DATA = 5_000_000
# Maximum longer side of a picture in pixels, limited by PNG.
MAX_SIDE = 1_000_000
# Maximum nesting of an output's data, because deeper JSON cannot be read back.
MAX_DEPTH = 32


class OutOfMemory(ToolError):
    """A device has no memory left for this request."""


class DeviceLost(ToolError):
    """A kernel failed on the device, which this process can no longer use."""


class OneStage(Stages[Any, Request[Any], Evidence]):
    """Adapts a backend without stages: `compute` does everything."""

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
        """Return the request unchanged; it is already decoded."""
        return request

    def compute(self, prepared: Sequence[Request[Any]]) -> list[Evidence]:
        """Return the evidence of each request."""
        return self._backend.run(prepared)

    def finish(self, request: Request[Any], prepared: Request[Any], output: Evidence) -> Evidence:
        """Return the evidence unchanged."""
        return output


def staged(backend: Backend[Any] | Stages[Any, Any, Any]) -> Stages[Any, Any, Any]:
    """Return a backend in stages, adapting one without stages."""
    return backend if isinstance(backend, Stages) else OneStage(backend)


def compute(
    backend: Stages[Any, Any, Any], inputs: Sequence[Any], halved: Callable[[int], None] = lambda most: None
) -> list[Any]:
    """Compute one batch; return for each input its output or its `HybridError`.

    A batch that does not fit the device's memory is split in halves, and `halved` is called with their size. If a batch
    fails for another reason, each input runs alone, so that a bad request affects no other.

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
            return [ToolError(f"the tool returned {len(outputs)} outputs for 1 request")]
    # Continue outside the handler, because the error references the batch's memory on the device.
    if short:
        halved(size)
    parts = (inputs[start : start + size] for start in range(0, len(inputs), size))
    return [output for part in parts for output in compute(backend, part, halved)]


@contextmanager
def tool_errors() -> Iterator[None]:
    """Convert errors of a tool to `ToolError`; hybrid's own errors are unchanged.

    This includes `SystemExit` and `KeyboardInterrupt`: in a worker thread they come only from the tool, and would
    otherwise end the full run when the result is awaited.
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
        return OutOfMemory(f"the device has too little memory: {_words(error)[:200]}")
    if is_device_lost(error):
        return DeviceLost(f"the device failed: {_words(error)[:300]}")
    if package := missing_package(error):
        return NoBackend(needs_package("the tool", package))
    log.debug("a tool failed", exc_info=error)
    defect = ToolError(f"the tool failed: {type(error).__name__}: {_words(error)[:300]}")
    # Store the traceback as text, because the frames of the error reference the batch's memory on the device.
    defect.trace = redact("".join(traceback.format_exception(error)))[-MAX_TRACE:]
    return defect


def _words(error: BaseException) -> str:
    """Return the message of an error as encodable text."""
    try:
        words = str(error)
    except Exception:
        return "(an error without a message)"
    return words.encode("utf-8", "replace").decode()


def checked(evidence: Evidence, images: int, *, overlays: bool = True) -> Evidence:
    """Validate the form of the evidence and return it.

    Args:
        evidence: the backend's output.
        images: number of images of the request.
        overlays: whether to keep overlays.

    Raises:
        ToolError: the evidence is invalid.
    """
    if not isinstance(evidence, Evidence):
        raise ToolError(f"the tool returned a {type(evidence).__name__} instead of evidence")
    if not 0.0 <= evidence.confidence <= 1.0:
        raise ToolError(f"the tool returned a confidence of {evidence.confidence}, which is outside 0..1")
    if not isinstance(evidence.text, str):
        raise ToolError(f"the tool returned a {type(evidence.text).__name__} as text")
    if len(evidence.text) > MAX_TEXT:
        raise ToolError(f"the tool returned a text of {len(evidence.text):,} characters; the limit is {MAX_TEXT:,}")
    try:
        evidence.text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"the tool returned a text that is not valid Unicode: {error.reason} (character {error.start + 1})"
        ) from error
    if not isinstance(evidence.data, Mapping) or not _has_plain_keys(evidence.data, MAX_DEPTH):
        raise ToolError(f"the tool returned data that is not a JSON object with string keys, at most {MAX_DEPTH} deep")
    try:
        # A non-finite number would change when read from the cache, and an incomplete character could not be read.
        size = len(json.dumps(evidence.data, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        raise ToolError(f"the tool returned data that is not JSON: {_words(error)[:300]}") from error
    if size > MAX_DATA:
        raise ToolError(f"the tool returned {size:,} bytes of data; the limit is {MAX_DATA:,}")
    if not overlays:
        evidence = replace(
            evidence, pictures=tuple(picture for picture in evidence.pictures if picture.box is not None)
        )
    for picture in evidence.pictures:
        _check_picture(picture, images)
    return evidence


def _has_plain_keys(value: Any, depth: int) -> bool:
    """Return whether all keys in some data are strings and no container is nested deeper than `depth`."""
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
        raise ToolError(f"the tool returned a picture of {what}; an RGB picture of 8 bits is (H, W, 3) uint8")
    if not 0 < pixels.shape[0] * pixels.shape[1] <= MAX_PIXELS or max(pixels.shape) > MAX_SIDE:
        raise ToolError(f"the tool returned a picture of {pixels.shape[1]} x {pixels.shape[0]} pixels")
    if not isinstance(picture.of, int) or not 0 <= picture.of < images:
        raise ToolError(
            f"the tool returned a picture of image {picture.of}; the images are counted from 0 to {images - 1}"
        )
    box = picture.box
    corners = () if box is None else (box.x0, box.y0, box.x1, box.y1)
    if not all(math.isfinite(number) for number in (*corners, picture.scale)) or picture.scale <= 0:
        raise ToolError(f"the tool returned a picture with the box {corners} and the scale {picture.scale}")
