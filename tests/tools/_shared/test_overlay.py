"""Overlays keep the size of the image and its caller's pixels, whatever is drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.types import Box
from tools._shared.overlay import LEAST_FONT, PALETTE, Overlay, extent

EDGE = st.floats(-50, 300)


@settings(max_examples=30)
@given(st.integers(1, 90), st.integers(1, 90), EDGE, EDGE, st.text(max_size=60))
def test_anything_can_be_drawn_on_any_size(height: int, width: int, x: float, y: float, name: str):
    pixels = np.full((height, width, 3), 90, np.uint8)
    canvas = Overlay(pixels)
    canvas.box(Box(x, y, x + 20, y + 10), name, PALETTE[0])
    canvas.point(x, y, name, PALETTE[1])
    canvas.mask(np.zeros((height, width), bool), PALETTE[2])
    canvas.legend(name)
    assert canvas.pixels.shape == (height, width, 3)
    assert (pixels == 90).all()


@pytest.mark.parametrize("size", [(60, 90), (1200, 900)])
def test_a_box_a_mask_and_a_legend_change_their_pixels(size: tuple[int, int]):
    blank = np.full((*size, 3), 90, np.uint8)
    mask = np.zeros(size, bool)
    mask[10:20, 10:20] = True
    boxed, masked, named = Overlay(blank), Overlay(blank), Overlay(blank)
    boxed.box(Box(10, 10, 40, 40), "", PALETTE[0])
    masked.mask(mask, PALETTE[0])
    named.legend("boxes: name")
    assert tuple(boxed.pixels[25, 10]) == PALETTE[0]
    assert not (masked.pixels[12:18, 12:18] == 90).all()
    assert (named.pixels[-6:] != 90).any()


def test_names_do_not_cover_each_other():
    canvas = Overlay(np.full((400, 400, 3), 90, np.uint8))
    canvas.point(100, 100, "first", PALETTE[0])
    before = canvas.pixels.copy()
    canvas.point(100, 102, "second", PALETTE[1])
    written = np.argwhere((before == PALETTE[0]).all(axis=2))
    strip = written[written[:, 1] > 115]
    assert strip.size
    assert (canvas.pixels[strip[:, 0], strip[:, 1]] == PALETTE[0]).all()


LEGEND = "estimated reflectance, relative: violet dark 0, yellow light 1"


def strip_rows(size: tuple[int, int], legend: str) -> int:
    """Rows at the bottom of a grey picture that a legend covers."""
    canvas = Overlay(np.full((*size, 3), 90, np.uint8))
    canvas.legend(legend)
    return int((canvas.pixels != 90).any(axis=(1, 2)).sum())


@pytest.mark.parametrize(("size", "lines"), [((400, 120), 4), ((120, 120), 2), ((120, 400), 1), ((900, 1200), 1)])
def test_a_legend_is_readable_whatever_the_width(size: tuple[int, int], lines: int):
    """Broken into lines of readable letters, and in a small picture cut rather than made smaller."""
    line = extent("Eg", LEAST_FONT)[1] + 7
    rows = strip_rows(size, LEGEND)
    assert rows >= lines * line - 2
    assert rows <= size[0] / 3 + 4


def test_a_long_name_is_cut_before_it_cannot_be_read():
    def ink_rows(name: str) -> int:
        canvas = Overlay(np.full((200, 60, 3), 90, np.uint8))
        canvas.box(Box(10, 100, 50, 150), name, PALETTE[1])
        # Above the box: the strip and its letters alone.
        return int((canvas.pixels[:97] > 150).any(axis=(1, 2)).sum())

    assert ink_rows("MOTORCYCLE 1: 0.83") >= ink_rows("M") - 2 >= 5
