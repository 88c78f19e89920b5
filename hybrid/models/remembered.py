"""Saves the replies of any other model as soon as they arrive: `remembering(model, log)`.

A model that is a `Listener` saves its replies itself; for others this module does it, at the level of messages.
Recordings cost nothing and are not saved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from hybrid.core.messages import AssistantMessage, Message
from hybrid.models.base import CallKey, ChatModel, Likelihoods, Listener, ReplyLog, ReusedReply
from hybrid.models.toolspec import ToolsOffered
from hybrid.tool import Tool

FREE = frozenset({"replay"})  # Providers whose replies are free, immediate and reproducible.


def remembering(model: ChatModel, log: ReplyLog) -> ChatModel:
    """Return a model that saves every reply in the log when it arrives, and sends no request whose reply is there."""
    if model.provider in FREE:
        return model
    if isinstance(model, Listener):
        model.listen(log)
        return model
    return RememberedModel(model, log)


class RememberedModel:
    """A `ChatModel` that wraps another one and saves its messages in a `ReplyLog`."""

    def __init__(self, inner: ChatModel, log: ReplyLog) -> None:
        self._inner = inner
        self._log = log
        self._tools_offered = ToolsOffered()
        self.name, self.provider = inner.name, inner.provider
        self.metadata, self.connection, self.close = inner.metadata, inner.connection, inner.close
        if isinstance(inner, Likelihoods):
            # Likelihoods cost nothing and are not saved.
            self.likelihood = inner.likelihood

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """Return the logged message for this call and conversation, or ask the inner model and log its message."""
        sha256 = conversation_sha256(messages, self._tools_offered.specs(tools))
        if (data := self._log.find_reply(call, sha256)) is not None and (cached := message_from_json(data)) is not None:
            return replace(cached, reused=isinstance(data, ReusedReply))
        reply = await self._inner.chat(messages, tools, call)
        # A paid reply is not discarded because of a full disk: writing the answer will fail too, and report it.
        with suppress(OSError):
            self._log.keep(call, sha256, message_json(reply))
        return reply


def conversation_sha256(messages: Sequence[Message], schemas: Sequence[Mapping[str, Any]]) -> str:
    """Return the hex sha256 of a conversation as the model gets it, and of the schemas of the offered tools."""
    turns: list[Any] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            # Leave out `native`, which contains ids that the provider generates randomly.
            calls = [{"id": call.id, "name": call.name, "args": call.args} for call in message.calls]
            turns.append([message.role, [message.text, calls, [asdict(call) for call in message.invalid]]])
        else:
            turns.append([message.role, asdict(message)])
    text = json.dumps([turns, schemas], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def message_json(reply: AssistantMessage) -> bytes:
    """Encode a message as JSON; `message_from_json` decodes it."""
    # Use ASCII, because UTF-8 cannot encode a lone surrogate in a reply.
    return json.dumps(asdict(reply), default=str).encode("ascii")


def message_from_json(data: bytes) -> AssistantMessage | None:
    """Decode a message; None if the bytes contain none."""
    try:
        fields = json.loads(data)
        # Do not use `validate_json`, which rejects lone surrogates.
        return _message_adapter().validate_python(fields) if isinstance(fields, dict) and "text" in fields else None
    except (ValueError, RecursionError):
        return None


@cache
def _message_adapter() -> TypeAdapter[AssistantMessage]:
    return TypeAdapter(AssistantMessage)
