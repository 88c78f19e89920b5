"""Decides which of a model's own thoughts are sent back to it: `for_model(messages, "openai:m", "keep")`."""

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
    """Return the messages that may be sent to the model called `name`.

    The native form of another model's reply is never sent. With `drop` no native form is sent, and thoughts are cut out
    of texts. A server that verifies signed thoughts rejects a conversation without them.
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
    """Keys of a request's body that make a chat template keep thinking.

    `matches` says whether the keys are meant for this model or host.
    """

    body: Mapping[str, Json]
    matches: bool


def thinking_switches(name: str, base_url: str | None) -> list[ThinkingSwitch]:
    """Return the switches to try for a model `provider:name` at an address; those meant for this model come first.

    A switch specific to a host is not tried elsewhere, because other servers reject unknown keys.
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
    """Return whether a reply has thoughts, separately or in its text."""
    return bool(reply.reasoning) or without_thoughts(reply.text) != reply.text
