"""What a worker thread does for the tool service: decode, prepare, run a batch, finish; every failure becomes an error.

`run_batch(ready, requests)` for a backend that does all at once; `prepare`, `compute_batch` and `finish` for one in
stages (`hybrid.tool.Stages`). `hybrid/serving/service.py` says in which threads.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from hybrid.errors import HybridError, ToolError, is_out_of_memory
from hybrid.serving.loader import Ready
from hybrid.tool import Evidence, Request, Stages

log = logging.getLogger("hybrid.serving.service")

T = TypeVar("T")
R = TypeVar("R")

Work = Callable[[], Request[Any]]
"""Decodes the images of a request: called in the worker thread."""


@dataclass(frozen=True)
class Prepared:
    """A decoded request and what the network takes of it."""

    request: Request[Any]
    inputs: Any


@dataclass(frozen=True)
class Output:
    """What the network gave for a prepared request."""

    prepared: Prepared
    values: Any


class OutOfMemory(ToolError):
    """A device has no memory left for this request."""


def run_batch(ready: Ready, requests: Sequence[Work]) -> list[Evidence | HybridError]:
    """Decode and run; one request that fails costs nobody else."""
    _one_thread()
    decoded: list[Request[Any] | HybridError] = [_attempt(request) for request in requests]
    good = [request for request in decoded if isinstance(request, Request)]
    rest = iter(_together_or_alone(partial(_run, ready), good))
    return [next(rest) if isinstance(request, Request) else request for request in decoded]


def compute_batch(ready: Ready, batch: Sequence[Prepared]) -> list[Output | HybridError]:
    """What the network gives for each prepared request, or the error that it fails with."""
    _one_thread()
    found = _together_or_alone(_stages(ready).compute, [one.inputs for one in batch])
    return [
        values if isinstance(values, HybridError) else Output(one, values)
        for one, values in zip(batch, found, strict=True)
    ]


def _together_or_alone(run: Callable[[Sequence[T]], Sequence[R]], items: Sequence[T]) -> list[R | HybridError]:
    """One batch; when it fails, each item runs alone, so that one bad request costs nobody else."""
    if not items:
        return []
    try:
        return _as_many(run(items), items)
    except Exception as error:
        if len(items) == 1:
            return [_as_tool_error(error)]
    # Not while the error is handled: it holds what its batch has on the device.
    return [_together_or_alone(run, [item])[0] for item in items]


def _as_many(found: Sequence[R], items: Sequence[Any]) -> list[R | HybridError]:
    if len(found) != len(items):
        raise ToolError(f"the tool gave {len(found)} findings for {len(items)} requests")
    return list(found)


def _run(ready: Ready, requests: Sequence[Request[Any]]) -> list[Evidence]:
    return [_checked(evidence) for evidence in ready.backend.run(requests)]


def _checked(evidence: Evidence) -> Evidence:
    """Evidence that has what everybody relies on. Raises `ToolError`."""
    if not 0.0 <= evidence.confidence <= 1.0:
        raise ToolError(f"the tool gave a confidence of {evidence.confidence}, which is outside 0..1")
    try:
        # A number that is not finite would be another one when it is read from the cache.
        json.dumps(evidence.data, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ToolError(f"the tool gave data that is no JSON: {error}") from error
    return evidence


def prepare(ready: Ready, work: Work) -> Prepared:
    """Decode a request and prepare it. Raises `HybridError`."""
    _one_thread()
    try:
        request = work()
        return Prepared(request, _stages(ready).prepare(request))
    except HybridError:
        raise
    except Exception as error:
        raise _as_tool_error(error) from error


def finish(ready: Ready, output: Output) -> Evidence:
    """The evidence of a request whose network has run. Raises `HybridError`."""
    _one_thread()
    try:
        found = _stages(ready).finish(output.prepared.request, output.prepared.inputs, output.values)
    except HybridError:
        raise
    except Exception as error:
        raise _as_tool_error(error) from error
    return _checked(found)


def _stages(ready: Ready) -> Stages[Any, Any, Any]:
    if not isinstance(ready.backend, Stages):
        raise ToolError("the weights of this tool were taken away while it answered")
    return ready.backend


def _one_thread() -> None:
    """OpenCV's own threads would compete with ours and change rounding with the number of cores."""
    import cv2

    cv2.setNumThreads(1)


def _attempt(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return _as_tool_error(error)


def _as_tool_error(error: Exception) -> HybridError:
    if isinstance(error, HybridError):
        return error
    if is_out_of_memory(error):
        return OutOfMemory(f"the memory of the device does not suffice: {str(error)[:200]}")
    log.debug("a tool failed", exc_info=error)
    return ToolError(f"the tool failed: {type(error).__name__}: {str(error)[:300]}")
