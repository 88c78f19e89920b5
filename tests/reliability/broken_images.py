"""A corpus of valid and broken images; `CORPUS` has for each the bytes and the expected result.

case = CORPUS["truncated JPEG"]
case.data, case.size           # size None: the image cannot be used, and costs only its own question
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np
from PIL import Image, ImageCms

from tests.image_bytes import saved

# Width and height in pixels of most images here.
WIDE = (12, 8)


@dataclass(frozen=True)
class Case:
    """An image file; `size` is width and height in pixels as a person sees it, None if it cannot be used."""

    make: Callable[[], bytes]
    size: tuple[int, int] | None

    @cached_property
    def data(self) -> bytes:
        """Bytes of the file, made on first use, because two of the files take long to make."""
        return self.make()


def picture(mode: str = "RGB", size: tuple[int, int] = WIDE) -> Image.Image:
    """Return reproducible noise."""
    noise = np.random.default_rng(7).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(noise).convert(mode)


def chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG file."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, rows: bytes, *extra: bytes) -> bytes:
    """Return a PNG of 8-bit grey with this size in its header and any rows; `extra` are chunks before them."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def rotated(orientation: int) -> bytes:
    """Return a JPEG with an EXIF orientation."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(picture(), "JPEG", exif=exif)


def sixteen_bits() -> bytes:
    """Return a PNG of 16-bit grey."""
    return saved(Image.fromarray(np.arange(96, dtype=np.uint16).reshape(8, 12) * 600), "PNG")


def palette() -> bytes:
    """Return a PNG with a palette that has one transparent entry."""
    return saved(picture("P"), "PNG", transparency=0)


def animated(kind: str) -> bytes:
    """Return an animated file of three frames."""
    return saved(picture(), kind, save_all=True, append_images=[picture("RGB"), picture("L").convert("RGB")])


def not_a_number() -> bytes:
    """Return a TIFF whose resolution is 0 / 0."""
    return saved(picture(), "TIFF", resolution=72.0).replace(struct.pack("<II", 72, 1), struct.pack("<II", 0, 0))


def many_scans(scans: int) -> bytes:
    """Return a progressive JPEG whose first scan is repeated."""
    data = saved(picture(), "JPEG", progressive=True)
    first = data.index(b"\xff\xda")
    scan = data[first : data.index(b"\xff", first + 20)]
    return data[:first] + scan * scans + data[first + len(scan) :]


def long_comment(size: int) -> bytes:
    """Return a GIF with a comment of `size` bytes."""
    return saved(picture(), "GIF", comment=b"A" * size)


def profile() -> bytes:
    """Return an embedded colour profile."""
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


JPEG, PNG = saved(picture(), "JPEG"), saved(picture(), "PNG")

SOUND: Final[Mapping[str, Case]] = {
    "JPEG": Case(lambda: JPEG, WIDE),
    "PNG": Case(lambda: PNG, WIDE),
    "wrong extension": Case(lambda: saved(picture(), "BMP"), WIDE),
    "CMYK": Case(lambda: saved(picture("CMYK"), "JPEG"), WIDE),
    "16 bits": Case(sixteen_bits, WIDE),
    "1 bit": Case(lambda: saved(picture("1"), "PNG"), WIDE),
    "palette with transparency": Case(palette, WIDE),
    "grey with alpha": Case(lambda: saved(picture("LA"), "PNG"), WIDE),
    "animated GIF": Case(lambda: animated("GIF"), WIDE),
    "animated WebP": Case(lambda: animated("WEBP"), WIDE),
    "MPO": Case(lambda: saved(picture(), "MPO", save_all=True, append_images=[picture()]), WIDE),
    "TIFF": Case(lambda: saved(picture(), "TIFF"), WIDE),
    "floating point": Case(lambda: saved(Image.fromarray(np.full((8, 12), np.nan, np.float32)), "TIFF"), WIDE),
    **{f"EXIF orientation {n}": Case(partial(rotated, n), WIDE if n < 5 else WIDE[::-1]) for n in range(1, 9)},
    "EXIF orientation that does not exist": Case(lambda: rotated(9), WIDE),
    "1 x 1": Case(lambda: saved(picture(size=(1, 1)), "PNG"), (1, 1)),
    "30000 x 10": Case(lambda: saved(picture(size=(30_000, 10)), "PNG"), (30_000, 10)),
    "embedded colour profile": Case(lambda: saved(picture(), "PNG", icc_profile=profile()), WIDE),
    "colour profile that is none": Case(lambda: saved(picture(), "JPEG", icc_profile=b"\0" * 200), WIDE),
    "resolution that is no number": Case(not_a_number, WIDE),
    "something after its end": Case(lambda: PNG + b"\0" * 1000 + b"<script>", WIDE),
}

BROKEN: Final[Mapping[str, Case]] = {
    "truncated JPEG": Case(lambda: JPEG[: len(JPEG) // 2], None),
    "truncated PNG": Case(lambda: PNG[: len(PNG) // 2], None),
    "header alone": Case(lambda: PNG[:33], None),
    "zero bytes": Case(lambda: b"", None),
    "NUL bytes": Case(lambda: b"\0" * 500, None),
    "text": Case(lambda: b"This is no image.\n", None),
    "web page": Case(lambda: b"<!DOCTYPE html><html>404</html>", None),
    "SVG": Case(lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>', None),
    "PostScript": Case(
        lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) (r) file\n%%EOF\n", None
    ),
    "unsupported format": Case(lambda: saved(picture(), "PPM"), None),
    "icon": Case(lambda: saved(picture(size=(16, 16)), "ICO"), None),
    "header of 60000 x 60000": Case(lambda: png(60_000, 60_000, b"\0" * 1000), None),
    "decompression bomb": Case(lambda: png(12_000, 12_000, b"\0" * 10_000_000), None),
    "size of nothing": Case(lambda: png(0, 0, b""), None),
    "bomb in a comment": Case(
        lambda: png(4, 4, b"\0" * 20, chunk(b"zTXt", b"note\0\0" + zlib.compress(b"A" * 80_000_000))), None
    ),
    "JPEG of many scans": Case(lambda: many_scans(200), None),
    "GIF with a long comment": Case(lambda: long_comment(1_100_000), None),
    "wrong checksum": Case(lambda: PNG[:60] + bytes([PNG[60] ^ 255]) + PNG[61:], None),
}

CORPUS: Final[Mapping[str, Case]] = {**SOUND, **BROKEN}
