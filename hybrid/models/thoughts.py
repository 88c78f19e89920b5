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
    own = list(messages)
    for place, one in enumerate(own):
        if isinstance(one, AssistantMessage) and thoughts == "drop":
            own[place] = replace(one, text=without_thoughts(one.text).strip(), reasoning="", native=None)
        elif isinstance(one, AssistantMessage) and one.said_by != name:
            own[place] = replace(one, native=None)
    return own
