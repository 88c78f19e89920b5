"""Batches on their way: sent, looked at until they end, and their results handed out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from hybrid.errors import HybridError, ServerDown
from hybrid.log.batches import BatchedCall, BatchJournal, LoggedBatch
from hybrid.models.base import ModelRefused
from hybrid.models.batch_apis import BatchApi, Look, dumped
from hybrid.models.batching.ticket import Said
from hybrid.models.failures import CHECK, FailedRequest, Failure, StatusError, read_failure

R = TypeVar("R")

log = logging.getLogger(__name__)

FIRST_LOOK_S, LAST_LOOK_S = 1.0, 60.0  # A batch is looked at after a tenth of its age, between these.
PATIENCE_S = 600.0  # For so long a provider may refuse to take a batch for now, while none of ours is with it.
AWAY_S = 3600.0  # For so long a batch may not be looked at; it goes on all the same.
BUSY, WRONG = 429, 400
NO_PATH, GONE = frozenset({404, 405, 501}), frozenset({404, 410})


@dataclass
class _Out:
    """A batch that is with the provider."""

    since: float
    requests: int
    back: int = 0
    ended: bool = False


class Follower:
    """Sends batches and brings their results.

    Args:
        api: the provider's.
        journal: has every batch of the run.
        give: is called with each call and what was said to it, None where its request was not taken after all.
        stop: is called with the error after which no reply can come.
    """

    def __init__(
        self,
        api: BatchApi,
        journal: BatchJournal,
        give: Callable[[BatchedCall, Said | None], None],
        stop: Callable[[HybridError], None],
    ) -> None:
        self._api, self._journal, self._give, self._stop = api, journal, give, stop
        self.most = api.rules.requests  # Requests that a batch may hold now.
        self.over: HybridError | None = None
        self.news: Callable[[str], None] = log.info
        self._round, self._begins_round = 0, True
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._out: dict[str, _Out] = {}
        self._creating = asyncio.Lock()

    def begin(self, news: Callable[[str], None]) -> None:
        """Count rounds from 1 again, and say by this how far they are."""
        self.news, self._round, self._begins_round = news, 0, True

    def send(self, batch: LoggedBatch, path: Path, *, ends_round: bool) -> None:
        """Send the requests in a file."""
        self._round += self._begins_round
        self._begins_round = ends_round
        self._tasks[batch.name] = asyncio.create_task(self._carried(batch, path))

    def follow(self, name: str) -> None:
        """Bring the results of a batch that an earlier command has sent."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._carried(self._journal.known[name], None))

    async def close(self) -> None:
        """Look no further."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _carried(self, batch: LoggedBatch, path: Path | None) -> None:
        try:
            if batch.id is None:
                # One after the other: each is a file of up to gigabytes.
                async with self._creating:
                    if path is not None:
                        self._journal.begin(batch)
                    batch = await self._created(batch, path)
            if batch.id is not None:
                await self._brought(batch, batch.id)
        except HybridError as error:
            self._end(error)
        # Whatever it is, no question may wait for ever.
        except Exception as error:
            failed = read_failure(error)
            words = CHECK.get(failed.kind, "leave --batch away to ask directly")
            log.exception("batch %s", batch.name)
            self._end(ModelRefused(f"--batch: {batch.model}: {failed.text}; {words}"))

    def _end(self, error: HybridError) -> None:
        self.over = self.over or error
        self._stop(self.over)

    async def _created(self, batch: LoggedBatch, path: Path | None) -> LoggedBatch:
        """The batch with its id; without one where the provider does not take it, and its requests have ended.

        `path` has its requests; None for a batch of an earlier command, of which only what was uploaded is left.
        """
        ask = partial(self._api.find, batch, self._journal.ids)
        identity = await self._retried(ask) if path is None else None
        if identity is None and (path is not None or batch.input):
            try:
                taking = f"{batch.model} takes no batch"
                identity = await self._retried(partial(self._handed_in, batch.name, path), taking, batch.name)
            except StatusError as error:
                await input_deleted(self._api, self._journal, batch.name)
                if path is not None:
                    return self._refused(batch.name, error, read_failure(error))
        if path is not None:
            path.unlink()
        return self._confirmed(batch, identity)

    async def _handed_in(self, name: str, path: Path | None) -> str:
        batch = self._journal.known[name]
        try:
            if path is not None and not batch.input and (uploaded := await self._api.upload(path, name)):
                batch = self._journal.change(name, input=uploaded)
            return await self._api.create(path or Path(), name, batch.input)
        except Exception as error:
            failed = read_failure(error)
            # Of another failure than a refusal it is not known whether the batch was taken.
            if failed.kind is Failure.RETRY and failed.status != BUSY:
                identity = await self._retried(partial(self._api.find, batch, self._journal.ids))
                if identity is not None:
                    return identity
            raise

    def _refused(self, name: str, error: StatusError, failed: FailedRequest) -> LoggedBatch:
        """Each of its requests ends as the whole does."""
        batch = self._journal.change(name, state="refused")
        if failed.kind is Failure.KEY:
            raise ModelRefused(f"--model {batch.model}: no batch is taken; {CHECK[failed.kind]}: {failed.text}")
        if error.status_code in NO_PATH and failed.kind is not Failure.CONFIGURATION:
            raise ModelRefused(f"--batch: the server of {batch.model} takes no batches: {failed.text}")
        for call in batch.calls:
            self._give(call, (error.status_code, dumped(error.body)))
        return batch

    def _confirmed(self, batch: LoggedBatch, identity: str | None) -> LoggedBatch:
        """The batch with the provider's id, on disk; without one its requests are made again."""
        if identity is None:
            for call in batch.calls:
                self._give(call, None)
        return self._journal.change(batch.name, state="sent" if identity else "refused", id=identity or batch.id)

    async def _brought(self, batch: LoggedBatch, identity: str) -> None:
        """Look at a batch until it has ended, and hand its results out."""
        out = self._out[batch.name] = _Out(batch.at, len(batch.calls))
        done: set[int] = set()
        while True:
            try:
                look = await self._retried(partial(self._api.look, identity))
                if look.ended:
                    # A download that breaks off is begun again; each result is handed out once.
                    await self._retried(partial(self._fetched, batch, look, done))
                    break
            except StatusError as error:
                if error.status_code not in GONE:
                    raise
                # The provider no longer has it.
                look = Look("gone", 0, ended=True)
                break
            out.back = look.back
            pause = min(LAST_LOOK_S, max(FIRST_LOOK_S, (time.time() - out.since) / 10))
            self._tell(pause)
            await asyncio.sleep(pause)
        out.back, out.ended = out.requests, True
        await input_deleted(self._api, self._journal, batch.name)
        rest = [call for place, call in enumerate(batch.calls) if place not in done]
        if look.errors:
            await self._failed(batch, look)
        elif look.state == "gone" or (rest and not done and look.results):
            # Another's of the same size, which was taken for ours, says nothing of these.
            self._confirmed(batch, None)
        else:
            said = {"error": {"message": f"the batch is {look.state}, without this request", "code": look.state}}
            for call in rest:
                self._give(call, (look.missing, dumped(said)))
            self._journal.change(batch.name, state="over")
        log.info("batch %s: %s, %d of %d", identity, look.state, len(done), len(batch.calls))
        self._tell(0.0)

    async def _fetched(self, batch: LoggedBatch, look: Look, done: set[int]) -> None:
        for address in look.results:
            async for line in self._api.http.lines(address):
                # A line that cannot be read is missing, and its request ends as such.
                with suppress(ValueError, KeyError, TypeError):
                    result = self._api.read(line)
                    name, _, place = result.id.rpartition("-")
                    if name == batch.name and (at := int(place)) not in done:
                        self._give(batch.calls[at], (result.status, result.body))
                        done.add(at)

    async def _failed(self, batch: LoggedBatch, look: Look) -> None:
        """Nothing was done of a batch: lines that are named end by that, and what is about all of it ends all."""
        self._journal.change(batch.name, state="refused")
        can_wait = self._out_beside(batch.name) > 0 or len(batch.calls) > 1
        if later := can_wait and any(error.is_queue for error in look.errors):
            # More than the account may have waiting: later, or in smaller batches.
            if not self._out_beside(batch.name):
                self.most = max(1, len(batch.calls) // 2)
            before = self._out_beside()
            while before and self._out_beside() >= before:
                await asyncio.sleep(FIRST_LOOK_S)
        named = {error.line - 1: error for error in look.errors if error.line is not None}
        whole = next((error for error in look.errors if error.line is None), None)
        for place, call in enumerate(batch.calls):
            error = None if later else named.get(place, whole)
            self._give(call, error and (BUSY if error.is_queue else WRONG, dumped(error.body)))

    def _out_beside(self, name: str = "") -> int:
        """How many batches are with the provider, without the one of this name."""
        return sum(not one.ended for other, one in self._out.items() if other != name)

    async def _retried(
        self, ask: Callable[[], Awaitable[R]], what: str = "no word of the batches", sending: str = ""
    ) -> R:
        """What a provider says, asked again while it does not answer. Raises what is no reason to ask again.

        `what` says that it does not. A batch that is `sending` has less patience, but for as long as others are out.
        """
        pause, since, patience = FIRST_LOOK_S, time.monotonic(), PATIENCE_S if sending else AWAY_S
        while True:
            try:
                return await ask()
            except Exception as error:
                failed = read_failure(error)
                if failed.kind is not Failure.RETRY:
                    raise
                if sending and self._out_beside(sending):
                    since = time.monotonic()
                if time.monotonic() - since > patience:
                    if sending:
                        self._journal.change(sending, state="refused")
                        await input_deleted(self._api, self._journal, sending)
                    raise ServerDown(f"{what} for {patience:.0f} s: {failed.text}") from None
                self.news(f"{what} ({failed.text[:80]}), next try in {pause:.0f} s")
            await asyncio.sleep(max(pause, min(failed.retry_after_s or 0.0, LAST_LOOK_S)))
            pause = min(2 * pause, LAST_LOOK_S)

    def _tell(self, pause: float) -> None:
        out = [one for one in self._out.values() if not one.ended]
        back, sent = (sum(getattr(one, name) for one in self._out.values()) for name in ("back", "requests"))
        if not out:
            self._out.clear()
        began = time.strftime("%H:%M", time.localtime(min((one.since for one in out), default=0.0)))
        oldest = f", oldest batch since {began}" if out else ""
        look = f", next look in {pause:.0f} s" if pause and out else ""
        self.news(f"round {self._round}, {back:,} of {sent:,} back{oldest}{look}")


async def input_deleted(api: BatchApi, journal: BatchJournal, name: str) -> None:
    """Delete what was uploaded, pictures included; a provider that keeps it is told of in the log, and no more."""
    if not (uploaded := journal.known[name].input):
        return
    try:
        await api.http.say("DELETE", uploaded)
    except Exception as error:
        failed = read_failure(error)
        if failed.kind is Failure.BUG:
            raise
        if failed.status not in GONE:
            log.warning("%s stays at the provider: %s", uploaded, failed.text)
    journal.change(name, input="")
