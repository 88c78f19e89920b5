"""A `ChatModel` over LangChain's clients: openai (and compatible servers), anthropic, google_genai, ollama.

Retries happen here and nowhere else: the clients' own are off, so that
every provider is retried alike and an unreadable body counts like a 5xx. The client is made on the first call.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from hybrid.errors import Outage, UsageError
from hybrid.images import ImageStore
from hybrid.models.base import CallKey, ModelRefused, ModelSettings
from hybrid.models.failures import Backoff, Failure, classify, retry_after_s, summary
from hybrid.models.providers import PROVIDERS, connection, options
from hybrid.models.render import Attacher, ImageRules, arrange, metadata
from hybrid.models.toolspec import spec
from hybrid.timing import waiting
from hybrid.tool import Tool
from hybrid.types import Json

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

_REFUSALS = frozenset(
    {"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY"}
)


class LangChainChat:
    """One model of one provider, with the options of a run.

    Raises on construction:
        UsageError: an unknown provider, an option it does not take, or no key in the environment.
    """

    def __init__(self, name: str, settings: ModelSettings, store: ImageStore, backoff: Backoff | None = None) -> None:
        self.name = name
        self.provider, _, self._model = name.partition(":")
        self._quirks = PROVIDERS[self.provider]
        self._settings = settings
        self._backoff = backoff or Backoff()
        self._connection = connection(self._quirks, settings)
        self._options = options(self._quirks, self._model, settings)
        detail = settings.image_detail if self._quirks.detail_option is None else None
        self._images = Attacher(store, ImageRules(self._quirks.images, settings.max_pixels, detail))
        self._client: BaseChatModel | None = None
        self._transport: Any = None

    def facts(self) -> Mapping[str, Json]:
        """Model, address, options as given to the client, image rules, retries and versions; no key."""
        settings = self._settings
        return {
            "model": self.name,
            "base_url": self._connection.shown,
            "options": dict(self._options),
            "image_detail": settings.image_detail,
            "max_pixels": settings.max_pixels,
            "keep_images": settings.keep_images,
            "tool_calling": "native",
            "retries": settings.retries,
            "timeout_s": settings.timeout_s,
            "versions": {package: version(package) for package in self._quirks.packages},
        }

    async def chat(self, messages: Sequence[BaseMessage], tools: Sequence[Tool], call: CallKey) -> AIMessage:
        """The model's message. `response_metadata` also holds `images_sent`, `attempts` and `refusal`.

        Raises:
            Outage: no usable reply after the retries, or this one request is not taken.
            ModelRefused: key, model name, quota or option is rejected.
            DataError: an image is not in the store.
        """
        with waiting():
            client = self._open()
            arranged = arrange(messages, self._settings.keep_images)
            # Off the loop: a conversion or a large file would hold up every other call in flight.
            request, sent = await asyncio.to_thread(self._images.attach, arranged)
        bound = self._bind(client, messages, tools)
        reply, attempts = await self._send(bound, request, call)
        extra = {**metadata(sent), "attempts": attempts, "refusal": _refused(reply)}
        return _finish(reply, extra)

    def _open(self) -> BaseChatModel:
        if self._client is None:
            from langchain.chat_models import init_chat_model

            late = self._quirks.call_options
            given = {key: value for key, value in self._options.items() if key not in late}
            arguments: dict[str, Any] = {**given, **self._private()}
            try:
                with warnings.catch_warnings():
                    # An option that the client does not know is only warned about there; it is refused below.
                    warnings.filterwarnings("ignore", message=".*is not default parameter", category=UserWarning)
                    client = init_chat_model(f"{self.provider}:{self._model}", **arguments)
            except (ValueError, TypeError) as error:
                raise ModelRefused(f"--model {self.name}: {summary(error)}") from error
            self._refuse_unknown(client)
            self._client = client
        return self._client

    def _refuse_unknown(self, client: BaseChatModel) -> None:
        fields = type(client).model_fields
        known = set(fields) | {field.alias for field in fields.values()} | self._quirks.call_options | {"api"}
        if unknown := sorted(self._settings.extra.keys() - known):
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
        if self.provider == "openai":
            import openai

            # A pool of our own: LangChain's is shared between instances and could not be closed.
            self._transport = openai.DefaultAsyncHttpxClient(timeout=self._settings.timeout_s)
            private["http_async_client"] = self._transport
        elif self.provider == "ollama":
            import httpx

            self._transport = httpx.AsyncHTTPTransport()
            private["async_client_kwargs"] = {"timeout": self._settings.timeout_s, "transport": self._transport}
        return private

    def _bind(self, client: Any, messages: Sequence[BaseMessage], tools: Sequence[Tool]) -> Any:
        late = {key: value for key, value in self._options.items() if key in self._quirks.call_options}
        if tools:
            return client.bind_tools([spec(tool) for tool in tools], **late)
        called = _called(messages)
        if called and self._quirks.keeps_tools:
            return client.bind_tools([_bare(name) for name in called], tool_choice={"type": "none"}, **late)
        return client.bind(**late) if late else client

    async def _send(self, client: Any, request: Sequence[BaseMessage], call: CallKey) -> tuple[AIMessage, int]:
        for attempt in range(self._settings.retries + 1):
            try:
                async with asyncio.timeout(self._settings.timeout_s):
                    return _readable(await client.ainvoke(list(request))), attempt + 1
            # Every client has exceptions of its own; `classify` re-raises what is not about the provider.
            except Exception as error:
                failure = classify(error)
                if failure is Failure.BUG:
                    raise
                if failure is Failure.POLICY:
                    return _policy(error), attempt + 1
                self._give_up(error, failure, attempt)
                pause = self._backoff.seconds(call, attempt, retry_after_s(error))
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _give_up(self, error: Exception, failure: Failure, attempt: int) -> None:
        """Raise unless another attempt is due."""
        if failure is Failure.CONFIGURATION:
            raise ModelRefused(f"--model {self.name}: rejected by the provider: {summary(error)}") from error
        if failure is Failure.REQUEST:
            raise Outage(f"{self.name} does not take this request: {summary(error)}") from error
        if attempt == self._settings.retries:
            raise Outage(f"{self.name}: no reply after {attempt + 1} attempts: {summary(error)}") from error

    async def close(self) -> None:
        """Close the connections that are ours; anthropic's pool is shared by its package and ends with the process."""
        client, self._client = self._client, None
        if client is not None and self.provider == "google_genai":
            await client.aclose()  # type: ignore[attr-defined]
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None


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


def _called(messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """Names of the tools that a conversation has called, in order, each once."""
    from langchain_core.messages import AIMessage

    names = (call["name"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls)
    return tuple(dict.fromkeys(names))


def _bare(name: str) -> dict[str, Any]:
    """A declaration of a tool that may not be called any more."""
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": "Withdrawn.", "parameters": parameters}}


def _policy(error: Exception) -> AIMessage:
    from langchain_core.messages import AIMessage

    return AIMessage("", response_metadata={"refusal": True, "refusal_reason": summary(error)})


def _refused(reply: AIMessage) -> bool:
    told = reply.response_metadata
    reasons = {str(told.get(key)) for key in ("finish_reason", "stop_reason")}
    blocked = bool((told.get("prompt_feedback") or {}).get("block_reason"))
    return bool(told.get("refusal") or reply.additional_kwargs.get("refusal") or blocked or reasons & _REFUSALS)


def _finish(reply: AIMessage, extra: Mapping[str, Any]) -> AIMessage:
    """The reply with our own metadata; a refusal that came with an empty text becomes the text."""
    refusal = reply.additional_kwargs.get("refusal")
    update: dict[str, Any] = {"response_metadata": {**reply.response_metadata, **extra}}
    if isinstance(refusal, str) and not reply.content:
        update["content"] = refusal
    return reply.model_copy(update=update)
