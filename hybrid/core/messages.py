"""The messages of a conversation with a model: small frozen values whose images are references, never bytes.

    user_message(["Which one?", image])  ->  UserMessage(("Which one?", ImagePart(image)))

Only the model clients (`hybrid.models`) read image bytes, so graph state and traces stay small. Parts of a reply that
only its provider reads (signed thoughts) are kept in `AssistantMessage.native`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal

from hybrid.core.types import ImageRef, Json, StoredImage

Role = Literal["system", "user", "assistant", "tool"]

# Limits of the arguments of a call.
MAX_DEPTH, MAX_VALUES, MAX_CHARACTERS = 32, 10_000, 100_000
# Longest tool name in a call, in characters.
MAX_NAME = 100
_HALVES = re.compile("[\ud800-\udfff]")

# Longest text of a tool or of an earlier reply that is sent to a model, in characters.
SHOWN_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image in a message; if `labelled`, its name is sent before it."""

    ref: ImageRef
    labelled: bool = True


# Text or an image.
Part = str | ImagePart


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Instructions before the conversation begins."""

    role: ClassVar[Role] = "system"
    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A turn of the user: texts and images in order."""

    role: ClassVar[Role] = "user"
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The texts, one per line, without the images."""
        return _text(self.parts)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by a model; `id` connects the result to it and may be empty."""

    id: str
    name: str
    args: Mapping[str, Json]
    # The dialect if the call was read from text; empty for a native call.
    read_from: str = ""
    # The kinds of repairs needed to read it.
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadableCall:
    """The start of a text that looks like a tool call but cannot be read as one, with its dialect and the error."""

    dialect: str
    written: str
    error: str


@dataclass(frozen=True, slots=True)
class InvalidCall:
    """A tool call that cannot be read: its arguments as the model wrote them (`written`), and the error."""

    id: str
    name: str | None
    written: str
    error: str


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts as the provider reports them. Reasoning counts as output, cached tokens count as input.

    `cache_write_tokens` are the input tokens that the provider wrote into its cache.
    """

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    cached_tokens: int | None = None
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SentImage:
    """An image as it was sent: its name, the stored original, and the sent image (the same unless converted)."""

    name: str
    original: StoredImage
    sent: StoredImage

    def json(self) -> dict[str, Json]:
        """Name, sha256 of the original, and sha256 and size in pixels of the sent image."""
        return {
            "name": self.name,
            "sha256": self.original.sha256,
            "sent_sha256": self.sent.sha256,
            "width": self.sent.width,
            "height": self.sent.height,
        }


class End(StrEnum):
    """How a reply ended, whatever the provider calls it (`hybrid/models/finish_reasons.toml` maps its terms)."""

    ENDED = "ended"
    TOOL_CALLS = "tool_calls"
    CUT = "cut"  # The token limit was reached.
    CONTEXT_FULL = "context_full"
    FILTERED = "filtered"
    REFUSED = "refused"
    BROKEN_OFF = "broken_off"
    UNFINISHED = "unfinished"
    MALFORMED_CALL = "malformed_call"
    UNKNOWN = "unknown"  # The table lacks the provider's term: the reply counts as complete, and the term is listed.


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A turn of the model: text, tool calls, and the provider's metadata."""

    role: ClassVar[Role] = "assistant"
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    invalid: tuple[InvalidCall, ...] = ()
    # None if the provider does not report usage.
    usage: TokenUsage | None = None
    # Why the reply ended, as the provider reports it (`stop`, `length`); None if it reports no reason.
    finish_reason: str | None = None
    # The text of a refusal, by the model or its provider; None for any other reply.
    refusal: str | None = None
    # The images of the request, in order; None for a model that gets no images.
    images_sent: tuple[SentImage, ...] | None = None
    # Number of requests sent for this reply: 0 for a logged reply, None for a model without a server.
    attempts: int | None = None
    # Probability (0..1) of each option, if the options were scored instead of generating a reply.
    likelihood: Mapping[str, float] | None = None
    # The reply in the form that its provider's client accepts back; no other code reads it.
    native: Json = None
    # Reasoning that came separately from the text. It is never searched for an answer or a call.
    reasoning: str = ""
    # A call in the text that could not be read. It stays in the text.
    unreadable: UnreadableCall | None = None
    # The model that produced `native`; `native` is sent to no other model.
    said_by: str = ""
    # Whether the reply came from a batch API, which costs less.
    batched: bool = False
    # The meaning of `finish_reason`.
    end: End = End.ENDED
    # Name of the model that answered, as the provider reports it; None if it reports none.
    model: str | None = None
    # Finish reasons of earlier replies to this request, which the server broke off.
    broken_off: tuple[str, ...] = ()
    # Whether another run has paid for this reply (`--cache-replies`).
    reused: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether the reply ended at a token limit."""
        return self.end in (End.CUT, End.CONTEXT_FULL)

    @property
    def is_withheld(self) -> bool:
        """Whether the text is not an answer: the model or provider refused, or generation was stopped."""
        return self.refusal is not None or self.end in (End.FILTERED, End.REFUSED, End.UNFINISHED)


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of a tool call; `failed` if the call could not be made or the tool had no answer."""

    role: ClassVar[Role] = "tool"
    # The id of the call.
    call: str
    name: str | None
    parts: tuple[Part, ...]
    failed: bool = False

    @property
    def text(self) -> str:
        """The texts, one per line, without the images."""
        return _text(self.parts)


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def _text(parts: Sequence[Part]) -> str:
    return "\n".join(part for part in parts if isinstance(part, str))


def user_message(parts: Iterable[str | ImageRef], *, labelled: bool = True) -> UserMessage:
    """Build a user message of texts and images in order; images are sent with their names if `labelled`."""
    return UserMessage(tuple(part if isinstance(part, str) else ImagePart(part, labelled) for part in parts))


def parts_of(message: Message) -> tuple[Part, ...]:
    """Return the content of a message as parts, in order."""
    return message.parts if isinstance(message, UserMessage | ToolMessage) else (message.text,)


def images_of(messages: Iterable[Message]) -> tuple[ImageRef, ...]:
    """Return all images of a conversation in order, including repeats."""
    return tuple(part.ref for message in messages for part in parts_of(message) if isinstance(part, ImagePart))


def readable(message: AssistantMessage) -> AssistantMessage:
    """Make a model's message safe for files and requests; a message that is safe already is returned unchanged.

    Lone surrogates become U+FFFD. A call whose arguments exceed `MAX_DEPTH`, `MAX_VALUES` or `MAX_CHARACTERS`, or have
    a number that is not finite, becomes an `InvalidCall` with that error. The model gets the same kind of answer as for
    a call that is not JSON.
    """
    calls: list[ToolCall] = []
    invalid = []
    for unread in message.invalid:
        bounded_name = None if unread.name is None else replace_surrogates(unread.name[:MAX_NAME])
        raw, error = (replace_surrogates(text[:SHOWN_CHARACTERS]) for text in (unread.written, unread.error))
        invalid.append(InvalidCall(unread.id, bounded_name, raw, error))
    for call in message.calls:
        name = replace_surrogates(call.name)[:MAX_NAME]
        wrong = _unusable(call.args)
        if wrong is None:
            calls.append(replace(call, name=name, args=replace_surrogates_in(call.args)))
        else:
            invalid.append(InvalidCall(call.id, name, "", wrong))
    text, reasoning, native = replace_surrogates(message.text), replace_surrogates(message.reasoning), message.native
    # Data that is nested too deep for JSON cannot be sent back to the provider.
    try:
        native = replace_surrogates_in(native)
    except RecursionError:
        native = None
    changed = (text, reasoning, native, tuple(calls), tuple(invalid))
    if changed == (message.text, message.reasoning, message.native, message.calls, message.invalid):
        return message
    return replace(message, text=text, reasoning=reasoning, native=native, calls=tuple(calls), invalid=tuple(invalid))


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded, with U+FFFD."""
    return _HALVES.sub("\ufffd", text)


def replace_surrogates_in(value: Any) -> Any:
    """Replace lone surrogates in all strings of a JSON value."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [replace_surrogates_in(item) for item in value]
    if isinstance(value, dict):
        return {
            replace_surrogates(key) if isinstance(key, str) else key: replace_surrogates_in(item)
            for key, item in value.items()
        }
    return value


def _unusable(arguments: Any) -> str | None:
    """Return why no tool can use these arguments, or None if they are usable."""
    values, characters = 0, 0
    open_values: list[tuple[Any, int]] = [(arguments, 1)]
    while open_values:
        value, depth = open_values.pop()
        values += 1
        if isinstance(value, dict):
            characters += sum(len(str(key)) for key in value)
            open_values += [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            open_values += [(item, depth + 1) for item in value]
        elif isinstance(value, str):
            characters += len(value)
        elif isinstance(value, float) and not math.isfinite(value):
            return f"a number that is not finite: {value}"
        if depth > MAX_DEPTH:
            return f"nested more than {MAX_DEPTH} deep"
        if values > MAX_VALUES or characters > MAX_CHARACTERS:
            return f"more than {MAX_VALUES:,} values or {MAX_CHARACTERS:,} characters"
    return None


def shortened(text: str) -> str:
    """Truncate a text to `SHOWN_CHARACTERS` and append the number of removed characters."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}\n[{len(text) - SHOWN_CHARACTERS:,} more characters are left out]"
