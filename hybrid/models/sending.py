"""One model call with its retries, the same for every provider; the clients' own retries are off.

    reply, attempts = await sender.send(request, call)

`request` makes one HTTP request and gives the message, or raises what its client raises. A failure is charged to the
call only while the server answers others (`hybrid.models.circuit`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hybrid.errors import Outage
from hybrid.messages import AssistantMessage
from hybrid.models.base import CallKey
from hybrid.models.circuit import Circuit, Sleep
from hybrid.models.failures import Backoff, Failure, classify, retry_after_s, summary

R = TypeVar("R")

log = logging.getLogger(__name__)

MOMENT_S = 1.0
"""How long a call that has used up its retries waits for news of the others, at most."""


class Refusal(Exception):
    """The provider's content filter has answered; the text says how."""

    def __init__(self, reason: str, attempts: int) -> None:
        super().__init__(reason)
        self.attempts = attempts


class Sender:
    """Sends the requests of one model, at most `retries` more for each call after the first."""

    def __init__(
        self, name: str, retries: int, circuit: Circuit, backoff: Backoff | None = None, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._name = name
        self._retries = retries
        self._circuit = circuit
        self._backoff = backoff or Backoff()
        self._sleep = sleep

    async def send(self, request: Callable[[], Awaitable[R]], call: CallKey) -> tuple[R, int]:
        """What the request gives, and how many were sent.

        Raises:
            Refusal: the content filter has answered.
            Outage: no usable reply after the retries, or this one request is not taken.
            ServerDown: the server has been away for too long.
            ModelRefused: key, model name, quota or option is rejected.
        """
        sent = charged = 0
        while True:
            turn = await self._circuit.turn(call.question)
            sent += 1
            try:
                reply = await request()
            # Every client has exceptions of its own; what is not about the provider is raised again.
            except Exception as error:
                failure = classify(error)
                if failure is Failure.BUG:
                    raise
                if failure is Failure.POLICY:
                    self._circuit.worked(turn)
                    raise Refusal(summary(error), sent) from error
                if failure is not Failure.RETRY:
                    raise self._circuit.refused(turn, failure, error) from error
                log.info("%s: request %d for %s failed: %s", self._name, sent, call.question, summary(error))
                last = charged == self._retries
                self._circuit.failed(turn, error, last=last)
                given_up = Outage(f"{self._name}: no reply after {sent} attempts: {summary(error)}")
                given_up.__cause__ = error
                asked, doubtful = retry_after_s(error), self._circuit.in_doubt(turn, error)
            else:
                self._circuit.worked(turn)
                return reply, sent
            finally:
                self._circuit.leave(turn)
            if last and not (doubtful or self._circuit.is_away(turn)):
                raise given_up
            if not self._circuit.is_away(turn):
                pause = self._backoff.seconds(call, charged, asked)
                await self._sleep(min(pause, MOMENT_S) if last else pause)
            if self._circuit.is_away(turn):
                continue
            if last:
                raise given_up
            charged += 1


def policy_reply(refusal: Refusal) -> AssistantMessage:
    """The message of a model whose provider has refused: empty, with the reason."""
    return AssistantMessage(refusal=str(refusal))
