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
from hybrid.models.circuit import CHECK
from hybrid.models.failures import FailedRequest, Failure, StatusError, read_failure

R = TypeVar("R")

log = logging.getLogger(__name__)

FIRST_LOOK_S, LAST_LOOK_S = 1.0, 60.0
"""A batch is looked at after a tenth of its age, between these."""
PATIENCE_S = 600.0
"""Seconds for which a provider may refuse to take a batch for now, while none of ours is with it."""
AWAY_S = 3600.0
"""Seconds for which a batch may not be looked at; it goes on all the same."""
BUSY, WRONG = 429, 400
NO_PATH = frozenset({404, 405, 501})


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
        give: is called with each call and what was said to it.
        free: is called with each call whose request was not taken after all.
        stop: is called with the error after which none can come.
    """

    def __init__(
        self,
        api: BatchApi,
        journal: BatchJournal,
        give: Callable[[BatchedCall, Said], None],
        free: Callable[[BatchedCall], None],
        stop: Callable[[HybridError], None],
    ) -> None:
        self._api, self._journal, self._give, self._free, self._stop = api, journal, give, free, stop
        self.most = api.rules.requests
        """Requests that a batch may hold now."""
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
            if path is not None:
                batch = await self._created(batch, path)
            elif batch.id is None:
                batch = self._confirmed(batch, await self._retried(partial(self._found, batch)))
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

    async def _created(self, batch: LoggedBatch, path: Path) -> LoggedBatch:
        """Send a batch; the provider may want it later, or not at all."""
        # One after the other: each is a file of up to gigabytes.
        async with self._creating:
            self._journal.begin(batch)
            pause, since = FIRST_LOOK_S, time.monotonic()
            while True:
                try:
                    identity: str | None = await self._api.create(path, batch.name)
                except Exception as error:
                    failed = read_failure(error)
                    if failed.kind is not Failure.RETRY:
                        return self._refused(batch, error, failed)
                    # Of another failure than a refusal it is not known whether the batch was taken.
                    identity = None if failed.status == BUSY else await self._retried(partial(self._found, batch))
                    if identity is None:
                        since = time.monotonic() if self._others_are_out(batch.name) else since
                        if time.monotonic() - since > PATIENCE_S:
                            self._journal.change(batch.name, "refused")
                            raise ServerDown(f"{batch.model} takes no batch: {failed.text}") from None
                        self.news(f"{batch.model} takes no batch now ({failed.text[:80]}), next try in {pause:.0f} s")
                        await asyncio.sleep(max(pause, min(failed.retry_after_s or 0.0, LAST_LOOK_S)))
                        pause = min(2 * pause, LAST_LOOK_S)
                        continue
                batch = self._confirmed(batch, identity)
                path.unlink()
                return batch

    def _refused(self, batch: LoggedBatch, error: Exception, failed: FailedRequest) -> LoggedBatch:
        """Each of its requests ends as the whole does."""
        self._journal.change(batch.name, "refused")
        if failed.kind is Failure.BUG or not isinstance(error, StatusError):
            raise error
        if failed.kind is Failure.KEY:
            raise ModelRefused(f"--model {batch.model}: no batch is taken; {CHECK[failed.kind]}: {failed.text}")
        if error.status_code in NO_PATH and failed.kind is not Failure.CONFIGURATION:
            raise ModelRefused(f"--batch: the server of {batch.model} takes no batches: {failed.text}")
        for call in batch.calls:
            self._give(call, (error.status_code, dumped(error.body)))
        return self._journal.known[batch.name]

    async def _found(self, batch: LoggedBatch) -> str | None:
        known = {one.id for one in self._journal.known.values() if one.id is not None}
        return await self._api.find(batch.name, len(batch.calls), batch.at, known)

    def _confirmed(self, batch: LoggedBatch, identity: str | None) -> LoggedBatch:
        """The batch with the provider's id, on disk; without one its requests are made again."""
        self._journal.change(batch.name, "sent" if identity else "refused", identity)
        if identity is None:
            for call in batch.calls:
                self._free(call)
        return self._journal.known[batch.name]

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
                if error.status_code not in (404, 410):
                    raise
                # The provider no longer has it.
                look = Look("gone", 0, ended=True)
                break
            out.back = look.back
            pause = min(LAST_LOOK_S, max(FIRST_LOOK_S, (time.time() - out.since) / 10))
            self._tell(pause)
            await asyncio.sleep(pause)
        out.back, out.ended = out.requests, True
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
            await self._input_deleted(look)
            self._journal.change(batch.name, "over")
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

    async def _input_deleted(self, look: Look) -> None:
        """Delete what was uploaded, pictures included; a provider that keeps it is told of in the log, and no more."""
        if look.input is not None:
            try:
                await self._api.http.exchange("DELETE", look.input)
            except Exception as error:
                if (failed := read_failure(error)).kind is Failure.BUG:
                    raise
                log.warning("%s stays at the provider: %s", look.input, failed.text)

    async def _failed(self, batch: LoggedBatch, look: Look) -> None:
        """Nothing was done of a batch: lines that are named end by that, and what is about all of it ends all."""
        await self._input_deleted(look)
        self._journal.change(batch.name, "refused")
        if any(error.is_queue for error in look.errors) and (self._others_are_out(batch.name) or len(batch.calls) > 1):
            # More than the account may have waiting: later, or in smaller batches.
            if not self._others_are_out(batch.name):
                self.most = max(1, len(batch.calls) // 2)
            before = sum(not one.ended for one in self._out.values())
            while before and sum(not one.ended for one in self._out.values()) >= before:
                await asyncio.sleep(FIRST_LOOK_S)
            for call in batch.calls:
                self._free(call)
            return
        named = {error.line - 1: error for error in look.errors if error.line is not None}
        whole = next((error for error in look.errors if error.line is None), None)
        for place, call in enumerate(batch.calls):
            error = named.get(place, whole)
            if error is None:
                self._free(call)
            else:
                self._give(call, (BUSY if error.is_queue else WRONG, dumped(error.body)))

    def _others_are_out(self, name: str) -> bool:
        return any(not one.ended for other, one in self._out.items() if other != name)

    async def _retried(self, ask: Callable[[], Awaitable[R]]) -> R:
        """What a provider says, asked again while it does not answer. Raises what is no reason to ask again."""
        pause, since = FIRST_LOOK_S, time.monotonic()
        while True:
            try:
                return await ask()
            except Exception as error:
                failed = read_failure(error)
                if failed.kind is not Failure.RETRY:
                    raise
                if time.monotonic() - since > AWAY_S:
                    raise ServerDown(f"no word of the batches for {AWAY_S:.0f} s: {failed.text}") from None
                self.news(f"no word of the batches ({failed.text[:80]}), next look in {pause:.0f} s")
            await asyncio.sleep(max(pause, min(failed.retry_after_s or 0.0, LAST_LOOK_S)))
            pause = min(2 * pause, LAST_LOOK_S)

    def _tell(self, pause: float) -> None:
        out = [one for one in self._out.values() if not one.ended]
        back, sent = (sum(getattr(one, name) for one in self._out.values()) for name in ("back", "requests"))
        if not out:
            self._out.clear()
        began = time.localtime(min(one.since for one in out)) if out else None
        oldest = time.strftime(", oldest batch since %H:%M", began) if began else ""
        look = f", next look in {pause:.0f} s" if pause and out else ""
        self.news(f"round {self._round}, {back:,} of {sent:,} back{oldest}{look}")
