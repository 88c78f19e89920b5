"""Descriptions of images, which a model is given instead of the images: each made once in a run and then kept.

    cache = RunCaptions(captioner_sha256(model), known, keep)
    caption = await described(image, ask_captioner, cache, model.name, log)

A caption is asked for with the image and `CAPTION` alone, without question, choices or the name of the image, so the
same image has the same caption in every question. It is kept by the sha256 of the image, of the words and of the
describing model (`ChatModel.metadata`), and a run that goes on reads it again. Several asks that want one caption at
the same time make one call: one asks, the others wait, and where that call fails the next one asks. A wait is not
charged to a question.

Source: "Caption + LLM", Fu et al., ECCV 2024, section 4.3: "task-agnostic dense image captions" that describe the image
and its visual prompts.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hybrid.core.messages import user_message
from hybrid.core.secrets import redact
from hybrid.core.types import ImageRef, Json, Step, StoredImage
from hybrid.models.base import ChatModel
from hybrid.solving.empty_replies import words_of
from hybrid.solving.solver import AskModel, Log

# The words of the request; the paper does not print its own.
CAPTION = (
    "Describe this image in detail for somebody who has to answer questions about it without seeing it: what is where, "
    "colours, sizes, texts, and every mark drawn on it (circles, boxes, letters) with its place."
)
# Stands for a question in the call by which an image is described.
CAPTION_CALL = "caption"


def captioner_sha256(model: ChatModel) -> str:
    """Hash of what a describing model is: its facts, which hold neither key nor address."""
    return hashlib.sha256(json.dumps(dict(model.metadata()), sort_keys=True, default=str).encode()).hexdigest()


def captions_fact(model: ChatModel) -> dict[str, Json]:
    """The manifest's entry on captions: the hash of the prompt, and the metadata of the model that describes."""
    return {"prompt": _WORDS_SHA256, "model": dict(model.metadata())}


_WORDS_SHA256 = hashlib.sha256(CAPTION.encode()).hexdigest()


@dataclass(frozen=True)
class Caption:
    """The description of an image."""

    # sha256 of the image.
    image: str
    # sha256 of the words by which it was asked for.
    prompt: str
    # `captioner_sha256` of the model.
    captioner: str
    text: str


def captions_by(captioner: str, captions: Iterable[Caption]) -> dict[str, str]:
    """By sha256 of the image the captions that this model gave to these words."""
    return {
        caption.image: caption.text
        for caption in captions
        if (caption.prompt, caption.captioner) == (_WORDS_SHA256, captioner)
    }


class CaptionCache(Protocol):
    """The captions of a run."""

    async def take(self, image: StoredImage) -> str | None:
        """The caption of an image; None where the caller is the one to make it, and then to keep it or give it up."""

    async def keep(self, image: StoredImage, caption: str) -> str:
        """Keep a caption and give it as it is kept: without secrets. Raises `OSError` where it cannot be written."""

    async def give_up(self, image: StoredImage) -> None:
        """The caption was not made: the next one that wants it is to make it."""


class RunCaptions:
    """The captions of one describing model. Used in one event loop.

    Args:
        captioner: `captioner_sha256` of the model.
        kept: captions of earlier commands, of other models too.
        keep: called in a thread with each new one, before any ask is given it; None to keep captions in memory only.
            Raises `OSError` where it cannot be written.
    """

    def __init__(
        self, captioner: str = "", captions: Iterable[Caption] = (), keep: Callable[[Caption], None] | None = None
    ) -> None:
        self._captioner = captioner
        self._known = captions_by(captioner, captions)
        self._keep = keep
        # By image that is being described, the callers that wait for it, in order.
        self._making: dict[str, deque[asyncio.Future[str | None]]] = {}

    async def take(self, image: StoredImage) -> str | None:
        """See `CaptionCache`."""
        if (cached := self._known.get(image.sha256)) is not None:
            return cached
        if image.sha256 not in self._making:
            self._making[image.sha256] = deque()
            return None
        turn: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._making[image.sha256].append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            # Its turn may have come in the moment in which it was cancelled.
            if turn.done() and not turn.cancelled() and turn.result() is None:
                await self.give_up(image)
            raise

    async def keep(self, image: StoredImage, caption: str) -> str:
        """See `CaptionCache`."""
        redacted = redact(caption)
        if self._keep is not None:
            await asyncio.to_thread(self._keep, Caption(image.sha256, _WORDS_SHA256, self._captioner, redacted))
        self._known[image.sha256] = redacted
        for turn in self._making.pop(image.sha256, ()):
            if not turn.done():
                turn.set_result(redacted)
        return redacted

    async def give_up(self, image: StoredImage) -> None:
        """See `CaptionCache`."""
        waiting = self._making[image.sha256]
        while waiting:
            if not (turn := waiting.popleft()).done():
                turn.set_result(None)
                return
        del self._making[image.sha256]


async def described(image: ImageRef, ask: AskModel, cache: CaptionCache, by: str, log: Log) -> str:
    """The caption of an image, made now or kept from before, with a step that says which.

    Args:
        image: what is described; its name is not told.
        ask: sends a conversation to the describing model and counts what that takes.
        cache: where captions are kept.
        by: the name of the model, for the step.
        log: takes the steps.

    Raises what `ask` raises, and `OSError` where a caption cannot be kept.
    """
    cached = await cache.take(image.image)
    is_new = cached is None
    if cached is None:
        try:
            words = await words_of(ask, [user_message([CAPTION, image], labelled=False)], log)
            cached = await cache.keep(image.image, words.strip())
        except BaseException:
            await cache.give_up(image.image)
            raise
    data: Mapping[str, Json] = {"image": image.name, "sha256": image.image.sha256, "by": by, "made": is_new}
    log.note(Step("rule", "caption", cached, data=data))
    return cached
