"""A model's own thoughts in the conversation that it is sent: `for_model(messages, "openai:m", "keep")`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from hybrid.config.words import Thoughts
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.thinking import without_thoughts
from hybrid.core.types import Json


def for_model(messages: Sequence[Message], name: str, thoughts: Thoughts) -> list[Message]:
    """The messages as the model of that name may be sent them.

    The form in which another model's provider wants a reply back goes to no other. With `drop` none goes back, and a
    thought that stands in a text is cut out of it. A server that checks what it signed refuses such a conversation.
    """
    history = list(messages)
    for place, message in enumerate(history):
        if isinstance(message, AssistantMessage) and thoughts == "drop":
            history[place] = replace(message, text=without_thoughts(message.text).strip(), reasoning="", native=None)
        elif isinstance(message, AssistantMessage) and message.said_by != name:
            history[place] = replace(message, native=None)
    return history


@dataclass(frozen=True, slots=True)
class ThinkingSwitch:
    """Keys of a request's body by which a chat template keeps thinking; `matches` if made for this model or host."""

    body: Mapping[str, Json]
    matches: bool


def thinking_switches(name: str, base_url: str | None) -> list[ThinkingSwitch]:
    """The switches to try for a model `provider:name` at an address, those made for it first.

    A switch that is only a host's own is not tried elsewhere: other servers refuse unknown keys of a body.
    """
    host = (urlsplit(base_url).hostname or "") if base_url else ""
    model = name.partition(":")[2]
    switches: list[ThinkingSwitch] = []
    for row in tomllib.loads(Path(__file__).with_name("thinking_switches.toml").read_text("utf-8"))["switch"]:
        texts = {"hosts": host, "models": model}
        matches = all(re.search(row[key], texts[key], re.IGNORECASE) for key in texts.keys() & row.keys())
        if matches or "hosts" not in row:
            switches.append(ThinkingSwitch(row["body"], matches))
    switches.sort(key=lambda switch: not switch.matches)
    return [
        switch for at, switch in enumerate(switches) if switch.body not in [earlier.body for earlier in switches[:at]]
    ]


def has_thoughts(reply: AssistantMessage) -> bool:
    """Whether a reply holds thoughts, apart from its text or in it."""
    return bool(reply.reasoning) or without_thoughts(reply.text) != reply.text
