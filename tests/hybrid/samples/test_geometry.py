"""Spatial questions: the stated answer follows from the construction, and the pictures confirm it."""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache

import cv2
import numpy as np
import pytest

from hybrid.samples.geometry import jigsaw, multi_view_reasoning, relative_depth, visual_correspondence
from hybrid.samples.item import CorrespondenceFacts, DepthFacts, Item, MotionFacts
from hybrid.samples.scenes import Camera
from hybrid.tool import Pixels
from tests.hybrid.samples.test_objects import MAKERS as OF_OBJECTS

MAKERS = {
    "depth": (relative_depth, 2),
    "jigsaw": (jigsaw, 2),
    "correspondence": (visual_correspondence, 4),
    "motion": (multi_view_reasoning, 2),
}


@lru_cache(maxsize=64)
def make_item(kind: str, seed: int) -> Item:
    maker, choices = MAKERS[kind]
    return maker(np.random.default_rng(seed), seed % choices)


@pytest.mark.parametrize(("maker", "choices"), [*MAKERS.values(), *OF_OBJECTS.values()])
def test_items_follow_from_their_seed(maker: Callable[..., Item], choices: int) -> None:
    first, second, other = (maker(np.random.default_rng(seed), 1) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first.images, second.images, strict=True))
    assert first.question == second.question
    assert not np.array_equal(first.images[0], other.images[0])
    assert first.answer == 1
    assert len(set(first.choices)) == choices


@pytest.mark.system
def test_some_depth_pairs_are_mirrored_on_one_row_with_a_on_the_left() -> None:
    same_row = 0
    for seed in range(8):
        facts = make_item("depth", seed).facts
        assert isinstance(facts, DepthFacts)
        (ax, ay), (bx, by) = facts.points
        if ay == by:
            same_row += 1
            assert ax < bx
            assert ax + bx == facts.depth_m.shape[1] - 1
    assert 2 <= same_row <= 6


def test_the_depth_map_belongs_to_the_picture_even_when_mirrored() -> None:
    fits = []
    for seed in range(8):
        item = make_item("depth", seed)
        assert isinstance(item.facts, DepthFacts)
        near = 1 / item.facts.depth_m
        steps = np.abs(np.diff(cv2.cvtColor(item.images[0], cv2.COLOR_RGB2GRAY).astype(np.float32), axis=1))
        edges = np.abs(np.diff(near, axis=1)) > 0.05
        if edges.sum() > 100:
            fits.append(steps[edges].mean() > steps[edges[:, ::-1]].mean())
    assert len(fits) >= 5
    assert all(fits)


def correspondences() -> list[tuple[Item, CorrespondenceFacts]]:
    results = []
    for seed in range(6):
        item = make_item("correspondence", seed)
        assert isinstance(item.facts, CorrespondenceFacts)
        results.append((item, item.facts))
    return results


@pytest.mark.system
def test_both_kinds_of_correspondence_occur() -> None:
    kinds = Counter(facts.homography is not None for _, facts in correspondences())
    assert min(kinds[True], kinds[False]) >= 2


def test_the_homography_maps_the_first_picture_onto_the_second() -> None:
    for item, facts in correspondences():
        if facts.homography is None:
            continue
        first, second = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32) for image in item.images)
        matrix = np.array(facts.homography)
        warped = cv2.warpPerspective(first, matrix, first.shape[::-1])
        inside = cv2.warpPerspective(np.ones_like(first), matrix, first.shape[::-1]) > 0.99
        assert np.corrcoef(warped[inside], second[inside])[0, 1] > 0.85


def epipolar_side(images: tuple[Pixels, ...], camera: Camera) -> float:
    """Estimate the sideways motion from SIFT matches and the essential matrix; positive means to the right."""
    sift = cv2.SIFT.create(1500)
    greys = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in images]
    (keys1, found1), (keys2, found2) = (sift.detectAndCompute(grey, None) for grey in greys)
    pairs = cv2.BFMatcher().knnMatch(found1, found2, k=2)
    values = [best for best, second in pairs if best.distance < 0.8 * second.distance]
    ends1 = np.array([keys1[match.queryIdx].pt for match in values])
    ends2 = np.array([keys2[match.trainIdx].pt for match in values])
    lens = np.array([[camera.focal_px, 0, 239.5], [0, camera.focal_px, 179.5], [0, 0, 1]])
    essential, mask = cv2.findEssentialMat(ends1, ends2, lens, cv2.USAC_MAGSAC, 0.999, 1.0)
    _, rotation, shift, _ = cv2.recoverPose(essential, ends1, ends2, lens, mask=mask)
    return float((-rotation.T @ shift)[0, 0])


@pytest.mark.system
def test_the_pictures_alone_show_the_motion() -> None:
    right = 0
    for seed in range(2):
        item = make_item("motion", seed)
        assert isinstance(item.facts, MotionFacts)
        right += (epipolar_side(item.images, item.facts.cameras[0]) > 0) == (item.answer == 1)
    assert right == 2
