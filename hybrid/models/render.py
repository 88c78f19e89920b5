"""References to bytes: what a conversation looks like when it goes out, the same for every provider.

`arrange` decides which images are shown and where (pure, no bytes);
`attach` puts their bytes in. Images that tools made are lifted out of the tool messages into one user message after
the batch, because images in a tool message are refused by some servers and silently not seen by some models.
"""

from __future__ import annotations

import base64
import io
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybrid.images import ImageStore, has_rotation
from hybrid.messages import image_of, images_of, is_image, parts_of, text_of, text_part
from hybrid.types import ImageRef, Json, StoredImage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from PIL import Image

JPEG_QUALITY = 95
KEPT_TEXT_BYTES = 64 * 2**20
"""Base64 texts of images kept in memory: a dialogue sends its images again with every call."""


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


@dataclass(frozen=True, slots=True)
class ImageRules:
    """What a provider takes: media types, the most pixels (width x height), and the `detail` that a part carries."""

    media_types: frozenset[str] = frozenset({"image/jpeg", "image/png"})
    max_pixels: int | None = None
    detail: str | None = None


def arrange(messages: Sequence[BaseMessage], keep: int) -> list[BaseMessage]:
    """The messages as they go out, images still references, each with its name (`img:1:`) as text before it.

    An image part that says `"labelled": False` goes out alone (`--image-labels off`).

    Tool messages become plain text; their images follow the batch in one user message, merged with a user message
    that is there already. The images of the first user message and the last `keep` others are shown, each once;
    a name that is not shown is left as text that says why. The messages given are not changed.
    """
    from langchain_core.messages import HumanMessage

    shown = _Shown(messages, keep)
    out: list[BaseMessage] = []
    lifted: list[str | dict[str, Any]] = []
    for message in messages:
        if message.type == "tool":
            text, images = shown.tool(message)
            lifted += images
            out.append(message.model_copy(update={"content": text}))
            continue
        if lifted and message.type != "human":
            out.append(HumanMessage(lifted))
            lifted = []
        if message.type == "human":
            out.append(message.model_copy(update={"content": lifted + shown.parts(message)}))
            lifted = []
        else:
            out.append(message)
    return [*out, HumanMessage(lifted)] if lifted else out


class _Shown:
    """Which images of a conversation go out, and which have gone out already while it is walked through."""

    def __init__(self, messages: Sequence[BaseMessage], keep: int) -> None:
        opening = next((message for message in messages if message.type == "human"), None)
        first = images_of([opening]) if opening is not None else ()
        self._opening = {ref.name for ref in first}
        shas = {ref.image.sha256 for ref in first}
        others = dict.fromkeys(ref.image.sha256 for ref in images_of(messages) if ref.image.sha256 not in shas)
        self._live = shas | set(list(others)[len(others) - min(keep, len(others)) :])
        self._names: set[str] = set()
        self._sent: dict[str, str] = {}

    def _note(self, ref: ImageRef) -> str | None:
        """None when the image is to be shown here, else the text that stands in for it."""
        if ref.image.sha256 not in self._live:
            return f"[{ref.name}: no longer shown]"
        if ref.name in self._names:
            return f"[{ref.name}: shown above]"
        twin = self._sent.get(ref.image.sha256)
        if twin is not None and ref.name not in self._opening:
            return f"[{ref.name}: the same picture as {twin}]"
        self._names.add(ref.name)
        self._sent.setdefault(ref.image.sha256, ref.name)
        return None

    def parts(self, message: BaseMessage) -> list[str | dict[str, Any]]:
        """Content of a user message: every image, its name before it where it has one, or the text in its place."""
        out: list[str | dict[str, Any]] = []
        for part in parts_of(message):
            if not is_image(part):
                out.append(part)
            elif (note := self._note(image_of(part))) is not None:
                out.append(text_part(note))
            else:
                out += [*_label(part), part]
        return out

    def tool(self, message: BaseMessage) -> tuple[str, list[str | dict[str, Any]]]:
        """Text of a tool message, and the named images that go after the batch."""
        text = text_of(message)
        # Two of the four wire formats have no field for it.
        failed = getattr(message, "status", "success") == "error" and not text.lower().startswith("error")
        lines = [f"Error: {text}" if failed else text]
        images: list[str | dict[str, Any]] = []
        for part in filter(is_image, parts_of(message)):
            note = self._note(image_of(part))
            lines.append(note or f"[{part['name']}: attached below]")
            images += [] if note else [text_part(f"{part['name']}:"), part]
        return "\n".join(line for line in lines if line), images


def _label(part: dict[str, Any]) -> list[str | dict[str, Any]]:
    """The name before an image of a user message; nothing where the message was made without names."""
    return [text_part(f"{part['name']}:")] if part.get("labelled", True) else []


@dataclass
class Attacher:
    """Puts the bytes of an arranged conversation in. What was converted once is remembered by its sha256.

    The base64 texts of the last images are kept, up to `KEPT_TEXT_BYTES`.

    Converted bytes lie in the store like any other image: JPEG stays JPEG (quality 95, no chroma subsampling), anything
    else becomes PNG, so equal originals and rules give equal bytes. Safe to call from several threads.
    """

    store: ImageStore
    rules: ImageRules
    _converted: dict[str, StoredImage] = field(default_factory=dict)
    _texts: OrderedDict[str, tuple[StoredImage, str]] = field(default_factory=OrderedDict)
    _kept_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def attach(self, messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], tuple[SentImage, ...]]:
        """The messages with base64 image parts instead of references, and the images in the order sent.

        Raises:
            DataError: the store does not hold an image, or it does not decode.
        """
        sent: list[SentImage] = []
        out: list[BaseMessage] = []
        for message in messages:
            if isinstance(message.content, str):
                out.append(message)
                continue
            content = [self._part(part, sent) for part in message.content]
            out.append(message.model_copy(update={"content": content}))
        return out, tuple(sent)

    def _part(self, part: str | dict[str, Any], sent: list[SentImage]) -> str | dict[str, Any]:
        if isinstance(part, str) or not is_image(part):
            return part
        ref = image_of(part)
        image, text = self.encoded(ref.image)
        sent.append(SentImage(ref.name, ref.image, image))
        if self.rules.detail is None:
            return {"type": "image", "base64": text, "mime_type": image.media_type}
        url = f"data:{image.media_type};base64,{text}"
        return {"type": "image_url", "image_url": {"url": url, "detail": self.rules.detail}}

    def encoded(self, image: StoredImage) -> tuple[StoredImage, str]:
        """The image to send and its bytes in base64. Raises `DataError` as `attach`."""
        if kept := self.kept(image):
            return kept
        sent, data = self.load(image)
        found = sent, base64.b64encode(data).decode("ascii")
        with self._lock:
            if image.sha256 not in self._texts:
                self._texts[image.sha256] = found
                self._kept_bytes += len(found[1])
            while self._kept_bytes > KEPT_TEXT_BYTES:
                self._kept_bytes -= len(self._texts.popitem(last=False)[1][1])
        return found

    def kept(self, image: StoredImage) -> tuple[StoredImage, str] | None:
        """What `encoded` gives where it is still in memory, else None."""
        with self._lock:
            found = self._texts.get(image.sha256)
            if found is not None:
                self._texts.move_to_end(image.sha256)
            return found

    def load(self, image: StoredImage) -> tuple[StoredImage, bytes]:
        """The image to send and its bytes: the original ones unless a rule asks for a conversion."""
        if done := self._converted.get(image.sha256):
            return done, self.store.read(done)
        data = self.store.read(image)
        too_large = self.rules.max_pixels is not None and image.width * image.height > self.rules.max_pixels
        if not (too_large or image.media_type not in self.rules.media_types or has_rotation(data)):
            return image, data
        data = self._convert(image)
        converted = self.store.put(data, f"image {image.sha256[:12]}, converted")
        self._converted[image.sha256] = converted
        return converted, data

    def _convert(self, image: StoredImage) -> bytes:
        picture = scaled(self.store, image, self.rules.max_pixels)
        buffer = io.BytesIO()
        if image.media_type == "image/jpeg":
            picture.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=0)
        else:
            picture.save(buffer, "PNG", compress_level=6)
        return buffer.getvalue()


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


def metadata(sent: Sequence[SentImage]) -> Mapping[str, Json]:
    """What goes into `response_metadata` about the images of a request."""
    return {"images_sent": [image.json() for image in sent]}
