"""LangChain messages whose images are references: `{"type": "image_ref", "name": "img:1", "sha256": ...}`.

Bytes enter a message only at the provider's door (`models/`), so graph state, traces and checkpoints stay small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from hybrid.types import Finding, ImageRef, StoredImage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage, HumanMessage

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


def images_of(messages: Sequence[BaseMessage]) -> tuple[ImageRef, ...]:
    """Every image reference in a conversation, in order, repeats included."""
    return tuple(image_of(part) for message in messages for part in parts_of(message) if is_image(part))


def finding_parts(finding: Finding, images: Sequence[str], show: Show) -> list[dict[str, Any]]:
    """A finding as a model sees it: on which images, the text, then each picture after its name and origin.

    `show` leaves out the text or the pictures; a finding that has only what is left out says so in one line.
    """
    on = f"on {', '.join(_called(images))}:" if images else ""
    lines = [finding.text] if show != "image" and finding.text else []
    shown = finding.images if show != "text" else ()
    pictures = [f"{ref.name}: {_origin(ref)}" for ref in shown]
    if not lines and not pictures:
        lines = ["the tool returned nothing that can be shown"]
    return [text_part("\n".join(filter(None, [on, *lines, *pictures]))), *(image_part(ref) for ref in shown)]


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
