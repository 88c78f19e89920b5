"""Model servers decode the same pixels that the tools receive."""

import base64
import hashlib
import io
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hybrid.core.errors import DataError
from hybrid.core.images import FORMATS, ImageStore, inspect
from hybrid.core.types import Box
from hybrid.models.images import ImageEncoder, ImageRules
from tests.hybrid.unusual_images import ODD, Odd, seen
from tests.image_bytes import saved
from tools.crop import cut


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
def test_a_server_and_the_tools_are_shown_one_picture(tmp_path: Path, odd: Odd) -> None:
    store, data = ImageStore(tmp_path), odd.data()
    if odd.seen == "nothing":
        with pytest.raises(DataError, match="row 7"):
            store.put(data, "row 7")
        return
    image = store.put(data, "row 7")
    sent, text = ImageEncoder(store, ImageRules()).encoded(image)
    file = base64.b64decode(text)
    with Image.open(io.BytesIO(file)) as picture:
        assert picture.format in ("JPEG", "PNG", "MPO")
        assert picture.mode in ("RGB", "L")
        server = np.asarray(picture.convert("RGB"))
    assert np.array_equal(server, store.pixels(image))
    assert server.shape == (image.height, image.width, 3) == (sent.height, sent.width, 3)
    assert (image.sha256 == hashlib.sha256(data).hexdigest()) is odd.plain
    if (expected := seen(odd.seen)) is not None:
        assert np.abs(server - expected).mean() <= odd.off
    # Storing the picture again, also in another process, gives the same image; nothing is converted twice.
    by_path = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert ImageStore(tmp_path).put(data, "row 8") == image
    assert {path: path.stat().st_mtime_ns for path in by_path} == by_path


def test_a_made_picture_that_was_damaged_is_made_again(tmp_path: Path) -> None:
    store = ImageStore(tmp_path)
    data = next(odd for odd in ODD if odd.name == "PNG LA").data()
    image = store.put(data, "x")
    sound = store.read(image)
    store.path(image.sha256).write_bytes(b"damaged")
    assert store.put(data, "x") == image
    assert store.read(image) == sound
    store.path(hashlib.sha256(data).hexdigest()).with_suffix(".made").write_bytes(b"{}")
    assert store.put(data, "x") == image


# Content of the file for a picture that a viewer rotates to be upright.
HELD = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def turned_file(form: str, orientation: int) -> bytes:
    """Return a 40 x 24 grey picture, left quarter and upper half red; formats without orientation hold it upright."""
    picture = Image.new("RGB", (40, 24), (120, 120, 120))
    picture.paste((220, 20, 20), (0, 0, 10, 12))
    if form in ("GIF", "BMP"):
        return saved(picture, form)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = picture.transpose(HELD[orientation]) if orientation in HELD else picture
    return saved(stored, form, exif=exif)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", [*FORMATS, "MPO"])
def test_size_pixels_frame_and_crop_of_a_turned_file_agree(tmp_path: Path, form: str, orientation: int) -> None:
    store, data = ImageStore(tmp_path), turned_file(form, orientation)
    image = store.put(data, "row 7")
    assert (image.width, image.height) == (40, 24)
    described = inspect(data, "row 7")
    assert (described.width, described.height) == (40, 24)
    pixels = store.pixels(image)
    assert pixels.shape == (24, 40, 3)
    sent, text = ImageEncoder(store, ImageRules()).encoded(image)
    assert (sent.width, sent.height) == (40, 24)
    assert Image.open(io.BytesIO(base64.b64decode(text))).size == (40, 24)
    # A model draws a box around the red part, in thousandths of the size that the prompt states.
    part, box, _ = cut(pixels, Box(0, 0, 0.25 * image.width, 0.5 * image.height), 1)
    assert (box.x1, box.y1) == (10, 12)
    red = np.abs(part.astype(int) - (220, 20, 20)).max(axis=2) < 60
    assert red.mean() > 0.9
    assert not (np.abs(pixels[:, 12:].astype(int) - (220, 20, 20)).max(axis=2) < 60).any()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("beside_exif", [False, True])
def test_an_orientation_in_xmp_turns_size_and_pixels(
    tmp_path: Path, form: str, orientation: int, beside_exif: bool
) -> None:
    xmp = f'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="{orientation}"/>'.encode()
    exif = Image.Exif()
    if beside_exif:
        exif[0x0112] = orientation
    picture = Image.new("RGB", (40, 24))
    if form == "TIFF":
        data = saved(picture, form, tiffinfo={700: xmp, **dict(exif)})
    else:
        data = saved(picture, form, xmp=xmp, exif=exif)
    store = ImageStore(tmp_path)
    image, described = store.put(data, "row 7"), inspect(data, "row 7")
    size = (24, 40) if orientation >= 5 else (40, 24)
    assert (image.width, image.height) == (described.width, described.height) == size
    assert store.pixels(image).shape == (size[1], size[0], 3)


def test_a_size_that_an_older_version_noted_unturned_is_mended(tmp_path: Path) -> None:
    store, data = ImageStore(tmp_path), turned_file("AVIF", 6)
    image = store.put(data, "x")
    note = store.path(hashlib.sha256(data).hexdigest()).with_suffix(".made")
    note.write_text(json.dumps({**asdict(image), "width": 24, "height": 40}))
    assert store.put(data, "x") == image
