"""Images by reference: a content-addressed store, safe decoding, one coordinate convention.

A file of one upright picture, 8-bit RGB or grey without transparency, is stored unchanged. Servers and tools would
decode any other file differently, so it is converted to such a picture on arrival; key, size and coordinates are those
of the converted image. The key is the sha256 of the bytes and is verified on every read. A damaged file raises an
error; storing the image again repairs it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from hybrid.core.errors import DataError, needed_by
from hybrid.core.files import read_small, write_atomic
from hybrid.core.slow_images import slow_structure
from hybrid.core.types import MAX_PIXELS, SHA256, StoredImage

if TYPE_CHECKING:
    from PIL import Image

    from hybrid.core.types import Pixels

MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "MPO": "image/jpeg",
    # Servers do not accept AVIF, so it is converted to PNG.
    "AVIF": "image/png",
}
# Formats that Pillow may try. A JPEG with several pictures (MPO) is opened as a JPEG.
FORMATS = tuple(name for name in MEDIA_TYPES if name != "MPO")
# Common formats that are not supported, by their first bytes.
NOT_READ: Mapping[str, re.Pattern[bytes]] = {
    "HEIC": re.compile(rb"\A.{4}ftyp(?:hei|hev|mif1|msf1)", re.DOTALL),
    "SVG": re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<(?:svg|\?xml|!--|!DOCTYPE svg)", re.IGNORECASE),
    "PDF": re.compile(rb"\A%PDF-"),
    "JPEG XL": re.compile(rb"\A(?:\xff\x0a|\x00\x00\x00\x0cJXL )"),
    "JPEG 2000": re.compile(rb"\A(?:\x00\x00\x00\x0cjP  |\xff\x4f\xff\x51)"),
    "Photoshop's PSD": re.compile(rb"\A8BPS"),
}
# Largest image file in bytes.
MAX_BYTES = 512 * 2**20
JPEG, PNG = MEDIA_TYPES["JPEG"], MEDIA_TYPES["PNG"]
# Quality of JPEGs that hybrid writes, without chroma subsampling (4:4:4).
JPEG_QUALITY = 95
# Longest side of a JPEG.
JPEG_SIDE_PX = 65_500
EXIF_ORIENTATION = 0x0112
# Tags of a TIFF: width and height of its tiles.
TIFF_TILE_SIDES = (322, 323)
# Orientations that rotate or mirror; 1 is upright, and other values are ignored.
TURNED = range(2, 9)
# Orientations that swap width and height.
ON_ITS_SIDE = range(5, 9)
# Byte strings of EXIF and XMP, by Pillow's format name. A file with an orientation contains at least one of them. For
# PNG they are names of chunks and keywords, because a chunk's content may be compressed. Files of other formats are
# always checked, because AVIF and WebP can rotate a picture without EXIF or XMP.
ORIENTATION_WORDS: Mapping[str, tuple[bytes, ...]] = {
    "JPEG": (b"Exif", b"Orientation"),
    "MPO": (b"Exif", b"Orientation"),
    "PNG": (b"eXIf", b"Raw profile type ", b"XML:com.adobe.xmp"),
}
# Images of the question that the current agent answers; its tools accept them by name.
SHOWN_IMAGES: Final[ContextVar[Mapping[str, StoredImage]]] = ContextVar("SHOWN_IMAGES", default=MappingProxyType({}))
_READ = [0]


def read_image_file(path: Path, source: str) -> bytes:
    """Read the bytes of an image file without decoding; `source` names it in errors.

    Raises:
        DataError: it is larger than `MAX_BYTES`.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise DataError(f"{source} has {size:,} bytes; at most {MAX_BYTES:,} are read")
    _READ[0] += 1
    # `read_small` limits the read too, because a device reports size 0.
    return read_small(path, MAX_BYTES)


def files_read() -> int:
    """Return the number of image files that this process has read. A table's fingerprint does not cover such files."""
    return _READ[0]


def home() -> Path:
    """Return the folder of stored images and tool results: `$HYBRID_HOME`, else the user's cache folder."""
    if folder := os.environ.get("HYBRID_HOME"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hybrid"


class ImageStore:
    """Content-addressed images in a folder; safe for concurrent processes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, data: bytes, source: str) -> StoredImage:
        """Store an image file; all but upright opaque 8-bit RGB or grey is converted: a JPEG to JPEG, others to PNG.

        An animation and an AVIF file are converted, too. `source` (question and column) names the file in errors.

        Raises:
            DataError: the bytes do not decode as an image in a known format, or exceed `MAX_PIXELS`.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        # A missing or damaged conversion is made again below.
        with suppress(OSError, ValueError, TypeError, DataError):
            stored = StoredImage(**json.loads(self._note(sha256).read_bytes()))
            # Older versions recorded the size of some rotated pictures before rotation.
            if _open(self.read(stored), source).size == (stored.width, stored.height):
                return stored
        # A file that is already in the store was decoded when it was stored.
        is_stored = _holds(self.path(sha256), data)
        image, plain = _described(data, sha256, source, decodes=is_stored)
        if plain:
            return image if is_stored else self._keep(image, data)
        form = JPEG if image.media_type == JPEG else PNG
        picture = picture_of(data, source)
        width, height = picture.size
        file = saved(picture, form)
        # Record the size of the decoded pixels, not the size in the header.
        stored = self._keep(StoredImage(hashlib.sha256(file).hexdigest(), width, height, form), file)
        write_atomic(self._note(sha256), json.dumps(asdict(stored)).encode())
        return stored

    def _note(self, sha256: str) -> Path:
        """Return the path of the record that names the conversion of the file with this hash."""
        return self.path(sha256).with_suffix(".made")

    def put_pixels(self, pixels: Pixels, media_type: str = PNG) -> StoredImage:
        """Store an RGB array (H, W, 3) uint8; equal arrays give equal bytes. Raises the errors of `encode`."""
        data = encode(pixels, media_type)
        sha = hashlib.sha256(data).hexdigest()
        return self._keep(StoredImage(sha, pixels.shape[1], pixels.shape[0], media_type), data)

    def _keep(self, image: StoredImage, data: bytes) -> StoredImage:
        path = self.path(image.sha256)
        if not _holds(path, data):
            write_atomic(path, data)
        return image

    def path(self, sha256: str) -> Path:
        """Return an image's path. Raises `DataError` for a key that is not a sha256, which could name another file."""
        if not SHA256.fullmatch(sha256):
            raise DataError(f"{sha256[:80]!r} is not the sha256 of an image")
        return self.root / sha256[:2] / sha256

    def read(self, image: StoredImage) -> bytes:
        """Read the original bytes. Raises `DataError` if they are missing or damaged."""
        path = self.path(image.sha256)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise DataError(f"image {image.sha256[:12]} is not in the store {self.root}; {_REFILL}") from None
        except OSError as error:
            raise DataError(f"image {image.sha256[:12]} cannot be read from the store: {error}") from error
        if hashlib.sha256(data).hexdigest() != image.sha256:
            raise DataError(f"image {image.sha256[:12]} is damaged in the store ({path}); {_REFILL}")
        return data

    def pixels(self, image: StoredImage) -> Pixels:
        """Decode an image to an RGB array (H, W, 3) uint8 with EXIF orientation applied."""
        return decode(self.read(image), image.sha256[:12])

    def picture(self, image: StoredImage) -> Image.Image:
        """Decode an image to an RGB picture of Pillow with EXIF orientation applied; tools use `pixels` instead."""
        return picture_of(self.read(image), image.sha256[:12])


_REFILL = "run the benchmark once more from its data to fill it"


def _holds(path: Path, data: bytes) -> bool:
    """Return whether the file exists with exactly these bytes."""
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        # An unreadable file is written again; if that also fails, the error states the reason.
        return False


def inspect(data: bytes, source: str) -> StoredImage:
    """Return an image's format and upright size. Raises `DataError` naming `source` if the image does not decode."""
    return _described(data, hashlib.sha256(data).hexdigest(), source, decodes=False)[0]


def _described(data: bytes, sha256: str, source: str, *, decodes: bool) -> tuple[StoredImage, bool]:
    """Return the result of `inspect`, and whether the file can be stored unchanged.

    If `decodes` is set, the image is known to decode and only its header is read.
    """
    picture = _open(data, source)
    width, height = picture.size
    form = str(picture.format)
    media_type = MEDIA_TYPES[form]
    orientation, on_its_side = None, False
    # Pillow's mode does not reveal channels of 16 bits.
    plain = (
        picture.mode in ("RGB", "L")
        and ";16" not in str(getattr(picture, "tile", ""))
        and "transparency" not in picture.info
    )
    try:
        # An MPO may contain other pictures, but they are not frames of an animation.
        plain = plain and (form == "MPO" or not getattr(picture, "is_animated", False))
        # Read the orientation only if the file can have one, because this decodes the whole picture of a PNG.
        words = ORIENTATION_WORDS.get(form)
        if words is None or any(word in data for word in words):
            # Read the orientation before loading, because Pillow rotates a TIFF on load and drops the tag.
            orientation = picture.getexif().get(EXIF_ORIENTATION)
            # The size of a TIFF already includes the rotation, unless only its XMP has the orientation.
            by_tag = form == "TIFF" and EXIF_ORIENTATION in getattr(picture, "tag_v2", {})
            on_its_side = orientation in ON_ITS_SIDE and not by_tag
        if not decodes:
            # Decoding a JPEG at an eighth of its size checks all its bytes in a third of the time.
            picture.draft(None, (max(1, width // 8), max(1, height // 8)))
            picture.load()
            if picture.mode in WITHOUT_RANGE:
                to_rgb(picture)
    except Exception as error:
        raise DataError(f"{source}: the image does not decode ({str(error) or type(error).__name__})") from error
    if on_its_side:
        width, height = height, width
    return StoredImage(sha256, width, height, media_type), plain and form != "AVIF" and orientation not in TURNED


def encode(pixels: Pixels, media_type: str = PNG) -> bytes:
    """Encode an RGB array (H, W, 3) uint8 as PNG or JPEG (`JPEG_QUALITY`, 4:4:4); equal arrays give equal bytes.

    Raises:
        DataError: another kind of array or another media type, or a side over 10^6 px (`JPEG_SIDE_PX` for a JPEG).
        UsageError: a PNG without OpenCV, because other encoders would give other bytes and so other image identities.
    """
    import numpy as np
    from PIL import Image

    # Encoders would accept other arrays as well, but change the picture.
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise DataError(f"an array of shape {pixels.shape} and type {pixels.dtype} is not an RGB picture of 8 bits")
    if media_type == PNG:
        with needed_by("cropping, joining or drawing a picture"):
            import cv2

        # This is a hot path: level 1 with run-length encoding takes 0.4 to 0.8 of the time of Pillow's level 1, and
        # less space.
        params = (cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE)
        success, data = cv2.imencode(".png", cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2BGR), params)
        if not success:
            raise DataError(f"a picture of shape {pixels.shape} cannot be encoded as PNG")
        return data.tobytes()
    if media_type != JPEG:
        raise DataError(f"pictures are made as PNG or JPEG, not as {media_type}")
    if max(pixels.shape) > JPEG_SIDE_PX:
        raise DataError(f"a picture of shape {pixels.shape} cannot be encoded as JPEG")
    # Pillow writes the same bytes as OpenCV in the same time, with less memory.
    return saved(Image.fromarray(np.ascontiguousarray(pixels)), JPEG)


def saved(picture: Image.Image, media_type: str, quality: int | None = None) -> bytes:
    """Encode an RGB picture with Pillow: as JPEG (`JPEG_QUALITY` or `quality`, 4:4:4), else as PNG."""
    file = io.BytesIO()
    if media_type == JPEG:
        picture.save(file, "JPEG", quality=quality or JPEG_QUALITY, subsampling=0)
    else:
        picture.save(file, "PNG", compress_level=6)
    return file.getvalue()


def decode(data: bytes, source: str) -> Pixels:
    """Decode to an RGB array (H, W, 3) uint8 from any Pillow mode (see `to_rgb`). Raises `DataError`."""
    import numpy as np

    return np.array(picture_of(data, source))


def picture_of(data: bytes, source: str) -> Image.Image:
    """Decode to an upright RGB picture of Pillow without metadata. Raises `DataError`."""
    from PIL import ImageOps

    picture = _open(data, source)
    try:
        # Rotate in place; otherwise Pillow copies even an upright picture.
        ImageOps.exif_transpose(picture, in_place=True)
        picture = to_rgb(picture)
        picture.load()
        # Pillow would write some of the file's metadata into a file of this picture.
        picture.info = {}
    except Exception as error:
        raise DataError(f"{source}: the image does not decode ({str(error) or type(error).__name__})") from error
    return picture


def to_rgb(picture: Image.Image) -> Image.Image:
    """Convert any Pillow mode to RGB. Alpha is blended over white; 16- and 32-bit grey is scaled to 8 bits.

    The range of 16-bit grey is 0..65535. The range of floats is 0..1 if no value exceeds 1, so a nearly black image of
    0..255 becomes brighter. The range of other floats, and of 32-bit integers, is 0..255 if no value exceeds 255, else
    0..65535. NaN is black. An RGB image is returned unchanged.

    Raises:
        DataError: 32-bit values that are negative, or above 65535.
    """
    if picture.mode in ("I;16", "I;16B", "I;16L", *WITHOUT_RANGE):
        return _deep_grey_to_rgb(picture)
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        return _blend_over_white(picture)
    return picture if picture.mode == "RGB" else picture.convert("RGB")


def _deep_grey_to_rgb(picture: Image.Image) -> Image.Image:
    import numpy as np
    from PIL import Image

    values = np.asarray(picture)
    pieces = np.array_split(values.reshape(-1), max(1, -(-values.size // PIECE_PX)))
    # The value of white.
    top = 65535.0
    if picture.mode in WITHOUT_RANGE:
        extremes = [extreme for piece in pieces for extreme in _extremes(piece)]
        least, most = min(extremes), max(extremes)
        if least < 0 or most > top:
            raise DataError(
                f"its 32-bit values go from {least:g} to {most:g}, which fits none of the ranges 0..1, 0..255 and "
                "0..65535"
            )
        if most <= 255.0:
            top = 1.0 if picture.mode == "F" and most <= 1.0 else 255.0
    grey = np.concatenate(
        [np.clip(np.rint(_finite(piece) * (255.0 / top)), 0, 255).astype(np.uint8) for piece in pieces]
    )
    return Image.fromarray(grey.reshape(values.shape)).convert("RGB")


def _finite(values: Any) -> Any:
    """Return values as float64, with 0 for NaN."""
    import numpy as np

    return np.nan_to_num(values.astype(np.float64), posinf=np.inf, neginf=-np.inf)


def _extremes(values: Any) -> tuple[float, float]:
    """Return the minimum and the maximum of these values and 0."""
    finite = _finite(values)
    return float(finite.min(initial=0.0)), float(finite.max(initial=0.0))


def _blend_over_white(picture: Image.Image) -> Image.Image:
    from PIL import Image

    blended = Image.new("RGB", picture.size)
    columns = max(1, min(picture.width, PIECE_PX))
    rows = max(1, PIECE_PX // columns)
    for y, x in product(range(0, picture.height, rows), range(0, picture.width, columns)):
        box = (x, y, min(x + columns, picture.width), min(y + rows, picture.height))
        rgba = picture.crop(box).convert("RGBA")
        ground = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        blended.paste(Image.alpha_composite(ground, rgba).convert("RGB"), (x, y))
    return blended


# Number of pixels converted at a time: a picture of `MAX_PIXELS` then takes 1.3 GB of memory instead of 3 GB.
PIECE_PX = 2**22
# Modes with 32 bits, whose files do not say which value is white.
WITHOUT_RANGE = ("I", "F")


def _open(data: bytes, source: str) -> Image.Image:
    from PIL import Image

    if reason := slow_structure(data):
        raise DataError(f"{source}: {reason}")
    # Pillow's own limit is not thread-safe, whether it warns or raises. The limit below raises before decoding.
    Image.MAX_IMAGE_PIXELS = None
    try:
        # Allow only these formats, because Pillow knows about forty, and one of them starts Ghostscript.
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
    except Exception as error:
        format_name = next((form for form, mark in NOT_READ.items() if mark.search(data[:1000])), None)
        if format_name is not None:
            raise DataError(f"{source}: {format_name} is not supported: convert it to PNG or JPEG") from error
        raise DataError(
            f"{source}: these {len(data)} bytes are not an image that can be read "
            f"({type(error).__name__}; formats: {', '.join(FORMATS)})"
        ) from error
    for width, height in (picture.size, _tile_size(picture)):
        if width * height > MAX_PIXELS:
            raise DataError(f"{source}: {width} x {height} pixels exceed the limit of {MAX_PIXELS:,}")
    return picture


def _tile_size(picture: Image.Image) -> tuple[int, int]:
    """Return the width and height of a TIFF's tiles, which may exceed the picture; (0, 0) if it has no tiles."""
    tags = getattr(picture, "tag_v2", {})
    width, height = (tags.get(tag) for tag in TIFF_TILE_SIDES)
    return (width, height) if isinstance(width, int) and isinstance(height, int) else (0, 0)


@dataclass(frozen=True)
class Joint:
    """The way to join several pictures (`--images concat`): side by side, left to right, unscaled."""

    gap_px: int = 12
    # Colour of the gap, and of the area below or above a picture that is shorter than the tallest.
    rgb: tuple[int, int, int] = (255, 255, 255)
    # Vertical position of a picture that is shorter than the tallest.
    at: Literal["top", "middle"] = "top"


# The default; a benchmark whose paper joins pictures in another way defines its own.
OUR_JOINT = Joint()
