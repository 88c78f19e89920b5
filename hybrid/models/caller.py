"""A `ChatModel` for any provider; adds the log of replies, tools as text, retries and the circuit breaker.

    model = Caller(ChatCompletionsClient(name, settings, store), settings)
    message = await model.chat(messages, tools, call)

A provider is a `ChatClient`: it builds a request from messages, sends it once, and reads its reply. Retries of the
provider's own package are off, so that all providers are retried alike. A failure is charged to the call only while the
server answers other calls (`hybrid.models.circuit`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage
from hybrid.core.messages import AssistantMessage, End, Message, SentImage, TokenUsage, images_of, parts_of
from hybrid.core.off_loop import work_on_text
from hybrid.core.timing import waiting
from hybrid.core.types import Json, StoredImage
from hybrid.display.notes import tell
from hybrid.models.base import AdoptsSettings, CallKey, ModelFacts, ModelRefused, PicturesRefused, ReplyLog, ReusedReply
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

# Longest time in seconds for which a call that has used up its retries waits for the outcome of the other calls.
MOMENT_S = 1.0

# Bytes of a request besides its texts and pictures: schemas of tools, names, JSON.
AROUND_BYTES = 40_000

# The remedy if a server fails at calls that it cannot parse: if no tools are declared, it parses nothing.
WITHOUT_PARSER = "--tool-calling text avoids its parser"
FAILS_AT_CALLS = "its server answers 500 without a reason if it has to parse a call, and answers normally without tools"
FAILS_ANYWAY = f"; without tools it fails too. If calls that it cannot parse are the reason, {WITHOUT_PARSER}"

LONG_REPLY = 100_000  # Logged replies with more bytes than this are read off the event loop.

# Saves the bytes of a reply, from any thread; once it has returned, killing the process does not lose them.
Keep = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class ChatRequest(Generic[Body]):
    """A request in the form in which its client sends it."""

    call: CallKey
    body: Body
    sha256: str  # A hash that is equal for equal requests; each image enters it by its own hash.
    images: tuple[SentImage, ...]


class ChatClient(ModelFacts, Protocol[Body]):
    """A provider's wire format and connections."""

    @property
    def images(self) -> ImageEncoder:
        """The encoder for the images of this client's requests."""

    def request(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> ChatRequest[Body]:
        """Build the request for arranged messages and the offered tools. May be called in any thread."""

    async def send(self, request: ChatRequest[Body], keep: Keep) -> AssistantMessage:
        """Send a request once and read the reply; `keep` gets its bytes once they are complete and proved readable.

        Raises the exceptions of the provider's package, `StatusError` or `UnreadableReplyError` (see `read_failure`).
        """

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        """Parse the bytes of a reply that `keep` has received. Raises `UnreadableReplyError`."""


@dataclass(slots=True)
class _Tries(Generic[Body]):
    """The requests that one call has made, and the consequences of the last failure."""

    request: ChatRequest[Body]
    # Makes the same request without tools; None if the request offers none.
    make_plain: Callable[[], Awaitable[ChatRequest[Body]]] | None
    new_pictures: frozenset[str]  # Names of pictures from tools that no answered request has contained yet.
    sent: int = 0
    charged: int = 0  # Failures that count against `settings.retries`.
    broken_off: list[str] = field(default_factory=list)
    wordless: int = 0  # Number of consecutive 500 responses to the request with tools that gave no reason.
    picture_failures: int = 0  # Number of consecutive failures that a new picture may have caused.
    plain_sent: bool = False
    plain_reply: AssistantMessage | None = None
    failed: FailedRequest | None = None  # The last failure of the request with its tools, and its exception.
    error: Exception | None = None
    pause_s: float = 0.0  # Seconds to wait before the next request, unless the server is down.
    is_charged: bool = True  # Whether the last failure counts against the retries.
    last: bool = False  # Whether the retries are used up.
    doubtful: bool = False  # Whether the outcome of other requests may show that the server is down.

    def wants_plain(self, *, is_probe: bool = False) -> bool:
        """Return whether the next request omits the tools; `is_probe` says that it tests whether the server is back."""
        is_due = self.wordless > 1 or (self.wordless == 1 and (self.last or is_probe))
        return self.make_plain is not None and not self.plain_sent and is_due

    def is_malformed_call(self) -> bool:
        """Return whether the server answers without tools, but failed in all attempts with tools."""
        return self.plain_reply is not None and (self.wordless > 1 or (self.wordless == 1 and self.last))


class Caller(Generic[Body]):
    """A `ChatModel` and `Listener` over one client; repeats a failed request up to `settings.retries` times.

    Failures while the server is down do not count, nor does the request without tools.
    """

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
        self._parser_noted = False

    def adopt(self, settings: ModelSettings) -> None:
        """Use the results of a run's probe: where pictures of tools go, and the switch for thinking."""
        self._settings = settings
        if isinstance(self.client, AdoptsSettings):
            self.client.adopt(settings)

    def metadata(self) -> Mapping[str, Json]:
        """Return the client's metadata, with `tool_calling` if tools are called in text."""
        metadata = self.client.metadata()
        return {**metadata, "tool_calling": "text"} if self._as_text else metadata

    def connection(self) -> Mapping[str, Json]:
        """Return the address (without secrets), the timeout and the number of retries."""
        return self.client.connection()

    def listen(self, log: ReplyLog) -> None:
        """From now on, keep every reply in the log, and send no request whose reply it contains."""
        self._log = log

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """Return the model's message with the images sent and the number of attempts (0 if the reply was in the log).

        Raises:
            Outage: no usable reply after the retries, or this one request is not accepted.
            ServerDown: the server has been down for too long.
            ModelRefused: key, model name, quota or option is rejected.
            DataError: an image is not in the store.
        """
        prompt, native_tools = (as_text(messages, tools), ()) if self._as_text else (messages, tools)
        with waiting():
            conversation = for_model(prompt, self.name, self._settings.thoughts)
            arranged = self._arranged(conversation)
            request = await self._make_request(arranged, native_tools, call)
        reply, attempts = await self._find_logged(request), 0
        if reply is None:
            make_plain = partial(self._make_request, arranged, (), call) if native_tools else None
            reply, attempts = await self._request_reply(request, make_plain)
        reply = replace(reply, images_sent=request.images, attempts=attempts, said_by=self.name)
        return await work_on_text(
            reply.text, with_calls, reply, tools, messages, call.call, is_text_protocol=self._as_text
        )

    async def _make_request(
        self, arranged: Sequence[Message], tools: Sequence[Tool], call: CallKey
    ) -> ChatRequest[Body]:
        if all(self.client.images.is_in_memory(ref.image) for ref in images_of(arranged)):
            return self.client.request(arranged, tools, call)
        # Run this off the event loop, because a conversion or a large file would block every other call in flight.
        return await asyncio.to_thread(self.client.request, arranged, tools, call)

    async def _find_logged(self, request: ChatRequest[Body]) -> AssistantMessage | None:
        """Return the logged reply to a request; None if the log has no readable reply."""
        data = self._log.find_reply(request.call, request.sha256) if self._log is not None else None
        if data is None:
            return None
        # Only readable replies are logged. If one is unreadable, the log is damaged, so the request is sent again.
        with suppress(UnreadableReplyError):
            if len(data) <= LONG_REPLY:
                reply = self.client.read(data, request.call)
            else:
                reply = await asyncio.to_thread(self.client.read, data, request.call)
            return replace(reply, reused=isinstance(data, ReusedReply))
        return None

    def _arranged(self, messages: Sequence[Message]) -> list[Message]:
        settings, limits = self._settings, self._picture_limits
        inside = settings.results_inside or settings.tool_pictures == "inside"
        most = limits.most_pictures
        # Pictures of tools have already been made to fit; the question's own pictures are sent unchanged.
        longest = max((max(ref.image.width, ref.image.height) for ref in images_of(messages)), default=0)
        if limits.many and longest > limits.most_side_of_many:
            most = min(limits.many, most or limits.many)
        can_recall = bool(settings.keep_pictures)
        fits = partial(self._fit_request, messages) if limits.most_request_bytes else None
        return arrange(messages, settings.pictures_kept, can_recall=can_recall, inside=inside, most=most, fits=fits)

    def _fit_request(self, messages: Sequence[Message], images: Sequence[StoredImage]) -> bool:
        """Return whether a request with these images has no more bytes than the server accepts."""
        text_bytes = sum(len(part.encode()) for turn in messages for part in parts_of(turn) if isinstance(part, str))
        image_bytes = sum(map(self.client.images.base64_bytes, images))
        return image_bytes + text_bytes + AROUND_BYTES <= self._picture_limits.most_request_bytes

    def _keep(self, request: ChatRequest[Body], reply: bytes) -> None:
        if self._log is not None:
            # A full disk is no reason to discard a paid reply: writing the answer will fail and report it.
            with suppress(OSError):
                self._log.keep(request.call, request.sha256, reply)

    async def _request_reply(
        self, request: ChatRequest[Body], make_plain: Callable[[], Awaitable[ChatRequest[Body]]] | None
    ) -> tuple[AssistantMessage, int]:
        """Return the reply and the number of requests that it took.

        A server that fails twice with a 500 that gives no reason is sent the request once without tools (`make_plain`).
        If it answers this last request, the server works but could not parse the call that its model wrote.

        Raises as `chat`.
        """
        tries = _Tries(request, make_plain, UNCONFIRMED.get() & {image.name for image in request.images})
        while True:
            permit = await self._circuit.acquire(request.call.question)
            is_plain = tries.wants_plain(is_probe=permit.probe)
            try:
                reply = await (self._try_without_tools(tries, permit) if is_plain else self._try(tries, permit))
            finally:
                self._circuit.leave(permit)
            if reply is not None:
                return reply, tries.sent
            if not is_plain or tries.plain_reply is None:
                await self._wait_to_retry(tries, permit)

    async def _send(self, request: ChatRequest[Body]) -> AssistantMessage:
        await requests_out.admit()
        with requests_out.sending():
            return await self.client.send(request, partial(self._keep, request))

    async def _try(self, tries: _Tries[Body], permit: Permit) -> AssistantMessage | None:
        """Send the request once and return the reply; None after a failure that may be temporary. Raises as `chat`."""
        tries.sent += 1
        try:
            answer = await self._send(tries.request)
        except ModelRefused:
            raise
        # Every client has its own exceptions. An exception that is not about the provider is raised again.
        except Exception as error:
            failed = read_failure(error)
            if failed.kind is Failure.BUG:
                raise
            if (reply := _reply_for(failed)) is not None:
                self._circuit.worked(permit)
                return reply
            self._note_failure(tries, permit, failed, error)
            return self._malformed_call(tries) if tries.is_malformed_call() else None
        self._circuit.worked(permit)
        # `attempts` counts requests that the client itself repeated.
        tries.sent += (answer.attempts or 1) - 1
        return replace(answer, broken_off=tuple(tries.broken_off)) if tries.broken_off else answer

    def _note_failure(self, tries: _Tries[Body], permit: Permit, failed: FailedRequest, error: Exception) -> None:
        """Count a failure of the request. Raises the errors of `chat` if asking again cannot help."""
        tries.failed, tries.error = failed, error
        is_wordless = tries.make_plain is not None and is_wordless_500(failed, error)
        tries.wordless = tries.wordless + 1 if is_wordless else 0
        if tries.new_pictures and (is_sure := blames_picture(failed, error)) is not None:
            self._note_picture_failure(tries, permit, is_sure=is_sure)
            return
        tries.picture_failures = 0
        if failed.kind is not Failure.RETRY:
            raise self._circuit.refused(permit, failed) from error
        tries.broken_off += [error.reason] if isinstance(error, BrokenOffError) else []
        log.info("%s: request %d for %s failed: %s", self.name, tries.sent, permit.question, failed.text)
        last = tries.charged >= self._settings.retries
        self._circuit.failed(permit, failed, last=last)
        tries.is_charged = not (failed.status in TOO_MANY_REQUESTS and self._circuit.was_crowded(permit))
        tries.last = last and tries.is_charged
        tries.doubtful = self._circuit.in_doubt(permit, failed)
        tries.pause_s = self._backoff.seconds(tries.request.call, tries.charged, failed.retry_after_s)

    def _note_picture_failure(self, tries: _Tries[Body], permit: Permit, *, is_sure: bool) -> None:
        """Count a failure that new pictures of tools may have caused. Raises `PicturesRefused` if they did.

        A 500 that does not mention pictures may be temporary, so the request is sent twice before its pictures are
        blamed. If the model's call may be the reason as well, the request is then sent once without tools.
        """
        tries.picture_failures += 1
        tries.pause_s = self._backoff.seconds(tries.request.call, 0, None)
        tries.is_charged = tries.last = tries.doubtful = False
        if is_sure or tries.picture_failures > 1:
            self._circuit.note_picture_refusal(permit)
            if is_sure or not tries.wants_plain():
                raise self._outage(tries)

    def _outage(self, tries: _Tries[Body]) -> Outage:
        """Return the error of a call that is not retried any more."""
        assert tries.failed is not None  # noqa: S101 - a request has failed
        outage: Outage
        if tries.picture_failures:
            what = f"{self.name} does not accept this request: {tries.failed.text}"
            outage = PicturesRefused(what, tries.new_pictures)
        else:
            remedy = FAILS_ANYWAY if tries.wordless and tries.plain_sent else ""
            outage = Outage(f"{self.name}: no reply after {tries.sent} attempts: {tries.failed.text}{remedy}")
        outage.__cause__ = tries.error
        return outage

    async def _try_without_tools(self, tries: _Tries[Body], permit: Permit) -> AssistantMessage | None:
        """Send the request without its tools, to find out whether a malformed tool call makes the server fail.

        If the server answers without tools but failed in all attempts with tools, it could not parse the model's tool
        call. Return a malformed call as the reply in this case, and None otherwise.
        """
        assert tries.make_plain is not None  # noqa: S101 - `wants_plain`
        tries.plain_sent = True
        try:
            request = await tries.make_plain()
            if (answer := await self._find_logged(request)) is None:
                tries.sent += 1
                answer = await self._send(request)
        except Exception as error:
            failed = read_failure(error)
            if failed.kind is Failure.BUG and not isinstance(error, ModelRefused):
                raise
            log.info("%s: request for %s without tools failed: %s", self.name, permit.question, failed.text)
            if tries.picture_failures:
                raise self._outage(tries) from tries.error
            if failed.kind is Failure.RETRY:
                self._circuit.failed(permit, failed)
            tries.doubtful = tries.is_charged = False
            return None
        self._circuit.worked(permit)
        tries.sent += (answer.attempts or 1) - 1
        tries.plain_reply = answer
        return self._malformed_call(tries) if tries.is_malformed_call() else None

    def _malformed_call(self, tries: _Tries[Body]) -> AssistantMessage:
        """Return a malformed call as the reply to a request whose call the server could not parse.

        Its token usage is that of the same request without tools, which the server answered.
        """
        assert tries.plain_reply is not None  # noqa: S101 - `is_malformed_call`
        assert tries.failed is not None  # noqa: S101
        answer = tries.plain_reply
        if not self._parser_noted:
            self._parser_noted = True
            tell(f"note: {self.name}: {FAILS_AT_CALLS}, which counts as a malformed call; {WITHOUT_PARSER}")
        facts = AssistantMessage(usage=answer.usage, model=answer.model, batched=answer.batched)
        return malformed(facts, f"{tries.failed.text} (without tools the server answers)")

    async def _wait_to_retry(self, tries: _Tries[Body], permit: Permit) -> None:
        """Wait before the next request. Raises the failure if the retries are used up although the server is up."""
        assert tries.failed is not None  # noqa: S101 - a request has failed
        may_go_on = not tries.last or tries.wants_plain()
        if not (may_go_on or tries.doubtful or self._circuit.is_away(permit)):
            raise self._outage(tries)
        if not self._circuit.is_away(permit):
            pause = min(tries.pause_s, MOMENT_S) if tries.last else tries.pause_s
            self._circuit.note_wait(pause, tries.failed)
            await self._sleep(pause)
        if self._circuit.is_away(permit):
            return
        if not may_go_on:
            raise self._outage(tries)
        tries.charged += tries.is_charged and not tries.last

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()


def _reply_for(failed: FailedRequest) -> AssistantMessage | None:
    """Convert an error response to a reply: a refusal by the provider, or a call that the server could not read.

    None for any other failure. No tokens are charged for an error response.
    """
    if failed.kind is Failure.POLICY:
        return AssistantMessage(refusal=failed.text, end=End.FILTERED, usage=TokenUsage(0, 0))
    if failed.kind is Failure.CALL:
        return malformed(AssistantMessage(usage=TokenUsage(0, 0)), failed.text)
    return None
