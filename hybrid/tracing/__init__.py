"""The seam of tracing: a run describes its questions, model and tool calls as they begin and end (`spans.py`).

    with span(lambda: spans.tool_call("depth", ("img:1",), {})) as ended:
        finding = await ...
        ended(lambda: spans.tool_finding(finding, refs, cached=False))

An exception that leaves the block is the error of its span. An installed package offers a tracer in the entry-point
group `hybrid.tracing` under a word (`otlp`) or the ending of a file (`jsonl`): a context manager that takes the value
of `--trace`, the `Facts` of the run and whether texts are kept, and sets `TRACER`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from hybrid.types import Json

GROUP: Final = "hybrid.tracing"
"""The entry-point group of tracers."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a span when it begins or ends, by the names of docs/tracing.md.

    `texts` are exported with `--trace-text` alone. `name` is that of a span that begins, `error` the kind of a failure.
    """

    attributes: Mapping[str, Json]
    texts: Mapping[str, Json] = field(default_factory=dict)
    name: str = ""
    error: str = ""


Describe = Callable[[], Facts]
End = Callable[[Describe], None]
Tracer = Callable[[Facts], AbstractContextManager[End]]
"""Gives the block of a span. Called in one event loop; raises nothing and does not wait."""
TRACER: ContextVar[Tracer | None] = ContextVar("the tracer of the run", default=None)


def span(begun: Describe) -> AbstractContextManager[End]:
    """The block of a span of the run's tracer; gives the function that takes how it ended."""
    tracer = TRACER.get()
    return nullcontext(lambda _: None) if tracer is None else tracer(begun())
