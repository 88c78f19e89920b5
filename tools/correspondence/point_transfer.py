"""Where a point of one picture is in another, from matches: one homography, a local affine map, or descriptors.

A homography (USAC MAGSAC++, Barath et al. 2020) holds for flat scenes and pure
turns; elsewhere the matches nearest to the point are fitted by an affine map; where there are too few, descriptors at
the point and at the candidates are compared over scales and angles. Maps are fitted in the frame of each picture
(`view_matches.FRAME_PX`), so that tolerances grow with the picture: a photograph says the same at any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.view_matches import SMALLEST_PX, Matches, Points, Sizes, View, from_frame, root_sift, to_frame

Method = Literal["homography", "local_affine", "descriptor"]

FEWEST_INLIERS = 25
# Inliers over matches from which one homography is believed.
LEAST_RATIO = 0.3
# How far a match may be off one homography, in the frame of image 2: 640ths (`FRAME_PX`) of its long side.
INLIER = 2.5
# Matches nearest to the point that an affine map is fitted to.
NEIGHBOURS = 12
# How far a match may be off an affine map, in the frame of image 2.
LOCAL = 5.0
FEWEST_LOCAL = 4
# Share of the nearest matches that one homography must explain: a wall behind the object outvotes it elsewhere.
LOCAL_SHARE = 0.5
# An affine map that stretches or shrinks more, from frame to frame, is of wrong matches.
LARGEST_STRETCH = 5.0
SIZES_PX = (16.0, 24.0, 36.0, 54.0)
CANDIDATE_SIZES_PX = (24.0, 36.0)
TURNS_DEG = tuple(range(0, 360, 15))


class Transfer(NamedTuple):
    """A point in pixels of image 2, how it was found, and the numbers (N,) of the matches that agree with the map.

    `support` is the share, 0..1, of the matches nearest to the point that the map explains. `gap` is how far in image 1
    the point is from the `FEWEST_LOCAL`-th nearest match that agrees, in 640ths (`FRAME_PX`) of the long side.
    """

    x: float
    y: float
    method: Method
    agreeing: npt.NDArray[np.intp]
    support: float
    gap: float

    @property
    def inliers(self) -> int:
        """How many matches agree."""
        return len(self.agreeing)


def transfers(point: tuple[float, float], matches: Matches, sizes: Sizes) -> list[Transfer]:
    """Where a point of image 1 is in image 2, the more believable map first; empty where the matches do not say.

    `point` and `matches` are in pixels of pictures of `sizes`, (height, width) of each.
    """
    if len(matches) < FEWEST_LOCAL:
        return []
    here, there = to_frame(matches.first, sizes[0]), to_frame(matches.second, sizes[1])
    asked = to_frame(np.array([point], np.float64), sizes[0])[0]
    near = np.argsort(np.hypot(*(here - asked).T), kind="stable")[:NEIGHBOURS]
    whole, local = _homography(asked, here, there, near), _local_affine(asked, here, there, near)
    first, second = (whole, local) if whole is not None and whole.support >= LOCAL_SHARE else (local, whole)
    return [_in_pixels(transfer, sizes[1]) for transfer in (first, second) if transfer is not None]


def _in_pixels(transfer: Transfer, size: tuple[int, int]) -> Transfer:
    x, y = from_frame(np.array([[transfer.x, transfer.y]]), size)[0]
    return Transfer(float(x), float(y), transfer.method, transfer.agreeing, transfer.support, transfer.gap)


def _homography(
    asked: npt.NDArray[np.float64], here: Points, there: Points, near: npt.NDArray[np.intp]
) -> Transfer | None:
    import cv2

    matrix, mask = cv2.findHomography(here, there, cv2.USAC_MAGSAC, INLIER, maxIters=5000, confidence=0.9999)
    if matrix is None or mask is None:
        return None
    inliers = np.asarray(mask).ravel().astype(bool)
    if inliers.sum() < FEWEST_INLIERS or inliers.mean() < LEAST_RATIO:
        return None
    x, y, depth = (float(value) for value in matrix @ np.array([*asked, 1.0]))
    if abs(depth) < 1e-9:
        return None
    agreeing = np.flatnonzero(inliers)
    return Transfer(
        x / depth, y / depth, "homography", agreeing, float(inliers[near].mean()), _gap(asked, here[agreeing])
    )


def _local_affine(
    asked: npt.NDArray[np.float64], here: Points, there: Points, near: npt.NDArray[np.intp]
) -> Transfer | None:
    import cv2

    matrix, mask = cv2.estimateAffine2D(
        here[near], there[near], method=cv2.RANSAC, ransacReprojThreshold=LOCAL, maxIters=2000
    )
    if matrix is None or mask is None:
        return None
    inliers = near[np.asarray(mask).ravel() > 0]
    stretch = np.linalg.svd(matrix[:, :2], compute_uv=False)
    if len(inliers) < FEWEST_LOCAL or stretch[0] > LARGEST_STRETCH or stretch[1] < 1 / LARGEST_STRETCH:
        return None
    x, y = matrix @ np.array([*asked, 1.0])
    return Transfer(float(x), float(y), "local_affine", inliers, len(inliers) / len(near), _gap(asked, here[inliers]))


def _gap(asked: npt.NDArray[np.float64], agreeing: Points) -> float:
    return float(np.sort(np.hypot(*(agreeing - asked).T))[FEWEST_LOCAL - 1])


def descriptor_distances(
    views: tuple[View, View], point: tuple[float, float], candidates: Sequence[tuple[float, float]]
) -> list[float]:
    """Smallest RootSIFT distance, 0..sqrt(2), of each candidate to the point over sizes and turns.

    Infinite where a picture is too small to be described.

    `point` and `candidates` are in pixels of the original pictures.
    """
    import cv2

    if not candidates or min(min(view.pixels.shape[:2]) for view in views) < SMALLEST_PX:
        return [float("inf")] * len(candidates)
    (x, y) = views[0].from_original(np.array([point]))[0]
    asked = [cv2.KeyPoint(float(x), float(y), size, float(turn)) for size in SIZES_PX for turn in TURNS_DEG]
    here = root_sift(_grey(views[0].pixels), asked)
    places = views[1].from_original(np.array(candidates, np.float64).reshape(-1, 2))
    offered = [cv2.KeyPoint(float(x), float(y), size, 0.0) for x, y in places for size in CANDIDATE_SIZES_PX]
    # Of all candidates at once: each call scales and smooths the picture anew.
    there = root_sift(_grey(views[1].pixels), offered).reshape(len(places), len(CANDIDATE_SIZES_PX), -1)
    return [float(np.sqrt(np.maximum(2 - 2 * (here @ one.T).max(), 0))) for one in there]


def _grey(pixels: Pixels) -> npt.NDArray[np.uint8]:
    import cv2

    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)
