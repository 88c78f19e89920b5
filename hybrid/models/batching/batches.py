"""Collects the requests of all questions in flight, sends them as batches of a provider, and waits for the results.

    with batches.asking(1901, active=64):            # 1901 questions, of which at most 64 work at a time
        async with batches.question():               # for each question
            reply = await model.chat(...)            # through `BatchedClient`

A round is sent once every remaining question waits for a reply, or `wait_s` after its first request; a full batch is
sent at once. Each request that is sent is logged to disk with its batch before the wait begins
(`hybrid/log/batches.py`).
"""

from __future__ import annotations

import asyncio
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, NamedTuple

from hybrid.core.errors import HybridError
from hybrid.core.secrets import redact_bytes
from hybrid.core.timing import waiting
from hybrid.log.batches import BATCHES, BatchedCall, BatchJournal, LoggedBatch
from hybrid.models.base import CallKey
from hybrid.models.batch_apis import BatchApi, dumped
from hybrid.models.batching.follow import LOST, LOST_TWICE, Follower
from hybrid.models.batching.reply_store import ReplyStore
from hybrid.models.batching.ticket import BatchItem, Live, Said

FOLDER = "batches"  # Folder in a run for requests that are not sent yet.
TOO_LARGE = 413
_LIVE: ContextVar[Live | None] = ContextVar("the question that is being asked", default=None)


class _Writing(NamedTuple):
    """A batch that is being written."""

    path: Path
    file: BinaryIO
    tickets: list[BatchItem]


class Batches:
    """The batches of one run and one model, used in one event loop.

    Args:
        api: the provider's batch API.
        name: name of the model.
        base_url: the model's address as the run shows it, if it is not the provider's own address.
        folder: folder of the run.
        wait_s: longest time in seconds from a round's first request until it is sent.
        tail: if fewer questions than this are left, their requests are sent directly.
        count_lost: called with the number of requests in a batch that the provider lost. Counts them as paid; returns
            whether the run's budget allows sending them again.

    Raises on construction:
        OSError: the run's folder cannot be read or written.
    """

    def __init__(
        self,
        api: BatchApi,
        name: str,
        base_url: str | None,
        folder: Path,
        wait_s: float = 600.0,
        tail: int = 0,
        count_lost: Callable[[int], bool] = lambda requests: True,
    ) -> None:
        self._api, self._name, self._base_url, self._wait_s, self._tail = api, name, base_url, wait_s, tail
        self._folder = folder / FOLDER
        # Delete files that an earlier command left: their requests are built again.
        shutil.rmtree(self._folder, ignore_errors=True)
        self._journal = BatchJournal(folder / BATCHES)
        self._follower = Follower(api, self._journal, self._give, self._stop, count_lost)
        self._sent_of: dict[BatchedCall, str] = {}  # Name of the batch in which each call was last sent.
        self._sent = set[tuple[str, str, int, int]]()  # Every call sent so far, whatever its request.
        for batch in self._journal.known.values():
            if batch.state not in ("refused", "lost"):
                self._note_sent(batch)
        self._replies = ReplyStore()
        # Replies to calls that this command has not made yet, or for which it no longer waits.
        self._back: dict[BatchedCall, Callable[[], Said]] = {}
        self._waiting: dict[BatchedCall, BatchItem] = {}
        self._writing: _Writing | None = None
        self._live = self._parked = 0
        self._slots = asyncio.Semaphore(1)

    def _note_sent(self, batch: LoggedBatch) -> None:
        self._sent_of |= dict.fromkeys(batch.calls, batch.name)
        self._sent |= {call[:4] for call in batch.calls}

    def has_sent(self, call: CallKey) -> bool:
        """Return whether a call was sent in a batch."""
        return (call.solver, call.question, call.ask, call.call) in self._sent

    @contextmanager
    def asking(self, questions: int, active: int, news: Callable[[str], None]) -> Iterator[None]:
        """Return a context manager for asking `questions` questions at once; at most `active` work at a time."""
        self._live, self._parked, self._slots = questions, 0, asyncio.Semaphore(active)
        self._follower.begin(news)
        try:
            yield
        finally:
            self._live = 0

    @asynccontextmanager
    async def question(self) -> AsyncIterator[None]:
        """Return a context manager for one question inside `asking`; its body starts when the question may work."""
        live = Live()
        token = _LIVE.set(live)
        try:
            await self._hold(live)
            yield
        finally:
            if live.holds:
                self._slots.release()
            _LIVE.reset(token)
            self._live -= 1
            self._send_if_all_wait()

    async def _hold(self, live: Live) -> None:
        if live.holds:
            return
        await self._slots.acquire()
        if live.holds:
            # Another call of the same question has taken a slot meanwhile, and one slot per question is enough.
            self._slots.release()
        live.holds = True

    def ticket(self, call: BatchedCall) -> BatchItem:
        """Return the ticket of a request. Raises the error that ended the batches."""
        if self._follower.over is not None:
            raise type(self._follower.over)(str(self._follower.over))
        if (times := self._follower.times_lost[call]) > 1:
            self._back[call] = self._replies.keep((LOST, dumped(LOST_TWICE)))
        ticket = BatchItem(call, _LIVE.get(), self._put, said=self._back.pop(call, None), sent=times)
        if ticket.said is not None:
            return ticket
        if (name := self._sent_of.get(call)) is not None:
            self._wait(ticket)
            self._follower.follow(name)
        else:
            # Calls before the first question and those of the last few questions are sent directly.
            ticket.direct = ticket.live is None or self._live < self._tail
        return ticket

    def leave(self, ticket: BatchItem) -> None:
        """Unregister a request that is finished or was given up."""
        if self._waiting.get(ticket.call) is ticket:
            del self._waiting[ticket.call]
            ticket.parked = False
            if ticket.live is not None:
                ticket.live.parked -= 1
                self._parked -= ticket.live.parked == 0

    async def answered(self, ticket: BatchItem) -> None:
        """Wait for a reply, or until the request must be built again. Raises the error that ended the batches."""
        with waiting(long=True):
            if ticket.live is not None and ticket.live.holds and ticket.live.parked:
                ticket.live.holds = False
                self._slots.release()
            self._send_if_all_wait()
            await ticket.arrived
            ticket.arrived = asyncio.get_running_loop().create_future()
            if ticket.live is not None:
                await self._hold(ticket.live)

    def _wait(self, ticket: BatchItem) -> None:
        ticket.parked = True
        self._waiting[ticket.call] = ticket
        if ticket.live is not None:
            ticket.live.parked += 1
            self._parked += ticket.live.parked == 1

    def _wake(self, ticket: BatchItem, error: Exception | None = None) -> None:
        self.leave(ticket)
        if error is not None and not ticket.arrived.done():
            ticket.arrived.set_exception(error)
        elif not ticket.arrived.done():
            ticket.arrived.set_result(None)

    def _put(self, ticket: BatchItem, body: bytes) -> Said | None:
        """Write a request into the batch, and make its ticket wait; return an error reply if it fits into no batch."""
        rules = self._api.rules
        if redact_bytes(body) != body:
            # The request contains a secret, which must not be written to disk.
            ticket.direct = True
            return None
        if self._writing is None:
            self._folder.mkdir(exist_ok=True)
            path = self._folder / f"h{uuid.uuid4().hex[:16]}.json"
            self._writing = _Writing(path, path.open("wb"), [])
            asyncio.get_running_loop().call_later(self._wait_s, self._send, self._writing)
        now = self._writing
        line = self._api.request(f"{now.path.stem}-{len(now.tickets)}", body)
        most = rules.size - len(rules.ends) - len(rules.between)
        if len(rules.begins) + len(line) > most:
            error = {"type": "request_too_large", "message": f"larger than the largest batch ({rules.size:,} bytes)"}
            return TOO_LARGE, dumped({"error": error})
        if now.file.tell() + len(line) > most or len(now.tickets) >= self._follower.most:
            self._send(now)
            return self._put(ticket, body)
        now.file.write((rules.between if now.tickets else rules.begins) + line)
        now.tickets.append(ticket)
        self._wait(ticket)
        return None

    def _send_if_all_wait(self) -> None:
        if self._writing is not None and self._parked >= self._live:
            self._send(self._writing, ends_round=True)

    def _send(self, now: _Writing, *, ends_round: bool = False) -> None:
        """Send the current batch unless it was sent already; if few questions are left, send its requests directly."""
        if self._writing is not now:
            return
        self._writing = None
        tickets = [ticket for ticket in now.tickets if self._waiting.get(ticket.call) is ticket]
        if not tickets or self._live < self._tail:
            now.file.close()
            now.path.unlink()
            for ticket in tickets:
                ticket.direct = True
                self._wake(ticket)
            return
        now.file.write(self._api.rules.ends)
        now.file.close()
        calls = tuple(ticket.call for ticket in now.tickets)
        batch = LoggedBatch(now.path.stem, self._name, self._base_url, round(time.time(), 3), calls)
        self._note_sent(batch)
        self._follower.send(batch, now.path, ends_round=ends_round)

    def _give(self, call: BatchedCall, reply: Said | None) -> None:
        """Pass a reply to its call. None means that the request was not accepted; it is then sent again at no cost."""
        self._sent_of.pop(call, None)
        if (ticket := self._waiting.get(call)) is not None:
            ticket.said = self._replies.keep(reply) if reply is not None else None
            ticket.sent = self._follower.times_lost[call]
            self._wake(ticket)
        elif reply is not None and reply[0] < 300:
            # Only successes are stored: a request that failed in an earlier command is made again.
            self._back[call] = self._replies.keep(reply)

    def _stop(self, error: HybridError) -> None:
        for ticket in tuple(self._waiting.values()):
            self._wake(ticket, type(error)(str(error)))

    async def close(self) -> None:
        """Stop waiting and close the connections; batches at the provider continue."""
        if self._writing is not None:
            self._writing.file.close()
            self._writing = None
        shutil.rmtree(self._folder, ignore_errors=True)
        await self._follower.close()
        await self._api.http.close()
        self._replies.close()
        self._journal.close()
