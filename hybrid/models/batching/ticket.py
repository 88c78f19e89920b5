"""A request that is sent in a batch: the clients' connections call `exchanged` before they send anything.

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
    """The request waits in a batch. The packages of providers may wrap this exception in their own."""


@dataclass(slots=True, eq=False)
class Live:
    """A question that is being asked."""

    parked: int = 0  # Number of its requests that wait for a reply.
    holds: bool = False  # Whether it holds one of the slots for questions that work at the same time.


@dataclass(slots=True, eq=False)
class BatchItem:
    """A request of a call, which is put into a batch or sent directly (`direct`)."""

    call: BatchedCall
    live: Live | None
    # Writes the request into a batch; returns an error reply at once if the request fits in no batch.
    put: Callable[[BatchItem, bytes], Said | None]
    direct: bool = False
    # Reads the reply that came back, which may be on disk.
    said: Callable[[], Said] | None = None
    parked: bool = False
    sent: int = 0  # Number of times that the request was in a batch which the provider lost.
    arrived: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


TICKET: ContextVar[BatchItem | None] = ContextVar("the ticket of the request that is being made", default=None)


def exchanged(body: bytes) -> Said | None:
    """Return the status and body with which a batch answers a request; None if the request must be sent directly.

    Raises `PendingInBatch` if the request waits in a batch from now on.
    """
    ticket = TICKET.get()
    if ticket is None or ticket.direct:
        return None
    read_reply, ticket.said = ticket.said, None
    reply = read_reply() if read_reply is not None else ticket.put(ticket, body)
    if reply is None and not ticket.direct:
        ticket.parked = True
        raise PendingInBatch
    return reply
