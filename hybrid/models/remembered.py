"""Any other model, with its replies kept as soon as they arrive: `remembering(model, log)`.

A model that is a `Listener` keeps its replies itself; for others it is done here, at the level of messages.
Recordings cost nothing and are not kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from hybrid.core.messages import AssistantMessage, Message
from hybrid.models.base import CallKey, ChatModel, Likelihoods, Listener, ReplyLog
from hybrid.models.toolspec import ToolsOffered
from hybrid.tool import Tool

FREE = frozenset({"replay"})  # Providers whose replies cost neither money nor time and are the same again.


def remembering(model: ChatModel, log: ReplyLog) -> ChatModel:
    """The model with every reply kept in the log as soon as it is there, and no reply asked for that is in it."""
    if model.provider in FREE:
        return model
    if isinstance(model, Listener):
        model.listen(log)
        return model
    return RememberedModel(model, log)


class RememberedModel:
    """A `ChatModel` around another that keeps its messages in a `ReplyLog`."""

    def __init__(self, inner: ChatModel, log: ReplyLog) -> None:
        self._inner = inner
        self._log = log
        self._tools_offered = ToolsOffered()
        self.name, self.provider = inner.name, inner.provider
        self.metadata, self.connection, self.close = inner.metadata, inner.connection, inner.close
        if isinstance(inner, Likelihoods):
            # Scores cost nothing and are not kept.
            self.likelihood = inner.likelihood

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """The message that the log holds for this call and these messages, else the inner model's, which is kept."""
        sha256 = conversation_sha256(messages, self._tools_offered.specs(tools))
        if (data := self._log.find_reply(call, sha256)) is not None and (cached := message_from_json(data)) is not None:
            return cached
        reply = await self._inner.chat(messages, tools, call)
        # A full disk is no reason to throw a paid reply away: it is met again, and told, where answers are written.
        with suppress(OSError):
            self._log.keep(call, sha256, message_json(reply))
        return reply


def conversation_sha256(messages: Sequence[Message], schemas: Sequence[Mapping[str, Any]]) -> str:
    """Hex sha256 of a conversation as the model is shown it, and of the schemas of the tools offered."""
    turns: list[Any] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            # Without what its provider draws anew each time: ids of its own.
            calls = [{"id": call.id, "name": call.name, "args": call.args} for call in message.calls]
            turns.append([message.role, [message.text, calls, [asdict(call) for call in message.invalid]]])
        else:
            turns.append([message.role, asdict(message)])
    text = json.dumps([turns, schemas], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def message_json(reply: AssistantMessage) -> bytes:
    """A message as JSON; `message_from_json` gives it back."""
    # ASCII: half a character in a reply, which UTF-8 cannot write, is kept like any other.
    return json.dumps(asdict(reply), default=str).encode("ascii")


def message_from_json(data: bytes) -> AssistantMessage | None:
    """The message, or None where the bytes hold none."""
    try:
        fields = json.loads(data)
        # Not `validate_json`, which refuses half a character.
        return _message_adapter().validate_python(fields) if isinstance(fields, dict) and "text" in fields else None
    except (ValueError, RecursionError):
        return None


@cache
def _message_adapter() -> TypeAdapter[AssistantMessage]:
    return TypeAdapter(AssistantMessage)
