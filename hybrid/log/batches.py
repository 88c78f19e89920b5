"""`RUN/batches.jsonl`: the calls in each batch, so that no call is sent and paid for twice.

{"batch":"h3f...","model":"openai:gpt-4o","base_url":null,"at":1.7e9,"calls":[["mllm","q7",0,0,"sha256"]]}
{"batch":"h3f...","input":"files/f-1"}                      # uploaded file; empty after its deletion
{"batch":"h3f...","state":"creating"}                       # the request was sent: the provider may have the batch
{"batch":"h3f...","state":"sent","id":"batch_abc"}          # the provider's id; on disk before waiting for results
{"batch":"h3f...","state":"over"}                           # ended; its results can still be fetched

A batch is written as `begun` before it is sent. The provider may have accepted a batch that stayed `creating`. A `lost`
batch counts as paid, and its requests are resent once.
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
    """One request of one model call."""

    solver: str
    question: str
    ask: int
    call: int
    request_sha256: str


@dataclass(frozen=True)
class LoggedBatch:
    """A batch as recorded.

    The state `cancelled` means that cancellation was requested. A batch in the state `refused` or `lost` has no reply.
    """

    name: str  # The run's name for the batch, which is part of each request's id.
    model: str
    base_url: str | None
    at: float  # Seconds since the epoch.
    calls: tuple[BatchedCall, ...]  # The calls in the order in which they were written.
    id: str | None = None  # The provider's id of the batch.
    state: BatchState = "begun"
    input: str = ""  # The provider's path of the uploaded requests, until they are deleted.


class BatchJournal:
    """The batches of a run, open for writing. Raises `OSError` if they cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self.known = read_batches(path)
        self._journal = Journal(path)

    @property
    def ids(self) -> frozenset[str | None]:
        """The provider's ids of all batches."""
        return frozenset(batch.id for batch in self.known.values())

    def begin(self, batch: LoggedBatch) -> None:
        """Write a batch to disk before it is sent."""
        row = asdict(batch)
        self._append({"batch": row.pop("name"), **row})
        self.known[batch.name] = batch

    def change(self, name: str, **changed: Any) -> LoggedBatch:
        """Change fields of a batch; returns the changed batch, which is then on disk."""
        self._append({"batch": name, **changed})
        self.known[name] = replace(self.known[name], **changed)
        return self.known[name]

    def _append(self, row: Mapping[str, Any]) -> None:
        self._journal.append(json.dumps(row, separators=(",", ":")).encode())

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


def read_batches(path: Path) -> dict[str, LoggedBatch]:
    """Read the batches of a file by name. Unreadable lines are skipped: their requests are sent again."""
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
    """Return the number of batches that a provider may still be processing, and of the requests in them."""
    waiting = [batch for batch in batches if batch.state in WAITS]
    return len(waiting), sum(len(batch.calls) for batch in waiting)
