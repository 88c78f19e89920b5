"""A `ChatModel` behind a server: the log of replies, tools as text, retries and the circuit breaker, for any provider.

    model = Caller(ChatCompletionsClient(name, settings, store), settings)
    message = await model.chat(messages, tools, call)

A provider is a `ChatClient`: it makes a request of messages, sends it once, and reads its reply. Retries of the
provider's own package are off, so that all providers are retried alike. A failure is charged to the call only while
the server answers others (`hybrid.models.circuit`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage
from hybrid.core.messages import AssistantMessage, End, Message, SentImage, TokenUsage, images_of, parts_of
from hybrid.core.off_loop import work_on_text
from hybrid.core.timing import waiting
from hybrid.core.types import Json, StoredImage
from hybrid.models.base import AdoptsSettings, CallKey, ModelFacts, ModelRefused, PicturesRefused, ReplyLog
from hybrid.models.circuit import TOO_MANY_REQUESTS, Circuit, CircuitLimits, Permit, Sleep
from hybrid.models.failures import (
    Backoff,
    FailedRequest,
    Failure,
    UnreadableReplyError,
    blames_picture,
    is_wordless_500,
    read_failure,
)
from hybrid.models.images import UNCONFIRMED, ImageEncoder, arrange
from hybrid.models.open_requests import requests_out
from hybrid.models.picture_limits import limits_of
from hybrid.models.replies import BrokenOffError, malformed
from hybrid.models.text_protocol import as_text, with_calls
from hybrid.models.thoughts import for_model
from hybrid.tool import Tool

Body = TypeVar("Body")

log = logging.getLogger(__name__)

MOMENT_S = 1.0  # Seconds for which a call that has used up its retries waits, at most, for news of the others.

# Bytes of a request beside its texts and pictures: schemas of tools, names, JSON.
AROUND_BYTES = 40_000

# The remedy where a server may have failed at its parser of calls: without declared tools it has nothing to parse.
WITHOUT_PARSER = (
    "; if the server fails at calls that it cannot parse, as transformers serve does, "
    "--tool-calling text does without its parser"
)

LONG_REPLY = 100_000  # Bytes of a logged reply that is read off the event loop.

# Keeps the bytes of a reply, in any thread: a kill of the process after the return does not lose them.
Keep = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class ChatRequest(Generic[Body]):
    """One request in the form in which its client sends it."""

    call: CallKey
    body: Body
    sha256: str  # Equal for equal requests; images count by their hashes.
    images: tuple[SentImage, ...]


class ChatClient(ModelFacts, Protocol[Body]):
    """A provider's wire format and connections."""

    @property
    def images(self) -> ImageEncoder:
        """Encodes the images of its requests."""

    def request(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> ChatRequest[Body]:
        """The request of arranged messages, with `tools` offered. Called in any thread."""

    async def send(self, request: ChatRequest[Body], keep: Keep) -> AssistantMessage:
        """Send once and read the reply, whose bytes `keep` gets as soon as they are there and known to be readable.

        Raises what its package raises, `StatusError` or `UnreadableReplyError` (see `read_failure`).
        """

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        """The message in bytes that `keep` got. Raises `UnreadableReplyError`."""


class Caller(Generic[Body]):
    """A `ChatModel` and `Listener` over one client; sends at most `settings.retries` more requests after the first."""

    def __init__(
        self,
        client: ChatClient[Body],
        settings: ModelSettings,
        circuit: Circuit | None = None,
        backoff: Backoff | None = None,
        sleep: Sleep = asyncio.sleep,
        *,
        in_batches: bool = False,
    ) -> None:
        self.client = client
        self.name = client.name
        self.provider = client.name.partition(":")[0]
        self._settings = settings
        self._as_text = settings.tool_calling == "text"
        limits = replace(CircuitLimits.of(settings.wait_for_server), in_batches=in_batches)
        self._circuit = circuit or Circuit(client.name, limits)
        self._backoff = backoff or Backoff(longest_s=limits.longest_pause_s)
        self._sleep = sleep
        self._log: ReplyLog | None = None
        self._picture_limits = limits_of(client.name, settings)

    def adopt(self, settings: ModelSettings) -> None:
        """Go on with what the probe of a run has found: where pictures of tools go, and the switch for thinking."""
        self._settings = settings
        if isinstance(self.client, AdoptsSettings):
            self.client.adopt(settings)

    def metadata(self) -> Mapping[str, Json]:
        """The client's, with the way in which tools are called."""
        metadata = self.client.metadata()
        return {**metadata, "tool_calling": "text"} if self._as_text else metadata

    def connection(self) -> Mapping[str, Json]:
        """Address without secrets, timeout and retries."""
        return self.client.connection()

    def listen(self, log: ReplyLog) -> None:
        """Keep every reply in the log from now on, and send no request whose reply it holds."""
        self._log = log

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """The model's message, with the images sent and the number of attempts: 0 for a reply that was in the log.

        Raises:
            Outage: no usable reply after the retries, or this one request is not taken.
            ServerDown: the server has been away for too long.
            ModelRefused: key, model name, quota or option is rejected.
            DataError: an image is not in the store.
        """
        prompt, native_tools = (as_text(messages, tools), ()) if self._as_text else (messages, tools)
        with waiting():
            conversation = for_model(prompt, self.name, self._settings.thoughts)
            arranged = self._arranged(conversation)
            if all(self.client.images.is_in_memory(ref.image) for ref in images_of(arranged)):
                request = self.client.request(arranged, native_tools, call)
            else:
                # Off the loop: a conversion or a large file would hold up every other call in flight.
                request = await asyncio.to_thread(self.client.request, arranged, native_tools, call)
        logged_reply = self._log.find_reply(request.call, request.sha256) if self._log is not None else None
        reply, attempts = None, 0
        # Only readable replies are kept: where one is not, the log is damaged, and the model is asked again.
        with suppress(UnreadableReplyError):
            reply = None if logged_reply is None else await self._read_logged(logged_reply, request.call)
        if reply is None:
            reply, attempts = await self._sent(request, offers_tools=bool(native_tools))
        reply = replace(reply, images_sent=request.images, attempts=attempts, said_by=self.name)
        return await work_on_text(
            reply.text, with_calls, reply, tools, messages, call.call, is_text_protocol=self._as_text
        )

    async def _read_logged(self, data: bytes, call: CallKey) -> AssistantMessage:
        """A reply of the log. Raises `UnreadableReplyError`."""
        if len(data) <= LONG_REPLY:
            return self.client.read(data, call)
        return await asyncio.to_thread(self.client.read, data, call)

    def _arranged(self, messages: Sequence[Message]) -> list[Message]:
        settings, limits = self._settings, self._picture_limits
        inside = settings.results_inside or settings.tool_pictures == "inside"
        most = limits.most_pictures
        # Pictures of tools have been made to fit; those of the question go out as they are.
        longest = max((max(ref.image.width, ref.image.height) for ref in images_of(messages)), default=0)
        if limits.many and longest > limits.most_side_of_many:
            most = min(limits.many, most or limits.many)
        can_recall = bool(settings.keep_pictures)
        fits = partial(self._fit_request, messages) if limits.most_request_bytes else None
        return arrange(messages, settings.pictures_kept, can_recall=can_recall, inside=inside, most=most, fits=fits)

    def _fit_request(self, messages: Sequence[Message], images: Sequence[StoredImage]) -> bool:
        """Whether a request with these images has no more bytes than the server takes."""
        text_bytes = sum(len(part.encode()) for turn in messages for part in parts_of(turn) if isinstance(part, str))
        image_bytes = sum(map(self.client.images.base64_bytes, images))
        return image_bytes + text_bytes + AROUND_BYTES <= self._picture_limits.most_request_bytes

    def _keep(self, request: ChatRequest[Body], reply: bytes) -> None:
        if self._log is not None:
            # A full disk is no reason to throw a paid reply away: writing the answer will meet and report it.
            with suppress(OSError):
                self._log.keep(request.call, request.sha256, reply)

    async def _send(self, request: ChatRequest[Body], keep: Keep, turn: Permit) -> AssistantMessage:
        """Send once. Raises `PicturesRefused` if the failure is about pictures of tools that are new in the request.

        A 500 without a word about pictures may pass: such a request is sent twice before its pictures are blamed.
        """
        new = UNCONFIRMED.get() & {image.name for image in request.images}
        for is_last in (False, True):
            await requests_out.admit()
            try:
                with requests_out.sending():
                    return await self.client.send(request, keep)
            except ModelRefused:
                raise
            except Exception as error:
                failed = read_failure(error)
                is_sure = blames_picture(failed, error) if new else None
                if is_sure is None:
                    raise
                if is_sure or is_last:
                    self._circuit.note_picture_refusal(turn)
                    raise PicturesRefused(f"{self.name} does not take this request: {failed.text}", new) from error
            await self._sleep(self._backoff.seconds(request.call, 0, None))
        raise AssertionError("the last try returns or raises")

    async def _sent(self, request: ChatRequest[Body], *, offers_tools: bool = False) -> tuple[AssistantMessage, int]:
        """The reply and the number of requests that it took; `offers_tools` in the provider's own form."""
        call, keep = request.call, partial(self._keep, request)
        sent = charged = 0
        broken_off: list[str] = []
        while True:
            turn = await self._circuit.turn(call.question)
            sent += 1
            try:
                answer = await self._send(request, keep, turn)
            except (ModelRefused, PicturesRefused):
                raise
            # Every client has exceptions of its own; one that is not about the provider is raised again.
            except Exception as error:
                failed = read_failure(error)
                if failed.kind is Failure.BUG:
                    raise
                if (reply := _reply_for(failed)) is not None:
                    self._circuit.worked(turn)
                    return reply, sent
                if failed.kind is not Failure.RETRY:
                    raise self._circuit.refused(turn, failed) from error
                broken_off += [error.reason] if isinstance(error, BrokenOffError) else []
                log.info("%s: request %d for %s failed: %s", self.name, sent, call.question, failed.text)
                last = charged == self._settings.retries
                self._circuit.failed(turn, failed, last=last)
                crowded = failed.status in TOO_MANY_REQUESTS and self._circuit.was_crowded(turn)
                last = last and not crowded
                remedy = WITHOUT_PARSER if offers_tools and is_wordless_500(failed, error) else ""
                given_up = Outage(f"{self.name}: no reply after {sent} attempts: {failed.text}{remedy}")
                given_up.__cause__ = error
                doubtful = self._circuit.in_doubt(turn, failed)
            else:
                self._circuit.worked(turn)
                # A client that sent it more than once says so.
                requests = sent - 1 + (answer.attempts or 1)
                return (replace(answer, broken_off=tuple(broken_off)) if broken_off else answer), requests
            finally:
                self._circuit.leave(turn)
            if last and not (doubtful or self._circuit.is_away(turn)):
                raise given_up
            if not self._circuit.is_away(turn):
                pause = min(self._backoff.seconds(call, charged, failed.retry_after_s), MOMENT_S if last else math.inf)
                self._circuit.note_wait(pause, failed)
                await self._sleep(pause)
            if self._circuit.is_away(turn):
                continue
            if last:
                raise given_up
            charged += not crowded

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()


def _reply_for(failed: FailedRequest) -> AssistantMessage | None:
    """The reply that an error response stands for: a refusal of the provider, or a call that it cannot read.

    None for any other failure. An error response carries no tokens that are charged.
    """
    if failed.kind is Failure.POLICY:
        return AssistantMessage(refusal=failed.text, end=End.FILTERED, usage=TokenUsage(0, 0))
    if failed.kind is Failure.CALL:
        return malformed(AssistantMessage(usage=TokenUsage(0, 0)), failed.text)
    return None
