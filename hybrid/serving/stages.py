"""The three stages of a request (`hybrid.tool.Stages`), for every backend, and how a failure in one becomes an error.

backend = staged(card.make())                 # one that answers a batch at once computes all of it
with tool_errors(): prepared = PreparedRequest(request, backend.prepare(request), watch)
outputs = compute(backend, [prepared.inputs])
with tool_errors(): evidence = checked(backend.finish(request, prepared.inputs, outputs[0]))
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hybrid.errors import HybridError, ToolError, is_out_of_memory
from hybrid.timing import Watch
from hybrid.tool import Backend, Evidence, Request, Stages

log = logging.getLogger("hybrid.serving.service")


@dataclass(frozen=True)
class PreparedRequest:
    """A decoded request, what the backend's `compute` takes of it, and the watch that runs while it is worked on."""

    request: Request[Any]
    inputs: Any
    watch: Watch


class OutOfMemory(ToolError):
    """A device has no memory left for this request."""


class AtOnce(Stages[Any, Request[Any], Evidence]):
    """A backend that answers a batch at once, in the form of stages: `compute` does everything."""

    def __init__(self, backend: Backend[Any]) -> None:
        self._backend = backend

    def setup(self, device: str, weights: str | None) -> None:
        """Set up the backend itself."""
        self._backend.setup(device, weights)

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
    return backend if isinstance(backend, Stages) else AtOnce(backend)


def compute(backend: Stages[Any, Any, Any], inputs: Sequence[Any]) -> list[Any]:
    """One batch: for each of its inputs the output, or the `HybridError` that it fails with.

    When the batch fails, each input runs alone, so that one bad request costs nobody else.
    """
    try:
        outputs = backend.compute(inputs)
    except Exception as error:
        if len(inputs) == 1:
            return [error if isinstance(error, HybridError) else _told(error)]
    else:
        if len(outputs) == len(inputs):
            return list(outputs)
        if len(inputs) == 1:
            return [ToolError(f"the tool gave {len(outputs)} findings for 1 requests")]
    # Not while the error is handled: it holds what its batch has on the device.
    return [compute(backend, [one])[0] for one in inputs]


@contextmanager
def tool_errors() -> Iterator[None]:
    """What a tool raises inside becomes a `ToolError`; errors of our own stay as they are."""
    try:
        yield
    except HybridError:
        raise
    except Exception as error:
        raise _told(error) from error


def _told(error: Exception) -> ToolError:
    if is_out_of_memory(error):
        return OutOfMemory(f"the memory of the device does not suffice: {str(error)[:200]}")
    log.debug("a tool failed", exc_info=error)
    return ToolError(f"the tool failed: {type(error).__name__}: {str(error)[:300]}")


def checked(evidence: Evidence) -> Evidence:
    """Evidence that has what everybody relies on. Raises `ToolError`."""
    if not 0.0 <= evidence.confidence <= 1.0:
        raise ToolError(f"the tool gave a confidence of {evidence.confidence}, which is outside 0..1")
    try:
        # A number that is not finite would be another one when it is read from the cache.
        json.dumps(evidence.data, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ToolError(f"the tool gave data that is no JSON: {error}") from error
    return evidence
