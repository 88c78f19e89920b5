"""The image store keeps bytes unchanged, records upright sizes, and reports errors with their location."""

import hashlib
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import TypeAdapter

from hybrid.core import images
from hybrid.core.errors import DataError
from hybrid.core.files import write_atomic
from hybrid.core.images import MAX_PIXELS, ImageStore, decode, encode, home, inspect
from hybrid.core.types import StoredImage
from tests.image_bytes import saved
from tests.tables import cases


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images")


def corner_picture() -> Image.Image:
    """Return a 30 x 20 black picture with a red upper left quarter."""
    picture = Image.new("RGB", (30, 20))
    picture.paste((255, 0, 0), (0, 0, 15, 10))
    return picture


def png_header(width: int, height: int) -> bytes:
    """Return a PNG that declares a size and has almost no data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_the_key_is_the_hash_of_the_original_bytes(store: ImageStore) -> None:
    data = saved(corner_picture(), "JPEG", quality=40)
    image = store.put(data, "here")
    assert image == StoredImage(hashlib.sha256(data).hexdigest(), 30, 20, "image/jpeg")
    assert store.path(image.sha256).read_bytes() == data


def test_a_format_that_no_provider_knows_is_refused() -> None:
    with pytest.raises(DataError, match=r"row 3: these \d+ bytes are not an image that can be read .*PNG"):
        inspect(saved(corner_picture(), "PPM"), "row 3")


def test_floats_within_eight_bits_keep_their_values() -> None:
    data = saved(Image.fromarray(np.array([[0.0, 100.0, 255.0]], dtype=np.float32)), "TIFF")
    assert decode(data, "x")[0, :, 1].tolist() == [0, 100, 255]


@pytest.mark.parametrize("values", [[-1.0, 0.0, 1.0], [0.0, 1e6], [0.0, np.inf], [-np.inf, 1.0]])
def test_32_bits_of_another_range_are_refused_when_they_come_in(store: ImageStore, values: list[float]) -> None:
    data = saved(Image.fromarray(np.array([values], dtype=np.float32)), "TIFF")
    for read in (store.put, decode):
        with pytest.raises(
            DataError, match=r"^depths: .* 32-bit values go from .* none of the ranges 0\.\.1, 0\.\.255 and 0\.\.65535"
        ):
            read(data, "depths")


def test_a_file_that_is_too_large_for_an_image_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long").write_bytes(b"12345")
    assert images.read_image_file(tmp_path / "long", "x") == b"12345"
    monkeypatch.setattr(images, "MAX_BYTES", 4)
    with pytest.raises(DataError, match="x has 5 bytes; at most 4 are read"):
        images.read_image_file(tmp_path / "long", "x")
    with pytest.raises(OSError, match="more than 4 bytes"):
        images.read_image_file(Path("/dev/zero"), "x")


@pytest.mark.parametrize("size", [(12_001, 10_000), (20_000, 20_000), (2_000_000, 1_000)])
def test_a_bomb_is_refused_before_it_is_decoded(store: ImageStore, size: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=rf"q7, column image_1: .*exceeds? the limit of {MAX_PIXELS:,}"):
        store.put(png_header(*size), "q7, column image_1")
    assert not store.root.exists()


def test_a_truncated_image_is_refused(store: ImageStore) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    for kind in ("PNG", "JPEG"):
        data = saved(Image.fromarray(noise), kind)
        with pytest.raises(DataError, match="row 5, column image_2: the image does not decode"):
            store.put(data[: len(data) // 2], "row 5, column image_2")
    assert not store.root.exists()


@pytest.mark.parametrize("data", [b"", b"no image", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_image_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"row 9: these \d+ bytes are not an image"):
        inspect(data, "row 9")


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x18ftypmif1", "HEIC"),
        (b'<?xml version="1.0"?><svg/>', "SVG"),
        (b"<svg/>", "SVG"),
        (b"%PDF-1.4 ", "PDF"),
        (b"8BPS", "Photoshop's PSD"),
        (b"\xff\x0a", "JPEG XL"),
        (b"\0\0\0\x0cjP  ", "JPEG 2000"),
    ],
)
def test_a_picture_of_a_format_that_is_not_read_is_named(data: bytes, form: str) -> None:
    with pytest.raises(DataError, match=f"row 9: {form} is not supported: convert it to PNG or JPEG"):
        inspect(data, "row 9")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_image_or_an_error_of_ours(data: bytes) -> None:
    try:
        samples = inspect(data, "somewhere")
    except DataError as error:
        assert str(error).startswith("somewhere: ")  # noqa: PT017 - most bytes are no image, some may be
    else:
        assert decode(data, "x").shape == (samples.height, samples.width, 3)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"]))
def test_a_damaged_file_decodes_or_is_an_error_of_ours(data: st.DataObject, kind: str) -> None:
    original = bytearray(saved(corner_picture(), kind))
    for _ in range(data.draw(st.integers(1, 4))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    try:
        samples = inspect(bytes(original), "x")
    except DataError:
        return
    assert decode(bytes(original), "x").shape == (samples.height, samples.width, 3)


@settings(max_examples=40)
@given(width=st.integers(1, 30), height=st.integers(1, 30), seed=st.integers(0, 99))
def test_pixels_go_in_and_come_out_unchanged(store: ImageStore, width: int, height: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    image = store.put_pixels(pixels)
    assert image == store.put_pixels(pixels.copy())
    assert (image.width, image.height, image.media_type) == (width, height, "image/png")
    assert np.array_equal(store.pixels(image), pixels)
    assert inspect(store.read(image), "x") == image
    pixel = pixels[::-1, ::-1]
    assert np.array_equal(store.pixels(store.put_pixels(pixel)), pixel)


@settings(max_examples=30)
@given(width=st.integers(1, 30), height=st.integers(1, 30), seed=st.integers(0, 99))
def test_a_jpeg_that_is_made_keeps_the_colour_of_every_pixel_nearly(
    store: ImageStore, width: int, height: int, seed: int
) -> None:
    # Columns of two colours with equal brightness: chroma at half the resolution would blend them.
    colours = np.array([[200, 30, 60], [30, 117, 60]], np.uint8)
    order = np.random.default_rng(seed).permutation(2)
    pixels = np.ascontiguousarray(np.broadcast_to(colours[(np.arange(width) + order[0]) % 2], (height, width, 3)))
    image = store.put_pixels(pixels, "image/jpeg")
    assert image == store.put_pixels(pixels.copy(), "image/jpeg") == inspect(store.read(image), "x")
    assert (image.width, image.height, image.media_type) == (width, height, "image/jpeg")
    assert np.abs(store.pixels(image).astype(int) - pixels).max() < 25


def test_what_cannot_be_a_jpeg_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be encoded as JPEG"):
        encode(np.zeros((1, 65_501, 3), np.uint8), "image/jpeg")
    with pytest.raises(DataError, match="as PNG or JPEG, not as image/webp"):
        encode(np.zeros((1, 1, 3), np.uint8), "image/webp")


def test_an_image_that_is_not_there_says_what_to_do(store: ImageStore) -> None:
    with pytest.raises(DataError, match="image abababababab is not in the store"):
        store.read(StoredImage("ab" * 32, 1, 1, "image/png"))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[:-7],
    "empty": lambda _: b"",
    "one bit": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "longer": lambda data: data + b"more",
    "another image": lambda _: saved(Image.new("RGB", (3, 3))),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_never_read_and_heals(store: ImageStore, damage: Callable[[bytes], bytes]) -> None:
    data = saved(corner_picture(), "JPEG")
    image = store.put(data, "here")
    store.path(image.sha256).write_bytes(damage(data))
    for read in (store.read, store.pixels):
        with pytest.raises(DataError, match=rf"image {image.sha256[:12]} is damaged in the store .*run the benchmark"):
            read(image)
    assert store.put(data, "here") == image
    assert store.read(image) == data
    sample = store.put_pixels(np.zeros((4, 4, 3), np.uint8))
    store.path(sample.sha256).write_bytes(b"")
    assert store.put_pixels(np.zeros((4, 4, 3), np.uint8)) == sample
    assert store.pixels(sample).sum() == 0


def test_a_folder_in_place_of_an_image_is_an_error_of_ours(store: ImageStore) -> None:
    image = StoredImage("ab" * 32, 1, 1, "image/png")
    store.path(image.sha256).mkdir(parents=True)
    with pytest.raises(DataError, match=r"image abababababab cannot be read from the store: .*directory"):
        store.read(image)


@pytest.mark.parametrize(*cases(__file__, "test_what_is_no_stored_image_cannot_be_made_or_loaded"))
def test_what_is_no_stored_image_cannot_be_made_or_loaded(changes: dict[str, Any], words: str) -> None:
    facts = {"sha256": "ab" * 32, "width": 5, "height": 4, "media_type": "image/png", **changes}
    with pytest.raises(ValueError, match=words):
        StoredImage(**facts)
    # In JSON, a number without a fractional part is an integer.
    if not isinstance(changes.get("width"), float):
        with pytest.raises(ValueError, match=r"StoredImage|sha256"):
            TypeAdapter(StoredImage).validate_python(facts)


def test_formats_that_start_programs_are_never_opened() -> None:
    """PostScript is refused as a format: Pillow would pass it to Ghostscript."""
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n"
    with pytest.raises(DataError, match="not an image"):
        decode(postscript, "x")


def test_a_link_is_replaced_unless_it_is_an_open_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("file")
    write_atomic(tmp_path / "link", b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"precious"
    with (tmp_path / "printed").open("wb") as printed:
        (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{printed.fileno()}")
        write_atomic(tmp_path / "stdout", b"said")
    assert (tmp_path / "stdout").is_symlink()
    assert (tmp_path / "printed").read_bytes() == b"said"


@pytest.mark.system
def test_a_full_disk_leaves_what_was_there_and_names_the_file(tmp_path: Path) -> None:
    """A failed write leaves the old file unchanged and names it. The code runs in a process that may write no file
    above 1 kB, like a quota or a full disk."""
    target = tmp_path / "kept.json"
    target.write_bytes(b"before")
    code = (
        "import resource, signal, sys, pathlib\n"
        "from hybrid.core.files import write_atomic\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_atomic(pathlib.Path(sys.argv[1]), b'x' * 100_000, durable=len(sys.argv) > 2)\n"
        "except OSError as error: print(error.filename, error.strerror)"
    )
    for words in ([str(target)], [str(target), "durable"]):
        result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert result.stdout == f"{target} File too large\n"
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == {
            "kept.json": b"before"
        }


def test_home_is_what_the_environment_says(hybrid_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert home() == hybrid_home
    monkeypatch.delenv("HYBRID_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert home() == tmp_path / "hybrid"


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 5), np.uint8),
        np.zeros((4, 5, 4), np.uint8),
        np.zeros((0, 5, 3), np.uint8),
        np.zeros((4, 5, 3), np.float32),
        np.zeros((4, 5, 3), np.uint16),
    ],
)
def test_what_is_no_rgb_picture_is_not_encoded_as_another(array: Any) -> None:
    with pytest.raises(DataError, match="is not an RGB picture of 8 bits"):
        encode(array)
