"""Matching points of two pictures of one scene, without weights: RootSIFT, and ORB where SIFT finds too little.

`match_views(first, second)` gives `Matches`. SIFT (Lowe
2004) with the square root of its descriptors (Arandjelovic and Zisserman 2012) and the ratio test; ORB (Rublee et al.
2011). Coordinates are pixel indices of the pictures given.
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
# One row a feature: 128 floats (RootSIFT) or 32 bytes (ORB).
Descriptors = npt.NDArray[Any]
Features = tuple[Points, Descriptors]

# Longer pictures are reduced first: more features than `FEATURES` would not be kept anyway.
MAX_SIDE_PX = 1024
# A picture with a shorter side has no features: a descriptor needs more around it.
MIN_SIDE_PX = 16
FEATURES = 4000
# A quarter of SIFT's default: faint features gave 78 instead of 67 of 80 generated orbits (seeds 3 and 4).
CONTRAST = 0.01
SIFT_RATIO = 0.8
ORB_RATIO = 0.85
# Distances below which descriptors are as good as equal: SIFT's on the unit sphere, ORB's in bits of 256.
EQUAL: Mapping[str, float] = {"sift": 0.1, "orb": 16.0}
# Matches of SIFT below which ORB is asked as well: it fires on corners too faint for SIFT.
ENOUGH = 60
# Long side of a picture's frame, in which geometry is fitted: a tolerance is then a share of the picture.
FRAME_PX = 640.0
# Features this near to a removed mark are of the paint or of what was painted over it.
MARK_REACH_PX = 3


# Height and width in pixels of two pictures.
Sizes = tuple[tuple[int, int], tuple[int, int]]


def to_frame(points: Points, size: tuple[int, int]) -> Points:
    """Points (N, 2) in pixels of a picture of `size` (height, width), in its frame: from 0 to `FRAME_PX` along."""
    return np.asarray((points + 0.5) * (FRAME_PX / max(size)), np.float64)


def from_frame(points: Points, size: tuple[int, int]) -> Points:
    """Points (N, 2) of the frame of a picture of `size` (height, width) in its pixels."""
    return np.asarray(points * (max(size) / FRAME_PX) - 0.5, np.float64)


@dataclass(frozen=True, eq=False)
class Matches:
    """Point k of `first` (N, 2) is point k of `second` (N, 2), pixels of each whole picture; `scores` (N,) in 0..1.

    `mirrored` says that the second picture was matched with left and right exchanged (`reflection.py`); `second` holds
    pixels of the picture as it is all the same.
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
    """A picture ready for matching: at most `MAX_SIDE_PX` long, its drawn marks painted over.

    `scale_x`, `scale_y` are pixels of the original per pixel here; `marks` are in pixels here.
    """

    pixels: Pixels
    scale_x: float
    scale_y: float
    marks: Marks

    @cached_property
    def sift(self) -> Features:
        """Places, pixels here, and RootSIFT descriptors; a view is matched twice where its pair may be mirrored."""
        return _features(self, "sift")

    @cached_property
    def orb(self) -> Features:
        """As `sift`, of ORB."""
        return _features(self, "orb")

    def to_original(self, points: Points) -> Points:
        """Points (N, 2) of this view in pixels of the original picture."""
        return (points + 0.5) * (self.scale_x, self.scale_y) - 0.5

    def from_original(self, points: Points) -> Points:
        """Points (N, 2) of the original picture in pixels of this view."""
        return (points + 0.5) / (self.scale_x, self.scale_y) - 0.5


def view_of(pixels: Pixels, marks: Marks | None = None) -> MatchView:
    """A picture (H, W, 3), reduced, without its drawn marks."""
    small = shrink(pixels, MAX_SIDE_PX)
    x, y = pixels.shape[1] / small.shape[1], pixels.shape[0] / small.shape[0]
    small_marks = scale_marks(marks or Marks(), 1 / x, 1 / y)
    return MatchView(remove_marks(small, small_marks), x, y, small_marks)


def match_views(first: MatchView, second: MatchView) -> Matches:
    """Matches in pixels of the original pictures; empty where nothing fits."""
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
    """RootSIFT descriptors (N, 128) of unit length at given keypoints of a picture; rows follow `keypoints`."""
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
    # For each feature the nearest one of the other view, and the distances (N, 2) to the two nearest.
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
    # Where even the second nearest is equal, as in a pattern that repeats to the pixel, the nearest is no evidence.
    share = np.where(distances[:, 1] < EQUAL[kind], 1.0, distances[:, 0] / np.maximum(distances[:, 1], 1e-9))
    # Of several features that match one, the surest: a repeated texture would otherwise outvote the rest.
    ordered = np.flatnonzero(share < ratio)
    ordered = ordered[np.argsort(share[ordered], kind="stable")]
    selected = np.sort(ordered[np.unique(near[ordered], return_index=True)[1]])
    return Matches(points[selected], other_points[near[selected]], 1 - share[selected], kind)


def _features(view: MatchView, kind: str) -> Features:
    import cv2

    grey = np.asarray(cv2.cvtColor(view.pixels, cv2.COLOR_RGB2GRAY), np.uint8)
    if min(grey.shape) < MIN_SIDE_PX:
        return np.zeros((0, 2)), np.zeros((0, 1))
    # 255 where features may lie: not on drawn marks and their letters.
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
    """Two views and the network's input for them, in host memory; its `prepare` documents the shape."""

    views: Views
    values: Any

    @property
    def sizes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Height and width of both views in pixels."""
        first, second = (view.pixels.shape for view in self.views)
        return (first[0], first[1]), (second[0], second[1])
