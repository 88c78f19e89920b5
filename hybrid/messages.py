"""The messages of a conversation with a model: small frozen values whose images are references, never bytes.

    user_message(["Which one?", image])  ->  UserMessage(("Which one?", ImagePart(image)))

Bytes enter a message only at a model's door (`hybrid.models`), so graph state and traces stay small. What only a
provider reads of its own replies (signed thoughts) travels as `AssistantMessage.native`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal

from hybrid.types import ImageRef, Json, StoredImage

Role = Literal["system", "user", "assistant", "tool"]

# Of the arguments of a call.
MAX_DEPTH, MAX_VALUES, MAX_CHARACTERS = 32, 10_000, 100_000
# Characters of a tool's name in a call.
MAX_NAME = 100
_HALVES = re.compile("[\ud800-\udfff]")

# Longest text of a tool, or of an earlier reply, that a model is shown.
SHOWN_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image in a message; without `labelled` it goes out without its name before it."""

    ref: ImageRef
    labelled: bool = True


# Text, or an image.
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
        """The texts, one a line, without the images."""
        return _text(self.parts)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that a model asks for; `id` ties the result to it and may be empty."""

    id: str
    name: str
    args: Mapping[str, Json]
    # The dialect of the text that it was read from; empty for a call that came as one.
    read_from: str = ""
    # The kinds of repairs that reading it took.
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadableCall:
    """The beginning of what looks like a call in the text of a reply and is none: its dialect, and what is wrong."""

    dialect: str
    written: str
    error: str


@dataclass(frozen=True, slots=True)
class InvalidCall:
    """A call that cannot be read: what was `written` as its arguments, and what is wrong with it."""

    id: str
    name: str | None
    written: str
    error: str


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The provider's own counts; reasoning counts as output, and what the provider held already as input.

    `cache_write_tokens` are those of the input that the provider put into its cache.
    """

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    cached_tokens: int | None = None
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SentImage:
    """An image as it was sent: its name, the stored original, and what went out (the same unless converted)."""

    name: str
    original: StoredImage
    sent: StoredImage

    def json(self) -> dict[str, Json]:
        """Name, sha256 of the original, and sha256 and size in pixels of what was sent."""
        return {
            "name": self.name,
            "sha256": self.original.sha256,
            "sent_sha256": self.sent.sha256,
            "width": self.sent.width,
            "height": self.sent.height,
        }


class End(StrEnum):
    """How a reply ended, whatever word its provider has for it (`hybrid/models/finish_reasons.toml`)."""

    ENDED = "ended"
    TOOL_CALLS = "tool_calls"
    CUT = "cut"  # At the limit of tokens.
    CONTEXT_FULL = "context_full"
    FILTERED = "filtered"
    REFUSED = "refused"
    BROKEN_OFF = "broken_off"
    UNFINISHED = "unfinished"
    MALFORMED_CALL = "malformed_call"
    UNKNOWN = "unknown"  # The provider's word is in no table: it counts as ended, and is listed.


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A turn of the model: text, calls of tools, and its provider's metadata of the reply."""

    role: ClassVar[Role] = "assistant"
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    invalid: tuple[InvalidCall, ...] = ()
    # None where the provider does not count.
    usage: TokenUsage | None = None
    # Why the reply ended, in the provider's word (`stop`, `length`); None where it does not say.
    finish_reason: str | None = None
    # The words of a model that refuses, or what its provider gives as the reason; None for any other reply.
    refusal: str | None = None
    # The images of the request, in order; None for a model that is sent none.
    images_sent: tuple[SentImage, ...] | None = None
    # How many requests were made for it, 0 for a reply that was kept; None for a model without a server.
    attempts: int | None = None
    # Probability of each option, 0..1, of a choice that was scored and not asked for.
    likelihood: Mapping[str, float] | None = None
    # The reply in the form in which its provider's client takes it back; no other code reads it.
    native: Json = None
    # Thoughts that came apart from the text, in words; never read for an answer or a call.
    reasoning: str = ""
    # A call in the text, which still holds it.
    unreadable: UnreadableCall | None = None
    # The name of the model whose `native` it is: it goes back to no other.
    said_by: str = ""
    # Whether it came in a batch of its provider, which costs less.
    batched: bool = False
    # What its finish reason means.
    end: End = End.ENDED
    # The model that answered, in the provider's word; None where it does not say.
    model: str | None = None
    # The finish reasons of earlier replies to the same request that their server broke off.
    broken_off: tuple[str, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Whether it ended at a limit of tokens."""
        return self.end in (End.CUT, End.CONTEXT_FULL)

    @property
    def is_withheld(self) -> bool:
        """Whether its text is no answer of the model: the provider refused, or did not let it finish."""
        return self.refusal is not None or self.end in (End.FILTERED, End.REFUSED, End.UNFINISHED)


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of a call; `failed` where it could not be made or the tool had no answer."""

    role: ClassVar[Role] = "tool"
    # The id of the call.
    call: str
    name: str | None
    parts: tuple[Part, ...]
    failed: bool = False

    @property
    def text(self) -> str:
        """The texts, one a line, without the images."""
        return _text(self.parts)


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def _text(parts: Sequence[Part]) -> str:
    return "\n".join(part for part in parts if isinstance(part, str))


def user_message(parts: Iterable[str | ImageRef], *, labelled: bool = True) -> UserMessage:
    """A user message of ordered text and images, each image under its name unless `labelled` is False."""
    return UserMessage(tuple(part if isinstance(part, str) else ImagePart(part, labelled) for part in parts))


def parts_of(message: Message) -> tuple[Part, ...]:
    """The content of a message as parts, in order."""
    return message.parts if isinstance(message, UserMessage | ToolMessage) else (message.text,)


def images_of(messages: Iterable[Message]) -> tuple[ImageRef, ...]:
    """Every image in a conversation, in order, repeats included."""
    return tuple(part.ref for message in messages for part in parts_of(message) if isinstance(part, ImagePart))


def readable(message: AssistantMessage) -> AssistantMessage:
    """A model's message that every file and every request can hold; the same object where it is one already.

    Halves of surrogate pairs become U+FFFD. A call whose arguments are nested deeper than `MAX_DEPTH`, hold more than
    `MAX_VALUES` values or `MAX_CHARACTERS` characters, or a number that is not finite, becomes an invalid call that
    says so, so that it is answered in words like one that is not JSON.
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
    # What is nested too deep for JSON cannot go back to its provider.
    try:
        native = replace_surrogates_in(native)
    except RecursionError:
        native = None
    changed = (text, reasoning, native, tuple(calls), tuple(invalid))
    if changed == (message.text, message.reasoning, message.native, message.calls, message.invalid):
        return message
    return replace(message, text=text, reasoning=reasoning, native=native, calls=tuple(calls), invalid=tuple(invalid))


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair, which no encoding of text can hold."""
    return _HALVES.sub("\ufffd", text)


def replace_surrogates_in(value: Any) -> Any:
    """The value with every text in it whole."""
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
    """Why the arguments of a call cannot be used whatever the tool, or None where they can."""
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
    """A text as a model is shown it: of one longer than `SHOWN_CHARACTERS` the beginning, and how much is left out."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}\n[{len(text) - SHOWN_CHARACTERS:,} more characters are left out]"
