"""Descriptions of images, which a model is given instead of the images: each made once in a run and then kept.

    book = CaptionBook(RUN / CAPTIONS, captioner_sha256)
    caption = await described(image, ask_captioner, book, log)

A caption is asked for with the image and `CAPTION` alone: whoever describes sees no question, no choice and no name of
the image, so the same image has the same caption in every question. It is kept by the sha256 of the image, that of the
words and that of what the describing model is (`ChatModel.facts`), in `RUN/captions.jsonl`, and a run that goes on
reads it there. Several asks that want one caption at the same time make one call: one asks, the others wait, and where
that call fails the next one asks. Who waits is not charged: neither the call nor its time is of that question.

Source: "Caption + LLM", Fu et al., ECCV 2024, section 4.3: "task-agnostic dense image captions" that describe the image
and its visual prompts.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Protocol

from hybrid.journal import Journal
from hybrid.manifest import whole_lines
from hybrid.messages import user_message
from hybrid.models.base import ChatModel
from hybrid.secrets import redact
from hybrid.solving.empty_replies import words_of
from hybrid.solving.solver import AskModel, Log
from hybrid.types import ImageRef, Json, Step, StoredImage

CAPTION = (
    "Describe this image in detail for somebody who has to answer questions about it without seeing it: what is where, "
    "colours, sizes, texts, and every mark drawn on it (circles, boxes, letters) with its place."
)
"""The words of the request; the paper does not print its own."""
CAPTIONS = "captions.jsonl"
CAPTION_CALL = "caption"
"""Stands for a question in the call by which an image is described."""


def captioner_sha256(model: ChatModel) -> str:
    """Hash of what a describing model is: its facts, which hold neither key nor address."""
    return hashlib.sha256(json.dumps(dict(model.metadata()), sort_keys=True, default=str).encode()).hexdigest()


def captions_fact(model: ChatModel) -> dict[str, Json]:
    """What the manifest says of captions: the hash of the words, and what the model is that describes."""
    return {"prompt": _WORDS_SHA256, "model": dict(model.metadata())}


_WORDS_SHA256 = hashlib.sha256(CAPTION.encode()).hexdigest()


class CaptionShelf(Protocol):
    """Where the captions of a run lie."""

    async def take(self, image: StoredImage) -> str | None:
        """The caption of an image; None where the caller is the one to make it, and then to keep it or give it up."""
        ...

    async def keep(self, image: StoredImage, caption: str) -> str:
        """Keep a caption and give it as it is kept: without secrets. Raises `OSError` where it cannot be written."""
        ...

    async def give_up(self, image: StoredImage) -> None:
        """The caption was not made: the next one that wants it is to make it."""
        ...


@dataclass
class _Making:
    """A caption that somebody makes, and those who wait for it in order."""

    waiting: deque[asyncio.Future[str | None]] = field(default_factory=deque)


class CaptionBook:
    """The captions of one describing model. Used in one event loop; at most one process may have its file open.

    Args:
        path: the file; None to keep captions in memory only.
        captioner: `captioner_sha256` of the model.

    Raises:
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path | None = None, captioner: str = "") -> None:
        self._captioner = captioner
        self._known: dict[str, str] = {} if path is None else dict(read_captions(path, captioner))
        self._making: dict[str, _Making] = {}
        self._path = path
        self._journal: Journal | None = None
        self._writing = Lock()
        self._closed = False

    async def take(self, image: StoredImage) -> str | None:
        """See `CaptionShelf`."""
        known = self._known.get(image.sha256)
        if known is not None:
            return known
        making = self._making.get(image.sha256)
        if making is None:
            self._making[image.sha256] = _Making()
            return None
        turn: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        making.waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            # Its turn may have come in the moment in which it was cancelled.
            if turn.done() and not turn.cancelled() and turn.result() is None:
                await self.give_up(image)
            raise

    async def keep(self, image: StoredImage, caption: str) -> str:
        """See `CaptionShelf`."""
        kept = redact(caption)
        if self._path is not None:
            await asyncio.to_thread(self._write, image, kept)
        self._known[image.sha256] = kept
        if (making := self._making.pop(image.sha256, None)) is not None:
            for turn in making.waiting:
                if not turn.done():
                    turn.set_result(kept)
        return kept

    async def give_up(self, image: StoredImage) -> None:
        """See `CaptionShelf`."""
        making = self._making[image.sha256]
        while making.waiting:
            turn = making.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._making[image.sha256]

    def close(self) -> None:
        """Let go of the file; what a thread still wants to write is not written."""
        with self._writing:
            self._closed = True
            if self._journal is not None:
                self._journal.close()

    def _write(self, image: StoredImage, caption: str) -> None:
        assert self._path is not None  # noqa: S101 - asked by `keep`
        row = {"image": image.sha256, "prompt": _WORDS_SHA256, "captioner": self._captioner, "text": caption}
        with self._writing:
            if self._closed:
                return
            if self._journal is None:
                self._journal = Journal(self._path)
            self._journal.append(json.dumps(row).encode())


def read_captions(path: Path, captioner: str) -> Iterator[tuple[str, str]]:
    """The sha256 of every image that this model has described with these words, and its caption.

    A line that is no caption costs one call, which is made again. Raises `OSError` where the file cannot be read.
    """
    for line in whole_lines(path):
        try:
            row = json.loads(line)
            image, prompt, by, text = (row[name] for name in ("image", "prompt", "captioner", "text"))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if (prompt, by) == (_WORDS_SHA256, captioner) and isinstance(image, str) and isinstance(text, str):
            yield image, text


async def described(image: ImageRef, ask: AskModel, shelf: CaptionShelf, by: str, log: Log) -> str:
    """The caption of an image, made now or kept from before, with a step that says which.

    Args:
        image: what is described; its name is not told.
        ask: sends a conversation to the describing model and counts what that takes.
        shelf: where captions are kept.
        by: the name of the model, for the step.
        log: takes the steps.

    Raises what `ask` raises, and `OSError` where a caption cannot be kept.
    """
    known = await shelf.take(image.image)
    made = known is None
    if known is None:
        try:
            words = await words_of(ask, [user_message([CAPTION, image], labelled=False)], log)
            known = await shelf.keep(image.image, words.strip())
        except BaseException:
            await shelf.give_up(image.image)
            raise
    data: Mapping[str, Json] = {"image": image.name, "sha256": image.image.sha256, "by": by, "made": made}
    log.note(Step("rule", "caption", known, data=data))
    return known
