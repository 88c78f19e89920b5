"""One request that is sent in a batch: the clients' connections call `exchanged` before they send anything.

The client makes the same request twice. The first one is written into a batch and ends with `PendingInBatch`; the
second one gets the reply. In between, the bytes of the request are not kept in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from hybrid.log.batches import BatchedCall

Said = tuple[int, bytes]  # A status and a body in JSON.


class PendingInBatch(Exception):
    """The request waits in a batch. The packages of providers may wrap this."""


@dataclass(slots=True, eq=False)
class Live:
    """A question that is being asked."""

    parked: int = 0  # How many of its requests wait for a reply.
    holds: bool = False  # Whether it is among those that may work now.


@dataclass(slots=True, eq=False)
class BatchItem:
    """One request of one call, which goes into a batch or is sent `direct`."""

    call: BatchedCall
    live: Live | None
    # Writes it into a batch; returns what is said at once where none can hold it.
    put: Callable[[BatchItem, bytes], Said | None]
    direct: bool = False
    said: Said | None = None
    parked: bool = False
    sent: int = 0  # How often it was sent in a batch that the provider lost.
    arrived: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


TICKET: ContextVar[BatchItem | None] = ContextVar("the ticket of the request that is being made", default=None)


def exchanged(body: bytes) -> Said | None:
    """The status and the body by which a batch answers a request; None where the request is to be sent.

    Raises `PendingInBatch` where it waits in a batch from now on.
    """
    ticket = TICKET.get()
    if ticket is None or ticket.direct:
        return None
    reply, ticket.said = ticket.said or ticket.put(ticket, body), None
    if reply is None and not ticket.direct:
        ticket.parked = True
        raise PendingInBatch
    return reply
