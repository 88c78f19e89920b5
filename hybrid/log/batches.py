"""`RUN/batches.jsonl`: which calls went to a provider in which batch, so that none is sent, or paid, twice.

{"batch":"h3f...","model":"openai:gpt-4o","base_url":null,"at":1.7e9,"calls":[["mllm","q7",0,0,"sha256"]]}
{"batch":"h3f...","state":"sent","id":"batch_abc"}          # of the provider; on disk before it is waited for
{"batch":"h3f...","state":"over"}                           # ended; its results can still be fetched

A batch is begun before it is sent. One that was never heard of again may have been taken by the provider all the same.
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
BatchState = Literal["begun", "sent", "cancelled", "over", "refused"]
WAITS: Final = frozenset({"begun", "sent"})


class BatchedCall(NamedTuple):
    """One request of one call of a model."""

    solver: str
    question: str
    ask: int
    call: int
    request_sha256: str


@dataclass(frozen=True)
class LoggedBatch:
    """A batch as a run knows it. `cancelled` was asked for by us; of one that was `refused` no reply can come."""

    # Ours, which is part of each request's id.
    name: str
    model: str
    base_url: str | None
    # Seconds since the epoch.
    at: float
    # In the order in which they were written.
    calls: tuple[BatchedCall, ...]
    # The provider's.
    id: str | None = None
    state: BatchState = "begun"


class BatchJournal:
    """The batches of a run, open for writing. Raises `OSError` where they cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self.known = read_batches(path)
        self._journal = Journal(path)

    def begin(self, batch: LoggedBatch) -> None:
        """Put a batch on disk before it is sent."""
        given = {key: value for key, value in asdict(batch).items() if key not in ("name", "id", "state")}
        self._append({"batch": batch.name, **given})
        self.known[batch.name] = batch

    def change(self, name: str, state: BatchState, identity: str | None = None) -> None:
        """Put on disk what became of a batch."""
        self._append({"batch": name, "state": state, **({"id": identity} if identity else {})})
        batch = self.known[name]
        self.known[name] = replace(batch, state=state, id=identity or batch.id)

    def _append(self, row: Mapping[str, Any]) -> None:
        self._journal.append(json.dumps(row, separators=(",", ":")).encode())

    def close(self) -> None:
        """Let go of the file."""
        self._journal.close()


def read_batches(path: Path) -> dict[str, LoggedBatch]:
    """The batches of a file by their names. A line that cannot be read is passed over: its requests are sent anew."""
    known: dict[str, LoggedBatch] = {}
    for line in whole_lines(path):
        try:
            row = json.loads(line)
            name = row.pop("batch")
            if "calls" in row:
                calls = tuple(BatchedCall(*call) for call in row.pop("calls"))
                known[name] = LoggedBatch(name, calls=calls, **row)
            else:
                known[name] = replace(known[name], **row)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return known


def waiting_calls(batches: Iterable[LoggedBatch]) -> tuple[int, int]:
    """How many batches a provider may still be at work on, and how many requests are in them."""
    waiting = [batch for batch in batches if batch.state in WAITS]
    return len(waiting), sum(len(batch.calls) for batch in waiting)
