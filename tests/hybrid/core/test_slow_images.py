"""Small image files that would take long to open are refused. The limits are lowered here, so that no test file is
slow.
"""

import io
import re
import struct

import numpy as np
import pytest
from PIL import Image

from hybrid.core import images, slow_images
from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore, decode
from tests.image_bytes import saved

NOISE = Image.fromarray(np.random.default_rng(3).integers(0, 256, (20, 30, 3), dtype=np.uint8))
# Pillow writes a progressive JPEG in 10 scans.
PROGRESSIVE = saved(NOISE, "JPEG", progressive=True)
SCANS = PROGRESSIVE.count(b"\xff\xda")
FRAMES = [NOISE.quantize(9), NOISE.quantize(5)]


def gif(comment: bytes = b"") -> bytes:
    return saved(FRAMES[0], "GIF", comment=comment)


def comment_extension(comment: bytes) -> bytes:
    blocks = [comment[start : start + 255] for start in range(0, len(comment), 255)]
    return b"!\xfe" + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


def test_a_jpeg_may_have_as_many_scans_as_the_limit(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SCANS > 1
    monkeypatch.setattr(slow_images, "MAX_SCANS", SCANS)
    assert store.put(PROGRESSIVE, "q1").width == 30
    monkeypatch.setattr(slow_images, "MAX_SCANS", SCANS - 1)
    with pytest.raises(DataError, match=f"^q1: a JPEG of more than {SCANS - 1} scans is not read$"):
        store.put(PROGRESSIVE, "q1")


@pytest.mark.parametrize(
    "data",
    [
        PROGRESSIVE + b"\xff\xda\0\2" * 50,
        PROGRESSIVE[:2] + b"\xff\xfe\x00\x66" + b"\xff\xda" * 50 + PROGRESSIVE[2:],
        PROGRESSIVE[:2] + b"\xff" * 9 + PROGRESSIVE[2:],
        saved(NOISE, "MPO", save_all=True, append_images=[NOISE] * SCANS),
        saved(NOISE, "JPEG", restart_marker_rows=1),
    ],
    ids=["after the end", "in a comment", "after fill bytes", "of other pictures", "between restarts"],
)
def test_only_scans_of_the_first_picture_count(data: bytes) -> None:
    scans = SCANS if b"\xff\xc2" in data else 1
    assert not slow_images.has_more_scans(data, scans)
    assert slow_images.has_more_scans(data, scans - 1)


@pytest.mark.parametrize("size", [1, 255, 256, 700])
def test_the_comment_of_a_gif_may_be_as_long_as_the_limit(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_images, "MAX_COMMENTS", size)
    assert decode(gif(b"A" * size), "q1").shape == (20, 30, 3)
    with pytest.raises(DataError, match=f"^q1: a GIF with more than {size} bytes of comments is not read$"):
        decode(gif(b"A" * (size + 1)), "q1")


def test_comments_count_up_to_the_second_frame() -> None:
    data = saved(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:], duration=[10, 20], comment=b"A" * 300)
    places = [match.start() for match in re.finditer(rb"!\xf9\x04", data)]
    assert len(places) == 2
    extension = comment_extension(b"B" * 400)
    between = data[: places[1]] + extension + data[places[1] :]
    assert slow_images.comment_bytes(between) == 700
    assert slow_images.comment_bytes(data[:-1] + extension + b";") == 300
    assert slow_images.comment_bytes(data[: places[0]] + extension * 2 + data[places[0] :]) == 1100


# Blocks that look like a comment if they are read from their second byte.
BLOCKS = b"\x06!\xfe\x02ab\0\0"
EARLY_END = b"!\xff\x0bNETSCAPE2.0\0"


@pytest.mark.parametrize(
    "extension",
    [
        EARLY_END + BLOCKS,
        EARLY_END + b"\0",
        b"!\xf9\0" + BLOCKS,
        b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0",
        b"!\xff\x03abc\x02de\0",
        b"!\xfe\0",
        b"x",
    ],
)
def test_blocks_end_where_pillow_ends_them(extension: bytes) -> None:
    """The check also finds a comment after an extension that ends early but that Pillow reads further."""
    plain = gif()
    start = 13 + 3 * 2 ** (plain[10] % 8 + 1)
    data = plain[:start] + extension + comment_extension(b"A" * 300) + plain[start:]
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.info["comment"].strip() == b"A" * 300
    assert slow_images.comment_bytes(data) == 300


def test_blocks_before_a_second_frame_end_where_pillow_ends_them() -> None:
    data = saved(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:], duration=[10, 20])
    second = data.rindex(b"!\xf9\x04")
    data = data[:second] + EARLY_END + comment_extension(b"A" * 300) + data[second:]
    with Image.open(io.BytesIO(data)) as picture:
        picture.seek(1)
        assert picture.info["comment"] == b"A" * 300
    assert slow_images.comment_bytes(data) == 300


@pytest.mark.parametrize("end", [6, 10, 11, 13, 20, -1])
def test_a_truncated_gif_has_the_comments_that_are_left(end: int) -> None:
    data = gif(b"A" * 300)
    assert slow_images.comment_bytes(data[:end]) <= 300


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "I;16", "I", "F"])
@pytest.mark.parametrize("piece", [1, 7, 31, 100])
def test_a_picture_converted_in_pieces_is_the_same(mode: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = NOISE.convert("L").convert(mode)
    if mode in ("RGBA", "LA"):
        picture.putalpha(NOISE.convert("L"))
    if mode == "P":
        picture.info["transparency"] = 3
    full = images.to_rgb(picture).tobytes()
    monkeypatch.setattr(images, "PIECE_PX", piece)
    assert images.to_rgb(picture).tobytes() == full


def test_an_array_without_pixels_has_none_after_conversion() -> None:
    for size in ((0, 5), (5, 0)):
        assert images.to_rgb(Image.new("RGBA", size)).size == size


def tiled(width: int, height: int, tile_width: int, tile_height: int) -> bytes:
    """Return a TIFF of 8-bit grey that is one tile."""
    size = tile_width * tile_height
    tags = {256: width, 257: height, 258: 8, 259: 1, 262: 1, 277: 1, 322: tile_width, 323: tile_height}
    # The tile begins after the header, 10 tags and the end of their list.
    tags |= {324: 8 + 2 + 10 * 12 + 4, 325: size}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4 + size)


def test_a_tile_has_as_many_pixels_as_a_picture_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of pixels also applies to a tile, which is decoded in full, however small the picture is."""
    data = tiled(30, 20, 32, 48)
    monkeypatch.setattr(images, "MAX_PIXELS", 32 * 48)
    assert images.inspect(data, "q1").width == 30
    monkeypatch.setattr(images, "MAX_PIXELS", 32 * 48 - 1)
    with pytest.raises(DataError, match=r"^q1: 32 x 48 pixels exceed the limit of 1,535$"):
        images.inspect(data, "q1")
