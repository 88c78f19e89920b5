"""Image files of one scene with unusual modes, depths, orientations, frames and chunks.

for odd in ODD: odd.data()          # the file; `odd.seen` is the picture that a person sees in it
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageCms, ImageDraw, ImageOps
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from tests.image_bytes import saved

Seen = Literal["colours", "grey", "over white", "grey over white", "two tones", "any", "nothing"]


def scene() -> Image.Image:
    """Return the scene of 40 x 24 px: a ramp with a dark disc and a red bar."""
    ramp = np.linspace(40, 230, 40)[None].repeat(24, axis=0)
    picture = Image.fromarray(np.stack([ramp, ramp[:, ::-1], np.full_like(ramp, 90)], axis=-1).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    draw.ellipse((4, 4, 16, 16), (10, 10, 10))
    draw.rectangle((24, 14, 36, 20), (220, 20, 20))
    return picture


def alpha() -> Image.Image:
    """Return a mask that is transparent outside of the middle, and half transparent in a stripe."""
    mask = Image.new("L", (40, 24), 0)
    mask.paste(255, (4, 2, 36, 22))
    mask.paste(128, (18, 2, 22, 22))
    return mask


def seen(mode: Seen) -> npt.NDArray[np.int16] | None:
    """Return the picture of a file as a person sees it; None if it only matters that all decoders agree."""
    colour, grey = scene(), scene().convert("L").convert("RGB")
    white = Image.new("RGB", colour.size, "white")
    pictures = {
        "colours": colour,
        "grey": grey,
        "over white": Image.composite(colour, white, alpha()),
        "grey over white": Image.composite(grey, white, alpha()),
        "two tones": scene().convert("1", dither=Image.Dither.NONE).convert("RGB"),
    }
    return np.asarray(pictures[mode], np.int16) if mode in pictures else None


def rgba() -> Image.Image:
    picture = scene()
    # Fully transparent pixels are black, as graphics programs write them.
    picture = Image.composite(picture, Image.new("RGB", picture.size), alpha().point(lambda value: 255 * (value > 0)))
    picture.putalpha(alpha())
    return picture


def la() -> Image.Image:
    grey, transparency = scene().convert("L"), alpha()
    return Image.merge("LA", (grey, transparency))


def palette(*, transparent: bool) -> Image.Image:
    picture = scene().quantize(64)
    if not transparent:
        return picture
    built = Image.fromarray(np.where(np.asarray(alpha()) > 0, np.asarray(picture), 255).astype(np.uint8), "P")
    built.putpalette((picture.getpalette() or [])[:192] + [0] * 576)
    return built


def grey16(top: int = 65535) -> npt.NDArray[np.uint16]:
    return np.rint(np.asarray(scene().convert("L"), np.float64) * top / 255).astype(np.uint16)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(values: npt.NDArray[Any], colour: int, bits: int, *prefix: bytes) -> bytes:
    """Return a PNG of raw values (H, W[, C]) with these chunks before its data."""
    values = values if values.ndim == 3 else values[..., None]
    height, width, _ = values.shape
    rows = values.astype(">u2" if bits == 16 else np.uint8)
    body = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", header), *prefix, chunk(b"IDAT", zlib.compress(body)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def png_with(kind: bytes, data: bytes) -> bytes:
    return png(np.asarray(scene()), 2, 8, chunk(kind, data))


def deep() -> npt.NDArray[np.uint16]:
    return np.asarray(scene(), np.uint16) * 257


def oriented_picture(form: str, orientation: int, **options: Any) -> bytes:
    """Return the scene rotated so that a viewer with EXIF support shows it upright."""
    back = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    picture = scene().transpose(back[orientation])
    if form == "TIFF":
        tags = ImageFileDirectory_v2()
        tags[274] = orientation
        return saved(picture, form, tiffinfo=tags, **options)
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(picture, form, exif=exif, **options)


def xmp_turned(form: str) -> bytes:
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="3"/></x:xmpmeta>'
    picture = scene().transpose(Image.Transpose.ROTATE_180)
    if form == "JPEG":
        return saved(picture, form, quality=95, xmp=xmp)
    notes = PngInfo()
    notes.add_itxt("XML:com.adobe.xmp", xmp.decode(), zip=True)
    return saved(picture, form, pnginfo=notes)


def animated(form: str) -> bytes:
    other = ImageOps.invert(scene())
    return saved(scene(), form, save_all=True, append_images=[other, scene()], duration=100)


def animated_grey_gif() -> bytes:
    grey = scene().convert("L")
    return saved(grey, "GIF", save_all=True, append_images=[ImageOps.invert(grey)], duration=100)


def cmyk_jpeg(adobe: bool, transform: int = 0) -> bytes:
    """Return a CMYK JPEG, with Adobe's marker (then its values are inverted) or without one."""
    data = saved(scene().convert("CMYK"), "JPEG", quality=95)
    at = data.index(b"Adobe") - 4
    if adobe:
        return data[: at + 15] + bytes([transform]) + data[at + 16 :]
    return data[:at] + data[at + 16 :]


def profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


def srgb() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def bmp_with_alpha() -> bytes:
    """Return a BMP of 32 bits per pixel with the masks of a version-5 header, which is how Windows stores alpha."""
    values = np.asarray(rgba())[::-1, :, [2, 1, 0, 3]].tobytes()
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 124, 40, 24, 1, 32, 3, len(values), 0, 0, 0, 0) + masks
    header += b"BGRs" + bytes(124 - len(header) - 4)
    return b"BM" + struct.pack("<IHHI", 14 + 124 + len(values), 0, 0, 14 + 124) + header + values


def interlaced() -> bytes:
    """Return an Adam7 PNG: seven passes of unfiltered rows."""
    values = np.asarray(scene())
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    rows = (row for y, x, down, right in passes for row in values[y::down, x::right] if row.size)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    header = struct.pack(">IIBBBBB", 40, 24, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@dataclass(frozen=True)
class Odd:
    """A file: the picture seen in it, whether its bytes are used unchanged, and the tolerated difference."""

    name: str
    data: Callable[[], bytes]
    seen: Seen = "colours"
    plain: bool = False
    # Largest accepted mean absolute difference from the expected picture (0..255).
    off: float = 1.0


ODD = (
    Odd("PNG", lambda: saved(scene(), "PNG"), plain=True, off=0),
    Odd("JPEG", lambda: saved(scene(), "JPEG", quality=95), plain=True, off=6),
    Odd("JPEG progressive", lambda: saved(scene(), "JPEG", quality=95, progressive=True), plain=True, off=6),
    Odd("JPEG grey", lambda: saved(scene().convert("L"), "JPEG", quality=95), "grey", plain=True, off=3),
    Odd("PNG interlaced", interlaced, plain=True, off=0),
    Odd("PNG grey", lambda: saved(scene().convert("L"), "PNG"), "grey", plain=True, off=0),
    Odd("PNG gamma", lambda: png_with(b"gAMA", struct.pack(">I", 100000)), plain=True, off=0),
    Odd("PNG chromaticities", lambda: png_with(b"cHRM", struct.pack(">8I", *range(8))), plain=True, off=0),
    Odd("PNG sRGB profile", lambda: saved(scene(), "PNG", icc_profile=srgb()), plain=True, off=0),
    Odd("JPEG other profile", lambda: saved(scene(), "JPEG", quality=95, icc_profile=profile()), plain=True, off=6),
    Odd("JPEG upright by EXIF", lambda: saved(scene(), "JPEG", quality=95, exif=Image.Exif()), plain=True, off=6),
    Odd("PNG palette", lambda: saved(palette(transparent=False), "PNG"), off=6),
    Odd("PNG palette, one transparent", lambda: saved(palette(transparent=True), "PNG", transparency=255), "any"),
    Odd(
        "PNG palette, table of alpha",
        lambda: saved(palette(transparent=True), "PNG", transparency=bytes(range(256))),
        "any",
    ),
    Odd("PNG palette RGBA", lambda: saved(rgba().quantize(64), "PNG"), "over white", off=8),
    Odd("PNG LA", lambda: saved(la(), "PNG"), "grey over white"),
    Odd("PNG RGBA", lambda: saved(rgba(), "PNG"), "over white"),
    Odd("PNG RGBA opaque", lambda: saved(scene().convert("RGBA"), "PNG"), off=0),
    Odd("PNG RGB with a colour key", lambda: saved(scene(), "PNG", transparency=(10, 10, 10)), "any"),
    Odd("PNG grey with a key", lambda: saved(scene().convert("L"), "PNG", transparency=10), "any"),
    Odd("PNG one bit", lambda: saved(scene().convert("1", dither=Image.Dither.NONE), "PNG"), "two tones", off=0),
    Odd("PNG 16-bit grey", lambda: png(grey16(), 0, 16), "grey"),
    Odd("PNG 12 bits in 16", lambda: png(grey16(4095) * 16, 0, 16), "grey"),
    Odd("PNG 12 bits at the foot of 16", lambda: png(grey16(4095), 0, 16), "any"),
    Odd("PNG 16-bit grey with a key", lambda: png(grey16(), 0, 16, chunk(b"tRNS", b"\0\0")), "any"),
    Odd("PNG 16-bit RGB", lambda: png(deep(), 2, 16)),
    Odd(
        "PNG 16-bit LA",
        lambda: png(np.dstack([grey16(), np.asarray(alpha(), np.uint16) * 257]), 4, 16),
        "grey over white",
    ),
    Odd("PNG 16-bit RGBA", lambda: png(np.dstack([deep(), np.asarray(alpha(), np.uint16) * 257]), 6, 16), "over white"),
    Odd("TIFF 16-bit grey", lambda: saved(Image.fromarray(grey16()), "TIFF"), "grey"),
    Odd(
        "TIFF 16-bit grey, big-endian",
        lambda: saved(Image.frombytes("I;16B", (40, 24), grey16().astype(">u2").tobytes()), "TIFF"),
        "grey",
    ),
    Odd(
        "TIFF float", lambda: saved(Image.fromarray(np.asarray(scene().convert("L"), np.float32) / 255), "TIFF"), "grey"
    ),
    Odd("TIFF 32-bit", lambda: saved(Image.fromarray(np.asarray(scene().convert("L"), np.int32)), "TIFF"), "grey"),
    Odd("TIFF negative", lambda: saved(Image.fromarray(-np.ones((24, 40), np.float32)), "TIFF"), "nothing"),
    Odd("TIFF LAB", lambda: saved(Image.new("LAB", (40, 24), (120, 10, 200)), "TIFF"), "any"),
    Odd("TIFF CMYK", lambda: saved(scene().convert("CMYK"), "TIFF"), off=2),
    Odd("TIFF RGBA", lambda: saved(rgba(), "TIFF"), "over white"),
    Odd("TIFF pages", lambda: saved(scene(), "TIFF", save_all=True, append_images=[ImageOps.invert(scene())]), off=0),
    Odd("JPEG CMYK", lambda: cmyk_jpeg(adobe=False), "any"),
    Odd("JPEG CMYK, Adobe's, inverted", lambda: cmyk_jpeg(adobe=True), off=8),
    Odd("JPEG YCCK", lambda: cmyk_jpeg(adobe=True, transform=2), "any"),
    *(
        Odd(f"JPEG turned {number}", lambda item=number: oriented_picture("JPEG", item, quality=95), off=8)
        for number in (2, 3, 5, 6, 8)
    ),
    *(
        Odd(f"PNG turned {entry}", lambda first_item=entry: oriented_picture("PNG", first_item), off=0)
        for entry in (4, 6, 7)
    ),
    *(
        Odd(
            f"WebP turned {first_number}",
            lambda item_value=first_number: oriented_picture("WEBP", item_value, lossless=True),
            off=0,
        )
        for first_number in (3, 8)
    ),
    *(
        Odd(
            f"TIFF turned {number_value}", lambda first_value=number_value: oriented_picture("TIFF", first_value), off=0
        )
        for number_value in (2, 5, 6)
    ),
    Odd("TIFF turned, compressed", lambda: oriented_picture("TIFF", 8, compression="tiff_lzw"), off=0),
    Odd("JPEG turned by XMP", lambda: xmp_turned("JPEG"), off=8),
    Odd("PNG turned by XMP", lambda: xmp_turned("PNG"), off=0),
    Odd("GIF", lambda: saved(scene().quantize(64), "GIF"), off=6),
    Odd("GIF animated", lambda: animated("GIF"), off=8),
    Odd("GIF animated, grey", animated_grey_gif, "grey", off=3),
    Odd("PNG animated", lambda: animated("PNG"), off=0),
    Odd("WebP animated", lambda: animated("WEBP"), off=12),
    Odd("WebP", lambda: saved(scene(), "WEBP", lossless=True), plain=True, off=0),
    Odd("WebP RGBA", lambda: saved(rgba(), "WEBP", lossless=True), "over white"),
    Odd("BMP", lambda: saved(scene(), "BMP"), plain=True, off=0),
    Odd("BMP with alpha", bmp_with_alpha, "over white"),
    Odd("MPO", lambda: saved(scene(), "MPO", save_all=True, append_images=[scene()], quality=95), plain=True, off=6),
    Odd("one column", lambda: saved(scene().crop((0, 0, 1, 24)), "PNG"), "any", plain=True),
    Odd("one row, grey with alpha", lambda: saved(la().crop((0, 5, 40, 6)), "PNG"), "any"),
    Odd("truncated", lambda: saved(scene(), "JPEG", quality=95)[:-300], "nothing"),
    Odd(
        "a bomb",
        lambda: png(np.zeros((1, 1)), 0, 8).replace(struct.pack(">II", 1, 1), struct.pack(">II", 2**30, 2**30)),
        "nothing",
    ),
)
