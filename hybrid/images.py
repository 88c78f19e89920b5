"""Images by reference: a content-addressed store, safe decoding, one coordinate convention.

The key of an image is the sha256 of its original bytes, which are stored as they came and never re-encoded. Decoding
applies the EXIF orientation, so every size and coordinate in this project is that of the picture as a person sees it.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import DataError
from hybrid.types import StoredImage

if TYPE_CHECKING:
    from PIL import Image

    from hybrid.tool import Pixels

MAX_PIXELS = 120_000_000
"""Decoding refuses more: a 12,000 x 10,000 photograph passes, a decompression bomb does not."""

MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "MPO": "image/jpeg",
}
EXIF_ORIENTATION = 0x0112


def home() -> Path:
    """Where images and tool results are kept: `$HYBRID_HOME`, else the user's cache folder."""
    if chosen := os.environ.get("HYBRID_HOME"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hybrid"


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class ImageStore:
    """Content-addressed images in a folder; safe for several processes at once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, data: bytes, where: str) -> StoredImage:
        """Store the original bytes. `where` (question and column) goes into the error.

        Raises:
            DataError: the bytes do not decode as an image in a known format, or exceed `MAX_PIXELS`.
        """
        return self._keep(inspect(data, where), data)

    def put_pixels(self, pixels: Pixels) -> StoredImage:
        """Store an RGB array (H, W, 3) uint8 as PNG; equal arrays give equal bytes."""
        data = encode(pixels)
        sha = hashlib.sha256(data).hexdigest()
        return self._keep(StoredImage(sha, pixels.shape[1], pixels.shape[0], "image/png"), data)

    def _keep(self, image: StoredImage, data: bytes) -> StoredImage:
        path = self.path(image.sha256)
        if not path.exists():
            write_atomic(path, data)
        return image

    def path(self, sha256: str) -> Path:
        """Where the bytes of an image lie."""
        return self.root / sha256[:2] / sha256

    def read(self, image: StoredImage) -> bytes:
        """The original bytes. Raises `DataError` when the store does not hold them."""
        try:
            return self.path(image.sha256).read_bytes()
        except FileNotFoundError:
            raise DataError(
                f"image {image.sha256[:12]} is not in the store {self.root}; "
                "run the benchmark once more from its data to fill it"
            ) from None

    def pixels(self, image: StoredImage) -> Pixels:
        """Decoded RGB array (H, W, 3), uint8, EXIF orientation applied."""
        return decode(self.read(image), image.sha256[:12])


def inspect(data: bytes, where: str) -> StoredImage:
    """Format and oriented size of an image that fully decodes. Raises `DataError` naming `where`."""
    from PIL import ImageOps

    picture = _open(data, where)
    media_type = MEDIA_TYPES.get(picture.format or "")
    if media_type is None:
        raise DataError(f"{where}: images of format {picture.format} are not supported")
    try:
        picture.load()
        oriented = ImageOps.exif_transpose(picture)
    except Exception as error:
        raise DataError(f"{where}: the image does not decode ({error})") from error
    return StoredImage(hashlib.sha256(data).hexdigest(), oriented.width, oriented.height, media_type)


def encode(pixels: Pixels) -> bytes:
    """The PNG file of an RGB array (H, W, 3) uint8. Raises `DataError` for any other array, or a side over 10^6 px."""
    import cv2
    import numpy as np

    # OpenCV takes others as well, and makes another picture of them.
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise DataError(f"an array of shape {pixels.shape} and type {pixels.dtype} is not an RGB picture of 8 bits")
    # Pictures are made on the hot path: level 1 with runs only takes 0.4 to 0.8 of the time of Pillow's level 1, and
    # less room.
    how = (cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE)
    done, data = cv2.imencode(".png", cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2BGR), how)
    if not done:
        raise DataError(f"a picture of shape {pixels.shape} cannot be encoded as PNG")
    return data.tobytes()


def decode(data: bytes, where: str) -> Pixels:
    """RGB array (H, W, 3), uint8, from any Pillow mode: transparent areas become white, 16 bits become 8."""
    import numpy as np
    from PIL import ImageOps

    picture = _open(data, where)
    try:
        return np.array(to_rgb(ImageOps.exif_transpose(picture)))
    except Exception as error:
        raise DataError(f"{where}: the image does not decode ({error})") from error


def to_rgb(picture: Image.Image) -> Image.Image:
    """Any Pillow mode to RGB. Alpha is laid over white; 16- and 32-bit grey is scaled to 8 bits."""
    import numpy as np
    from PIL import Image

    if picture.mode in ("I;16", "I;16B", "I;16L", "I", "F"):
        values = np.nan_to_num(np.asarray(picture, dtype=np.float64))
        # 16-bit files use the whole range by definition; I and F are scaled by it only when they exceed 8 bits.
        top = 65535.0 if picture.mode.startswith("I;16") or values.max(initial=0.0) > 255.0 else 255.0
        grey = np.clip(np.rint(values * (255.0 / top)), 0, 255).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        rgba = picture.convert("RGBA")
        ground = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        return Image.alpha_composite(ground, rgba).convert("RGB")
    return picture.convert("RGB")


def has_rotation(data: bytes) -> bool:
    """Whether the EXIF orientation asks a viewer to turn the picture."""
    orientation: int = _open(data, "image").getexif().get(EXIF_ORIENTATION, 1)
    return orientation not in (0, 1)


def _open(data: bytes, where: str) -> Image.Image:
    from PIL import Image

    # Pillow's own limit warns or raises by thread-unsafe means; ours below is an error before anything is decoded.
    Image.MAX_IMAGE_PIXELS = None
    try:
        picture = Image.open(io.BytesIO(data))
    except Exception as error:
        raise DataError(f"{where}: these {len(data)} bytes are not an image ({type(error).__name__})") from error
    if picture.width * picture.height > MAX_PIXELS:
        raise DataError(f"{where}: {picture.width} x {picture.height} pixels exceed the limit of {MAX_PIXELS:,}")
    return picture
