"""Matching points of two images of one scene, without weights: RootSIFT, plus ORB if SIFT finds too few.

`match_views(first, second)` returns `Matches`. It uses SIFT (Lowe 2004) with the square root of its descriptors
(Arandjelovic and Zisserman 2012) and the ratio test, and ORB (Rublee et al. 2011). Coordinates are pixel indices of the
given images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.marks.marks import Marks, remove_marks, scale_marks
from hybrid.tool import Pixels
from tools._shared.reading import shrink

if TYPE_CHECKING:
    import cv2

# x and y in pixels, shape (N, 2).
Points = npt.NDArray[np.float64]
# One row per feature: 128 floats (RootSIFT) or 32 bytes (ORB).
Descriptors = npt.NDArray[Any]
Features = tuple[Points, Descriptors]

# Longer images are shrunk first: features beyond `FEATURES` would be dropped anyway.
MAX_SIDE_PX = 1024
# An image with a shorter side has no features: a descriptor needs more surroundings.
MIN_SIDE_PX = 16
FEATURES = 4000
# Contrast threshold of SIFT, a quarter of its default. The additional faint features raise the number of right answers
# on 80 generated orbits (seeds 3 and 4) from 67 to 78.
CONTRAST = 0.01
SIFT_RATIO = 0.8
ORB_RATIO = 0.85
# Distances below which descriptors count as equal: SIFT's on the unit sphere, ORB's as the number of different bits
# among 256.
EQUAL: Mapping[str, float] = {"sift": 0.1, "orb": 16.0}
# Number of SIFT matches below which ORB runs as well: it detects corners too faint for SIFT.
ENOUGH = 60
# Long side of the frame in which geometry is fitted, so that tolerances are shares of the image.
FRAME_PX = 640.0
# Features within this distance of a removed mark come from the mark or from what was painted over it.
MARK_REACH_PX = 3


# Height and width in pixels of two images.
Sizes = tuple[tuple[int, int], tuple[int, int]]


def to_frame(points: Points, size: tuple[int, int]) -> Points:
    """Convert points (N, 2) from pixels of an image of `size` (H, W) to its frame, whose long side is `FRAME_PX`."""
    return np.asarray((points + 0.5) * (FRAME_PX / max(size)), np.float64)


def from_frame(points: Points, size: tuple[int, int]) -> Points:
    """Convert points (N, 2) from the frame of an image of `size` (height, width) to its pixels."""
    return np.asarray(points * (max(size) / FRAME_PX) - 0.5, np.float64)


@dataclass(frozen=True, eq=False)
class Matches:
    """Points k of `first` (N, 2) and `second` (N, 2) match, in pixels of the full images; `scores` (N,) in 0..1.

    `mirrored` means that the second image was matched with left and right exchanged (`reflection.py`); `second` still
    has pixels of the unmirrored image.
    """

    first: Points
    second: Points
    scores: npt.NDArray[np.float64]
    matcher: str
    mirrored: bool = False

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, eq=False)
class MatchView:
    """An image ready for matching: at most `MAX_SIDE_PX` long, with its drawn marks painted over.

    `scale_x` and `scale_y` are pixels of the original per pixel of the view; `marks` are in pixels of the view.
    """

    pixels: Pixels
    scale_x: float
    scale_y: float
    marks: Marks

    @cached_property
    def sift(self) -> Features:
        """Positions in pixels of the view and RootSIFT descriptors; cached because some pairs are matched twice."""
        return _features(self, "sift")

    @cached_property
    def orb(self) -> Features:
        """Positions and descriptors of ORB, like `sift`."""
        return _features(self, "orb")

    def to_original(self, points: Points) -> Points:
        """Convert points (N, 2) of this view to pixels of the original image."""
        return (points + 0.5) * (self.scale_x, self.scale_y) - 0.5

    def from_original(self, points: Points) -> Points:
        """Convert points (N, 2) of the original image to pixels of this view."""
        return (points + 0.5) / (self.scale_x, self.scale_y) - 0.5


def view_of(pixels: Pixels, marks: Marks | None = None) -> MatchView:
    """Shrink an image (H, W, 3) and remove its drawn marks."""
    small = shrink(pixels, MAX_SIDE_PX)
    x, y = pixels.shape[1] / small.shape[1], pixels.shape[0] / small.shape[0]
    small_marks = scale_marks(marks or Marks(), 1 / x, 1 / y)
    return MatchView(remove_marks(small, small_marks), x, y, small_marks)


def match_views(first: MatchView, second: MatchView) -> Matches:
    """Match two views, in pixels of the original images; the result may be empty."""
    matches = [_match(first.sift, second.sift, "sift")]
    if len(matches[0]) < ENOUGH:
        matches.append(_match(first.orb, second.orb, "orb"))
    return Matches(
        first.to_original(np.concatenate([match.first for match in matches])),
        second.to_original(np.concatenate([match.second for match in matches])),
        np.concatenate([match.scores for match in matches]),
        "+".join(match.matcher for match in matches),
    )


def root_sift(pixels: Pixels, keypoints: Sequence[cv2.KeyPoint]) -> npt.NDArray[np.float32]:
    """Compute unit RootSIFT descriptors (N, 128) at given keypoints of an image; rows follow `keypoints`."""
    import cv2

    _, descriptors = cv2.SIFT.create().compute(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), keypoints)
    return _rooted(np.asarray(descriptors, np.float32)) if len(keypoints) else np.zeros((0, 128), np.float32)


def _rooted(descriptors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(np.sqrt(descriptors / (descriptors.sum(axis=1, keepdims=True) + 1e-7)), np.float32)


def _match(first: Features, second: Features, kind: str) -> Matches:
    import cv2

    (points, descriptors), (other_points, other_descriptors) = first, second
    if len(points) < 2 or len(other_points) < 2:
        return Matches(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0), kind)
    ratio = SIFT_RATIO if kind == "sift" else ORB_RATIO
    # For each feature, find the nearest one of the other view and the distances (N, 2) to the two nearest.
    if kind == "orb":
        pairs = cv2.BFMatcher(cv2.NORM_HAMMING).knnMatch(descriptors, other_descriptors, 2)
        near = np.array([best.trainIdx for best, _ in pairs], np.intp)
        distances = np.array([[best.distance, next_.distance] for best, next_ in pairs], np.float64)
    else:
        # Rooted descriptors have unit length, so the squared distance is 2 - 2 cos.
        cosines = np.asarray(descriptors @ other_descriptors.T, np.float32)
        near = cosines.argmax(axis=1)
        nearest = cosines[np.arange(len(near)), near].copy()
        cosines[np.arange(len(near)), near] = -1
        squared = np.maximum(2 - 2 * np.stack([nearest, cosines.max(axis=1)], axis=1), 0)
        distances = np.sqrt(squared).astype(np.float64)
    # If even the second nearest is equal, as in an exactly repeating pattern, the nearest proves nothing.
    share = np.where(distances[:, 1] < EQUAL[kind], 1.0, distances[:, 0] / np.maximum(distances[:, 1], 1e-9))
    # If several features match the same one, keep the best: a repeated texture would otherwise outvote the rest.
    ordered = np.flatnonzero(share < ratio)
    ordered = ordered[np.argsort(share[ordered], kind="stable")]
    selected = np.sort(ordered[np.unique(near[ordered], return_index=True)[1]])
    return Matches(points[selected], other_points[near[selected]], 1 - share[selected], kind)


def _features(view: MatchView, kind: str) -> Features:
    import cv2

    grey = np.asarray(cv2.cvtColor(view.pixels, cv2.COLOR_RGB2GRAY), np.uint8)
    if min(grey.shape) < MIN_SIDE_PX:
        return np.zeros((0, 2)), np.zeros((0, 1))
    # Mask that is 255 where features are allowed: everywhere but on drawn marks and their letters.
    mask = np.full(grey.shape, 255, np.uint8)
    for mark in view.marks.points:
        cv2.circle(mask, (round(mark.x), round(mark.y)), round(mark.radius_px) + MARK_REACH_PX, (0,), -1)
        if mark.label_box_px is not None:
            box, reach = mark.label_box_px, MARK_REACH_PX
            corner = (round(box.x0) - reach, round(box.y0) - reach)
            cv2.rectangle(mask, corner, (round(box.x1) + reach, round(box.y1) + reach), (0,), -1)
    detector = cv2.SIFT.create(FEATURES, contrastThreshold=CONTRAST) if kind == "sift" else cv2.ORB.create(FEATURES)
    keypoints, descriptors = detector.detectAndCompute(grey, mask)
    if not keypoints:
        return np.zeros((0, 2)), np.zeros((0, 1))
    points = np.array([keypoint.pt for keypoint in keypoints], np.float64).reshape(-1, 2)
    return points, _rooted(np.asarray(descriptors, np.float32)) if kind == "sift" else np.asarray(descriptors)


Views = tuple[MatchView, MatchView]


class PreparedPair(NamedTuple):
    """Two views and the network's input for them, in host memory; the `prepare` of the model documents the shape."""

    views: Views
    values: Any

    @property
    def sizes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Height and width of both views in pixels."""
        first, second = (view.pixels.shape for view in self.views)
        return (first[0], first[1]), (second[0], second[1])
