"""Sends the requests of any provider's client in batches: `batched(model, batches)`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.messages import AssistantMessage, Message
from hybrid.log.batches import BatchedCall
from hybrid.models.base import CallKey, ChatModel
from hybrid.models.batch_apis import BatchApi
from hybrid.models.batching.batches import Batches
from hybrid.models.batching.ticket import TICKET, BatchItem
from hybrid.models.caller import Caller, ChatClient, ChatRequest, Keep
from hybrid.plugins.registry import load, names
from hybrid.tool import Tool

APIS = "hybrid.models.batch_apis"


def batch_api(name: str, settings: ModelSettings) -> BatchApi:
    """Return the batch API of a model `provider:name`. Raises `UsageError` if the provider has none."""
    word = name.partition(":")[0]
    if word not in names(APIS):
        raise UsageError(f"--batch: {word} has no batch API; supported are: {', '.join(names(APIS))}")
    api_class: type[BatchApi] = load(APIS, word)
    return api_class(name, settings)


def batched(model: ChatModel, batches: Batches, settings: ModelSettings) -> ChatModel:
    """Wrap a model so that it sends its requests in batches. Time spent waiting for a batch is not downtime."""
    assert isinstance(model, Caller)  # noqa: S101 - `prepare` has rejected all other models
    return Caller(BatchedClient(model.client, batches), settings, in_batches=True)


def batches_of(model: ChatModel | None) -> Batches | None:
    """Return the batches in which a model's requests are collected; None for a model that is asked directly."""
    client = model.client if isinstance(model, Caller) else None
    return client.batches if isinstance(client, BatchedClient) else None


@dataclass(slots=True)
class _Conversation:
    """A conversation from which a request can be built again; `made` is the built request, None after its first use."""

    messages: Sequence[Message]
    tools: Sequence[Tool]
    made: ChatRequest[Any] | None


class BatchedClient:
    """Wraps another `ChatClient`. It stores conversations, not requests, so images are read when needed."""

    def __init__(self, inner: ChatClient[Any], batches: Batches) -> None:
        self._inner = inner
        self.batches = batches
        self.name, self.images = inner.name, inner.images
        # The model and its server are those of the inner client.
        self.metadata, self.connection = inner.metadata, inner.connection

    def request(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> ChatRequest[_Conversation]:
        """Build the request; see `ChatClient.request`."""
        inner_request = self._inner.request(messages, tools, call)
        return ChatRequest(
            call, _Conversation(messages, tools, inner_request), inner_request.sha256, inner_request.images
        )

    async def send(self, request: ChatRequest[_Conversation], keep: Keep) -> AssistantMessage:
        """Return the reply from a batch. Raises the inner client's errors, and the error that ended the batches."""
        call = request.call
        ticket = self.batches.ticket(BatchedCall(call.solver, call.question, call.ask, call.call, request.sha256))
        try:
            while True:
                if ticket.parked:
                    await self.batches.answered(ticket)
                if (reply := await self._once(request, ticket, keep)) is not None:
                    return replace(reply, batched=not ticket.direct, attempts=1 + ticket.sent)
        finally:
            self.batches.leave(ticket)

    async def _once(
        self, request: ChatRequest[_Conversation], ticket: BatchItem, keep: Keep
    ) -> AssistantMessage | None:
        """Return the reply, or None if the request waits in a batch.

        This is a method of its own, so that no stack frame keeps the bytes of a waiting request in memory.
        """
        conversation = request.body
        inner_request, conversation.made = conversation.made, None
        if inner_request is None:
            inner_request = await asyncio.to_thread(
                self._inner.request, conversation.messages, conversation.tools, request.call
            )
        token = TICKET.set(ticket)
        try:
            return await self._inner.send(inner_request, keep)
        except Exception:
            if ticket.parked:
                return None
            raise
        finally:
            TICKET.reset(token)

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        """Read the reply, as `ChatClient.read`."""
        return replace(self._inner.read(reply, call), batched=self.batches.has_sent(call))

    async def close(self) -> None:
        """Close the connections; batches at the provider continue."""
        await self.batches.close()
        await self._inner.close()
