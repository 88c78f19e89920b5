"""Overlays have the size of the image and do not change the caller's pixels."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.types import Box
from tools._shared.overlay import PALETTE, Overlay, _blends_as_table, _tint

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


@pytest.mark.parametrize("seed", range(12))
def test_a_mask_is_blended_and_outlined_as_each_pixel_by_itself_would_be(seed: int):
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(1, 300, 2))
    pixels = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
    rough = cv2.GaussianBlur(rng.normal(size=(height, width)), (0, 0), (0.3, 2, 9)[seed % 3])
    mask, colour = rough > np.quantile(rough, 0.6), (*PALETTE, (20, 60, 100))[seed % 7]
    expected = pixels.copy()
    expected[mask] = (0.55 * pixels[mask].astype(np.float32) + 0.45 * np.array(colour, np.float32)).astype(np.uint8)
    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    line = max(1, round(2 * max(0.4, min(height, width) / 700)))
    cv2.drawContours(expected, outlines, -1, colour, line)
    canvas = Overlay(pixels)
    canvas.mask(mask, colour)
    assert (canvas.pixels == expected).all()


def test_a_level_is_blended_as_in_the_table_for_every_colour():
    levels = np.arange(256, dtype=np.uint8)
    pixels = np.repeat(levels[None, :, None], 3, axis=2)
    is_tabled = []
    for colour in [*PALETTE, *((value, value, value) for value in range(256))]:
        tinted = np.empty_like(pixels)
        ink = np.full_like(pixels, colour)
        _tint(pixels, colour, ink, tinted)
        expected = (0.55 * pixels.astype(np.float32) + 0.45 * np.array(colour, np.float32)).astype(np.uint8)
        assert (tinted == expected).all()
        is_tabled.append(not _blends_as_table(colour))
    # Some colours need the table because their exact values are whole numbers.
    assert any(is_tabled)
    assert not any(is_tabled[: len(PALETTE)])
