"""The `ChatClient` for LangChain's chat models: providers of `init_chat_model`, and objects passed in by Python code.

The chat model is made for the first request.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.timing import waiting
from hybrid.core.types import Json
from hybrid.models.base import CallKey, ModelRefused
from hybrid.models.caller import ChatRequest, Keep
from hybrid.models.chat_completions.terms import NEWER, OLDER, PLAIN, learn_terms
from hybrid.models.failures import (
    CHECK,
    Failure,
    StatusError,
    UnreadableReplyError,
    error_in_reply,
    read_failure,
    summary,
)
from hybrid.models.images import ImageEncoder
from hybrid.models.langchain.chat_models import (
    chat_model_metadata,
    chat_model_named,
    is_streaming,
    keep_secrets_of,
    options_known,
    package_of,
    refuse_settings,
    row_of,
    without_streaming,
)
from hybrid.models.langchain.messages import REPAIRS, from_langchain, to_langchain
from hybrid.models.langchain.pools import OWN_POOL, anthropic_pool, httpx_arguments, openai_pool
from hybrid.models.options import (
    connection,
    image_rules,
    options,
    options_of_repetition,
    server_metadata,
)
from hybrid.models.prompt_cache import lane, marked
from hybrid.models.providers import PROVIDERS
from hybrid.models.remembered import conversation_sha256, message_from_json, message_json
from hybrid.models.toolspec import COORDINATES, ToolsOffered
from hybrid.tool import Tool

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

OTHER_WAY = "openai:MODEL can, if the server speaks chat completions and no --model-arg is an option of LangChain's own"


@dataclass(frozen=True, slots=True)
class LangChainCall:
    """One call of a chat model."""

    messages: list[BaseMessage]
    schemas: list[dict[str, Any]]  # Schemas of the offered tools.
    called: tuple[str, ...]  # Names of the tools that the conversation has called, in order, without duplicates.


class LangChainClient:
    """One model of one provider, with the options of a run; or a passed-in chat model with its own options.

    Raises on construction:
        UsageError: an unknown provider, a package that is not installed, an unsupported option, or no key in the
            environment.
    """

    def __init__(
        self, name: str, settings: ModelSettings, store: ImageStore, handed_in: BaseChatModel | None = None
    ) -> None:
        if settings.stream == "on":
            raise UsageError(f"--stream on: {name} is asked through LangChain, without streaming")
        self.name = name
        self._provider, _, self._model = name.partition(":")
        self._handed_in = handed_in
        # `_handed_in` describes the model in the manifest; requests go to its copy.
        self._asked = handed_in and without_streaming(handed_in)
        row = PROVIDERS.get(self._provider) if handed_in is None else None
        # The chat model's packages, and the quirks of its provider.
        self._packages: tuple[str, ...]
        if row is not None:
            self._row, self._packages = row, row.packages
        else:
            chat_model = handed_in or chat_model_named(self._provider, self._model)
            if chat_model is None:
                raise UsageError(f"--model {name}: LangChain has no provider {self._provider!r}")
            keep_secrets_of(chat_model)
            self._row, self._packages = row_of(chat_model, self._provider), package_of(chat_model)
        self._settings = settings
        self._tools_offered = ToolsOffered()
        self._connection = connection(self._row, settings, name)
        if handed_in is None:
            self._options = options(self._row, self._model, settings)
        else:
            refuse_settings(settings)
            self._options = {}
        self._detail = settings.image_detail if self._row.detail_option is None else None
        self.images = ImageEncoder(store, image_rules(self._row, self._connection, settings, name))
        # One chat model per repetition if repetitions have seeds of their own, else one for all repetitions.
        self._chat_models: dict[int, BaseChatModel] = {}
        self._terms = PLAIN
        self._transports: list[Any] = []

    def metadata(self) -> Mapping[str, Json]:
        """Return the model, its options as passed on, the image rules and the versions, but neither key nor address."""
        caches = self._row.cache is not None
        metadata = server_metadata(self.name, self._settings, self._options, self._packages, caches=caches)
        return metadata if self._handed_in is None else {**metadata, **chat_model_metadata(self._handed_in)}

    def connection(self) -> Mapping[str, Json]:
        """Return the address (without secrets), the timeout, the retries, and the options that are no longer sent."""
        return self._connection.metadata(self._settings, self._terms.changes(PLAIN))

    def request(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> ChatRequest[LangChainCall]:
        """Convert the messages to LangChain's form. Raises `DataError` for an image that is not in the store."""
        schemas = self._tools_offered.specs(tools)
        wired, images = to_langchain(messages, self.images.encoded, self._detail, as_urls=self._row.images_as_urls)
        if tools and self._row.cache == "marks" and self._settings.prompt_cache:
            wired = marked(wired)
        sha256 = conversation_sha256(messages, schemas)
        calls = (
            tool_call for message in messages if isinstance(message, AssistantMessage) for tool_call in message.calls
        )
        tool_names = tuple(dict.fromkeys(tool_call.name for tool_call in calls))
        return ChatRequest(call, LangChainCall(wired, schemas, tool_names), sha256, images)

    async def send(self, request: ChatRequest[LangChainCall], keep: Keep) -> AssistantMessage:
        """Return the reply of the chat model.

        Raises:
            UsageError: the chat model cannot be made, or does not know an option.
            ModelRefused: the model does not support tools, or its server requires an API variant that LangChain lacks.
            TimeoutError: no reply arrived within the settings' `timeout_s`.
            Exception: any error of the provider's package.
        """
        while True:
            terms = self._terms
            with waiting():
                chat_model = self._opened(request.call.repetition if "seed" in self._options else 1)
            bound = self._bound(chat_model, request)
            REPAIRS.set({})
            try:
                async with asyncio.timeout(self._settings.timeout_s):
                    answer = _checked(await bound.ainvoke(request.body.messages))
                reply = from_langchain(answer, streamed=is_streaming(chat_model))
            except Exception as error:
                # Meanwhile another request may have learnt the variant that the server needs.
                if self._terms == terms and not self._learns(error):
                    reported = _reported(error)
                    if reported is error:
                        raise
                    raise reported from error
            else:
                keep(message_json(reply))
                return reply

    def _learns(self, error: Exception) -> bool:
        """If the server rejected an optional parameter, drop it from now on; return whether one was dropped.

        Raises:
            ModelRefused: the server rejected another aspect of the request; the message says what can be done.
        """
        failed = read_failure(error)
        if failed.status is None:
            return False
        status_error = StatusError(failed.status, summary(error, 4000))
        sent = {*self._options, *(["prompt_cache_key"] if self._row.cache == "key" else [])}
        sent |= {NEWER, OLDER} if self._settings.max_tokens is not None else set()
        terms = learn_terms(self.name, self._terms, status_error, sent, (), self._settings)
        if terms is None:
            return False
        if terms != replace(PLAIN, without=terms.without):
            raise ModelRefused(
                f"--model {self.name}: its server accepts requests only if {terms.changes(self._terms)[0]}, which "
                f"LangChain does not do; {OTHER_WAY}: {failed.text}"
            ) from error
        self._terms, self._chat_models = terms.announce(self.name, self._terms, f" ({failed.text})"), {}
        return True

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        """Parse a saved message. Raises `UnreadableReplyError`."""
        message = message_from_json(reply)
        if message is None:
            raise UnreadableReplyError("the stored reply is damaged")
        return message

    def _opened(self, repetition: int) -> BaseChatModel:
        if self._asked is not None:
            return self._asked
        if repetition not in self._chat_models:
            run_options = options_of_repetition(self._options, repetition)
            left_out = self._row.call_options | self._terms.without
            call_options = {key: value for key, value in run_options.items() if key not in left_out}
            # hybrid's timeout limits each request, and the client must not retry on its own.
            limits = {self._row.timeout_option: self._settings.timeout_s} if self._row.timeout_option else {}
            arguments: dict[str, Any] = {**(self._row.no_retries or {}), **limits, **call_options, **self._private()}
            with warnings.catch_warnings():
                # LangChain only warns about options that the chat model does not know; they are rejected below.
                warnings.filterwarnings("ignore", message=".*is not default parameter", category=UserWarning)
                try:
                    chat_model = chat_model_named(self._provider, self._model, arguments)
                except UsageError as error:
                    raise ModelRefused(str(error)) from error
            assert chat_model is not None  # noqa: S101 - the constructor has checked that the provider is known
            known_options = options_known(chat_model) | self._row.call_options | {"api"}
            requested_options = {*self._settings.extra, *(["base_url"] if self._settings.base_url else [])}
            if unknown := sorted(requested_options - known_options):
                raise UsageError(
                    f"--model-arg {', '.join(unknown)}: {self._provider} has no such option; what only a "
                    'compatible server knows goes into extra_body={"...": ...}'
                )
            if self._provider == "anthropic":
                self._transports.append(anthropic_pool(chat_model, self._settings.timeout_s))
            self._chat_models[repetition] = without_streaming(chat_model)
        return self._chat_models[repetition]

    def _private(self) -> dict[str, Any]:
        """Return address, key and connections: options that do not belong in the manifest."""
        base_url, key = self._connection.base_url, self._connection.key
        private: dict[str, Any] = {} if base_url is None else {"base_url": base_url}
        private |= {} if key is None else {"api_key": key}
        if self._row.pool_option is not None:
            # LangChain's own pool is shared between instances and could not be closed.
            private[self._row.pool_option] = openai_pool(self._settings.timeout_s)
            self._transports.append(private[self._row.pool_option])
        elif (option := OWN_POOL.get(self._provider)) is not None and option not in self._settings.extra:
            private[option] = httpx_arguments(base_url)
            self._transports.append(private[option]["transport"])
        return private

    def _bound(self, chat_model: Any, request: ChatRequest[LangChainCall]) -> Any:
        """Bind the tools, and the options that are passed with each call, to the chat model; return the result."""
        late = {key: value for key, value in self._options.items() if key in self._row.call_options}
        none_cached = {"prompt_cache_key"} & {*self._options, *self._terms.without}
        if self._row.cache == "key" and self._settings.prompt_cache and not none_cached:
            key = lane(self._connection.base_url, request.call)
            late |= {"prompt_cache_key": key} if key is not None else {}
        body = request.body
        if body.schemas:
            schemas = with_defaults(body.schemas) if self._provider == "google_genai" else body.schemas
            try:
                return chat_model.bind_tools(schemas, **late)
            except NotImplementedError as error:
                raise ModelRefused(f"--model {self.name}: {CHECK[Failure.TOOLS]}") from error
        if body.called and self._row.keeps_tools:
            nothing: dict[str, Any] = {"description": "Withdrawn.", "parameters": {"type": "object", "properties": {}}}
            # These tools are only declared because the conversation called them; they may not be called any more.
            withdrawn = [{"type": "function", "function": {"name": name, **nothing}} for name in body.called]
            return chat_model.bind_tools(withdrawn, tool_choice={"type": "none"}, **late)
        return chat_model.bind(**late) if late else chat_model

    async def close(self) -> None:
        """Close the connections that this client opened."""
        chat_models, self._chat_models = self._chat_models, {}
        transports, self._transports = self._transports, []
        if self._provider == "google_genai":
            for chat_model in chat_models.values():
                await chat_model.aclose()  # type: ignore[attr-defined]
        for transport in transports:
            await transport.aclose()


def with_defaults(node: Any) -> Any:
    """Add empty defaults to optional properties of nested objects in the schemas of tools.

    langchain-google-genai 4.4 declares every property of such an object without a default as required, and sends no
    default.
    """
    if isinstance(node, list):
        return [with_defaults(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {name: with_defaults(value) for name, value in node.items()}
    if isinstance(fields := schema.get("properties"), dict):
        needed = {*schema.get("required", ()), *COORDINATES}
        schema["properties"] = {
            name: field if name in needed or not isinstance(field, dict) else {**field, "default": ""}
            for name, field in fields.items()
        }
    return schema


def _reported(error: Exception) -> Exception:
    """Return the error in a reply of the Responses API; LangChain raises it as an object within a `ValueError`."""
    reported = error.args[0] if type(error) is ValueError and error.args else None
    reported = reported.model_dump() if isinstance(reported, BaseModel) else reported
    return error_in_reply(reported) if isinstance(reported, Mapping) else error


def _checked(reply: AIMessage) -> AIMessage:
    """Return the reply, but reject an empty one without a finish reason: some clients return it for an unreadable body.

    Raises:
        ValueError: no content, no call, and no finish reason.
    """
    metadata = reply.response_metadata
    reasons = ("finish_reason", "stop_reason", "done_reason", "status", "prompt_feedback")
    has_reason = any(metadata.get(key) for key in reasons)
    if not (has_reason or reply.content or reply.tool_calls or reply.invalid_tool_calls):
        raise ValueError("the reply contains neither content nor a finish reason")
    return reply
