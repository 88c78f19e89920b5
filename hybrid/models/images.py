"""The images of a conversation: which of them are sent with a request, where, and as which bytes.

`arrange` decides which images are shown and where, without their bytes; an `ImageEncoder` returns their bytes for
sending. Images that tools made are moved from the tool messages into one user message after them, because images in a
tool message are rejected by some servers and silently ignored by some models. If the probe of a run found that a server
accepts them there (`inside`), they stay: many chat templates drop all thinking before the last user message.
"""

from __future__ import annotations

import base64
import json
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hybrid.core.images import MEDIA_TYPES, ImageStore, saved
from hybrid.core.messages import AssistantMessage, ImagePart, Message, Part, ToolMessage, UserMessage, images_of
from hybrid.core.types import ImageRef, StoredImage

if TYPE_CHECKING:
    from PIL import Image

JPEG = MEDIA_TYPES["JPEG"]
KEPT_TEXT_BYTES = 8 * 2**20  # Memory for base64 texts of images: a dialogue sends its images again with every call.
DECODED_BYTES = 2**27  # Memory for the decoded pictures of a model in this process.
SMALL_BYTES = 2**20  # A file up to this size in bytes is read directly, because handing it to a thread takes longer.


# JPEG qualities to try, in this order, until a file is small enough.
QUALITIES = (95, 90, 80, 70, 50, 30)


@dataclass(frozen=True, slots=True)
class ImageRules:
    """Limits of a provider: media types, pixels (width x height), and bytes of a base64 text."""

    media_types: frozenset[str] = frozenset({"image/jpeg", "image/png"})
    max_pixels: int | None = None
    max_bytes: int = 0  # 0 if no limit is known.


def base64_bytes(count: int) -> int:
    """Return the length of the base64 text of `count` bytes."""
    return 4 * math.ceil(count / 3)


# Decides whether images together are small enough for one request.
Fits = Callable[[Sequence[StoredImage]], bool]

# Names of pictures from tools that no answered request has contained yet. If a request is rejected, they may be the
# reason.
UNCONFIRMED: ContextVar[frozenset[str]] = ContextVar(
    "pictures of tools that no reply has followed", default=frozenset()
)


def arrange(
    messages: Sequence[Message],
    keep: int,
    *,
    can_recall: bool = False,
    inside: bool = False,
    most: int = 0,
    fits: Fits | None = None,
) -> list[Message]:
    """Arrange the messages for sending: images stay references, each preceded by its name (`img:1:`) as text.

    An image that is not labelled is sent without its name (`--image-labels off`).

    Tool messages become plain text; their images follow in one user message, merged with an existing user message. The
    images of the first user message and the last `keep` others are shown, once each; the others are replaced by a text
    that says why. If images can be recalled (`can_recall`), the images of the last results and those that the model
    named in its last message are shown as well.

    With `inside` the images of a tool message stay in it, after its text. `most` is the server's limit of images per
    request, 0 for none, and `fits` decides whether images are small enough for one request: the tools' oldest images
    are left out until they fit.
    """
    selection = _Shown(messages, keep, can_recall=can_recall, most=most, fits=fits)
    out: list[Message] = []
    lifted: list[Part] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            text, images = selection.tool(message)
            lifted += [] if inside else images
            out.append(replace(message, parts=(text, *images) if inside else (text,)))
        elif isinstance(message, UserMessage):
            out.append(UserMessage((*lifted, *selection.parts(message))))
            lifted = []
        else:
            if lifted:
                out.append(UserMessage(tuple(lifted)))
                lifted = []
            out.append(message)
    return [*out, UserMessage(tuple(lifted))] if lifted else out


class _Shown:
    """Decides which images of a conversation are sent, and tracks which of them have been placed so far."""

    def __init__(
        self, messages: Sequence[Message], keep: int, *, can_recall: bool, most: int = 0, fits: Fits | None = None
    ) -> None:
        opening = next((message for message in messages if isinstance(message, UserMessage)), None)
        first = images_of([opening]) if opening is not None else ()
        self._opening = {ref.name for ref in first}
        shas = {ref.image.sha256 for ref in first}
        others = dict.fromkeys(ref.image.sha256 for ref in images_of(messages) if ref.image.sha256 not in shas)
        self._live = shas | set(list(others)[len(others) - min(keep, len(others)) :])
        self._left = "no longer shown; name it to see it again" if can_recall else "no longer shown"
        replies = [(place, message) for place, message in enumerate(messages) if isinstance(message, AssistantMessage)]
        if can_recall and replies:
            # Images after the model's last message, and those that this message names.
            place, last = replies[-1]
            words = " ".join([last.text, *(json.dumps(dict(call.args), default=str) for call in last.calls)])
            mentioned_refs = [
                ref for ref in images_of(messages) if re.search(rf"{re.escape(ref.name)}(?![.\d]*\d)", words)
            ]
            self._live |= {ref.image.sha256 for ref in (*images_of(messages[place + 1 :]), *mentioned_refs)}
        # Images that are left out, with the reason.
        self._beyond: dict[str, str] = {}
        if most or fits:
            by_sha = {ref.image.sha256: ref.image for ref in images_of(messages)}
            live_images = [by_sha[sha] for sha in others if sha in self._live]
            count = min(len(live_images), max(0, most - len(first))) if most else len(live_images)
            oldest = live_images[: len(live_images) - count]
            self._leave_out(oldest, f"the server accepts {most} pictures in one request")
            live_images = live_images[len(oldest) :]
            while live_images and fits and not fits([*(ref.image for ref in first), *live_images]):
                self._leave_out([live_images.pop(0)], "the server does not accept a larger request")
        self._names: set[str] = set()
        self._sent: dict[str, str] = {}

    def _leave_out(self, images: Sequence[StoredImage], reason: str) -> None:
        self._beyond |= {image.sha256: reason for image in images}

    def _note(self, ref: ImageRef) -> str | None:
        """Return None if the image is shown here, else the text that replaces it."""
        if (reason := self._beyond.get(ref.image.sha256)) is not None:
            return f"[{ref.name}: not shown; {reason}]"
        if ref.image.sha256 not in self._live:
            return f"[{ref.name}: {self._left}]"
        if ref.name in self._names:
            return f"[{ref.name}: shown above]"
        twin = self._sent.get(ref.image.sha256)
        if twin is not None and ref.name not in self._opening:
            return f"[{ref.name}: the same picture as {twin}]"
        self._names.add(ref.name)
        self._sent.setdefault(ref.image.sha256, ref.name)
        return None

    def parts(self, message: UserMessage) -> list[Part]:
        """Return a user message's content: each image, after its name if it has one, or the text that replaces it."""
        out: list[Part] = []
        for part in message.parts:
            if isinstance(part, str):
                out.append(part)
            elif (note := self._note(part.ref)) is not None:
                out.append(note)
            else:
                out += [f"{part.ref.name}:", part] if part.labelled else [part]
        return out

    def tool(self, message: ToolMessage) -> tuple[str, list[Part]]:
        """Return the text of a tool message, and the named images to move after the tool messages."""
        text = message.text
        # Mark a failure in the text, because two of the four wire formats have no field for it.
        failed = message.failed and not text.lower().startswith("error")
        lines = [f"Error: {text}" if failed else text]
        images: list[Part] = []
        for ref in images_of([message]):
            note = self._note(ref)
            lines.append(note or f"[{ref.name}: attached below]")
            images += [] if note else [f"{ref.name}:", ImagePart(ref)]
        return "\n".join(line for line in lines if line), images


@dataclass
class ImageEncoder:
    """Prepares the images of a conversation for sending. Conversions are cached by sha256.

    The base64 texts of the last images are cached, up to `KEPT_TEXT_BYTES`.

    Converted images are put in the store like any other: JPEG stays JPEG (quality 95, no chroma subsampling), anything
    else becomes PNG, so equal originals and rules give equal bytes. Safe to call from several threads.
    """

    store: ImageStore
    rules: ImageRules
    _converted: dict[str, StoredImage] = field(default_factory=dict)
    _texts: OrderedDict[str, tuple[StoredImage, bytes]] = field(default_factory=OrderedDict)
    _kept_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def encoded(self, image: StoredImage) -> tuple[StoredImage, bytes]:
        """Return the image to send and its bytes in base64.

        Raises:
            DataError: the store does not contain the image, or it does not decode.
        """
        with self._lock:
            if (cached := self._texts.get(image.sha256)) is not None:
                self._texts.move_to_end(image.sha256)
                return cached
        sent, data = self.load(image)
        encoded = sent, base64.b64encode(data)
        with self._lock:
            if image.sha256 not in self._texts:
                self._texts[image.sha256] = encoded
                self._kept_bytes += len(encoded[1])
            while self._kept_bytes > KEPT_TEXT_BYTES:
                self._kept_bytes -= len(self._texts.popitem(last=False)[1][1])
        return encoded

    def _is_other_form(self, image: StoredImage) -> bool:
        """Return whether the image is too large for the rules, or of an unsupported type."""
        too_large = self.rules.max_pixels is not None and image.width * image.height > self.rules.max_pixels
        return too_large or image.media_type not in self.rules.media_types

    def _is_too_heavy(self, count: int) -> bool:
        """Return whether a file of `count` bytes is too large for the rules."""
        return bool(self.rules.max_bytes) and base64_bytes(count) > self.rules.max_bytes

    def is_in_memory(self, image: StoredImage) -> bool:
        """Return whether `encoded` needs no slow work; a small file that needs no conversion is loaded by this call.

        Raises `DataError` like `encoded`.
        """
        if image.sha256 not in self._texts:
            if image.sha256 in self._converted or self._is_other_form(image):
                return False
            try:
                size = self.store.path(image.sha256).stat().st_size
                if size > SMALL_BYTES or self._is_too_heavy(size):
                    return False
            except OSError:
                return False
        self.encoded(image)
        return True

    def load(self, image: StoredImage) -> tuple[StoredImage, bytes]:
        """Return the image to send and its bytes: the original ones unless a rule requires a conversion."""
        sent = self._converted.get(image.sha256, image)
        data = self.store.read(sent)
        if sent is image and (self._is_other_form(image) or self._is_too_heavy(len(data))):
            data = self._convert(image, data)
            sent = self._converted[image.sha256] = self.store.put(data, f"image {image.sha256[:12]}, converted")
        return sent, data

    def _convert(self, image: StoredImage, data: bytes) -> bytes:
        """Return the image as a file that the rules allow; to meet a byte limit, as a JPEG with the same pixel size."""
        picture = scaled(self.store, image, self.rules.max_pixels)
        if self._is_other_form(image):
            data = saved(picture, image.media_type)
        for quality in QUALITIES:
            if not self._is_too_heavy(len(data)):
                break
            data = saved(picture, JPEG, quality)
        return data

    def base64_bytes(self, image: StoredImage) -> int:
        """Return the length of the image's base64 text in a request; 0 for an image that is not in the store.

        Unless the text is cached, the length follows from the size of the image's file, up to the limit of the rules.
        """
        if (cached := self._texts.get(image.sha256)) is not None:
            return len(cached[1])
        sent = self._converted.get(image.sha256, image)
        try:
            length = base64_bytes(self.store.path(sent.sha256).stat().st_size)
        except OSError:
            return 0
        return min(length, self.rules.max_bytes or length)


def image_block(media_type: str, base64_text: str, detail: str | None = None) -> dict[str, Any]:
    """Build an image part of a message in OpenAI's form, with the `detail` in which it is processed."""
    url = {"url": f"data:{media_type};base64,{base64_text}"}
    return {"type": "image_url", "image_url": url if detail is None else {**url, "detail": detail}}


def scaled(store: ImageStore, image: StoredImage, max_pixels: int | None) -> Image.Image:
    """Return a stored image in RGB, scaled down if it has more than `max_pixels` pixels (width x height)."""
    from PIL import Image

    picture = store.picture(image)
    if max_pixels is None or picture.width * picture.height <= max_pixels:
        return picture
    return picture.resize(fit(picture.width, picture.height, max_pixels), Image.Resampling.LANCZOS)


class DecodedPictures:
    """Decodes the pictures of a model in this process; caches the last used ones, up to `most_bytes` of pixels.

    The turns of a question, and the solvers of a run, show the model the same pictures. Callers do not change them.
    Different pictures are decoded at the same time; a picture that several threads need first may be decoded by each.
    """

    def __init__(self, store: ImageStore, max_pixels: int | None, most_bytes: int = DECODED_BYTES) -> None:
        self._store, self._max_pixels, self._most = store, max_pixels, most_bytes
        self._cached: OrderedDict[str, Image.Image] = OrderedDict()
        self._lock = threading.Lock()

    def picture(self, image: StoredImage) -> Image.Image:
        """Return the picture as `scaled` does."""
        with self._lock:
            picture = self._cached.get(image.sha256)
        if picture is None:
            picture = scaled(self._store, image, self._max_pixels)
        if _bytes_of(picture) > self._most:
            return picture
        with self._lock:
            picture = self._cached.setdefault(image.sha256, picture)
            self._cached.move_to_end(image.sha256)
            while sum(map(_bytes_of, self._cached.values())) > self._most:
                self._cached.popitem(last=False)
            return picture


def _bytes_of(picture: Image.Image) -> int:
    # Pillow stores a pixel of an RGB picture in four bytes.
    return 4 * picture.width * picture.height


def fit(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Return the largest size of the same shape with at most `max_pixels` pixels, and no side below 1."""
    scale = min(1.0, math.sqrt(max_pixels / (width * height)))
    # A strip thinner than one pixel after scaling would otherwise stay above the limit.
    height = min(max(1, math.floor(height * scale)), max_pixels)
    return min(max(1, math.floor(width * scale)), max_pixels // height), height


@dataclass(frozen=True, slots=True)
class Resizing:
    """How a model's processor resizes images: to sides that are multiples of `factor`, within limits of pixels.

    Source: `smart_resize` of Qwen-VL (qwen-vl-utils, transformers), which GLM-V shares.
    """

    factor: int
    least: int = 0
    most: int = 0

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height after resizing; by default, to an area of 4 to 16,384 squares with side `factor`."""
        square = self.factor**2
        least, most = self.least or 4 * square, self.most or 16_384 * square
        # Python rounds half to even, as the processors do.
        across, down = (max(self.factor, round(side / self.factor) * self.factor) for side in (width, height))
        if across * down > most:
            by = math.sqrt(width * height / most)
            fewer = (math.floor(side / by / self.factor) * self.factor for side in (width, height))
            across, down = (max(self.factor, side) for side in fewer)
        elif across * down < least:
            by = math.sqrt(least / (width * height))
            across, down = (math.ceil(side * by / self.factor) * self.factor for side in (width, height))
        return across, down
