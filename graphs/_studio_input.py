"""A question as Studio sends it: fields of a form, or a message of a chat with images in it.

    asked = read_input(state, store)      # asked.prompt is what the controller is asked

Images come as uploads, or as paths below one folder: `$HYBRID_STUDIO_IMAGES`, else the folder in which the server was
started. Nothing is fetched from an address.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.graph.message import add_messages
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from graphs._drawn_messages import CONTROLLER, image_block
from hybrid.benchmarks.base import show
from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.types import LETTERS, Kind, Prompt, Question, StoredImage

FOLDER = "HYBRID_STUDIO_IMAGES"
"""The environment variable that names the folder in which images may lie."""

OPTION = re.compile(r"\(([A-Z])\)\s+(\S.*)")
"""A line of the question that is an option."""


class Form(TypedDict, total=False):
    """A question as fields."""

    question: Annotated[str, Field(description="The question, in words. Left out, the last message is the question.")]
    choices: Annotated[
        list[str],
        Field(
            description="The options of a multiple-choice question, without letters; left out where the question ends "
            "in lines (A) ..., (B) ..., which are read as the options, or where the answer is free."
        ),
    ]
    image_paths: Annotated[
        list[str],
        Field(
            description="Files of images on the machine of the server, absolute or relative to the allowed folder, and "
            f"inside it: ${FOLDER}, or where that is not set the folder in which the server was started. They are "
            "img:1, img:2, ... in this order."
        ),
    ]
    images: Annotated[
        list[str],
        Field(
            description="Uploaded images, each as a data URL (data:image/png;base64,...) or as bare base64. They are "
            "numbered after image_paths."
        ),
    ]


class Input(Form, total=False):
    """A question about images, as fields (question, image_paths or images) or as a chat message with images."""

    messages: Annotated[
        list[AnyMessage],
        Field(
            description="A chat. Its last human message is the question where the field question is empty; images in "
            "it are uploads. Without any, the images of the last human message that has some are meant. Each question "
            "is asked afresh: the model is not shown earlier ones."
        ),
        add_messages,
    ]


_FORM = TypeAdapter(Form)


@dataclass(frozen=True)
class Asked:
    """A question that can be asked, and the message that draws it where it did not come as one."""

    question: Question
    prompt: Prompt
    drawn: HumanMessage | None


def read_input(state: Mapping[str, Any], store: ImageStore) -> Asked:
    """The question of a state; its images are put into the store.

    Raises:
        DataError: there is no question, a field has another type, or an image cannot be used; the message names it.
    """
    form = _form(state)
    chat = [m for m in state.get("messages", ()) if isinstance(m, HumanMessage) and m.name != CONTROLLER]
    said = form.get("question", "").strip()
    words = said or (_words(chat[-1]) if chat else "")
    if not words:
        raise DataError("there is no question: fill in the field question, or send a message with text")
    stored = _stored_files(form.get("image_paths", ()), store)
    uploads = [(f"images: upload {place}", text) for place, text in enumerate(form.get("images", ()), 1)]
    if not stored and not uploads:
        uploads = _uploaded(chat)
    stored += [store.put(_decoded(text, where), where) for where, text in uploads]
    choices = tuple(form.get("choices", ()))
    if not choices:
        words, choices = _options(words)
    if len(choices) > len(LETTERS):
        raise DataError(f"choices: {len(choices)} options; there are letters for {len(LETTERS)}")
    kind = Kind.CHOICE if choices else Kind.FREE
    options = (f"({letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
    text = "\n".join([words, *options])
    question = Question("studio", "", tuple(stored), text, kind, choices)
    return Asked(question, Prompt((text, *show(stored)), kind, choices), _drawn(text, stored, store) if said else None)


def _form(state: Mapping[str, Any]) -> Form:
    """The fields, each of its type. Raises `DataError`."""
    try:
        return _FORM.validate_python({name: state[name] for name in Form.__annotations__ if name in state}, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _stored_files(paths: Sequence[str], store: ImageStore) -> list[StoredImage]:
    """The images at these paths. Raises `DataError` for a path outside the folder before it looks whether it exists."""
    folder = Path(os.environ.get(FOLDER) or ".").resolve()
    return [store.put(_read_file(folder, path), f"image_paths: {path}") for path in paths]


def _read_file(folder: Path, path: str) -> bytes:
    try:
        place = (folder / path).resolve()
        if not place.is_relative_to(folder):
            raise DataError(
                f"image_paths: {path!r} lies outside {folder}; images are read from that folder alone, and the "
                f"environment variable {FOLDER} of the server names another"
            )
        if not place.is_file():
            raise DataError(f"image_paths: there is no file {path!r} in {folder}")
        return place.read_bytes()
    except (OSError, ValueError) as error:
        raise DataError(f"image_paths: {path!r} cannot be read ({error})") from None


def _blocks(message: HumanMessage) -> list[Mapping[str, Any]]:
    """The content of a message as blocks."""
    content = message.content
    parts = [content] if isinstance(content, str) else content
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _words(message: HumanMessage) -> str:
    """The texts of a message, one a line."""
    return "\n".join(str(block.get("text", "")) for block in _blocks(message) if block.get("type") == "text").strip()


def _options(words: str) -> tuple[str, tuple[str, ...]]:
    """The words without the lines (A) ..., (B) ... at their end, and what these say; none for fewer than two lines."""
    lines = words.splitlines()
    for start in range(len(lines) - 1):
        found = [OPTION.fullmatch(line.strip()) for line in lines[start:]]
        if [match and match[1] for match in found] == list(LETTERS[: len(found)]):
            return "\n".join(lines[:start]), tuple(match[2] for match in found if match)
    return words, ()


def _uploaded(chat: Sequence[HumanMessage]) -> list[tuple[str, str]]:
    """Place and base64 of the images of the last message that has other blocks than text."""
    for message in reversed(chat):
        found = [block for block in _blocks(message) if block.get("type") != "text"]
        if found:
            return [
                (where, _data(block, where))
                for place, block in enumerate(found, 1)
                for where in (f"messages: image {place}",)
            ]
    return []


def _data(block: Mapping[str, Any], where: str) -> str:
    """Base64, or a data URL, of an image in any of the forms in which clients send it. Raises `DataError`."""
    kind, source, named = block.get("type"), block.get("source"), block.get("image_url")
    if kind not in ("image", "image_url"):
        raise DataError(f"{where}: a block of type {kind!r} is neither text nor an image")
    inner = source if isinstance(source, Mapping) else {}
    url = named.get("url") if isinstance(named, Mapping) else named or block.get("url") or inner.get("url")
    data = block.get("base64") or block.get("data") or inner.get("data") or url
    if not isinstance(data, str) or (data == url and not data.startswith("data:")):
        raise DataError(f"{where}: only uploaded images are read, nothing is fetched from an address")
    return data


def _decoded(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text.partition("base64,")[2] or text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"{where} is not base64 ({error})") from None


def _drawn(text: str, images: Sequence[StoredImage], store: ImageStore) -> HumanMessage:
    return HumanMessage([{"type": "text", "text": text}, *(image_block(image, store) for image in images)])
