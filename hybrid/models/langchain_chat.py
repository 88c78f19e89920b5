"""A `ChatModel` over LangChain's clients: every provider of `init_chat_model`, and objects that Python code hands in.

The clients' own retries are off (`hybrid.models.sending`), so that every provider is retried alike and an unreadable
body counts like a 5xx. The client is made on the first call.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hybrid.config import ModelSettings
from hybrid.errors import UsageError
from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, Message, SentImage
from hybrid.models._langchain import from_langchain, holdable, to_langchain
from hybrid.models.base import CallKey, ModelRefused
from hybrid.models.circuit import CHECK, Circuit
from hybrid.models.failures import Backoff, Failure, redirected
from hybrid.models.langchain_client import (
    client_named,
    facts_of_client,
    keep_client_secrets,
    options_known,
    package_of,
    refuse_settings,
    row_of,
)
from hybrid.models.prompt_cache import lane, marked
from hybrid.models.providers import (
    PROVIDERS,
    Provider,
    client_limits,
    connection,
    facts_of,
    options,
    options_of_repetition,
)
from hybrid.models.render import ImageEncoder, ImageRules, arrange
from hybrid.models.sending import Refusal, Sender, policy_reply
from hybrid.models.toolspec import ToolsOffered
from hybrid.models.wire import proxy_for
from hybrid.timing import waiting
from hybrid.tool import Tool
from hybrid.types import Json

if TYPE_CHECKING:
    import httpx
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

GOOGLE = "https://generativelanguage.googleapis.com"


async def _refuse_redirect(response: httpx.Response) -> None:
    """Called by httpx before it follows: raises `StatusError`."""
    if response.has_redirect_location:
        raise redirected(response.status_code, str(response.url), response.headers.get("location"))


HOOKS: Mapping[str, Any] = {"response": [_refuse_redirect]}
"""For clients of httpx, which follow redirections where a provider's package says so."""


class LangChainChat:
    """One model of one provider, with the options of a run; or a client that is handed in, with its own.

    Raises on construction:
        UsageError: an unknown provider, a package that is not installed, an option it does not take, or no key in the
            environment.
    """

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        store: ImageStore,
        backoff: Backoff | None = None,
        circuit: Circuit | None = None,
        client: BaseChatModel | None = None,
    ) -> None:
        self.name = name
        self.provider, _, self._model = name.partition(":")
        self._given = client
        self._quirks, self._packages = self._row(client)
        self._settings = settings
        self._tools_offered = ToolsOffered()
        self._sender = Sender(name, settings.retries, circuit or Circuit(name), backoff)
        self._connection = connection(self._quirks, settings)
        if client is None:
            self._options = options(self._quirks, self._model, settings)
        else:
            refuse_settings(settings)
            self._options = {}
        self._detail = settings.image_detail if self._quirks.detail_option is None else None
        self._images = ImageEncoder(store, ImageRules(self._quirks.images, settings.max_pixels))
        self._clients: dict[int, BaseChatModel] = {}
        """By the number of the repetition, where each is sent a seed of its own; else one for all."""
        self._transports: list[Any] = []

    def _row(self, client: BaseChatModel | None) -> tuple[Provider, tuple[str, ...]]:
        """How the client wants to be spoken to, and the packages that it is from."""
        if client is None and (row := PROVIDERS.get(self.provider)) is not None:
            return row, row.packages
        client = client or client_named(self.provider, self._model)
        if client is None:
            raise UsageError(f"--model {self.name}: LangChain knows no provider {self.provider!r}")
        keep_client_secrets(client)
        return row_of(client, self.provider), package_of(client)

    def metadata(self) -> Mapping[str, Json]:
        """Model, options as given to the client, image rules and versions; neither key nor address."""
        cached = self._quirks.cache is not None
        facts = facts_of(self.name, self._settings, self._options, self._packages, caches=cached)
        return facts if self._given is None else {**facts, **facts_of_client(self._given)}

    def connection(self) -> Mapping[str, Json]:
        """Address without secrets, timeout and retries."""
        return self._connection.metadata(self._settings)

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """The model's message, with the images sent and the attempts made.

        Raises:
            Outage: no usable reply after the retries, or this one request is not taken.
            ServerDown: the server has been away for too long.
            ModelRefused: key, model name, quota or option is rejected.
            DataError: an image is not in the store.
        """
        with waiting():
            client = self._open(call.repetition if "seed" in self._options else 1)
            arranged = arrange(messages, self._settings.keep_images)
            # Off the loop: a conversion or a large file would hold up every other call in flight.
            request, sent = await asyncio.to_thread(self._wired, arranged)
        if tools and self._quirks.cache == "marks" and self._settings.prompt_cache:
            request = marked(request)
        bound = self._bind(client, messages, tools, call)
        reply, attempts = await self._send(bound, request, call)
        return replace(reply, images_sent=sent, attempts=attempts)

    def _wired(self, arranged: Sequence[Message]) -> tuple[list[BaseMessage], tuple[SentImage, ...]]:
        return to_langchain(arranged, self._images.encoded, self._detail, as_urls=self._quirks.images_as_urls)

    def _open(self, repetition: int) -> BaseChatModel:
        if self._given is not None:
            return self._given
        if repetition not in self._clients:
            late = self._quirks.call_options
            own = options_of_repetition(self._options, repetition)
            given = {key: value for key, value in own.items() if key not in late}
            limits = client_limits(self._quirks, self._settings)
            arguments: dict[str, Any] = {**limits, **given, **self._private()}
            with warnings.catch_warnings():
                # An option that the client does not know is only warned about there; it is refused below.
                warnings.filterwarnings("ignore", message=".*is not default parameter", category=UserWarning)
                try:
                    client = client_named(self.provider, self._model, arguments)
                except UsageError as error:
                    raise ModelRefused(str(error)) from error
            assert client is not None  # noqa: S101 - the provider is known
            self._refuse_unknown(client)
            if self.provider == "anthropic":
                self._own_pool(client)
            self._clients[repetition] = client
        return self._clients[repetition]

    def _refuse_unknown(self, client: BaseChatModel) -> None:
        known = options_known(client) | self._quirks.call_options | {"api"}
        told = {*self._settings.extra, *(["base_url"] if self._settings.base_url else [])}
        if unknown := sorted(told - known):
            raise UsageError(
                f"--model-arg {', '.join(unknown)}: {self.provider} has no such option; what only a "
                'compatible server knows goes into extra_body={"...": ...}'
            )

    def _private(self) -> dict[str, Any]:
        """Address, key and connection pool: what does not belong in the manifest."""
        private: dict[str, Any] = {}
        if self._connection.base_url is not None:
            private["base_url"] = self._connection.base_url
        if self._connection.key is not None:
            private["api_key"] = self._connection.key
        if self._quirks.pool_option is not None:
            # A pool of our own: LangChain's is shared between instances and could not be closed.
            transport: Any = _openai_pool(self._settings.timeout_s)
            self._transports.append(transport)
            private[self._quirks.pool_option] = transport
        elif self.provider == "ollama":
            import httpx

            transport = httpx.AsyncHTTPTransport()
            self._transports.append(transport)
            given = {"timeout": self._settings.timeout_s, "transport": transport, "event_hooks": HOOKS}
            private["async_client_kwargs"] = given
        elif self.provider == "google_genai" and "client_args" not in self._settings.extra:
            import httpx

            class Transport(httpx.AsyncHTTPTransport):
                """The same one is given to its client without async, which closes it its own way."""

                def close(self) -> None:
                    """Nothing was opened there."""

            # Only with a transport of httpx does its client not use aiohttp, whose error replies it does not await.
            transport = Transport(proxy=proxy_for(self._connection.base_url or GOOGLE))
            self._transports.append(transport)
            private["client_args"] = {"transport": transport, "event_hooks": HOOKS}
        return private

    def _own_pool(self, client: Any) -> None:
        """Give anthropic's client, which takes none when it is made, a pool of our own that follows no redirection."""
        import anthropic

        timeout_s, proxy = self._settings.timeout_s, client.anthropic_proxy
        pool = anthropic.DefaultAsyncHttpxClient(timeout=timeout_s, proxy=proxy, event_hooks=HOOKS)
        self._transports.append(pool)
        inner = client._async_client  # noqa: SLF001 - there is no other way to it
        client._async_client = inner.with_options(http_client=pool)  # noqa: SLF001

    def _bind(self, client: Any, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> Any:
        late = {key: value for key, value in self._options.items() if key in self._quirks.call_options}
        if self._quirks.cache == "key" and self._settings.prompt_cache and "prompt_cache_key" not in self._options:
            key = lane(self._connection.base_url, call)
            late |= {"prompt_cache_key": key} if key is not None else {}
        if tools:
            try:
                return client.bind_tools(self._tools_offered.specs(tools), **late)
            except NotImplementedError as error:
                raise ModelRefused(f"--model {self.name}: {CHECK[Failure.TOOLS]}") from error
        called = _called(messages)
        if called and self._quirks.keeps_tools:
            return client.bind_tools([_bare(name) for name in called], tool_choice={"type": "none"}, **late)
        return client.bind(**late) if late else client

    async def _send(self, client: Any, request: Sequence[BaseMessage], call: CallKey) -> tuple[AssistantMessage, int]:
        async def once() -> AIMessage:
            async with asyncio.timeout(self._settings.timeout_s):
                return _readable(await client.ainvoke(list(request)))

        try:
            reply, attempts = await self._sender.send(once, call)
        except Refusal as refusal:
            return policy_reply(refusal), refusal.attempts
        return from_langchain(reply), attempts

    async def close(self) -> None:
        """Close the connections that are ours."""
        clients, self._clients = self._clients, {}
        transports, self._transports = self._transports, []
        if self.provider == "google_genai":
            for client in clients.values():
                await client.aclose()  # type: ignore[attr-defined]
        for transport in transports:
            await transport.aclose()


def _openai_pool(timeout_s: float) -> Any:
    """The connections of an `openai` client, with replies that LangChain can hold (`holdable`)."""
    import openai

    # Which package the client's own requests and responses are of is for openai to choose.
    class Pool(openai.DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            """Send a request. Raises as httpx."""
            response = await super().send(request, **options)
            if response.is_stream_consumed and (said := holdable(response.content)) is not response.content:
                headers = {"content-type": response.headers.get("content-type", "application/json")}
                return type(response)(response.status_code, headers=headers, content=said, request=request)
            return response

    return Pool(timeout=timeout_s, event_hooks=HOOKS)


def _readable(reply: AIMessage) -> AIMessage:
    """The reply, unless it holds nothing at all, which is what some clients make of a body they cannot read.

    Raises:
        ValueError: no content, no call, and no word on why it ended.
    """
    told = reply.response_metadata
    ended = any(told.get(key) for key in ("finish_reason", "stop_reason", "done_reason", "status", "prompt_feedback"))
    if not (ended or reply.content or reply.tool_calls or reply.invalid_tool_calls):
        raise ValueError("the reply holds neither content nor a reason why it ended")
    return reply


def _called(messages: Sequence[Message]) -> tuple[str, ...]:
    """Names of the tools that a conversation has called, in order, each once."""
    names = (call.name for message in messages if isinstance(message, AssistantMessage) for call in message.calls)
    return tuple(dict.fromkeys(names))


def _bare(name: str) -> dict[str, Any]:
    """A declaration of a tool that may not be called any more."""
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": "Withdrawn.", "parameters": parameters}}
