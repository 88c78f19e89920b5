"""The batch APIs of providers: each has a file with the provider's name, in which `API` is the class for one model.

A file defines how requests are written into one body, how the body is submitted, and how results are read. The rules
for when a batch is sent and polled are the same for all providers (`hybrid/models/batching`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from hybrid.config import ModelSettings
from hybrid.log.batches import LoggedBatch
from hybrid.models.batching.http import Http
from hybrid.models.chat_completions.wire import Address

# HTTP statuses that are assumed for requests whose batch reports none; such requests may be sent again.
EXPIRED, CANCELLED, FAILED = 408, 409, 500
LISTED: Final = 100  # Number of a provider's newest batches to search for a batch whose id was lost.


class BatchRules(NamedTuple):
    """How a batch is written: its limits, and the bytes around and between its requests.

    `requests` is the largest number of requests, and `size` the largest size in bytes.
    """

    requests: int
    size: int
    begins: bytes = b""
    between: bytes = b"\n"
    ends: bytes = b"\n"


class BatchError(NamedTuple):
    """The reason why a provider rejected a batch after accepting it, as the body of a reply.

    `line` is the number of the rejected line, from 1, or None if the error concerns the whole batch. With `is_queue`,
    the queue is full, and the batch may be sent later.
    """

    body: Any
    line: int | None = None
    is_queue: bool = False


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The state of a batch; `state` is the provider's own word for it."""

    state: str
    back: int  # Number of finished requests.
    ended: bool
    results: Sequence[str] = ()  # Addresses from which to fetch the results.
    errors: Sequence[BatchError] = ()
    missing: int = FAILED  # HTTP status that is assumed for requests without a result.


class BatchResult(NamedTuple):
    """The result of one request, as a single request would have returned it: a status and a body in JSON."""

    id: str
    status: int
    body: bytes


class BatchApi(Protocol):
    """The batches of one provider for one model. Raises as `Http` does."""

    rules: BatchRules
    http: Http

    def __init__(self, name: str, settings: ModelSettings) -> None:
        """Initialise for a model `provider:name` without connecting. Raises `UsageError` if there is no key."""

    def _reach(self, at: Address, settings: ModelSettings) -> None:
        self.http = Http(at, settings.timeout_s)

    def request(self, identity: str, body: bytes) -> bytes:
        """Build one request of a batch from the body that a single request would have."""

    async def upload(self, file: Path, name: str) -> str:
        """Upload a file of requests and return the id with which to delete it later; "" if `create` sends the file."""
        return ""

    async def create(self, file: Path, name: str, uploaded: str) -> str:
        """Create a batch from the requests in a file, or from the uploaded file; return the id of the batch."""

    async def find(self, batch: LoggedBatch, known_ids: Collection[str | None]) -> str | None:
        """Find the id of a batch whose creation was not confirmed; skip the ids in `known_ids`."""

    async def look(self, identity: str) -> BatchStatus:
        """Return the state of a batch."""

    def read(self, line: bytes) -> BatchResult:
        """Parse the result in a line. Raises `ValueError`, `KeyError` or `TypeError` if the line contains none."""

    async def cancel(self, identity: str) -> None:
        """Cancel a batch; finished results stay available."""


def dumped(value: Any) -> bytes:
    """Encode a value as JSON bytes."""
    return json.dumps(value).encode()
