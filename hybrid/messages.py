"""LangChain messages whose images are references: `{"type": "image_ref", "name": "img:1", "sha256": ...}`.

Bytes enter a message only at the provider's door (`models/`), so graph state, traces and checkpoints stay small.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from hybrid.types import Finding, ImageRef, StoredImage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

MAX_DEPTH, MAX_VALUES, MAX_CHARACTERS = 32, 10_000, 100_000
"""Of the arguments of a call."""
MAX_NAME = 100
"""Characters of a tool's name in a call."""
_HALVES = re.compile("[\ud800-\udfff]")

SHOWN_CHARACTERS = 20_000
"""Longest text of a tool, or of an earlier reply, that a model is shown."""

Show = Literal["text", "image", "both"]
"""What of a tool's finding a model sees."""


def image_part(ref: ImageRef, *, labelled: bool = True) -> dict[str, Any]:
    """The content part that stands for an image; without `labelled` it goes out without its name before it."""
    part = {"type": "image_ref", "name": ref.name, **asdict(ref.image)}
    return part if labelled else {**part, "labelled": False}


def image_of(part: dict[str, Any]) -> ImageRef:
    """The reference behind such a part."""
    stored = StoredImage(part["sha256"], part["width"], part["height"], part["media_type"])
    return ImageRef(part["name"], stored)


def text_part(text: str) -> dict[str, Any]:
    """The content part that holds some text."""
    return {"type": "text", "text": text}


def human(parts: Iterable[str | ImageRef], *, labelled: bool = True) -> HumanMessage:
    """A user message of ordered text and images, each image under its name unless `labelled` is False."""
    from langchain_core.messages import HumanMessage

    return HumanMessage(
        [text_part(part) if isinstance(part, str) else image_part(part, labelled=labelled) for part in parts]
    )


def parts_of(message: BaseMessage) -> list[dict[str, Any]]:
    """The content of a message as parts, in order; a plain text is one part."""
    content = [message.content] if isinstance(message.content, str) else message.content
    return [text_part(part) if isinstance(part, str) else part for part in content]


def is_image(part: Mapping[str, Any]) -> bool:
    """Whether a content part stands for an image."""
    return part.get("type") == "image_ref"


def text_of(message: BaseMessage) -> str:
    """The text of a message, whatever form its content has."""
    return "\n".join(str(part.get("text", "")) for part in parts_of(message) if part.get("type") == "text")


def readable(message: AIMessage) -> AIMessage:
    """A model's message that every file and every request can hold; the same object where it is one already.

    Halves of surrogate pairs become U+FFFD. A call whose arguments are nested deeper than `MAX_DEPTH`, hold more than
    `MAX_VALUES` values or `MAX_CHARACTERS` characters, or a number that is not finite, becomes an invalid call that
    says so, so that it is answered in words like one that is not JSON.
    """
    calls: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = [_bounded_call({**call}) for call in message.invalid_tool_calls]
    for call in message.tool_calls:
        name = whole_text(call["name"])[:MAX_NAME]
        wrong = _unusable(call["args"])
        if wrong is None:
            calls.append({**call, "name": name, "args": _whole(call["args"])})
        else:
            bad = {"name": name, "args": "", "id": call["id"], "error": wrong, "type": "invalid_tool_call"}
            invalid.append(bad)
    content = _whole(message.content)
    changed = {"content": content, "tool_calls": calls, "invalid_tool_calls": invalid}
    before = {name: getattr(message, name) for name in changed}
    return message if changed == before else message.model_copy(update=changed)


def whole_text(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair, which no encoding of text can hold."""
    return text.encode("utf-8", "replace").decode() if _HALVES.search(text) else text


def _whole(value: Any) -> Any:
    """The same lists, mappings and numbers with every text whole."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {whole_text(key) if isinstance(key, str) else key: _whole(item) for key, item in value.items()}
    return value


def _bounded_call(call: dict[str, Any]) -> dict[str, Any]:
    """A call that was not understood, none of its texts longer than `SHOWN_CHARACTERS`."""
    return {
        name: whole_text(value[: MAX_NAME if name == "name" else SHOWN_CHARACTERS]) if isinstance(value, str) else value
        for name, value in call.items()
    }


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


def images_of(messages: Sequence[BaseMessage]) -> tuple[ImageRef, ...]:
    """Every image reference in a conversation, in order, repeats included."""
    return tuple(image_of(part) for message in messages for part in parts_of(message) if is_image(part))


def finding_parts(finding: Finding, images: Sequence[str], show: Show) -> list[dict[str, Any]]:
    """A finding as a model sees it: on which images, the text, then each picture after its name and origin.

    `show` leaves out the text or the pictures; a finding that has only what is left out says so in one line.
    """
    on = f"on {', '.join(_called(images))}:" if images else ""
    lines = [shortened(finding.text)] if show != "image" and finding.text else []
    shown = finding.images if show != "text" else ()
    pictures = [f"{ref.name}: {_origin(ref)}" for ref in shown]
    if not lines and not pictures:
        lines = ["the tool returned nothing that can be shown"]
    return [text_part("\n".join(filter(None, [on, *lines, *pictures]))), *(image_part(ref) for ref in shown)]


def shortened(text: str) -> str:
    """A text as a model is shown it: of one longer than `SHOWN_CHARACTERS` the beginning, and how much is left out."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}\n[{len(text) - SHOWN_CHARACTERS:,} more characters are left out]"


def _called(images: Sequence[str]) -> list[str]:
    """The names of the images, with what the tool's text calls them (its first is "image 1") where that differs."""
    if all(name == f"img:{place}" for place, name in enumerate(images, 1)):
        return list(images)
    return [f"{name} (here called image {place})" for place, name in enumerate(images, 1)]


def _origin(ref: ImageRef) -> str:
    if ref.box is None:
        return f"{ref.parent} with the finding drawn on it" if ref.parent else "a picture of the finding"
    box = ref.box
    return f"region ({box.x0:g}, {box.y0:g}) to ({box.x1:g}, {box.y1:g}) of {ref.parent}, scaled by {ref.scale:.3g}"
