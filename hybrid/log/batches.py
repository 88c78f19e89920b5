"""`RUN/batches.jsonl`: which calls went to a provider in which batch, so that none is sent, or paid, twice.

{"batch":"h3f...","model":"openai:gpt-4o","base_url":null,"at":1.7e9,"calls":[["mllm","q7",0,0,"sha256"]]}
{"batch":"h3f...","input":"files/f-1"}                      # uploaded there; empty once it is deleted
{"batch":"h3f...","state":"creating"}                       # the provider is asked to take it: from now on it may have
{"batch":"h3f...","state":"sent","id":"batch_abc"}          # of the provider; on disk before it is waited for
{"batch":"h3f...","state":"over"}                           # ended; its results can still be fetched

A batch is begun before it is sent. One that was `creating` and never heard of again may have been taken by the provider
all the same; a `lost` one counts as paid, and its requests are sent again once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from hybrid.log.journal import Journal
from hybrid.log.lines import whole_lines

BATCHES: Final = "batches.jsonl"
BatchState = Literal["begun", "creating", "sent", "cancelled", "over", "refused", "lost"]
WAITS: Final = frozenset({"begun", "creating", "sent"})


class BatchedCall(NamedTuple):
    """One request of one call of a model."""

    solver: str
    question: str
    ask: int
    call: int
    request_sha256: str


@dataclass(frozen=True)
class LoggedBatch:
    """A batch as a run knows it. `cancelled` was asked for by us; of one `refused` or `lost` no reply can come."""

    name: str  # Ours, which is part of each request's id.
    model: str
    base_url: str | None
    at: float  # Seconds since the epoch.
    calls: tuple[BatchedCall, ...]  # In the order in which they were written.
    id: str | None = None  # The provider's.
    state: BatchState = "begun"
    input: str = ""  # Where the provider has the file of its requests, until that is deleted.


class BatchJournal:
    """The batches of a run, open for writing. Raises `OSError` where they cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self.known = read_batches(path)
        self._journal = Journal(path)

    @property
    def ids(self) -> frozenset[str | None]:
        """The provider's ids of all batches."""
        return frozenset(batch.id for batch in self.known.values())

    def begin(self, batch: LoggedBatch) -> None:
        """Put a batch on disk before it is sent."""
        row = asdict(batch)
        self._append({"batch": row.pop("name"), **row})
        self.known[batch.name] = batch

    def change(self, name: str, **changed: Any) -> LoggedBatch:
        """The batch with fields that are changed, on disk when this returns."""
        self._append({"batch": name, **changed})
        self.known[name] = replace(self.known[name], **changed)
        return self.known[name]

    def _append(self, row: Mapping[str, Any]) -> None:
        self._journal.append(json.dumps(row, separators=(",", ":")).encode())

    def close(self) -> None:
        """Let go of the file."""
        self._journal.close()


def read_batches(path: Path) -> dict[str, LoggedBatch]:
    """The batches of a file by their names. A line that cannot be read is passed over: its requests are sent anew."""
    batches: dict[str, LoggedBatch] = {}
    for line in whole_lines(path):
        try:
            row = json.loads(line)
            name = row.pop("batch")
            if "calls" in row:
                calls = tuple(BatchedCall(*call) for call in row.pop("calls"))
                batches[name] = LoggedBatch(name, calls=calls, **row)
            else:
                batches[name] = replace(batches[name], **row)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return batches


def waiting_calls(batches: Iterable[LoggedBatch]) -> tuple[int, int]:
    """How many batches a provider may still be at work on, and how many requests are in them."""
    waiting = [batch for batch in batches if batch.state in WAITS]
    return len(waiting), sum(len(batch.calls) for batch in waiting)
