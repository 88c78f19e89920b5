"""A circuit breaker: while the model's server is down, only one request at a time is sent, to test whether it is back.

    permit = await circuit.acquire(call.question)  # waits while the server is down
    try:
        reply = await request()
    except SomeError as error:
        circuit.failed(permit, read_failure(error))    # or: raise circuit.refused(permit, read_failure(error))
    else:
        circuit.worked(permit)
    finally:
        circuit.leave(permit)                      # for a call that ended in any other way

Consecutive failures open the circuit; the first success closes it. The circuit breaker also decides when to stop the
run: if the server stays down, the key is wrong, or all requests are rejected. Every later call raises the same error.
The number of concurrent requests adapts to the server: a 429 halves it, replies let it grow slowly.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from hybrid.config.values import seconds_of
from hybrid.core.errors import HybridError, Outage, ServerDown
from hybrid.core.timing import Clock, waiting
from hybrid.display.notes import tell
from hybrid.models.base import ModelRefused
from hybrid.models.failures import CHECK, FailedRequest, Failure
from hybrid.models.in_flight import InFlight

Sleep = Callable[[float], Awaitable[None]]  # A function like `asyncio.sleep`, which waits for a number of seconds.

# Statuses with which a server reports too many requests of one account; 498 is Groq's.
TOO_MANY_REQUESTS = frozenset({429, 498})
# `TOO_MANY_REQUESTS`, and Anthropic's 529 for too many requests of all accounts together. This run alone cannot prevent
# a 529.
CAPACITY = TOO_MANY_REQUESTS | {529}
# Statuses with which a server or its gateway reports that it is unavailable. A 500 may be caused by the request.
ABOUT_ITSELF = CAPACITY | {502, 503, 504}
SILENT_S = 60.0  # Seconds of waiting after which a line explains the wait.
# Advice if no connection was ever made.
UNMET = "Check that the server runs, and that --base-url is its address; then run it again to continue."
# Longest obeyed `Retry-After` in seconds; longer with `--wait-for-server`.
MAX_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class CircuitLimits:
    """Limits for opening the circuit, probing, and giving up; counts start at the last success."""

    failures: int = 8  # Consecutive failures that open the circuit.
    # The run is stopped after this number of questions that are rejected, or that fail although the server responds.
    refusals: int = 10
    wrong_keys: int = 5  # Consecutive rejections of a key that has worked before.
    # Seconds before the first probe. Later pauses double, up to `cap_s`. Each pause is multiplied by a jitter of 0.5 to
    # 1.5.
    pause_s: float = 0.5
    cap_s: float = 4.0
    probes: int = 3  # Smallest number of probes before the circuit gives up.
    away_s: float = 90.0  # Seconds of probing before giving up: a restarting server loads its weights for a minute.
    # Seconds of probing before giving up if no connection was ever made: the server may not exist.
    unmet_s: float = 10.0
    pages: int = 4  # Consecutive HTML pages, without any other reply so far, before the run is stopped.
    # Seconds of probing before giving up if the server answers 429: quotas are counted per minute.
    busy_s: float = 600.0
    wait: str = ""  # Longest wait, as the user wrote it; empty by default.
    # Whether requests are parts of batches. Their failures do not concern the server, so the circuit never opens.
    in_batches: bool = False

    @classmethod
    def of(cls, wait: str | None) -> CircuitLimits:
        """Return the limits for `--wait-for-server`."""
        usual = cls()
        if wait is None:
            return usual
        most = seconds_of(wait)
        away_s, busy, unmet = (max(limit_s, most) for limit_s in (usual.away_s, usual.busy_s, usual.unmet_s))
        return replace(usual, away_s=away_s, busy_s=busy, unmet_s=unmet, cap_s=30.0, wait=wait)

    @property
    def longest_pause_s(self) -> float:
        """Longest obeyed `Retry-After` in seconds."""
        return max(MAX_PAUSE_S, self.away_s) if self.wait else MAX_PAUSE_S


@dataclass(slots=True)
class Permit:
    """The right to send one request."""

    question: str
    openings: int  # Number of times that the circuit had opened when the request was sent.
    successes: int
    probe: bool  # Whether the circuit is open, and this request tests whether the server is back.
    cuts: int = 0  # Number of times that the limit of concurrent requests had been halved when this one was sent.
    settled: bool = False


@dataclass(slots=True)
class _Row:
    """Counts of failures and rejections since the last success."""

    failures: int = 0
    pages: int = 0  # Number of failures that were HTML pages.
    since: float | None = None  # Time of the first failure.
    away_from: float | None = None  # Time when the circuit first opened.
    failed_questions: set[str] = field(default_factory=set)
    refused_questions: set[str] = field(default_factory=set)
    refusals: int = 0
    wrong_keys: int = 0


class Circuit:
    """The circuit breaker of one model, used in one event loop at a time."""

    def __init__(
        self,
        name: str,
        limits: CircuitLimits | None = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._name = name
        self._limits = limits or CircuitLimits()
        self._clock, self._sleep = clock, sleep
        # Seeded, so that the pauses of a run are reproducible.
        self._jitter = random.Random(name)
        self._row = _Row()
        self._successes = 0
        self._openings = 0
        self._open = False
        self._probes = 0
        self._probing = False
        self._pause_s = 0.0
        self._next_probe = 0.0
        self._line: deque[asyncio.Future[bool | Outage]] = deque()
        self._in_flight = InFlight(name)
        self._over: HybridError | None = None
        # Time since which no reply has arrived, and whether a message has explained the wait.
        self._silent_since: float | None = None
        self._wait_noted = False

    async def acquire(self, question: str) -> Permit:
        """Wait until a request may be sent. The wait is not counted as time of the question.

        Raises:
            ServerDown: the server has not answered for too long.
            ModelRefused: the configuration cannot work.
            Outage: the server does not answer the few remaining questions.
        """
        self._check()
        probe = False
        with waiting():
            while not probe and (self._open or self._in_flight.is_full):
                if self._open:
                    probe = await self._wait()
                else:
                    await self._in_flight.wait_for_slot()
                self._check()
        self._in_flight.out += 1
        return Permit(question, self._openings, self._successes, probe, self._in_flight.cuts)

    def _check(self) -> None:
        if self._over is not None:
            raise type(self._over)(str(self._over))

    async def _wait(self) -> bool:
        """Wait for this call's turn and pause; return True if the call may probe, False if the circuit has closed."""
        if self._probing:
            place: asyncio.Future[bool | Outage] = asyncio.get_running_loop().create_future()
            self._line.append(place)
            try:
                outcome = await place
            except BaseException:
                if not place.cancelled() and place.result() is True:
                    self._pass_on()
                elif place in self._line:
                    self._line.remove(place)
                raise
            if outcome is not True:
                if isinstance(outcome, Outage):
                    raise outcome
                return False
        self._probing = True
        opening = self._openings
        try:
            await self._sleep(max(0.0, self._next_probe - self._clock()))
        except BaseException:
            if self._is_open_since(opening):
                self._pass_on()
            raise
        return self._is_open_since(opening)

    def _is_open_since(self, opening: int) -> bool:
        return self._open and self._openings == opening

    def _pass_on(self) -> None:
        """Let the next call in line probe, after the pause."""
        self._probing = False
        while self._line:
            place = self._line.popleft()
            if not place.done():
                self._probing = True
                place.set_result(True)
                return

    def worked(self, permit: Permit) -> None:
        """Record that the server has answered, and let all waiting calls continue."""
        self._in_flight.faster()
        self._settle(permit)
        self._successes += 1
        self._row = _Row()
        self._silent_since, self._wait_noted = None, False
        self._close(False)

    def _close(self, outcome: bool | Outage) -> None:
        self._open = self._probing = False
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(outcome)

    def note_wait(self, seconds: float, failed: FailedRequest) -> None:
        """Print once why no reply arrives, before a pause that extends the wait beyond `SILENT_S` seconds."""
        now = self._clock()
        self._silent_since = now if self._silent_since is None else self._silent_since
        waited = now - self._silent_since
        if self._wait_noted or waited + seconds < SILENT_S:
            return
        self._wait_noted = True
        # With `--wait-for-server`, another message explains the wait.
        if not self._limits.wait:
            # Only an open circuit has a time limit; before that the number of retries is limited.
            limit = f", for up to {self._patience_s(failed):.0f} s" if self._open else ""
            tries = f"next try in {seconds:.0f} s{limit}"
            tell(f"note: {self._name} has not replied for {waited:.0f} s ({failed.text}); {tries}")

    def leave(self, permit: Permit) -> None:
        """Release the permit of a call that neither worked nor failed nor was rejected, such as a cancelled one."""
        if permit.settled:
            return
        self._settle(permit)
        if permit.probe and self._is_open_since(permit.openings):
            self._pass_on()

    def _settle(self, permit: Permit) -> None:
        self._in_flight.out -= not permit.settled
        permit.settled = True
        self._in_flight.let_out(all_of_them=self._over is not None or self._open)

    def failed(self, permit: Permit, failed: FailedRequest, *, last: bool = False) -> None:
        """Record a missing reply, for a possibly temporary reason.

        If the server reports that it is unavailable, a single call at its `last` try opens the circuit. The call then
        waits as long as many calls would.

        Raises:
            ServerDown: the server has been down for too long.
            ModelRefused: there is no model at the server's address.
            Outage: the server has been down for too long, but only a few questions failed, and these may be the reason.
        """
        if failed.status in TOO_MANY_REQUESTS and not self._limits.in_batches:
            self._in_flight.slower(permit.cuts)
        self._settle(permit)
        self._check()
        if self._limits.in_batches:
            return
        row, limits = self._row, self._limits
        row.failures += 1
        row.pages += failed.is_page
        if not self._successes and limits.pages <= row.pages == row.failures:
            what = f"the reply is a web page, not a model's reply; {CHECK[Failure.ADDRESS]}"
            raise self._give_up(ModelRefused(f"--model {self._name}: {what}: {failed.text}"))
        row.since = self._clock() if row.since is None else row.since
        row.failed_questions.add(permit.question)
        if self._open:
            if permit.probe and self._is_open_since(permit.openings):
                self._probes += 1
                self._note_failed_probe(failed)
            return
        # If few calls are in flight, fewer failures to connect open the circuit; one failure among many calls does not.
        enough = min(limits.failures, self._in_flight.out + 1) if not failed.reached else limits.failures
        alone = last and self._in_flight.out == 0 and self._successes == permit.successes
        if failed.status is not None and failed.status not in ABOUT_ITSELF:
            # The server responds without reporting a server problem, so the failure may depend on a few questions.
            is_away = len(row.failed_questions) >= limits.failures
        else:
            is_away = row.failures >= enough
        if is_away or (alone and failed.status in ABOUT_ITSELF):
            self._open_up(failed)

    def _open_up(self, failed: FailedRequest) -> None:
        now = self._clock()
        self._open, self._probing = True, False
        self._openings += 1
        self._probes, self._pause_s = 0, self._limits.pause_s
        self._row.away_from = now if self._row.away_from is None else self._row.away_from
        if self._limits.wait and self._openings == 1:
            tell(f"note: {self._name} is down ({failed.text}): waiting for it, up to {self._limits.wait} each time")
        self._plan(now, failed)
        self._in_flight.let_out(all_of_them=True)

    def _note_failed_probe(self, failed: FailedRequest) -> None:
        """Record that a probe found the server still down."""
        now, limits, row = self._clock(), self._limits, self._row
        assert row.away_from is not None  # noqa: S101 - the circuit is open
        if self._probes >= limits.probes and now - row.away_from >= self._patience_s(failed):
            seconds = now - (now if row.since is None else row.since)
            none = "no reply" if failed.status is None else "only errors"
            what = f"{self._name}: {none} for {seconds:.0f} s and {row.failures} requests, the last: {failed.text}"
            if not failed.reached or len(row.failed_questions) >= limits.refusals:
                unmet = f". {UNMET}" if not failed.reached and not self._successes else ""
                raise self._give_up(ServerDown(f"{what}{unmet}"))
            # The questions themselves may be the reason, so they are given up. Other questions then show whether the
            # server works.
            row.failures = 0
            outage = Outage(what)
            self._close(outage)
            raise outage
        self._pause_s = min(self._pause_s * 2, limits.cap_s)
        self._plan(now, failed)
        self._pass_on()

    def _patience_s(self, failed: FailedRequest) -> float:
        if not failed.reached and not self._successes:
            return min(self._limits.unmet_s, self._limits.away_s)
        return self._limits.busy_s if failed.status in CAPACITY else self._limits.away_s

    def _plan(self, now: float, failed: FailedRequest) -> None:
        """Set the time of the next probe: after the pause, at the latest when the time limit ends."""
        pause = self._pause_s * (0.5 + self._jitter.random())
        self._next_probe = now + max(pause, min(failed.retry_after_s or 0.0, self._limits.longest_pause_s))
        ends = (now if self._row.away_from is None else self._row.away_from) + self._patience_s(failed)
        if now < ends:
            self._next_probe = min(self._next_probe, ends)
        self.note_wait(self._next_probe - now, failed)

    def _give_up(self, error: HybridError) -> HybridError:
        """Stop the run: return the error to raise now, which every later call raises, too."""
        self._over = error
        self._close(False)
        self._in_flight.let_out(all_of_them=True)
        return error

    def refused(self, permit: Permit, failed: FailedRequest) -> HybridError:
        """Return the error to raise for a request that the server rejects.

        It is `ModelRefused` if no call can succeed: a key or model rejected before anything has worked, or too many
        consecutive rejected questions. Otherwise it is an `Outage` of this question.
        """
        self._settle(permit)
        row, limits, kind, words = self._row, self._limits, failed.kind, failed.text
        if self._over is None:
            # Any response shows that the server is up.
            row.failures, row.pages, row.since, row.away_from = 0, 0, None, None
            row.failed_questions.clear()
            self._close(False)
            row.wrong_keys += kind is Failure.KEY
            if kind is not Failure.KEY:
                row.refusals += 1
                row.refused_questions.add(permit.question)
            check = f"; {CHECK[kind]}" if kind in CHECK else ""
            refusals = len(row.refused_questions) if self._successes else row.refusals
            detail = ""
            if check and (not self._successes or kind is Failure.ACCOUNT):
                detail = f"rejected by the provider{check}"
            elif row.wrong_keys >= limits.wrong_keys:
                detail = f"the provider rejected {row.wrong_keys} requests in a row; {CHECK[Failure.KEY]}"
            elif refusals >= limits.refusals:
                detail = f"the provider refused each of the last {row.refusals} requests{check}"
            if detail:
                return self._give_up(ModelRefused(f"--model {self._name}: {detail}: {words}"))
        if self._over is not None:
            return type(self._over)(str(self._over))
        return Outage(f"{self._name} does not accept this request: {words}")

    def note_picture_refusal(self, permit: Permit) -> None:
        """Record a rejection that may be due to a tool's picture: the server is up, and the run may continue."""
        self._settle(permit)
        if self._over is None:
            row = self._row
            row.failures, row.pages, row.since, row.away_from = 0, 0, None, None
            row.failed_questions.clear()
            self._close(False)

    def was_crowded(self, permit: Permit) -> bool:
        """Return whether the limit of concurrent requests was lowered after this request was sent.

        A 429 or 498 for this request then does not count: it was sent when too many others were in flight.
        """
        return permit.cuts != self._in_flight.cuts

    def is_away(self, permit: Permit) -> bool:
        """Return whether the circuit is open, or opened after the request was sent; its failure then does not count."""
        return self._open or self._openings != permit.openings

    def in_doubt(self, permit: Permit, failed: FailedRequest) -> bool:
        """Return whether the server may turn out to be down.

        This is so if other requests are open and none has succeeded since this request was sent. A call that could not
        even connect may be the first to notice, even if other calls still got replies.
        """
        return not failed.reached or (self._in_flight.out > 0 and self._successes == permit.successes)
