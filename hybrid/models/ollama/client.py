"""The `ChatClient` of Ollama's native `/api/chat`, with all its options: context, thinking, images and schemas.

Every request sets the length of the context, because the server's default (4,096 tokens on a small GPU) is too short
for a question with pictures. No request lets the server drop messages that do not fit: it returns an error instead.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, ImagePart, Message, SentImage, parts_of
from hybrid.core.types import Json
from hybrid.display.notes import tell
from hybrid.models.base import CallKey, ModelRefused
from hybrid.models.caller import ChatRequest, Keep
from hybrid.models.chat_completions.codec import as_json
from hybrid.models.chat_completions.wire import Address, HttpTransport, proxy_for
from hybrid.models.failures import StatusError, summary
from hybrid.models.images import ImageEncoder
from hybrid.models.ollama.codec import (
    MODEL_OPTIONS,
    REQUEST_FIELDS,
    malformed_body,
    message,
    prompt_tokens,
    readable,
    request_body,
    wire_messages,
)
from hybrid.models.ollama.stream import LineAssembly
from hybrid.models.options import Connection, connection, image_rules, options, options_of_repetition, server_metadata
from hybrid.models.providers import PROVIDERS
from hybrid.models.toolspec import ToolsOffered
from hybrid.tool import Tool

NUM_CTX: Final = 32_768  # Tokens of the context unless `--model-arg num_ctx` is given.
HOST, PORT = "127.0.0.1", 11434
_PORTS = {"http": 80, "https": 443}
TOO_LONG, NO_MODEL = 400, 404

# Errors of Ollama, and of llama.cpp behind it, for a prompt that is longer than the context.
_CONTEXT = re.compile(r"exceeds? the (?:available )?context|longer than the context|maximum context length", re.I)
_BROKEN_CALL = re.compile(
    r"error parsing tool call|invalid tool call arguments|tool call parsing failed|XML syntax error", re.I
)
_NO_MODEL = re.compile(r"\bmodel\b.{0,300}\bnot found\b", re.I | re.S)
_NO_MEMORY = re.compile(r"requires more system memory|out of memory|unable to allocate", re.I)
_NO_THINKING = re.compile(r"does not support thinking|think value", re.I)
_ALTERNATE = re.compile(r"roles must alternate", re.I)


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """A request that can also be written with each user turn joined into one message."""

    messages: Sequence[Message]
    tools: bytes
    images: Sequence[bytes]
    options: Mapping[str, Json]


class OllamaClient:
    """One model of one server, with the options of a run.

    Raises on construction:
        UsageError: an option that Ollama does not have, or an invalid address.
    """

    def __init__(self, name: str, settings: ModelSettings, store: ImageStore) -> None:
        self.name = name
        self._model = name.partition(":")[2]
        self._settings = settings
        provider = PROVIDERS["ollama"]
        reached = connection(provider, settings)
        self._connection = Connection(server_url(reached.base_url), os.environ.get("OLLAMA_API_KEY") or None)
        self._options = checked_options(options(provider, self._model, settings))
        self._num_ctx = int(str(self._options["num_ctx"]))
        self.images = ImageEncoder(store, image_rules(provider, self._connection, settings, name))
        self._tools_offered = ToolsOffered()
        self._joined = False  # Whether the model's template requires alternating turns.
        self._wire = HttpTransport(address(self._connection), settings.timeout_s, LineAssembly)

    def metadata(self) -> Mapping[str, Json]:
        """Return the model, the options as sent, the image rules and the versions, but neither key nor address."""
        return server_metadata(self.name, self._settings, self._options, ("aiohttp",), caches=False)

    def connection(self) -> Mapping[str, Json]:
        """Return the address (without secrets), timeout, retries, and deviations from the standard form of requests."""
        terms = ["the messages of a user turn are joined"] if self._joined else []
        return self._connection.metadata(self._settings, terms)

    def request(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> ChatRequest[OllamaRequest]:
        """Build the request for arranged messages. Raises `DataError` for an image that is not in the store."""
        sent: list[SentImage] = []
        images: list[bytes] = []
        for part in (part for turn in messages for part in parts_of(turn) if isinstance(part, ImagePart)):
            stored, data = self.images.encoded(part.ref.image)
            sent.append(SentImage(part.ref.name, part.ref.image, stored))
            images.append(data)
        specs = self._tools_offered.specs(tools)
        call_options = options_of_repetition(self._options, call.repetition)
        body = OllamaRequest(messages, as_json(specs) if specs else b"", images, call_options)
        # The hash is computed from the standard form of the request, whichever form is sent, and from the SHA-256 of
        # each image.
        sha256 = hashlib.sha256(b"".join(self._write_request(body, joined=False, stream=False)[::2]))
        sha256.update("".join(image.sent.sha256 for image in sent).encode())
        return ChatRequest(call, body, sha256.hexdigest(), tuple(sent))

    def _write_request(self, request: OllamaRequest, *, joined: bool, stream: bool) -> list[bytes]:
        wired = wire_messages(request.messages, joined=joined)
        return request_body(self._model, request.options, wired, request.tools, request.images, stream=stream)

    async def send(self, request: ChatRequest[OllamaRequest], keep: Keep) -> AssistantMessage:
        """Return the reply, which the connections' thread reads and saves.

        Raises as `HttpTransport.post`, and:
            ModelRefused: the server has no such model, or cannot run it with these options; the message says what to
                do.
            StatusError: the prompt is longer than the context.
        """

        def read(body: bytes) -> AssistantMessage:
            reply_body = readable(body)
            self._refuse_cut_prompt(reply_body)
            reply = message(reply_body, request.call, self._num_ctx)
            keep(body)
            return reply

        while True:
            joined, stream = self._joined, self._settings.stream == "on"
            body = b"".join(self._write_request(request.body, joined=joined, stream=stream))
            try:
                return await self._wire.post(body, read, stream=stream)
            except StatusError as error:
                words = summary(error, 4000)
                if request.body.tools and _BROKEN_CALL.search(words):
                    # This is the model's own mistake, so it is reported to the model and the request is not repeated.
                    return read(malformed_body(_message(error)))
                if joined == self._joined and not self._learns(words):
                    raise self._explain(error, words) from error

    def _learns(self, words: str) -> bool:
        """Return whether an error newly shows that turns must alternate; if so, join each turn from now on."""
        if self._joined or _ALTERNATE.search(words) is None:
            return False
        self._joined = True
        tell(f"note: {self.name} accepts one message per turn: labels and pictures of a turn are sent in one message")
        return True

    def _refuse_cut_prompt(self, body: Mapping[str, Any]) -> None:
        """Raise `StatusError` if the prompt filled the context, so that the model saw only a part of it."""
        read = prompt_tokens(body)
        if read is not None and read >= self._num_ctx:
            raise self._too_long(f"the prompt was cut: prompt_eval_count={read} has reached num_ctx={self._num_ctx}")

    def _too_long(self, words: str) -> StatusError:
        remedy = (
            f"give the model more room (--model-arg num_ctx={2 * self._num_ctx}) or smaller pictures (--max-pixels)"
        )
        return StatusError(TOO_LONG, {"error": f"{words}; {remedy}"})

    def _explain(self, error: StatusError, words: str) -> Exception:
        """Return a server's error with advice on it."""
        who, text = f"--model {self.name}", summary(error)
        if error.status_code == NO_MODEL and _NO_MODEL.search(words):
            return ModelRefused(
                f"{who}: {self._connection.redacted_url} has no such model: ollama pull {self._model}: {text}"
            )
        if _CONTEXT.search(words):
            return self._too_long(_message(error))
        if _NO_MEMORY.search(words):
            remedy = f"a shorter context needs less memory (--model-arg num_ctx={self._num_ctx // 2})"
            return ModelRefused(f"{who}: the model does not fit into the memory of the server; {remedy}: {text}")
        if _NO_THINKING.search(words) and "think" in self._options:
            return ModelRefused(f"{who}: omit --reasoning-effort (think), or give another value: {text}")
        if error.status_code in (401, 403) and "signin_url" in words:
            return ModelRefused(f"{who}: sign in on the server (ollama signin), or set OLLAMA_API_KEY: {text}")
        return error

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        """Parse the message in the body of a reply. Raises `UnreadableReplyError`."""
        return message(readable(reply), call, self._num_ctx)

    async def close(self) -> None:
        """Close the connections and stop their thread."""
        await self._wire.close()


def _message(error: StatusError) -> str:
    """Return the server's message in an error."""
    detail = error.body.get("error", error.body) if isinstance(error.body, Mapping) else error.body
    detail = detail.get("message", detail) if isinstance(detail, Mapping) else detail
    return detail if isinstance(detail, str) else summary(error, 4000)


def checked_options(options: Mapping[str, Json]) -> dict[str, Json]:
    """Return the options to send, including the length of the context and what happens when it is full.

    Raises:
        UsageError: an option that Ollama does not have, or an invalid length.
    """
    if unknown := sorted(options.keys() - MODEL_OPTIONS - REQUEST_FIELDS):
        raise UsageError(f"--model-arg {', '.join(unknown)}: ollama has no such option")
    num_ctx = options.get("num_ctx", NUM_CTX)
    if isinstance(num_ctx, bool) or not isinstance(num_ctx, int) or num_ctx < 1:
        raise UsageError(f"--model-arg num_ctx={num_ctx}: write a number of tokens, such as {NUM_CTX}")
    # Without `truncate` and `shift`, the server silently drops the beginning of a prompt that does not fit.
    return {"truncate": False, "shift": False, **options, "num_ctx": num_ctx}


def server_url(address: str | None) -> str:
    """Return a server's address from `--base-url` or `OLLAMA_HOST`, which may lack the scheme and the port.

    The text is read as by Ollama: without a scheme the port is 11434, and a wildcard listening address is this machine.
    Raises `UsageError` for an invalid address.
    """
    text = (address or "").strip()
    text = f"https://{text}" if text == "ollama.com" else text
    has_scheme = "://" in text
    # An IPv6 address may have no brackets.
    text = f"[{text}]" if not has_scheme and text.count(":") > 1 and "[" not in text else text
    try:
        parts = urlsplit(text if has_scheme else f"http://{text}")
        usual = _PORTS[parts.scheme]
        port = parts.port or (usual if has_scheme else PORT)
    except (ValueError, KeyError):
        raise UsageError(
            f"--base-url or OLLAMA_HOST: {address!r} is not an address; write http://HOST:{PORT}"
        ) from None
    host = {"0.0.0.0": HOST, "::": "::1"}.get(parts.hostname or HOST, parts.hostname or HOST)  # noqa: S104 - replaced
    host = f"[{host}]" if ":" in host else host
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return urlunsplit(
        (parts.scheme, f"{user}{host}{'' if port == usual else f':{port}'}", parts.path.rstrip("/"), "", "")
    )


def address(reached: Connection) -> Address:
    """Return the address of requests, with the key if any. Raises `UsageError` for a proxy other than HTTP."""
    parts = urlsplit(reached.base_url or "")
    user, _, host = parts.netloc.rpartition("@")
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "hybrid-perception"}
    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(unquote(user).encode()).decode()}"
    elif reached.key:
        headers["Authorization"] = f"Bearer {reached.key}"
    # The address of an endpoint is reduced to that of the server.
    path = re.sub(r"/(?:v1|api)(?:/chat(?:/completions)?)?$", "", parts.path)
    base = urlunsplit((parts.scheme, host, path, "", ""))
    proxy = proxy_for(base)
    if proxy is not None and not proxy.startswith(("http://", "https://")):
        raise UsageError(f"ollama is not reached through {proxy.partition(':')[0]}: name {parts.hostname} in NO_PROXY")
    return Address(f"{base}/api/chat", headers, {}, proxy)
