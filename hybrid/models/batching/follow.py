"""Follows batches: sends them, polls them until they end, and hands out their results.

To avoid paying twice, a missing batch is first searched for, by its id and in the provider's list. If it is not found,
its requests count as paid, the loss is reported, and each request is sent again at most once (`_give_up`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from hybrid.core.errors import HybridError, ServerDown
from hybrid.core.timing import Clock
from hybrid.display.notes import tell
from hybrid.log.batches import BatchedCall, BatchJournal, LoggedBatch
from hybrid.models.base import ModelRefused
from hybrid.models.batch_apis import BatchApi, BatchStatus, dumped
from hybrid.models.batching.ticket import Said
from hybrid.models.failures import CHECK, FailedRequest, Failure, StatusError, read_failure

R = TypeVar("R")

log = logging.getLogger(__name__)

FIRST_LOOK_S, LAST_LOOK_S = 1.0, 60.0  # Limits of the polling interval, which is a tenth of the batch's age.
PATIENCE_S = 600.0  # Longest time for which sending a batch may fail while no other batch of this run is open.
AWAY_S = 3600.0  # Longest time for which polling a batch may fail; the batch continues meanwhile.
# How long a batch that the provider reports as missing is polled again, before the provider's list is searched: longer
# for a batch younger than `YOUNG_S`, because not all of the provider's servers may know it yet.
MISSING_S, MISSING_YOUNG_S, YOUNG_S = 300.0, 900.0, 3600.0
# How long a batch that is in the list, but cannot be polled, is polled again.
LISTED_S = 3600.0
ANSWER_LOST_S = 120.0  # How long the list is searched for a batch whose creation was not confirmed.
MAX_REFUSED = 30  # Number of consecutive batches that the queue may reject: 16 halvings lead from 50,000 requests to 1.
BUSY, WRONG, LOST = 429, 400, 410
NO_PATH, GONE = frozenset({404, 405, 501}), frozenset({404, 410})
# Statuses of a gateway that stopped waiting for the provider, which may have accepted the batch.
IN_DOUBT = frozenset({408, 502, 504})
LOST_TWICE: Final = {
    "error": {"message": "the provider lost this request in two batches: omit --batch to ask directly"}
}
NOT_AGAIN: Final = {"error": {"message": "the provider lost its batch, and the run's budget allows no second request"}}
UNCONFIRMED_BATCH: Final = "the provider did not confirm batch {batch} and does not list it"


@dataclass(frozen=True)
class Timer:
    """The clocks and the sleep function, replaceable in tests."""

    clock: Clock = time.monotonic
    wall: Clock = time.time  # Seconds since the epoch.
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


REAL_TIME = Timer()


class _LostError(Exception):
    """A batch may have been created but is not in the provider's list."""


@dataclass
class _OpenBatch:
    """A batch at the provider."""

    since: float
    requests: int
    back: int = 0
    ended: bool = False


class Follower:
    """Sends batches and hands out their results.

    Args:
        api: the provider's batch API.
        journal: log of every batch of the run.
        give: called with each call and the reply to it, or None if its request was not accepted after all.
        stop: called with the error after which no reply can arrive.
        count_lost: counts requests of a lost batch as paid; returns whether the budget allows sending them again.
    """

    def __init__(
        self,
        api: BatchApi,
        journal: BatchJournal,
        give: Callable[[BatchedCall, Said | None], None],
        stop: Callable[[HybridError], None],
        count_lost: Callable[[int], bool] = lambda requests: True,
    ) -> None:
        self._api, self._journal, self._give, self._stop = api, journal, give, stop
        self.most = api.rules.requests  # Largest number of requests in a batch at present.
        self.over: HybridError | None = None
        self.news: Callable[[str], None] = log.info
        self._round, self._begins_round = 0, True
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._out: dict[str, _OpenBatch] = {}
        self._creating = asyncio.Lock()
        self._timer, self._count_lost = REAL_TIME, count_lost
        self._refused_in_a_row = 0  # Number of batches that the queue rejected in a row, without a result in between.
        # For each call, the number of its lost batches.
        self.times_lost = Counter(
            call for batch in journal.known.values() if batch.state == "lost" for call in batch.calls
        )

    def begin(self, news: Callable[[str], None]) -> None:
        """Count rounds from 1 again, and report progress to `news`."""
        self.news, self._round, self._begins_round = news, 0, True

    def send(self, batch: LoggedBatch, path: Path, *, ends_round: bool) -> None:
        """Send the requests in a file as a batch."""
        self._round += self._begins_round
        self._begins_round = ends_round
        self._tasks[batch.name] = asyncio.create_task(self._process(batch, path))

    def follow(self, name: str) -> None:
        """Fetch the results of a batch that an earlier command sent."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._process(self._journal.known[name], None))

    async def close(self) -> None:
        """Stop polling."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _process(self, batch: LoggedBatch, path: Path | None) -> None:
        try:
            if batch.id is None:
                # Files are uploaded one after the other, because each may contain several gigabytes.
                async with self._creating:
                    if path is not None:
                        self._journal.begin(batch)
                    batch = await self._create(batch, path)
            if batch.id is not None:
                await self._deliver(batch, batch.id)
        except HybridError as error:
            self._end(error)
        # Whatever the error, no question may wait forever.
        except Exception as error:
            failed = read_failure(error)
            words = CHECK.get(failed.kind, "omit --batch to ask directly")
            log.exception("batch %s", batch.name)
            self._end(ModelRefused(f"--batch: {batch.model}: {failed.text}; {words}"))

    def _end(self, error: HybridError) -> None:
        self.over = self.over or error
        self._stop(self.over)

    async def _create(self, batch: LoggedBatch, path: Path | None) -> LoggedBatch:
        """Submit the batch and return it with its id; if the provider rejects it, fail its requests and return no id.

        `path` is the file with the batch's requests. It is None for a batch of an earlier command; such a batch may not
        exist, although its file was uploaded.
        """
        identity = None
        if path is None:
            in_doubt = batch.state == "creating"
            young_s = ANSWER_LOST_S - (self._timer.wall() - batch.at) if in_doubt else 0.0
            identity = await self._search(batch, min(young_s, ANSWER_LOST_S))
            if identity is None and in_doubt:
                return await self._give_up(batch, UNCONFIRMED_BATCH.format(batch=batch.name))
        if identity is None and (path is not None or batch.input):
            try:
                taking = f"{batch.model} takes no batch"
                identity = await self._retry(partial(self._submit, batch.name, path), taking, batch.name)
            except _LostError:
                return await self._give_up(batch, UNCONFIRMED_BATCH.format(batch=batch.name))
            except StatusError as error:
                await delete_input(self._api, self._journal, batch.name)
                if path is not None:
                    return self._reject(batch.name, error, read_failure(error))
            finally:
                if path is not None:
                    path.unlink(missing_ok=True)
        elif path is not None:
            path.unlink(missing_ok=True)
        return self._confirm(batch, identity)

    async def _submit(self, name: str, path: Path | None) -> str:
        """Create a batch and return its id. Raises `_LostError` if it may have been created but cannot be found."""
        batch = self._journal.known[name]
        if path is not None and not batch.input and (uploaded := await self._api.upload(path, name)):
            batch = self._journal.change(name, input=uploaded)
        if batch.state != "creating":
            batch = self._journal.change(name, state="creating")
        try:
            return await self._api.create(path or Path(), name, batch.input)
        except Exception as error:
            failed = read_failure(error)
            if failed.kind is not Failure.RETRY or not failed.reached or failed.status == BUSY:
                raise
            # It is unknown whether the batch was accepted, so the provider's list decides.
            in_doubt = failed.status is None or failed.status < 300 or failed.status in IN_DOUBT
            identity = await self._search(batch, ANSWER_LOST_S if in_doubt else 0.0)
            if identity is not None:
                return identity
            if in_doubt:
                raise _LostError from error
            # The batch was certainly rejected, so a later command may use the file again.
            self._journal.change(name, state="begun")
            raise

    async def _search(self, batch: LoggedBatch, seconds: float) -> str | None:
        """Return the id of a batch in the provider's list, which is polled for `seconds`; None if it is not there."""
        pause, since = FIRST_LOOK_S, self._timer.clock()
        while True:
            try:
                identity = await self._retry(partial(self._api.find, batch, self._journal.ids))
            except StatusError as error:
                # A server without a list counts as having an empty one.
                if error.status_code not in NO_PATH:
                    raise
                return None
            if identity is not None or self._timer.clock() - since >= seconds:
                return identity
            self.news(f"batch {batch.name} was not confirmed, the provider's list is read again in {pause:.0f} s")
            await self._timer.sleep(pause)
            pause = min(2 * pause, LAST_LOOK_S)

    async def _give_up(self, batch: LoggedBatch, reason: str) -> LoggedBatch:
        """Give up a batch without results. Its requests count as paid; each is sent again once if the budget allows."""
        await delete_input(self._api, self._journal, batch.name)
        changed = self._journal.change(batch.name, state="lost")
        self.times_lost.update(batch.calls)
        affordable = self._count_lost(len(batch.calls))
        resent_calls = [call for call in batch.calls if affordable and self.times_lost[call] == 1]
        tell(
            f"note: {batch.model}: {reason}: its "
            f"{len(batch.calls):,} requests count as paid, {len(resent_calls):,} are sent again"
        )
        log.warning(
            "batch %s is lost (%s), %d of %d are sent again",
            batch.id or batch.name,
            reason,
            len(resent_calls),
            len(batch.calls),
        )
        for call in batch.calls:
            error = LOST_TWICE if self.times_lost[call] > 1 else NOT_AGAIN
            self._give(call, None if affordable and self.times_lost[call] == 1 else (LOST, dumped(error)))
        return changed

    def _reject(self, name: str, error: StatusError, failed: FailedRequest) -> LoggedBatch:
        """Fail each request of the batch with the error of the batch."""
        batch = self._journal.change(name, state="refused")
        if failed.kind is Failure.KEY:
            raise ModelRefused(f"--model {batch.model}: batches are rejected; {CHECK[failed.kind]}: {failed.text}")
        if error.status_code in NO_PATH and failed.kind is not Failure.CONFIGURATION:
            raise ModelRefused(f"--batch: the server of {batch.model} does not accept batches: {failed.text}")
        for call in batch.calls:
            self._give(call, (error.status_code, dumped(error.body)))
        return batch

    def _confirm(self, batch: LoggedBatch, identity: str | None) -> LoggedBatch:
        """Log the provider's id of the batch on disk; without an id, the batch's requests are made again."""
        if identity is None:
            for call in batch.calls:
                self._give(call, None)
        return self._journal.change(batch.name, state="sent" if identity else "refused", id=identity or batch.id)

    async def _deliver(self, batch: LoggedBatch, identity: str) -> None:
        """Poll a batch until it has ended, and hand out its results."""
        out = self._out[batch.name] = _OpenBatch(batch.at, len(batch.calls))
        delivered_indices: set[int] = set()
        look = await self._wait_for_end(batch, identity, delivered_indices, out)
        out.back, out.ended = out.requests, True
        rest = [call for place, call in enumerate(batch.calls) if place not in delivered_indices]
        self._refused_in_a_row = 0 if delivered_indices else self._refused_in_a_row
        if isinstance(look, str):
            await self._give_up(self._journal.known[batch.name], look)
        else:
            await delete_input(self._api, self._journal, batch.name)
            if look.errors:
                await self._handle_failure(batch, look)
            else:
                error = {
                    "error": {
                        "message": f"the batch is {look.state}, without a result for this request",
                        "code": look.state,
                    }
                }
                for call in rest:
                    self._give(call, (look.missing, dumped(error)))
                self._journal.change(batch.name, state="over")
        state = "lost" if isinstance(look, str) else look.state
        log.info("batch %s: %s, %d of %d", identity, state, len(delivered_indices), len(batch.calls))
        self._tell(0.0)

    async def _wait_for_end(
        self, batch: LoggedBatch, identity: str, delivered_indices: set[int], out: _OpenBatch
    ) -> BatchStatus | str:
        """Wait until a batch has ended and hand out its results.

        Returns the status of the batch, or the reason why these requests have no results.
        """
        missing_since: float | None = None
        while True:
            try:
                look = await self._retry(partial(self._api.look, identity))
                if look.ended:
                    # An interrupted download is started again; each result is handed out once.
                    await self._retry(partial(self._fetch, batch, look, delivered_indices))
                    if delivered_indices or not look.results or look.errors:
                        return look
                    # A batch that was found by searching may be another run's. It then contains no results for these
                    # requests.
                    other = await self._search(batch, 0.0)
                    # If batches have names, the search can only find this batch again.
                    other = None if other == identity else other
                    reason = f"the results of batch {identity} contain no request of this run"
                else:
                    other, missing_since, out.back = identity, None, look.back
                    await self._pause(out.since)
            except StatusError as error:
                if error.status_code not in GONE:
                    raise
                now = self._timer.clock()
                missing_since = now if missing_since is None else missing_since
                other = await self._look_for(batch, identity, now - missing_since)
                reason = f"the provider no longer has batch {identity}"
            if other is None:
                return reason
            if other != identity:
                identity = other
                self._journal.change(batch.name, id=identity)

    async def _pause(self, since: float) -> None:
        """Wait until the next poll of a batch: a tenth of the time since `since`, within the limits of a pause."""
        pause = min(LAST_LOOK_S, max(FIRST_LOOK_S, (self._timer.wall() - since) / 10))
        self._tell(pause)
        await self._timer.sleep(pause)

    async def _look_for(self, batch: LoggedBatch, identity: str, missing_s: float) -> str | None:
        """Pause, then return the id under which to poll a missing batch again; None to give it up."""
        patience = MISSING_YOUNG_S if self._timer.wall() - batch.at < YOUNG_S else MISSING_S
        current_id: str | None = identity
        if missing_s >= patience:
            try:
                # The provider's list may contain the batch under this id, so do not skip the id.
                current_id = await self._retry(partial(self._api.find, batch, self._journal.ids - {identity}))
            except StatusError:
                current_id = None
            patience = LISTED_S
        if current_id is None or missing_s >= LISTED_S:
            return None
        pause = min(LAST_LOOK_S, max(FIRST_LOOK_S, missing_s))
        words = f"the provider does not know batch {current_id}, and is asked again for {patience / 60:.0f} minutes"
        self.news(f"{words}, next look in {pause:.0f} s")
        await self._timer.sleep(pause)
        return current_id

    async def _fetch(self, batch: LoggedBatch, look: BatchStatus, delivered_indices: set[int]) -> None:
        for address in look.results:
            # A provider adds only a few lines to those of the requests, so limit the number of lines.
            most = 2 * len(batch.calls) + 1000
            async for line in self._api.http.lines(address, most):
                # An unreadable line counts as missing, and its request fails.
                with suppress(ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
                    result = self._api.read(line)
                    name, _, place = result.id.rpartition("-")
                    if (
                        name == batch.name
                        and 0 <= (at := int(place)) < len(batch.calls)
                        and at not in delivered_indices
                    ):
                        delivered_indices.add(at)
                        self._give(batch.calls[at], (result.status, result.body))

    async def _handle_failure(self, batch: LoggedBatch, look: BatchStatus) -> None:
        """Fail the requests that a rejected batch's error names; if it names none, fail them all."""
        self._journal.change(batch.name, state="refused")
        can_wait = self._other_open_batches(batch.name) > 0 or len(batch.calls) > 1
        if later := can_wait and any(error.is_queue for error in look.errors):
            self._refused_in_a_row += 1
            if self._refused_in_a_row > MAX_REFUSED:
                raise ServerDown(f"{batch.model} accepted none of {MAX_REFUSED} batches: {look.errors[0].body}")
            # The account's queue is full: try later, or with smaller batches.
            if not self._other_open_batches(batch.name):
                self.most = max(1, len(batch.calls) // 2)
            running_before = self._other_open_batches()
            while running_before and self._other_open_batches() >= running_before:
                await self._timer.sleep(FIRST_LOOK_S)
        by_line = {error.line - 1: error for error in look.errors if error.line is not None}
        batch_error = next((error for error in look.errors if error.line is None), None)
        for place, call in enumerate(batch.calls):
            error = None if later else by_line.get(place, batch_error)
            self._give(call, error and (BUSY if error.is_queue else WRONG, dumped(error.body)))

    def _other_open_batches(self, name: str = "") -> int:
        """Return the number of batches at the provider, except the batch called `name`."""
        return sum(not batch.ended for other, batch in self._out.items() if other != name)

    async def _retry(
        self, ask: Callable[[], Awaitable[R]], what: str = "no information about the batches", sending: str = ""
    ) -> R:
        """Ask a provider, repeating while it does not answer. Raises errors after which asking again is useless.

        `what` describes the failure. `sending` is the name of a batch that is being sent, if any: the provider then has
        less time to answer (`PATIENCE_S` instead of `AWAY_S`), and this time runs only while no other batch is open.
        """
        pause, since, patience = FIRST_LOOK_S, self._timer.clock(), PATIENCE_S if sending else AWAY_S
        while True:
            try:
                return await ask()
            except _LostError:
                raise
            except Exception as error:
                failed = read_failure(error)
                if failed.kind is not Failure.RETRY:
                    raise
                if sending and self._other_open_batches(sending):
                    since = self._timer.clock()
                if self._timer.clock() - since > patience:
                    if sending:
                        self._journal.change(sending, state="refused")
                        await delete_input(self._api, self._journal, sending)
                    raise ServerDown(f"{what} for {patience:.0f} s: {failed.text}") from None
                self.news(f"{what} ({failed.text[:80]}), next try in {pause:.0f} s")
            await self._timer.sleep(max(pause, min(failed.retry_after_s or 0.0, LAST_LOOK_S)))
            pause = min(2 * pause, LAST_LOOK_S)

    def _tell(self, pause: float) -> None:
        out = [batch for batch in self._out.values() if not batch.ended]
        back, sent = (sum(getattr(batch, name) for batch in self._out.values()) for name in ("back", "requests"))
        if not out:
            self._out.clear()
        start_time = time.strftime("%H:%M", time.localtime(min((batch.since for batch in out), default=0.0)))
        oldest = f", oldest batch since {start_time}" if out else ""
        look = f", next look in {pause:.0f} s" if pause and out else ""
        self.news(f"round {self._round}, {back:,} of {sent:,} back{oldest}{look}")


async def delete_input(api: BatchApi, journal: BatchJournal, name: str) -> None:
    """Delete the uploaded file, which contains pictures. If the provider does not delete it, log a warning."""
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
