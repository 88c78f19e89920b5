"""The line that names the images of a prompt with their sizes, and the solvers whose models receive it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.mvp_bench.images import half_box
from hybrid.core.types import Box, ImageRef, StoredImage
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.evidence import image_sizes


def stored(width: int, height: int) -> StoredImage:
    return StoredImage("0" * 64, width, height, "image/png")


def pair(width: int, height: int) -> tuple[ImageRef, ImageRef, ImageRef]:
    """Return a picture made of two side by side, and its halves as tools receive them."""
    full = stored(width, height)
    left_text, right = (half_box(full, half) for half in (0, 1))
    return (
        ImageRef("img:1", full),
        ImageRef("img:1.1", stored(int(left_text.x1 - left_text.x0), height), "img:1", left_text),
        ImageRef("img:1.2", stored(int(right.x1 - right.x0), height), "img:1", right),
    )


@given(st.integers(2, 4000), st.integers(1, 4000))
def test_the_halves_of_any_pair_picture_are_called_left_and_right(width: int, height: int) -> None:
    _, left_text, right = image_sizes(pair(width, height), CoordinateSystem()).split("; ")
    assert left_text.startswith("img:1.1, the left half of img:1 (x 0 to ")
    assert right.startswith("img:1.2, the right half of img:1 (x ")
    assert f" to {width}), {width // 2} x {height} px" in right


@pytest.mark.parametrize("box", [Box(0, 0, 320, 470), Box(0, 0, 200, 480), Box(160, 0, 480, 480)])
def test_what_is_no_half_is_a_region(box: Box) -> None:
    ref = ImageRef("img:1", stored(640, 480))
    sizes = image_sizes([ref, ImageRef("img:1.1", stored(9, 9), "img:1", box)], CoordinateSystem())
    assert f"img:1.1, region ({box.x0:g}, {box.y0:g}) to ({box.x1:g}, {box.y1:g}) of img:1, 9 x 9 px" in sizes
    assert "half" not in sizes
