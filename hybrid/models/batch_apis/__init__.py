"""The batch APIs of providers, one file each, found by the provider's word: `API` opens one (`BatchApiOpener`).

A file says how requests are written into one body, how that is handed in, and how what comes back is read; when a
batch is sent, and waited for, is the same for all (`hybrid/models/batching`).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from hybrid.config import ModelSettings
from hybrid.models.batching.http import Http
from hybrid.types import Json

EXPIRED, CANCELLED, FAILED = 408, 409, 500
"""The statuses that a single request would end by, where its batch gives none: each may be asked again."""
LISTED: Final = 100
"""Batches of a provider, the newest, among which one of ours is looked for whose id was lost."""


@dataclass(frozen=True, slots=True)
class BatchRules:
    """The form of a body with requests, and what it may hold at most."""

    requests: int
    size: int
    """In bytes."""
    begins: bytes = b""
    between: bytes = b"\n"
    ends: bytes = b"\n"


@dataclass(frozen=True, slots=True)
class BatchError:
    """Why a provider took nothing of a batch that it had accepted; `line` counts from 1, None is about all of it."""

    body: Json
    line: int | None = None
    is_queue: bool = False
    """Whether too much is waiting already, so that it may be sent again later."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a provider says of a batch."""

    state: str
    """In its own word."""
    back: int
    """Requests that it is done with."""
    ended: bool
    results: tuple[str, ...] = ()
    """Where they are fetched."""
    errors: tuple[BatchError, ...] = ()
    missing: int = FAILED
    """The status of requests of which the results say nothing."""
    input: str | None = None
    """The file of its requests, which is deleted once they are over; None where it is none of ours."""


@dataclass(frozen=True, slots=True)
class Result:
    """The end of one request, as the single form would have ended: a status and a body in JSON."""

    id: str
    status: int
    body: bytes


class BatchApi(Protocol):
    """The batches of one provider for one model. Raises as `Http` does."""

    @property
    def rules(self) -> BatchRules:
        """The form and the limits of a batch."""
        ...

    @property
    def http(self) -> Http:
        """Its connections."""
        ...

    def request(self, identity: str, path: str, body: bytes) -> bytes:
        """One request of a batch; `path` is where the single form would send the body."""
        ...

    async def create(self, file: Path, name: str) -> str:
        """Hand in the requests of a file; the id of the batch."""
        ...

    async def find(self, name: str, count: int, since: float, known: Collection[str]) -> str | None:
        """The id of the batch that may have been created under this name, with so many requests and not before then."""
        ...

    async def look(self, identity: str) -> Look:
        """How far a batch is."""
        ...

    def read(self, line: bytes) -> Result:
        """The result in a line. Raises `ValueError`, `KeyError` or `TypeError` where there is none."""
        ...

    async def cancel(self, identity: str) -> None:
        """End a batch; what is done of it stays."""
        ...


class BatchApiOpener(Protocol):
    """Makes the API of a model `provider:name`: what a file exports as `API`. Nothing is connected yet."""

    def __call__(self, name: str, settings: ModelSettings, /) -> BatchApi:
        """The API of this model. Raises `UsageError` where there is no key."""
        ...


def dumped(value: Any) -> bytes:
    """A part of a line as the body of a reply."""
    return json.dumps(value).encode()
