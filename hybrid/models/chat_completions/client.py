"""The `ChatClient` of OpenAI's chat completions and of compatible servers (vLLM, SGLang, llama.cpp, Ollama).

Replies are saved as soon as they are complete, the readable part of a malformed reply is used, and a call takes a tenth
of the time that a general client needs. The responses API, and options that `speaks` does not know, use LangChain.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, Message, SentImage
from hybrid.core.types import ImageRef, Json
from hybrid.models.base import CallKey
from hybrid.models.caller import ChatRequest, Keep
from hybrid.models.chat_completions.codec import (
    PLACE,
    as_json,
    message,
    readable,
    request_body,
    server_specific_fields,
    wire_messages,
)
from hybrid.models.chat_completions.terms import PASSED_ON, PLAIN, ApiVariant, learn_terms
from hybrid.models.chat_completions.wire import Address, HttpTransport, proxy_for
from hybrid.models.failures import StatusError, summary
from hybrid.models.images import ImageEncoder, image_block
from hybrid.models.options import Connection, connection, image_rules, options, options_of_repetition, server_metadata
from hybrid.models.prompt_cache import lane
from hybrid.models.providers import PROVIDERS, Provider
from hybrid.models.toolspec import ToolsOffered
from hybrid.tool import Tool

OFFICIAL = "https://api.openai.com/v1"


def speaks(settings: ModelSettings, name: str = "") -> bool:
    """Return whether this client supports the settings: the chat API, only known options, no unsupported proxy."""
    extra = settings.extra
    query = extra.get("default_query", {})
    if extra.get("api", "chat") != "chat" or not extra.keys() <= PASSED_ON:
        return False
    if not isinstance(extra.get("extra_body", {}), dict) or not isinstance(query, dict):
        return False
    if any(isinstance(value, dict | list) for value in query.values()):
        return False
    proxy = proxy_for(connection(PROVIDERS["openai"], settings, name).base_url or OFFICIAL)
    return proxy is None or proxy.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A request written for one API variant, and a function that writes it for another."""

    terms: ApiVariant
    body: bytes
    on: Callable[[ApiVariant], list[bytes]]


class ChatCompletionsClient:
    """One model of one server, with the options of a run.

    Raises on construction:
        UsageError: an unsupported option, or no key in the environment.
    """

    def __init__(self, name: str, settings: ModelSettings, store: ImageStore, provider: Provider | None = None) -> None:
        self.name = name
        self._model = name.partition(":")[2]
        self._settings = settings
        provider = provider or PROVIDERS["openai"]
        self._connection = connection(provider, settings, name)
        self._options = options(provider, self._model, settings)
        self.images = ImageEncoder(store, image_rules(provider, self._connection, settings, name))
        self._tools_offered = ToolsOffered()
        self._tools_json: tuple[list[dict[str, Any]], bytes] | None = None
        self._terms = ApiVariant(
            stream=settings.stream == "on"
        )  # The API variant, learnt from the server's errors once for all requests.
        self._wire = HttpTransport(address(self._connection, self._options), settings.timeout_s)

    def metadata(self) -> Mapping[str, Json]:
        """Return the model, the options as sent, the image rules and the versions, but neither key nor address."""
        return server_metadata(self.name, self._settings, self._options, ("aiohttp",), caches=True)

    def connection(self) -> Mapping[str, Json]:
        """Return the address (without secrets), timeout, retries, and deviations from the standard API variant."""
        return self._connection.metadata(self._settings, self._terms.changes(PLAIN))

    def adopt(self, settings: ModelSettings) -> None:
        """Use the results of a run's probe from the next request on."""
        self._settings = settings

    @property
    def streamed(self) -> bool:
        """Whether any reply was streamed."""
        return self._wire.streamed

    def request(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> ChatRequest[RequestBody]:
        """Build the body of a request. Raises `DataError` for an image that is not in the store."""
        sent: list[SentImage] = []
        images: list[bytes] = []

        def image(ref: ImageRef) -> dict[str, Any]:
            stored, data = self.images.encoded(ref.image)
            sent.append(SentImage(ref.name, ref.image, stored))
            images.append(data)
            return image_block(stored.media_type, PLACE, self._settings.image_detail)

        wired = wire_messages(messages, image, self._model)
        cache_key = lane(self._connection.base_url, call) if self._settings.prompt_cache else None
        request_options = with_switch(
            options_of_repetition(self._options, call.repetition), self._settings.thinking_switch
        )
        specs = self._tools_offered.specs(tools)
        if self._tools_json is None or self._tools_json[0] is not specs:
            # Computed once per list of tools.
            self._tools_json = specs, as_json(specs) if specs else b""
        schemas, terms = self._tools_json[1], self._terms

        def on(terms: ApiVariant) -> list[bytes]:
            return request_body(self._model, request_options, wired, schemas, images, cache_key, terms)

        pieces = on(PLAIN)
        # The hash is computed from the body in the plain API variant, whichever variant is sent, and from the SHA-256
        # of each image.
        sha256 = hashlib.sha256(b"".join(pieces[::2]))
        sha256.update("".join(image.sent.sha256 for image in sent).encode())
        body = b"".join(pieces if terms == PLAIN else on(terms))
        return ChatRequest(call, RequestBody(terms, body, on), sha256.hexdigest(), tuple(sent))

    async def send(self, request: ChatRequest[RequestBody], keep: Keep) -> AssistantMessage:
        """Return the reply, which the connections' thread reads and saves.

        A request is sent again at once if its error shows that the server needs another API variant. Raises as
        `HttpTransport.post`, and `ModelRefused` if the server rejects an option that matters in every variant.
        """

        def read(body: bytes) -> AssistantMessage:
            reply = self.read(body, request.call)
            keep(body)
            return reply

        variants = request.body
        terms, body = variants.terms, variants.body
        while True:
            try:
                reply = await self._wire.post(body, read, stream=terms.stream)
            except StatusError as error:
                # Meanwhile another request may have learnt the variant that the server needs.
                if self._terms == terms:
                    self._learn(error, body)
                terms = self._terms
                body = b"".join(variants.on(terms))
            else:
                if self._wire.streamed and self._settings.stream == "auto":
                    streaming = replace(self._terms, stream=True)
                    self._terms = streaming.announce(self.name, self._terms, ", because it answers with a stream")
                return reply

    def _learn(self, error: StatusError, body: bytes) -> None:
        """Switch to the API variant that the error response asks for.

        Raises:
            StatusError: the error itself, if it names no other variant.
            ModelRefused: an option of the run must change; the message names the option that allows the run.
        """
        request = json.loads(body)
        options = request.keys() - {"model", "messages", "tools", "stream"}
        options |= {"stream", "streaming"} if self._terms.stream else set()
        options |= {"detail"} if self._settings.image_detail is not None else set()
        extra_fields = server_specific_fields(request["messages"])
        terms = learn_terms(self.name, self._terms, error, options, extra_fields, self._settings)
        if terms is None:
            raise error
        self._terms = terms.announce(self.name, self._terms, f" ({summary(error)})")

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        """Parse the message in the body of a reply. Raises `UnreadableReplyError`."""
        return message(readable(reply), call)

    async def close(self) -> None:
        """Close the connections and stop their thread."""
        await self._wire.close()


def with_switch(request_options: Mapping[str, Json], switch: Mapping[str, Json]) -> Mapping[str, Json]:
    """Merge the keys of `switch` into `extra_body` of the options; keys set by the user have priority."""
    if not switch:
        return request_options
    extra_body = request_options.get("extra_body")
    return {**request_options, "extra_body": _merged(switch, extra_body if isinstance(extra_body, Mapping) else {})}


def _merged(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    merged: dict[str, Json] = {**below, **above}
    for key, value in below.items():
        over = above.get(key)
        if isinstance(value, Mapping) and isinstance(over, Mapping):
            merged[key] = _merged(value, over)
    return merged


def address(reached: Connection, request_options: Mapping[str, Json]) -> Address:
    """Return the address and key for requests, and the options that are not part of a body."""
    base = reached.base_url or OFFICIAL
    parts = urlsplit(base)
    user, _, host = parts.netloc.rpartition("@")
    path = f"{parts.path.rstrip('/')}/chat/completions"
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    more = request_options.get("default_query")
    for name, value in more.items() if isinstance(more, dict) else ():
        query[name] = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    headers = {
        "Authorization": f"Bearer {reached.key or 'EMPTY'}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "hybrid-perception",
    }
    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(unquote(user).encode()).decode()}"
    organization = os.environ.get("OPENAI_ORG_ID") or os.environ.get("OPENAI_ORGANIZATION")
    account_headers = {"OpenAI-Organization": organization, "OpenAI-Project": os.environ.get("OPENAI_PROJECT_ID")}
    headers |= {name: value for name, value in account_headers.items() if value}
    return Address(urlunsplit((parts.scheme, host, path, "", "")), headers, query, proxy_for(base))
