"""A `ChatModel` for OpenAI's chat completions and every server that speaks them (vLLM, SGLang, llama.cpp, Ollama).

A client of our own: replies are kept the moment they are complete, what can be read of a malformed one is used, and a
call costs a tenth of the time of a general client. The responses API, and options that `speaks` does not know, go
through LangChain's client.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from hybrid.config import ModelSettings
from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, Message, SentImage, images_of
from hybrid.models.base import CallKey, ReplyLog
from hybrid.models.circuit import Circuit
from hybrid.models.completions import PLACE, CompletionChoice, as_json, message, readable, request_body, wire_messages
from hybrid.models.failures import Backoff, UnreadableReplyError
from hybrid.models.prompt_cache import lane
from hybrid.models.providers import PROVIDERS, Connection, connection, facts_of, options, options_of_repetition
from hybrid.models.render import ImageEncoder, ImageRules, arrange
from hybrid.models.sending import Refusal, Sender, policy_reply
from hybrid.models.toolspec import ToolsOffered
from hybrid.models.wire import Address, Keep, Wire, proxy_for
from hybrid.timing import waiting
from hybrid.tool import Tool
from hybrid.types import ImageRef, Json

OFFICIAL = "https://api.openai.com/v1"
KNOWN = frozenset(
    {
        "api",
        "default_query",
        "extra_body",
        "frequency_penalty",
        "logit_bias",
        "presence_penalty",
        "service_tier",
        "stop",
        "store",
        "top_p",
        "verbosity",
    }
)
"""Options of `--model-arg` that this client passes on as they are."""


def speaks(settings: ModelSettings) -> bool:
    """Whether this client can be used: the chat API, options it knows, and no proxy of a kind that it does not have."""
    extra = settings.extra
    query = extra.get("default_query", {})
    known = extra.keys() <= KNOWN and extra.get("api", "chat") == "chat"
    shaped = isinstance(extra.get("extra_body", {}), dict) and isinstance(query, dict)
    if not known or not shaped or any(isinstance(value, dict | list) for value in _values(query)):
        return False
    proxy = proxy_for(connection(PROVIDERS["openai"], settings).base_url or OFFICIAL)
    return proxy is None or proxy.startswith(("http://", "https://"))


def _values(query: Json) -> list[Json]:
    return list(query.values()) if isinstance(query, dict) else []


@dataclass(frozen=True, slots=True)
class _Request:
    body: bytes
    sha256: str
    """Of the body, with the hash of each image in the place of the image."""
    sent: tuple[SentImage, ...]


class OpenAIChat:
    """One model of an OpenAI-compatible server, with the options of a run. A `Listener`.

    Raises on construction:
        UsageError: an option it does not take, or no key in the environment.
    """

    provider = "openai"

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        store: ImageStore,
        backoff: Backoff | None = None,
        circuit: Circuit | None = None,
    ) -> None:
        self.name = name
        self._model = name.partition(":")[2]
        self._settings = settings
        quirks = PROVIDERS[self.provider]
        self._connection = connection(quirks, settings)
        self._options = options(quirks, self._model, settings)
        self._images = ImageEncoder(store, ImageRules(quirks.images, settings.max_pixels))
        self._tools_offered = ToolsOffered()
        self._tools: tuple[list[dict[str, Any]], bytes] | None = None
        self._sender = Sender(name, settings.retries, circuit or Circuit(name), backoff)
        self._wire = Wire(_address(self._connection, self._options), settings.timeout_s)
        self._log: ReplyLog | None = None

    def metadata(self) -> Mapping[str, Json]:
        """Model, options as sent, image rules and versions; neither key nor address."""
        return facts_of(self.name, self._settings, self._options, ("aiohttp",), caches=True)

    def connection(self) -> Mapping[str, Json]:
        """Address without secrets, timeout and retries."""
        return self._connection.metadata(self._settings)

    def listen(self, log: ReplyLog) -> None:
        """Keep every reply in the log from now on, and ask for none that it holds."""
        self._log = log

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """The model's message, with the images sent and the attempts made: 0 for a reply that was in the log.

        Raises:
            Outage: no usable reply after the retries, or this one request is not taken.
            ServerDown: the server has been away for too long.
            ModelRefused: key, model name, quota or option is rejected.
            DataError: an image is not in the store.
        """
        with waiting():
            request = await self._prepared(messages, tools, call)
        reply, attempts = await self._reply(request, call)
        return replace(reply, images_sent=request.sent, attempts=attempts)

    async def _reply(self, request: _Request, call: CallKey) -> tuple[AssistantMessage, int]:
        if (kept := self._kept(request, call)) is not None:
            return message(kept, call), 0
        keep = self._keep(request, call)
        try:
            choice, attempts = await self._sender.send(lambda: self._wire.post(request.body, keep), call)
        except Refusal as refusal:
            return policy_reply(refusal), refusal.attempts
        return message(choice, call), attempts

    def _kept(self, request: _Request, call: CallKey) -> CompletionChoice | None:
        said = self._log.said(call, request.sha256) if self._log is not None else None
        try:
            return None if said is None else readable(said)
        except UnreadableReplyError:
            # Only readable replies are kept: the log is damaged here, and the model is asked again.
            return None

    def _keep(self, request: _Request, call: CallKey) -> Keep | None:
        log = self._log
        if log is None:
            return None

        def keep(reply: bytes) -> None:
            # A full disk is no reason to throw a paid reply away: it is met again, and told, where answers are written.
            with suppress(OSError):
                log.keep(call, request.sha256, reply)

        return keep

    async def _prepared(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> _Request:
        arranged = arrange(messages, self._settings.keep_images)
        if all(self._images.at_once(ref.image) for ref in images_of(arranged)):
            return self._request(arranged, tools, call)
        # Off the loop: a conversion or a large file would hold up every other call in flight.
        return await asyncio.to_thread(self._request, arranged, tools, call)

    def _request(self, arranged: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> _Request:
        sent: list[SentImage] = []
        images: list[bytes] = []

        def image(ref: ImageRef) -> dict[str, Any]:
            stored, data = self._images.encoded(ref.image)
            sent.append(SentImage(ref.name, ref.image, stored))
            images.append(data)
            url: dict[str, str] = {"url": f"data:{stored.media_type};base64,{PLACE}"}
            if self._settings.image_detail is not None:
                url["detail"] = self._settings.image_detail
            return {"type": "image_url", "image_url": url}

        wired = wire_messages(arranged, image, self._model)
        key = lane(self._connection.base_url, call) if self._settings.prompt_cache else None
        given = options_of_repetition(self._options, call.repetition)
        pieces = request_body(self._model, given, wired, self._offered(tools), images, key)
        # An image is known by the hash that it has already.
        known = hashlib.sha256(b"".join(pieces[::2]))
        known.update("".join(image.sent.sha256 for image in sent).encode())
        return _Request(b"".join(pieces), known.hexdigest(), tuple(sent))

    def _offered(self, tools: Sequence[Tool]) -> bytes:
        """The schemas as JSON, made once for each list of tools."""
        specs = self._tools_offered.specs(tools)
        if self._tools is None or self._tools[0] is not specs:
            self._tools = specs, as_json(specs) if specs else b""
        return self._tools[1]

    async def close(self) -> None:
        """Close the connections and end their thread."""
        await self._wire.close()


def _address(found: Connection, given: Mapping[str, Json]) -> Address:
    base = found.base_url or OFFICIAL
    parts = urlsplit(base)
    pair, _, host = parts.netloc.rpartition("@")
    path = f"{parts.path.rstrip('/')}/chat/completions"
    url = urlunsplit((parts.scheme, host, path, "", ""))
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    query |= {name: _query_text(value) for name, value in _pairs(given.get("default_query"))}
    headers = {
        "Authorization": f"Bearer {found.key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "hybrid-perception",
    }
    if pair:
        headers["Authorization"] = f"Basic {base64.b64encode(unquote(pair).encode()).decode()}"
    organization = os.environ.get("OPENAI_ORG_ID") or os.environ.get("OPENAI_ORGANIZATION")
    named = {"OpenAI-Organization": organization, "OpenAI-Project": os.environ.get("OPENAI_PROJECT_ID")}
    headers |= {name: value for name, value in named.items() if value}
    return Address(url, headers, query, proxy_for(base))


def _pairs(query: Json) -> list[tuple[str, Json]]:
    return list(query.items()) if isinstance(query, dict) else []


def _query_text(value: Json) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
