"""Descriptions that replace images for a model: each is made once per run and then cached.

    cache = RunCaptions(captioner_sha256(model), known, keep)
    caption = await described(image, ask_captioner, cache, model.name, log)

A caption is requested with the image and `CAPTION` alone, without question, choices or image name, so the same image
has the same caption in every question. The cache key is the sha256 of the image, of the prompt and of the describing
model (`ChatModel.metadata`); a resumed run reads its captions from disk. Concurrent requests for one caption make one
call: one caller asks the model, and the others wait. If that call fails, the next caller asks. Waiting is not charged
to a question.

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

# The prompt for a caption; the paper does not print its own prompt.
CAPTION = (
    "Describe this image in detail for somebody who has to answer questions about it without seeing it: what is where, "
    "colours, sizes, texts, and every mark drawn on it (circles, boxes, letters) with its place."
)
# Replaces the question id in the key of a captioning call.
CAPTION_CALL = "caption"


def captioner_sha256(model: ChatModel) -> str:
    """Return a hash of the describing model's metadata, which includes neither key nor address."""
    return hashlib.sha256(json.dumps(dict(model.metadata()), sort_keys=True, default=str).encode()).hexdigest()


def captions_fact(model: ChatModel) -> dict[str, Json]:
    """Return the manifest's entry on captions: the hash of the prompt, and the describing model's metadata."""
    return {"prompt": _WORDS_SHA256, "model": dict(model.metadata())}


_WORDS_SHA256 = hashlib.sha256(CAPTION.encode()).hexdigest()


@dataclass(frozen=True)
class Caption:
    """The description of an image."""

    # sha256 of the image.
    image: str
    # sha256 of the prompt.
    prompt: str
    # `captioner_sha256` of the describing model.
    captioner: str
    text: str


def captions_by(captioner: str, captions: Iterable[Caption]) -> dict[str, str]:
    """Return the captions by this model for the current prompt, by sha256 of the image."""
    return {
        caption.image: caption.text
        for caption in captions
        if (caption.prompt, caption.captioner) == (_WORDS_SHA256, captioner)
    }


class CaptionCache(Protocol):
    """The captions of a run."""

    async def take(self, image: StoredImage) -> str | None:
        """Return the caption of an image; None if the caller must make it, and then call `keep` or `give_up`."""

    async def keep(self, image: StoredImage, caption: str) -> str:
        """Save a caption and return it as saved, with secrets redacted. Raises `OSError` if writing fails."""

    async def give_up(self, image: StoredImage) -> None:
        """Report that this caller did not make the caption, so that the next waiting caller makes it."""


class RunCaptions:
    """The captions of one describing model, for use in one event loop.

    Args:
        captioner: `captioner_sha256` of the model.
        captions: captions of earlier commands, including those of other models.
        keep: called in a thread with each new caption before any caller gets the caption; None to keep captions in
            memory only. Raises `OSError` if writing fails.
    """

    def __init__(
        self, captioner: str = "", captions: Iterable[Caption] = (), keep: Callable[[Caption], None] | None = None
    ) -> None:
        self._captioner = captioner
        self._known = captions_by(captioner, captions)
        self._keep = keep
        # For each image being described, the waiting callers in order.
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
            # The permission to ask may have arrived while this caller was being cancelled; pass it on.
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
    """Return the caption of an image, new or cached, and log a step that says which.

    Args:
        image: the image to describe; its name is not sent.
        ask: sends a conversation to the describing model and counts its usage.
        cache: the cache of captions.
        by: the name of the model, for the step.
        log: the log for the steps.

    Raises the exceptions of `ask`, and `OSError` if a caption cannot be saved.
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
