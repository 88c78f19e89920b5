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
from typing import Any

from hybrid.messages import AssistantMessage, InvalidCall, Message, SentImage, TokenUsage, ToolCall, UnreadableCall
from hybrid.models.base import CallKey, ChatModel, Likelihoods, Listener, ReplyLog
from hybrid.models.toolspec import ToolsOffered
from hybrid.tool import Tool
from hybrid.types import Json, StoredImage

FREE = frozenset({"replay"})  # Providers whose replies cost neither money nor time and are the same again.


def remembering(model: ChatModel, log: ReplyLog) -> ChatModel:
    """The model with every reply kept in the log as soon as it is there, and no reply asked for that is in it."""
    if model.provider in FREE:
        return model
    if isinstance(model, Listener):
        model.listen(log)
        return model
    return RememberedLikelihoods(model, model, log) if isinstance(model, Likelihoods) else RememberedModel(model, log)


class RememberedModel:
    """A `ChatModel` around another that keeps its messages in a `ReplyLog`."""

    def __init__(self, inner: ChatModel, log: ReplyLog) -> None:
        self._inner = inner
        self._log = log
        self._tools_offered = ToolsOffered()

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self._inner.name

    @property
    def provider(self) -> str:
        """The inner model's provider."""
        return self._inner.provider

    def metadata(self) -> Mapping[str, Json]:
        """The inner model's facts."""
        return self._inner.metadata()

    def connection(self) -> Mapping[str, Json]:
        """How the inner model's server is reached."""
        return self._inner.connection()

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """The message that the log holds for this call and these messages, else the inner model's, which is kept."""
        sha256 = conversation_sha256(messages, self._tools_offered.specs(tools))
        if (said := self._log.said(call, sha256)) is not None and (kept := message_from_json(said)) is not None:
            return kept
        reply = await self._inner.chat(messages, tools, call)
        # A full disk is no reason to throw a paid reply away: it is met again, and told, where answers are written.
        with suppress(OSError):
            self._log.keep(call, sha256, message_json(reply))
        return reply

    async def close(self) -> None:
        """Close the inner model."""
        await self._inner.close()


class RememberedLikelihoods(RememberedModel):
    """A `RememberedModel` that scores options too; scores cost nothing and are not kept."""

    def __init__(self, inner: ChatModel, scorer: Likelihoods, log: ReplyLog) -> None:
        super().__init__(inner, log)
        self._scorer = scorer

    async def likelihood(self, messages: Sequence[Message], options: Sequence[str]) -> AssistantMessage:
        """The most likely of the options, as the inner model says."""
        return await self._scorer.likelihood(messages, options)


def conversation_sha256(messages: Sequence[Message], schemas: Sequence[Mapping[str, Any]]) -> str:
    """Hex sha256 of a conversation as the model is shown it, and of the schemas of the tools offered."""
    shown = [[message.role, _shown(message)] for message in messages]
    text = json.dumps([shown, schemas], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _shown(message: Message) -> Any:
    """A message as the model is shown it, without what its provider draws anew each time (ids of its own)."""
    if isinstance(message, AssistantMessage):
        calls = [{"id": call.id, "name": call.name, "args": call.args} for call in message.calls]
        return [message.text, calls, [asdict(call) for call in message.invalid]]
    return asdict(message)


def message_json(reply: AssistantMessage) -> bytes:
    """A message as JSON; `message_from_json` gives it back."""
    # ASCII: half a character in a reply, which UTF-8 cannot write, is kept like any other.
    return json.dumps(asdict(reply), default=str).encode("ascii")


def message_from_json(said: bytes) -> AssistantMessage | None:
    """The message, or None where the bytes hold none."""
    try:
        return _message(json.loads(said))
    except (ValueError, RecursionError, TypeError, KeyError):
        return None


def _message(kept: dict[str, Any]) -> AssistantMessage:
    """Raises `KeyError`, `TypeError` or `ValueError` for anything that is no message."""
    usage, sent, unreadable = kept["usage"], kept["images_sent"], kept.get("unreadable")
    if not isinstance(kept["text"], str):
        raise TypeError("the text of a message is no text")
    return AssistantMessage(
        **{
            **kept,
            "calls": tuple(ToolCall(**{**call, "repairs": tuple(call.get("repairs", ()))}) for call in kept["calls"]),
            "invalid": tuple(InvalidCall(**call) for call in kept["invalid"]),
            "unreadable": None if unreadable is None else UnreadableCall(**unreadable),
            "usage": None if usage is None else TokenUsage(**usage),
            "images_sent": None
            if sent is None
            else tuple(
                SentImage(one["name"], StoredImage(**one["original"]), StoredImage(**one["sent"])) for one in sent
            ),
        }
    )
