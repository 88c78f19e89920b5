"""The batch APIs of providers, one file each, found by the provider's word: `API` is the class for one model.

A file says how requests are written into one body, how that is handed in, and how what comes back is read; when a
batch is sent, and waited for, is the same for all (`hybrid/models/batching`).
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

# The statuses that a single request would end by, where its batch gives none: each may be asked again.
EXPIRED, CANCELLED, FAILED = 408, 409, 500
LISTED: Final = 100  # Batches of a provider, the newest, among which one of ours is looked for whose id was lost.


class BatchRules(NamedTuple):
    """The form of a body with requests, and what it may hold at most: so many requests, and bytes."""

    requests: int
    size: int
    begins: bytes = b""
    between: bytes = b"\n"
    ends: bytes = b"\n"


class BatchError(NamedTuple):
    """Why a provider took nothing of a batch that it had accepted, as the body of a reply.

    `line` counts from 1, None is about all of it. With `is_queue` too much waits already, and it may be sent later.
    """

    body: Any
    line: int | None = None
    is_queue: bool = False


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The state of a batch, in its provider's own word."""

    state: str
    back: int  # Requests that the provider is done with.
    ended: bool
    results: Sequence[str] = ()  # Where they are fetched.
    errors: Sequence[BatchError] = ()
    missing: int = FAILED  # The status of requests of which the results say nothing.


class BatchResult(NamedTuple):
    """The end of one request, as the single form would have ended: a status and a body in JSON."""

    id: str
    status: int
    body: bytes


class BatchApi(Protocol):
    """The batches of one provider for one model. Raises as `Http` does."""

    rules: BatchRules
    http: Http

    def __init__(self, name: str, settings: ModelSettings) -> None:
        """For a model `provider:name`; nothing is connected. Raises `UsageError` where there is no key."""

    def _reach(self, at: Address, settings: ModelSettings) -> None:
        self.http = Http(at, settings.timeout_s)

    def request(self, identity: str, body: bytes) -> bytes:
        """One request of a batch, from the body that the single form would send."""

    async def upload(self, file: Path, name: str) -> str:
        """Hand in a file of requests; its place, to be deleted in the end. Empty where `create` takes the file."""
        return ""

    async def create(self, file: Path, name: str, uploaded: str) -> str:
        """Make a batch of the requests in a file, or in what was uploaded of it; the id of the batch."""

    async def find(self, batch: LoggedBatch, known_ids: Collection[str | None]) -> str | None:
        """The id of a batch that may have been created without our hearing of it, none of those that are `known`."""

    async def look(self, identity: str) -> BatchStatus:
        """How far a batch is."""

    def read(self, line: bytes) -> BatchResult:
        """The result in a line. Raises `ValueError`, `KeyError` or `TypeError` where there is none."""

    async def cancel(self, identity: str) -> None:
        """End a batch; what is done of it stays."""


def dumped(value: Any) -> bytes:
    """A part of a line as the body of a reply."""
    return json.dumps(value).encode()
