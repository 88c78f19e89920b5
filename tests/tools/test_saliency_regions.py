"""Superpixels, background connectivity and the objects that a map marks, on pictures with a known answer."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from hybrid.core.types import Box
from hybrid.tool import Pixels
from tools.saliency.background import MAX_LENGTH, _distances, foreground, over, superpixels, without_detours
from tools.saliency.objects import salient_objects

GREY, RED = (120, 120, 120), (200, 40, 40)


def disc(pixels: Pixels, x: int, y: int, radius: int, colour: tuple[int, int, int]) -> Pixels:
    rows, columns = np.ogrid[: pixels.shape[0], : pixels.shape[1]]
    pixels[(rows - y) ** 2 + (columns - x) ** 2 < radius**2] = colour
    return pixels


def ground(height: int = 240, width: int = 320, seed: int = 0) -> Pixels:
    rng = np.random.default_rng(seed)
    return np.clip(np.array(GREY) + rng.normal(0, 4, (height, width, 3)), 0, 255).astype(np.uint8)


@settings(max_examples=8)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 9))
def test_superpixels_cover_any_image_and_their_map_lies_in_0_1(height: int, width: int, seed: int):
    parts = superpixels(np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8))
    assert set(np.unique(parts.labels)) == set(range(parts.count))
    assert parts.count <= MAX_LENGTH**2
    assert ((parts.places > 0) & (parts.places < 1)).all()
    values = foreground(parts)
    assert values.shape == parts.labels.shape
    assert np.isfinite(values).all()
    assert 0 <= values.min() <= values.max() <= 1


@settings(max_examples=20)
@given(st.integers(2, 30), st.integers(0, 99))
def test_edges_longer_than_a_detour_are_left_out_and_no_shortest_path_changes(count: int, seed: int):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((count, count)) * (rng.random((count, count)) < 0.7), 1)
    weights += weights.T
    fewer = without_detours(weights)
    assert np.array_equal(dijkstra(csr_array(fewer)), dijkstra(csr_array(weights)))
    assert np.array_equal(fewer[fewer > 0], weights[fewer > 0])
    two, longer = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0.0]]), np.array([[0, 1, 3], [1, 0, 1], [3, 1, 0.0]])
    # A detour of equal length could be rounded either way.
    assert np.array_equal(without_detours(two), two)
    assert np.array_equal(without_detours(longer) > 0, [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_distances_are_rounded_as_those_of_a_norm():
    points = np.random.default_rng(0).normal(0, 40, (90, 3))
    difference = points[:, None] - points[None]
    assert np.array_equal(_distances(points), np.sqrt((difference**2).sum(axis=2)))


def test_superpixels_follow_the_outline_of_a_thing():
    pixels = disc(ground(), 100, 90, 45, RED)
    parts = superpixels(pixels)
    inside = np.zeros(pixels.shape[:2], np.float32)
    rows, columns = np.ogrid[:240, :320]
    inside[(rows - 90) ** 2 + (columns - 100) ** 2 < 45**2] = 1
    share = over(parts, inside)
    # A cell of a grid that ignores colour would contain some of both colours along the whole outline.
    assert ((share > 0.15) & (share < 0.85)).mean() < 0.01
    centre = parts.places[parts.labels[int(90 / 240 * share.shape[0]), int(100 / 320 * share.shape[1])]]
    assert centre == pytest.approx((100 / 320, 90 / 240), abs=0.05)


def test_touching_things_are_parted_and_a_thing_with_a_brighter_half_is_not():
    values = np.zeros((120, 160), np.float32)
    values[40:80, 20:60] = 1.0
    values[55:65, 60:90] = 0.6
    values[40:80, 90:130] = 0.9
    boxes = sorted(region.box_0_1.x0 * 160 for region in salient_objects(values))
    assert len(boxes) == 2
    assert boxes[0] == pytest.approx(20)
    assert boxes[1] == pytest.approx(75, abs=4)
    pixels = np.zeros((120, 160), np.float32)
    pixels[40:80, 20:60] = 1.0
    pixels[40:80, 60:100] = 0.7
    (result,) = salient_objects(pixels)
    assert result.box_0_1 == Box(20 / 160, 40 / 120, 100 / 160, 80 / 120)


def test_what_lies_in_the_box_of_a_thing_is_part_of_it_and_crumbs_are_left_out():
    values = np.zeros((240, 320), np.float32)
    cv2.circle(values, (160, 120), 60, 1.0, 6)
    cv2.circle(values, (160, 120), 8, 0.9, cv2.FILLED)
    values[10:13, 10:13] = 1.0
    cv2.circle(values, (290, 30), 12, 0.8, cv2.FILLED)
    first, second = salient_objects(values)
    assert first.box_0_1.x0 == pytest.approx(97 / 320, abs=0.01)
    assert second.box_0_1.x0 == pytest.approx(278 / 320, abs=0.01)
    assert salient_objects(np.zeros((20, 20), np.float32)) == []
