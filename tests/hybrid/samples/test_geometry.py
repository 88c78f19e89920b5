"""Spatial questions: the stated answer follows from the construction, and the pictures bear it out."""

from collections import Counter
from functools import lru_cache

import cv2
import numpy as np
import pytest

from hybrid.samples.geometry import (
    CANDIDATE_GAP_PX,
    DEPTH_MARGIN,
    JIGSAW_HEIGHTS,
    jigsaw,
    multi_view_reasoning,
    relative_depth,
    visual_correspondence,
)
from hybrid.samples.item import (
    CorrespondenceFacts,
    DepthFacts,
    Item,
    JigsawFacts,
    MotionFacts,
)
from hybrid.samples.scenes import Camera
from hybrid.tool import Pixels

MAKERS = {
    "depth": (relative_depth, 2),
    "jigsaw": (jigsaw, 2),
    "correspondence": (visual_correspondence, 4),
    "motion": (multi_view_reasoning, 2),
}


@lru_cache(maxsize=64)
def made(kind: str, seed: int) -> Item:
    maker, choices = MAKERS[kind]
    return maker(np.random.default_rng(seed), seed % choices)


def redness(pixels: Pixels, x: float, y: float) -> float:
    """Mean of R - max(G, B) on the ring of 5 px around a point."""
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    rows, columns = np.rint(y + 5 * np.sin(angles)).astype(int), np.rint(x + 5 * np.cos(angles)).astype(int)
    ring = pixels[rows, columns].astype(int)
    return float((ring[:, 0] - ring[:, 1:].max(axis=1)).mean())


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_items_follow_from_their_seed(kind: str) -> None:
    maker, choices = MAKERS[kind]
    first, other = made(kind, 1), maker(np.random.default_rng(2), 1 % choices)
    again = maker(np.random.default_rng(1), 1 % choices)
    assert all(np.array_equal(a, b) for a, b in zip(first.images, again.images, strict=True))
    assert not np.array_equal(first.images[0], other.images[0])
    assert first.answer == 1
    assert len(first.choices) == choices


@pytest.mark.parametrize("seed", range(8))
def test_depth_at_the_points_decides(seed: int) -> None:
    item = made("depth", seed)
    facts = item.facts
    assert isinstance(facts, DepthFacts)
    assert facts.depth_m.shape == item.images[0].shape[:2]
    for (x, y), depth in zip(facts.points, facts.depths_m, strict=True):
        assert facts.depth_m[int(y), int(x)] == pytest.approx(depth)
        window = facts.depth_m[int(y) - 4 : int(y) + 5, int(x) - 4 : int(x) + 5]
        assert window.max() / window.min() < 1.1
        assert redness(item.images[0], x, y) > 200
    nearer = int(np.argmin(facts.depths_m))
    assert nearer == item.answer
    assert max(facts.depths_m) / min(facts.depths_m) > DEPTH_MARGIN
    assert item.choices[item.answer].startswith("AB"[nearer])


def test_some_depth_pairs_are_mirrored_on_one_row_with_a_on_the_left() -> None:
    same_row = 0
    for seed in range(8):
        facts = made("depth", seed).facts
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
        item = made("depth", seed)
        assert isinstance(item.facts, DepthFacts)
        near = 1 / item.facts.depth_m
        grey = cv2.cvtColor(item.images[0], cv2.COLOR_RGB2GRAY).astype(np.float32)
        steps = np.abs(np.diff(grey, axis=1))
        edges = np.abs(np.diff(near, axis=1)) > 0.05
        if edges.sum() > 100:
            fits.append(steps[edges].mean() > steps[edges[:, ::-1]].mean())
    assert len(fits) >= 5
    assert all(fits)


@pytest.mark.parametrize("seed", range(6))
def test_the_right_piece_completes_the_picture_exactly(seed: int) -> None:
    item = made("jigsaw", seed)
    assert isinstance(item.facts, JigsawFacts)
    whole, (holed, *pieces) = item.facts.whole, item.images
    height, width = whole.shape[:2]
    assert width == 400
    assert height in JIGSAW_HEIGHTS
    assert all(piece.shape == (height // 2, width // 2, 3) for piece in pieces)
    assert not holed[height // 2 :, width // 2 :].any()
    exact = []
    for piece in pieces:
        filled = holed.copy()
        filled[height // 2 :, width // 2 :] = piece
        exact.append(np.array_equal(filled, whole))
    assert exact == [item.answer == 0, item.answer == 1]
    assert item.choices == ("the second image", "the third image")


def test_the_right_piece_continues_the_seam_better() -> None:
    right = 0
    for seed in range(8):
        item = made("jigsaw", seed)
        holed, *pieces = (image.astype(int) for image in item.images)
        rows, columns = pieces[0].shape[:2]
        costs = [
            np.abs(holed[rows - 1, columns:] - piece[0]).mean() + np.abs(holed[rows:, columns - 1] - piece[:, 0]).mean()
            for piece in pieces
        ]
        right += int(np.argmin(costs)) == item.answer
    assert right >= 7


def correspondences() -> list[tuple[Item, CorrespondenceFacts]]:
    found = []
    for seed in range(6):
        item = made("correspondence", seed)
        assert isinstance(item.facts, CorrespondenceFacts)
        found.append((item, item.facts))
    return found


def transfer(facts: CorrespondenceFacts) -> np.ndarray:
    """Where REF goes, from the homography or from the cameras and the depth."""
    if facts.homography is not None:
        x, y, w = np.array(facts.homography) @ (*facts.ref, 1)
        return np.array([x / w, y / w])
    assert facts.cameras is not None
    assert facts.ref_depth_m is not None
    point = facts.cameras[0].unproject(*facts.ref, facts.ref_depth_m)
    return np.asarray(facts.cameras[1].project(point[None])[0, :2])


def test_the_mapping_takes_ref_to_the_answer_and_to_no_other_candidate() -> None:
    for item, facts in correspondences():
        distances = np.hypot(*(np.array(facts.candidates) - transfer(facts)).T)
        assert int(np.argmin(distances)) == item.answer
        assert distances[item.answer] < 1
        assert np.delete(distances, item.answer).min() > CANDIDATE_GAP_PX - 2
        assert item.choices[item.answer] == f"Point {'ABCD'[item.answer]}"
        assert redness(item.images[0], *facts.ref) > 200
        assert min(redness(item.images[1], x, y) for x, y in facts.candidates) > 200


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


def test_the_camera_moves_to_the_side_that_the_answer_names() -> None:
    for seed in range(4):
        item = made("motion", seed)
        assert isinstance(item.facts, MotionFacts)
        first, second = item.facts.cameras
        sideways = first.rotation()[0] @ (np.array(second.position) - first.position)
        assert item.choices[item.answer] == ("right" if sideways > 0 else "left")


def epipolar_side(images: tuple[Pixels, ...], camera: Camera) -> float:
    """Sideways motion by SIFT matches and the essential matrix: positive is to the right."""
    sift = cv2.SIFT.create(1500)
    greys = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in images]
    (keys1, found1), (keys2, found2) = (sift.detectAndCompute(grey, None) for grey in greys)
    pairs = cv2.BFMatcher().knnMatch(found1, found2, k=2)
    kept = [best for best, second in pairs if best.distance < 0.8 * second.distance]
    ends1 = np.array([keys1[match.queryIdx].pt for match in kept])
    ends2 = np.array([keys2[match.trainIdx].pt for match in kept])
    lens = np.array([[camera.focal_px, 0, 239.5], [0, camera.focal_px, 179.5], [0, 0, 1]])
    essential, mask = cv2.findEssentialMat(ends1, ends2, lens, cv2.USAC_MAGSAC, 0.999, 1.0)
    _, rotation, shift, _ = cv2.recoverPose(essential, ends1, ends2, lens, mask=mask)
    return float((-rotation.T @ shift)[0, 0])


def test_the_pictures_alone_show_the_motion() -> None:
    right = 0
    for seed in range(2):
        item = made("motion", seed)
        assert isinstance(item.facts, MotionFacts)
        right += (epipolar_side(item.images, item.facts.cameras[0]) > 0) == (item.answer == 1)
    assert right == 2
