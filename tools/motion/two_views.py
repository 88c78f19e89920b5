"""Camera motion between two views, from matches: essential matrix, rotation, direction of the second camera.

`best_motion(matches, (h0, w0), (h1, w1), focal_ratios=(0.8, 1.1))`. The geometry follows Hartley and Zisserman,
Multiple View Geometry (2nd ed.), sections 9.6 and 9.7; section 9.6.3 chooses among four motions by the points in front
of both cameras (cheirality). The five-point solver of Nister (2004) runs in MAGSAC++ (Barath et al. 2020). `flat.py`
also fits a homography. Camera frame: x right, y down, z forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tools._shared.robust_fit import fit_model
from tools._shared.view_matches import FRAME_PX, Matches
from tools.motion.flat import REACH, FlatMap, MapKind, flat_map, flat_wins, same_hand, sampson

Array = npt.NDArray[np.float64]

MIN_MATCHES = 8
# Largest distance of a match from the epipolar line, in 640ths (`FRAME_PX`) of the long side, so that it does not
# depend on the size of the image.
INLIER = 1.0
# Largest differences in rotation and in direction at which the two halves of the matches still agree. They are large
# because short motions are measured inaccurately.
SAME_TURN_DEG = 15.0
SAME_WAY_DEG = 60.0


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion from the first camera to the second.

    `rotation` (3, 3) maps directions of the first camera to the second's; `centre` (3,) is the unit vector from the
    first camera to the second in the first one's frame. `inliers` fit the epipolar geometry and `in_front_0_1` is their
    share in front of both cameras. `parallax` is the median shift left after a pure rotation and `shift` the full
    median shift, both in 640ths (`FRAME_PX`) of the long side. `kept` (N,) marks the inliers among the matches;
    `focal_ratio` is the assumed focal length over the longer side.

    `off_plane` counts the inliers that one homography of all matches does not explain: only they determine the
    direction. `flat` means that the homography is the better model (`flat_wins`), `map_kind` is its kind, and
    `mirrored` means that the second view was matched mirrored or that the inliers reverse orientation. `halves_agree`
    means that the matches at even and at odd indices give the same motion.
    """

    rotation: Array
    centre: Array
    inliers: int
    in_front_0_1: float
    parallax: float
    shift: float
    kept: npt.NDArray[np.bool_]
    focal_ratio: float
    off_plane: int
    flat: bool
    map_kind: MapKind
    mirrored: bool
    halves_agree: bool = True

    @property
    def turn_deg(self) -> float:
        """Angle of the rotation, 0..180 degrees."""
        return float(np.degrees(np.arccos(np.clip((np.trace(self.rotation) - 1) / 2, -1, 1))))

    @property
    def yaw_deg(self) -> float:
        """Rotation about the vertical in degrees; positive if the camera turns left, as on an orbit to its right."""
        return float(np.degrees(np.arctan2(self.rotation[0, 2], self.rotation[2, 2])))


def best_motion(
    matches: Matches, first: tuple[int, int], second: tuple[int, int], focal_ratios: Sequence[float]
) -> Motion | None:
    """Try several focal lengths; return the motion with the most points in front of both cameras.

    The views are (height, width) pixels; `focal_ratios` are focal lengths over the longer side of the image, the same
    for both. Return None if no motion fits the matches.
    """
    if len(matches) < MIN_MATCHES:
        return None
    first_points, second_points = _centred(matches.first, first), _centred(matches.second, second)
    mapping = flat_map(first_points, second_points)
    motions = [_motion(first_points, second_points, mapping, ratio) for ratio in focal_ratios]
    best = max(
        (motion for motion in motions if motion), key=lambda motion: motion.inliers * motion.in_front_0_1, default=None
    )
    if best is None:
        return None
    # Check whether the even and the odd matches give the same motion.
    agree = False
    if len(first_points) >= 2 * MIN_MATCHES:
        first_half, second_half = (
            _motion(
                first_points[start::2],
                second_points[start::2],
                FlatMap(mapping.errors[start::2], mapping.kind),
                best.focal_ratio,
            )
            for start in (0, 1)
        )
        if first_half is not None and second_half is not None:
            between = (np.trace(first_half.rotation @ second_half.rotation.T) - 1) / 2
            turn, way = np.degrees(np.arccos(np.clip([between, first_half.centre @ second_half.centre], -1, 1)))
            agree = bool(turn <= SAME_TURN_DEG and way <= SAME_WAY_DEG)
    return replace(best, mirrored=best.mirrored or matches.mirrored, halves_agree=agree)


def _motion(first_points: Array, second_points: Array, mapping: FlatMap, focal_ratio: float) -> Motion | None:
    import cv2

    focal = focal_ratio * FRAME_PX
    camera = np.diag([focal, focal, 1.0])
    essential, mask = fit_model(
        cv2.findEssentialMat, first_points, second_points, camera, cv2.USAC_MAGSAC, 0.999, INLIER
    )
    if essential is None or np.shape(essential) != (3, 3) or mask is None:
        return None
    inliers = np.asarray(mask).ravel() > 0
    if not inliers.any():
        return None
    in_front, rotation, translation, _ = cv2.recoverPose(
        essential, first_points, second_points, camera, mask=np.asarray(mask).copy()
    )
    turn = np.asarray(rotation, np.float64)
    # For each of two pure rotations (Kabsch's, and the one from the essential matrix), compute the median shift that
    # remains, and take the smaller. Without parallax the second rotation is arbitrary.
    rays = [
        np.hstack([points[inliers] / focal, np.ones((inliers.sum(), 1))]) for points in (first_points, second_points)
    ]
    first_rays, second_rays = (ray / np.linalg.norm(ray, axis=1, keepdims=True) for ray in rays)
    u_matrix, _, vt_matrix = np.linalg.svd(second_rays.T @ first_rays)
    kabsch = u_matrix @ np.diag([1.0, 1.0, float(np.sign(np.linalg.det(u_matrix @ vt_matrix)))]) @ vt_matrix
    shifts = []
    for candidate in (kabsch, turn):
        rotated = rays[0] @ candidate.T
        depth = np.where(np.abs(rotated[:, 2:]) < 1e-9, 1e-9, rotated[:, 2:])
        shifts.append(float(np.median(np.hypot(*(rotated[:, :2] / depth * focal - second_points[inliers]).T))))
    errors = sampson(np.linalg.inv(camera) @ essential @ np.linalg.inv(camera), first_points, second_points)
    off_plane = int((mapping.errors[inliers] > REACH).sum())
    return Motion(
        rotation=turn,
        centre=np.asarray(-turn.T @ np.asarray(translation, np.float64), np.float64).ravel(),
        inliers=int(inliers.sum()),
        in_front_0_1=float(in_front) / float(inliers.sum()),
        parallax=min(shifts),
        shift=float(np.median(np.hypot(*(second_points[inliers] - first_points[inliers]).T))),
        kept=inliers,
        focal_ratio=focal_ratio,
        off_plane=off_plane,
        flat=flat_wins(errors, mapping, off_plane, int(inliers.sum())),
        map_kind=mapping.kind,
        mirrored=not same_hand(first_points[inliers], second_points[inliers]),
    )


def _centred(points: Array, size: tuple[int, int]) -> Array:
    """Convert points (N, 2) in pixels to offsets from the image centre, in 640ths of its long side."""
    centre = np.array([(size[1] - 1) / 2, (size[0] - 1) / 2])
    return np.asarray((points - centre) * (FRAME_PX / max(size)), np.float64)
