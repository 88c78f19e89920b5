"""A model's own thoughts in the conversation that it is sent: `for_model(messages, "openai:m", "keep")`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hybrid.config.words import Thoughts
from hybrid.messages import AssistantMessage, Message
from hybrid.thoughts import without_thoughts


def for_model(messages: Sequence[Message], name: str, thoughts: Thoughts) -> list[Message]:
    """The messages as the model of that name may be sent them.

    The form in which another model's provider wants a reply back goes to no other. With `drop` none goes back, and a
    thought that stands in a text is cut out of it. A server that checks what it signed refuses such a conversation.
    """
    return [_for_model(one, name, thoughts) if isinstance(one, AssistantMessage) else one for one in messages]


def _for_model(message: AssistantMessage, name: str, thoughts: Thoughts) -> AssistantMessage:
    if thoughts == "drop":
        return replace(message, text=without_thoughts(message.text).strip(), reasoning="", native=None)
    return message if message.said_by == name else replace(message, native=None)
