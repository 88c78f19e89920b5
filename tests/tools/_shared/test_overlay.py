"""Overlays keep the size of the image and its caller's pixels, whatever is drawn."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.types import Box
from tools._shared.overlay import PALETTE, Overlay

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
