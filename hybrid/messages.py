"""LangChain messages whose images are references: `{"type": "image_ref", "name": "img:1", "sha256": ...}`.

Bytes enter a message only at the provider's door (`models/`), so graph state, traces and checkpoints stay small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hybrid.types import ImageRef, StoredImage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage, HumanMessage


def image_part(ref: ImageRef) -> dict[str, Any]:
    """The content part that stands for an image."""
    image = ref.image
    return {
        "type": "image_ref",
        "name": ref.name,
        "sha256": image.sha256,
        "width": image.width,
        "height": image.height,
        "media_type": image.media_type,
    }


def image_of(part: dict[str, Any]) -> ImageRef:
    """The reference behind such a part."""
    stored = StoredImage(part["sha256"], part["width"], part["height"], part["media_type"])
    return ImageRef(part["name"], stored)


def human(parts: Iterable[str | ImageRef]) -> HumanMessage:
    """A user message of ordered text and images."""
    from langchain_core.messages import HumanMessage

    content: list[str | dict[str, Any]] = [
        {"type": "text", "text": part} if isinstance(part, str) else image_part(part) for part in parts
    ]
    return HumanMessage(content)


def text_of(message: BaseMessage) -> str:
    """The text of a message, whatever form its content has."""
    if isinstance(message.content, str):
        return message.content
    texts = [
        part if isinstance(part, str) else str(part.get("text", ""))
        for part in message.content
        if isinstance(part, str) or part.get("type") == "text"
    ]
    return "\n".join(texts)


def images_of(messages: Sequence[BaseMessage]) -> tuple[ImageRef, ...]:
    """Every image reference in a conversation, in order, repeats included."""
    return tuple(
        image_of(part)
        for message in messages
        if not isinstance(message.content, str)
        for part in message.content
        if isinstance(part, dict) and part.get("type") == "image_ref"
    )
