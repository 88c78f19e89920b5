"""Pairs of views of a flat picture under a known homography, in three levels of difficulty.

`planar_pair(np.random.default_rng(0), pixels, "hard", answer=2)` gives an item in the form of BLINK's visual
correspondence: REF ringed in image 1, A to D in image 2. Never a benchmark result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.errors import HybridError
from hybrid.samples.item import CorrespondenceFacts, Item, Matrix, Spot, ringed, until
from hybrid.tool import Pixels

Level = Literal["mild", "medium", "hard"]
LEVELS: tuple[Level, ...] = get_args(Level)
MIN_SIDE_PX = 160
# Points keep this distance from the borders, so that their marks are whole.
MARGIN_PX = 40.0
# Candidates may come this near to the right and the lower border: their letters stand above them.
FAR_MARGIN_PX = 20.0
# Candidates are farther apart than this.
APART_PX = 40.0
# Standard deviation of the noise of image 2, grey levels.
NOISE_LEVELS = 4.0

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """Largest turn (degrees), scale (natural log), and shift of each corner (share of the size)."""

    turn_deg: float
    log_scale: float
    corner: float


CHANGES: Mapping[Level, Change] = {
    "mild": Change(10, 0.1, 0.04),
    "medium": Change(30, 0.3, 0.12),
    "hard": Change(60, 0.6, 0.22),
}


def planar_pair(rng: np.random.Generator, pixels: Pixels, level: Level, answer: int) -> Item:
    """An item whose image 2 is `pixels` (H, W, 3) warped, over a blurred ground, with another exposure and noise.

    Raises:
        HybridError: the picture is smaller than `MIN_SIDE_PX` on a side, or no homography keeps four points in view.
    """
    height, width = pixels.shape[:2]
    size = (width, height)
    if min(size) < MIN_SIDE_PX:
        raise HybridError(f"a picture of {width} x {height} px has no room for marked points: {MIN_SIDE_PX} px a side")

    def attempt() -> tuple[Array, Spot, list[Spot]] | None:
        homography = random_homography(rng, size, CHANGES[level])
        x, y = (float(np.rint(rng.uniform(MARGIN_PX, side - MARGIN_PX))) for side in size)
        there = project(homography, x, y)
        if not _inside(there, size):
            return None
        candidates = _others(rng, there, size)
        return None if candidates is None else (homography, (x, y), candidates)

    homography, ref, candidates = until("homography that keeps a point in view", attempt)
    candidates.insert(answer, candidates.pop(0))
    rows = [tuple(float(value) for value in row) for row in homography]
    matrix: Matrix = ((*rows[0],), (*rows[1],), (*rows[2],))  # type: ignore[assignment]
    second = ringed(_seen_again(rng, pixels, homography), list(zip(candidates, "ABCD", strict=True)))
    return Item(
        "Which of the points A, B, C and D of the second image is the point REF of the first?",
        (ringed(pixels, [(ref, "REF")]), second),
        ("Point A", "Point B", "Point C", "Point D"),
        answer,
        CorrespondenceFacts(ref, tuple(candidates), homography=matrix),
    )


def random_homography(rng: np.random.Generator, size: tuple[int, int], change: Change) -> Array:
    """A homography (3, 3) of a picture of `size` (width, height): turn and scale about its centre, corners moved."""
    corners = np.array([[0, 0], [size[0], 0], [size[0], size[1]], [0, size[1]]], np.float64)
    centre = np.array(size) / 2
    angle = np.deg2rad(rng.uniform(-change.turn_deg, change.turn_deg))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn = turn * np.exp(rng.uniform(-change.log_scale, change.log_scale))
    moved = (corners - centre) @ turn.T + centre + rng.uniform(-change.corner, change.corner, (4, 2)) * size
    found = cv2.getPerspectiveTransform(corners.astype(np.float32), moved.astype(np.float32))
    return np.asarray(found, np.float64)


def project(homography: Array, x: float, y: float) -> Spot:
    """Where a homography (3, 3) puts a point; NaN where it is behind the picture's horizon."""
    across, down, depth = (float(value) for value in homography @ np.array([x, y, 1.0]))
    return (across / depth, down / depth) if depth > 1e-6 else (float("nan"), float("nan"))


def _inside(spot: Spot, size: tuple[int, int]) -> bool:
    return all(MARGIN_PX < value < side - FAR_MARGIN_PX for value, side in zip(spot, size, strict=True))


def _others(rng: np.random.Generator, right: Spot, size: tuple[int, int]) -> list[Spot] | None:
    """The right spot and three more, all apart; None where they do not fit."""
    found = [(float(np.rint(right[0])), float(np.rint(right[1])))]
    for _ in range(200):
        x, y = (float(np.rint(rng.uniform(MARGIN_PX, side - FAR_MARGIN_PX))) for side in size)
        if all(np.hypot(x - a, y - b) > APART_PX for a, b in found):
            found.append((x, y))
        if len(found) == 4:
            return found
    return None


def _seen_again(rng: np.random.Generator, pixels: Pixels, homography: Array) -> Pixels:
    size = (pixels.shape[1], pixels.shape[0])
    ground = cv2.GaussianBlur(np.ascontiguousarray(pixels[::-1]), (0, 0), 15)
    warped = cv2.warpPerspective(pixels, homography, size)
    covered = cv2.warpPerspective(np.full(pixels.shape[:2], 255, np.uint8), homography, size)
    view = np.where(covered[..., None] > 127, warped, ground) / 255.0
    lit = 255 * view ** rng.uniform(0.7, 1.4) * rng.uniform(0.7, 1.2) + rng.normal(0, NOISE_LEVELS, view.shape)
    return np.clip(np.rint(lit), 0, 255).astype(np.uint8)
