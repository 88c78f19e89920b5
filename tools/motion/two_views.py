"""How the camera moved between two views, from matches: essential matrix, rotation, direction of the second camera.

`relative_motion(matches, (h0, w0), (h1, w1), focal_ratio=1.1)`. Hartley and Zisserman,
Multiple View Geometry (2nd ed.), sections 9.6 and 9.7; five-point solver of Nister (2004) in MAGSAC++ (Barath et al.
2020). Camera frame: x right, y down, z forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from tools._shared.view_matches import FRAME_PX, Matches

Array = npt.NDArray[np.float64]

FEWEST_MATCHES = 8
INLIER = 1.0
"""How far a match may be off the epipolar line, in 640ths (`FRAME_PX`) of the long side: alike at any size."""


@dataclass(frozen=True, eq=False)
class Motion:
    """The second camera as the first one sees it.

    `rotation` (3, 3) takes directions of the first camera to the second's; `centre` (3,) is the unit vector from the
    first camera to the second in the first one's frame. `inliers` fit the epipolar geometry, `in_front_0_1` is the
    share of them that lies before both cameras, `parallax` the median shift that a turn on the spot leaves over and
    `shift` the median shift as it is, both in 640ths (`FRAME_PX`) of the long side, `kept` (N,) the inliers among the
    matches, `focal_ratio` the focal length that was assumed, over the longer side.
    """

    rotation: Array
    centre: Array
    inliers: int
    in_front_0_1: float
    parallax: float
    shift: float
    kept: npt.NDArray[np.bool_]
    focal_ratio: float

    @property
    def turn_deg(self) -> float:
        """Angle of the rotation, 0..180 degrees."""
        return float(np.degrees(np.arccos(np.clip((np.trace(self.rotation) - 1) / 2, -1, 1))))

    @property
    def yaw_deg(self) -> float:
        """Turn about the vertical, degrees; positive to the camera's left, as on an orbit to its right."""
        return float(np.degrees(np.arctan2(self.rotation[0, 2], self.rotation[2, 2])))


def best_motion(
    matches: Matches, first: tuple[int, int], second: tuple[int, int], focal_ratios: Sequence[float]
) -> Motion | None:
    """Of the motions under several focal lengths the one with most points before both cameras; None as there."""
    found = [relative_motion(matches, first, second, ratio) for ratio in focal_ratios]
    return max((one for one in found if one is not None), key=lambda one: one.inliers * one.in_front_0_1, default=None)


def relative_motion(
    matches: Matches, first: tuple[int, int], second: tuple[int, int], focal_ratio: float
) -> Motion | None:
    """The motion between views of (height, width) pixels; None where the matches do not fit any.

    `focal_ratio` is the focal length over the longer side of the picture, the same for both.
    """
    if len(matches) < FEWEST_MATCHES:
        return None
    focal = focal_ratio * FRAME_PX
    here = _normalised(matches.first, first, focal_ratio) * focal
    there = _normalised(matches.second, second, focal_ratio) * focal
    camera = np.diag([focal, focal, 1.0])
    essential, mask = cv2.findEssentialMat(here, there, camera, cv2.USAC_MAGSAC, 0.999, INLIER)
    if essential is None or np.shape(essential) != (3, 3) or mask is None:
        return None
    inliers = np.asarray(mask).ravel() > 0
    if not inliers.any():
        return None
    in_front, rotation, translation, _ = cv2.recoverPose(essential, here, there, camera, mask=np.asarray(mask).copy())
    turn = np.asarray(rotation, np.float64)
    return Motion(
        rotation=turn,
        centre=np.asarray(-turn.T @ np.asarray(translation, np.float64), np.float64).ravel(),
        inliers=int(inliers.sum()),
        in_front_0_1=float(in_front) / float(inliers.sum()),
        parallax=_after_turn(here[inliers], there[inliers], turn, focal),
        shift=float(np.median(np.hypot(*(there[inliers] - here[inliers]).T))),
        kept=inliers,
        focal_ratio=focal_ratio,
    )


def _normalised(points: Array, size: tuple[int, int], focal_ratio: float) -> Array:
    """Points (N, 2) in pixels as directions: tangents from the optical axis, which goes through the centre."""
    centre = np.array([(size[1] - 1) / 2, (size[0] - 1) / 2])
    return np.asarray((points - centre) / (focal_ratio * max(size)), np.float64)


def _after_turn(here: Array, there: Array, rotation: Array, focal: float) -> float:
    """Median distance, in 640ths of the long side, of second points from first ones after the best turn on the spot."""
    rays = [np.hstack([points / focal, np.ones((len(points), 1))]) for points in (here, there)]
    one, two = (ray / np.linalg.norm(ray, axis=1, keepdims=True) for ray in rays)
    left, _, right = np.linalg.svd(two.T @ one)
    # Kabsch's turn: the epipolar rotation is arbitrary where there is no parallax.
    turn = left @ np.diag([1.0, 1.0, float(np.sign(np.linalg.det(left @ right)))]) @ right
    shifts = []
    for candidate in (turn, rotation):
        turned = rays[0] @ candidate.T
        depth = np.where(np.abs(turned[:, 2:]) < 1e-9, 1e-9, turned[:, 2:])
        shifts.append(float(np.median(np.hypot(*(turned[:, :2] / depth * focal - there).T))))
    return min(shifts)
