"""Limits of a model's processor or its provider for pictures, and how a tool's picture is made to fit.

    limits = limits_of("openai:Qwen2.5-VL-7B", settings)      # least_side=28, most_ratio=200
    fit = fit_picture(1, 300, limits)                         # content 7 x 2048 px, picture 28 x 2048 px
    fitted, fit = fit_stored(store, image, limits)            # also within the server's limit of bytes

The content keeps its top left corner, so a point (x, y) of the picture is (x, y) / scale of the original picture.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hybrid.config import ModelSettings
from hybrid.config.groups import read_image_limits
from hybrid.core.images import MEDIA_TYPES, PNG, ImageStore, saved
from hybrid.core.types import StoredImage
from hybrid.models.images import base64_bytes, scaled
from hybrid.models.providers import PROVIDERS

if TYPE_CHECKING:
    pass

# A picture is enlarged until its shorter side reaches the minimum or its longer side reaches this number of pixels; in
# the latter case, it is then padded.
ENLARGED_PX: Final = 2048
# Largest aspect ratio for processors that resize to multiples of a factor, such as that of Qwen-VL.
RATIO_OF_RESIZING: Final = 200
PADDING: Final = (128, 128, 128)
JPEG: Final = MEDIA_TYPES["JPEG"]
# Lowest JPEG quality for a tool's picture; instead of a lower one, the picture is shrunk.
LEAST_QUALITY: Final = 70
# Smaller pictures have more bytes per pixel, so the side is reduced by a little more than the bytes require.
SHRINKING: Final = 0.95


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """Limits on pictures in a request; 0 if unknown. `hybrid/models/picture_limits.toml` explains each."""

    least_side: int = 0
    most_ratio: int = 0
    most_side: int = 0
    most_pictures: int = 0
    many: int = 0
    most_side_of_many: int = 0
    most_bytes: int = 0
    most_request_bytes: int = 0

    def strictest(self, other: Mapping[str, Any]) -> PictureLimits:
        """Combine these limits with others: take the larger minimum and the smaller maximum."""
        merged: dict[str, int] = {}
        for name in self.__dataclass_fields__:
            values = [value for value in (getattr(self, name), other.get(name, 0)) if value]
            merged[name] = (max if name == "least_side" else min)(values, default=0)
        return PictureLimits(**merged)

    @property
    def longest(self) -> int:
        """Longest side of a tool's picture, which may be sent with many others; 0 if no limit is known."""
        return min((side for side in (self.most_side, self.most_side_of_many) if side), default=0)


NO_LIMITS: Final = PictureLimits()


@dataclass(frozen=True, slots=True)
class FittedSize:
    """Sizes (width, height), in pixels, of a picture that was fitted to limits.

    `content` is the size of the scaled content, and `picture` that of the whole picture including padding.
    """

    scale: float
    content: tuple[int, int]
    picture: tuple[int, int]


def limits_of(name: str | None, settings: ModelSettings, factor: int = 0) -> PictureLimits:
    """Return the limits of a model `provider:name`; `factor` is its processor's resizing factor, 0 if unknown.

    Limits from `--model-arg image_limits` replace those of the tables.
    """
    provider, _, model = (name or "").partition(":")
    row = PROVIDERS.get(provider)
    variables = row.url_env if row is not None else ()
    url = settings.base_url or next(filter(None, map(os.environ.get, variables)), None)
    host = (urlsplit(url).hostname or "") if url else ""
    limits = NO_LIMITS
    for entry in _table():
        tests = {"models": bool(model), "hosts": bool(host), "provider": not host}
        texts = {"models": model, "hosts": host, "provider": provider}
        if all(tests[key] and re.search(entry[key], texts[key], re.IGNORECASE) for key in tests.keys() & entry.keys()):
            limits = limits.strictest(entry)
    if factor:
        limits = limits.strictest({"least_side": factor, "most_ratio": RATIO_OF_RESIZING})
    return replace(limits, **read_image_limits(settings.image_limits))


@cache
def _table() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["limits"]
    return rows


def fit_picture(width: int, height: int, limits: PictureLimits, max_pixels: int | None = None) -> FittedSize | None:
    """Return the sizes with which a picture fits the limits; None if it fits unchanged.

    `max_pixels` is the width x height to which the request shrinks pictures afterwards (`--max-pixels`); the shorter
    side must be at least `least_side` after that too.
    """
    least, longest = max(1, limits.least_side), limits.longest
    if max_pixels is not None and limits.least_side:
        longest = min(longest or max_pixels, max(least, max_pixels // least))
    shorter, longer = min(width, height), max(width, height)
    scale = 1.0
    if shorter < least:
        scale = min(least / shorter, max(1.0, ENLARGED_PX / longer))
    if longest and longer * scale > longest:
        scale = longest / longer
    across, down = (max(1, round(side * scale)) for side in (width, height))
    ratio = limits.most_ratio or math.inf
    # Check both sides, because each determines the minimum of the other.
    padded = (max(across, least, math.ceil(down / ratio)), max(down, least, math.ceil(across / ratio)))
    if (across, down) == (width, height) == padded:
        return None
    # The scale is exact along the longer side, so that a point maps back to its pixel.
    return FittedSize(max(across, down) / longer, (across, down), padded)


def fit_stored(
    store: ImageStore, image: StoredImage, limits: PictureLimits, max_pixels: int | None = None
) -> tuple[StoredImage, FittedSize | None]:
    """Return the picture that fits the limits, and its sizes; the same picture and None if it fits unchanged.

    A picture with too many bytes even as a JPEG of `LEAST_QUALITY` is shrunk. Arguments as for `fit_picture`.
    """
    while True:
        size = fit_picture(image.width, image.height, limits, max_pixels)
        fitted = image if size is None else _resize(store, image, size)
        excess = _excess_bytes(store, fitted, limits.most_bytes, max_pixels)
        longest = int(SHRINKING * max(fitted.width, fitted.height) / math.sqrt(max(1.0, excess)))
        if excess <= 1.0 or longest < max(1, limits.least_side):
            return fitted, size
        limits = replace(limits, most_side=longest)


def _excess_bytes(store: ImageStore, image: StoredImage, most_bytes: int, max_pixels: int | None) -> float:
    """Return a picture's bytes (unchanged, or as a JPEG of `LEAST_QUALITY`) divided by the limit; it fits if <= 1."""
    if not most_bytes or base64_bytes(store.path(image.sha256).stat().st_size) <= most_bytes:
        return 1.0
    return base64_bytes(len(saved(scaled(store, image, max_pixels), JPEG, LEAST_QUALITY))) / most_bytes


def _resize(store: ImageStore, image: StoredImage, size: FittedSize) -> StoredImage:
    """Resize a stored picture to a fitted size by Lanczos, with grey padding to the right and below."""
    import numpy as np
    from PIL import Image

    picture = store.picture(image)
    if size.content != picture.size:
        picture = picture.resize(size.content, Image.Resampling.LANCZOS)
    if size.picture != size.content:
        sheet = Image.new("RGB", size.picture, PADDING)
        sheet.paste(picture, (0, 0))
        picture = sheet
    return store.put_pixels(np.asarray(picture), JPEG if image.media_type == JPEG else PNG)
