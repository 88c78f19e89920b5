"""The images of a conversation: which of them go out with a request, where, and as which bytes.

`arrange` decides which images are shown and where (pure, no bytes); an `ImageEncoder` has their bytes as they are sent.
Images that tools made are lifted out of the tool messages into one user message after the batch, because images in a
tool message are refused by some servers and silently not seen by some models. Where the probe of a run has seen that a
server takes them there (`inside`), they stay: many chat templates drop all thinking before the last user message.
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
KEPT_TEXT_BYTES = 8 * 2**20  # Base64 texts of images kept in memory: a dialogue sends its images again with every call.
SMALL_BYTES = 2**20  # A file up to this size is read where it is needed: to hand it to a thread takes longer.


# Qualities of JPEG at which a file with too many bytes is written, until it fits.
QUALITIES = (95, 90, 80, 70, 50, 30)


@dataclass(frozen=True, slots=True)
class ImageRules:
    """Limits of a provider: media types, the most pixels (width x height), and the most bytes of a base64 text."""

    media_types: frozenset[str] = frozenset({"image/jpeg", "image/png"})
    max_pixels: int | None = None
    max_bytes: int = 0  # 0 if no limit is known.


def base64_bytes(count: int) -> int:
    """Length of the base64 text of `count` bytes."""
    return 4 * math.ceil(count / 3)


# Whether images together are small enough for one request.
Fits = Callable[[Sequence[StoredImage]], bool]

# Names of the pictures that tools made and that no reply has followed yet: a refusal of the request may be about them.
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
    """The messages as they go out, images still references, each with its name (`img:1:`) as text before it.

    An image that is not labelled goes out alone (`--image-labels off`).

    Tool messages become plain text; their images follow the batch in one user message, merged with a user message
    that is there already. The images of the first user message and the last `keep` others are shown, each once;
    a name that is not shown is left as text that says why. With `asked` the images of the last results are shown as
    well, and those that the model named in its last message.

    With `inside` the images of a tool message stay in it, behind its text. `most` is how many images the server takes
    in one request, 0 for any number, and `fits` says whether images are small enough for one request: the oldest of
    tools' are left out until they fit.
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
    """Which images of a conversation go out, and which have gone out already while it is walked through."""

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
            # Those that came after the model's last message, and those that this message names.
            place, last = replies[-1]
            words = " ".join([last.text, *(json.dumps(dict(call.args), default=str) for call in last.calls)])
            mentioned_refs = [
                ref for ref in images_of(messages) if re.search(rf"{re.escape(ref.name)}(?![.\d]*\d)", words)
            ]
            self._live |= {ref.image.sha256 for ref in (*images_of(messages[place + 1 :]), *mentioned_refs)}
        # Images that are left out, and why.
        self._beyond: dict[str, str] = {}
        if most or fits:
            by_sha = {ref.image.sha256: ref.image for ref in images_of(messages)}
            live_images = [by_sha[sha] for sha in others if sha in self._live]
            count = min(len(live_images), max(0, most - len(first))) if most else len(live_images)
            oldest = live_images[: len(live_images) - count]
            self._leave_out(oldest, f"the server takes {most} pictures in one request")
            live_images = live_images[len(oldest) :]
            while live_images and fits and not fits([*(ref.image for ref in first), *live_images]):
                self._leave_out([live_images.pop(0)], "the server takes no larger request")
        self._names: set[str] = set()
        self._sent: dict[str, str] = {}

    def _leave_out(self, images: Sequence[StoredImage], why: str) -> None:
        self._beyond |= {image.sha256: why for image in images}

    def _note(self, ref: ImageRef) -> str | None:
        """None when the image is to be shown here, else the text that stands in for it."""
        if (why := self._beyond.get(ref.image.sha256)) is not None:
            return f"[{ref.name}: not shown; {why}]"
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
        """Content of a user message: every image, its name before it where it has one, or the text in its place."""
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
        """Text of a tool message, and the named images that go after the batch."""
        text = message.text
        # Two of the four wire formats have no field for it.
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
    """The images of a conversation as they are sent. What was converted once is remembered by its sha256.

    The base64 texts of the last images are kept, up to `KEPT_TEXT_BYTES`.

    Converted bytes lie in the store like any other image: JPEG stays JPEG (quality 95, no chroma subsampling), anything
    else becomes PNG, so equal originals and rules give equal bytes. Safe to call from several threads.
    """

    store: ImageStore
    rules: ImageRules
    _converted: dict[str, StoredImage] = field(default_factory=dict)
    _texts: OrderedDict[str, tuple[StoredImage, bytes]] = field(default_factory=OrderedDict)
    _kept_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def encoded(self, image: StoredImage) -> tuple[StoredImage, bytes]:
        """The image to send and its bytes in base64.

        Raises:
            DataError: the store does not hold the image, or it does not decode.
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
        """Whether the image is too large for the rules, or of a type that they do not know."""
        too_large = self.rules.max_pixels is not None and image.width * image.height > self.rules.max_pixels
        return too_large or image.media_type not in self.rules.media_types

    def _is_too_heavy(self, count: int) -> bool:
        """Whether a file of so many bytes is too large for the rules."""
        return bool(self.rules.max_bytes) and base64_bytes(count) > self.rules.max_bytes

    def is_in_memory(self, image: StoredImage) -> bool:
        """Whether `encoded` gives the image out of memory; a small file that is sent as it is gets there by asking.

        Raises `DataError` as `encoded`.
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
        """The image to send and its bytes: the original ones unless a rule asks for a conversion."""
        sent = self._converted.get(image.sha256, image)
        data = self.store.read(sent)
        if sent is image and (self._is_other_form(image) or self._is_too_heavy(len(data))):
            data = self._convert(image, data)
            sent = self._converted[image.sha256] = self.store.put(data, f"image {image.sha256[:12]}, converted")
        return sent, data

    def _convert(self, image: StoredImage, data: bytes) -> bytes:
        """A file of the image that the rules allow. Of too many bytes a JPEG is made, as large in pixels."""
        picture = scaled(self.store, image, self.rules.max_pixels)
        if self._is_other_form(image):
            data = saved(picture, image.media_type)
        for quality in QUALITIES:
            if not self._is_too_heavy(len(data)):
                break
            data = saved(picture, JPEG, quality)
        return data

    def base64_bytes(self, image: StoredImage) -> int:
        """Length of the image in a request; of one that was not sent yet, that of its own file, up to the limit.

        0 for an image that is not in the store.
        """
        if (kept := self._texts.get(image.sha256)) is not None:
            return len(kept[1])
        sent = self._converted.get(image.sha256, image)
        try:
            length = base64_bytes(self.store.path(sent.sha256).stat().st_size)
        except OSError:
            return 0
        return min(length, self.rules.max_bytes or length)


def image_block(media_type: str, base64_text: str, detail: str | None = None) -> dict[str, Any]:
    """An image as a part of a message in OpenAI's form, with the `detail` in which it is looked at."""
    url = {"url": f"data:{media_type};base64,{base64_text}"}
    return {"type": "image_url", "image_url": url if detail is None else {**url, "detail": detail}}


def scaled(store: ImageStore, image: StoredImage, max_pixels: int | None) -> Image.Image:
    """A stored image as an RGB picture, scaled down where it has more than `max_pixels` pixels (width x height)."""
    from PIL import Image

    picture = Image.fromarray(store.pixels(image))
    if max_pixels is None or picture.width * picture.height <= max_pixels:
        return picture
    return picture.resize(fit(picture.width, picture.height, max_pixels), Image.Resampling.LANCZOS)


def fit(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Largest size of the same shape with at most `max_pixels` pixels (width x height), no side below 1."""
    scale = min(1.0, math.sqrt(max_pixels / (width * height)))
    # A strip thinner than one pixel after scaling would otherwise stay above the limit.
    height = min(max(1, math.floor(height * scale)), max_pixels)
    return min(max(1, math.floor(width * scale)), max_pixels // height), height


@dataclass(frozen=True, slots=True)
class Resizing:
    """How a model's processor resizes every picture: to sides that are multiples of `factor`, within bounds of pixels.

    Source: `smart_resize` of Qwen-VL (qwen-vl-utils, transformers), which GLM-V shares.
    """

    factor: int
    least: int = 0
    most: int = 0

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height in which a model sees a picture; by default it takes 4 to 16,384 squares of the factor."""
        square = self.factor**2
        least, most = self.least or 4 * square, self.most or 16_384 * square
        # Python rounds a half to the even number, as the processors do.
        across, down = (max(self.factor, round(side / self.factor) * self.factor) for side in (width, height))
        if across * down > most:
            by = math.sqrt(width * height / most)
            fewer = (math.floor(side / by / self.factor) * self.factor for side in (width, height))
            across, down = (max(self.factor, side) for side in fewer)
        elif across * down < least:
            by = math.sqrt(least / (width * height))
            across, down = (math.ceil(side * by / self.factor) * self.factor for side in (width, height))
        return across, down
