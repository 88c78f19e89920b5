"""Decide whether one homography explains the matches of two views; the camera's direction is then undetermined.

A flat scene, a pure rotation, a zoom, a crop and a repeated image are all homographies, which determine no essential
matrix (Hartley and Zisserman, Multiple View Geometry, 2nd ed., section 11.9). The two models are compared by GRIC:
Torr, "Geometric motion segmentation and model selection", Phil. Trans. R. Soc. A 356, 1998. A scene with one large wall
still determines the motion by the points off it (plane and parallax, section 13.3; Chum, Werner and Matas,
"Two-view geometry estimation unaffected by a dominant plane", CVPR 2005). Points are in 640ths of the long side.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tools._shared.robust_fit import fit_model

Array = npt.NDArray[np.float64]
MapKind = Literal["shift", "zoom", "plane"]

# Standard deviation of a match; this and the following constants were set with `bench.motion --fit --half second`.
NOISE = 1.25
# Dimensions of a match: x and y in both views (r of GRIC).
DATA_DIMENSIONS = 4
# Squared error above which a match is off the homography: GRIC's cost is constant beyond it.
REACH = 2 * (DATA_DIMENSIONS - 2) * NOISE**2
# Minimum share of the inliers off the homography at which the motion is accepted although GRIC prefers the homography.
MIN_OFF_SHARE = 0.1
# The homography counts as a shift or a zoom if the best shift with scaling has at most this median error.
ALIKE = 1.5
# Relative change of size above which a homography is a zoom and not a shift.
ZOOMED = 0.02


class FlatMap(NamedTuple):
    """The homography of all matches.

    `errors` (N,) are its squared transfer errors; `kind` tells whether it is a shift, a zoom or neither.
    """

    errors: Array
    kind: MapKind


def flat_map(first_points: Array, second_points: Array) -> FlatMap:
    """Fit the homography from points (N, 2) of the first view to those of the second; infinite errors if none fits."""
    import cv2

    matrix, mask = fit_model(
        cv2.findHomography, first_points, second_points, cv2.USAC_MAGSAC, 2.0, maxIters=5000, confidence=0.9999
    )
    if matrix is None or mask is None or abs(float(np.linalg.det(matrix))) < 1e-12:
        return FlatMap(np.full(len(first_points), np.inf), "plane")
    inliers, forth = np.asarray(mask).ravel() > 0, np.asarray(matrix, np.float64)
    back = np.asarray(np.linalg.inv(forth), np.float64)
    errors = np.asarray(
        (_transfer(forth, first_points, second_points) + _transfer(back, second_points, first_points)) / 2, np.float64
    )
    # Fit the best shift and scale (no rotation), and test whether it is close to the matches.
    first, second = (
        first_points[inliers] - first_points[inliers].mean(axis=0),
        second_points[inliers] - second_points[inliers].mean(axis=0),
    )
    scale = float((first * second).sum() / max(float((first**2).sum()), 1e-9))
    if float(np.median(np.hypot(*(scale * first - second).T))) > ALIKE:
        return FlatMap(errors, "plane")
    return FlatMap(errors, "zoom" if abs(scale - 1) > ZOOMED else "shift")


def flat_wins(epipolar: Array, mapping: FlatMap, off_plane: int, inliers: int) -> bool:
    """Return whether the homography is a better model than an essential matrix with squared errors `epipolar` (N,).

    `off_plane` of the `inliers` of the essential matrix are off the homography; if many are, the homography does not
    win.
    """
    return off_plane <= MIN_OFF_SHARE * inliers and gric(mapping.errors, 2, 8) <= gric(epipolar, 3, 5)


def gric(errors: Array, dimensions: int, parameters: int) -> float:
    """Return Torr's criterion of a model; lower is better.

    `errors` (N,) are squared. `dimensions` are those of the manifold of matches that the model allows. An essential
    matrix has 3 dimensions and 5 `parameters`, a homography 2 dimensions and 8 parameters.
    """
    r, n = DATA_DIMENSIONS, len(errors)
    misfit = np.minimum(errors / NOISE**2, 2 * (r - dimensions)).sum()
    return float(misfit + np.log(r) * dimensions * n + np.log(r * n) * parameters)


def sampson(fundamental: Array, first_points: Array, second_points: Array) -> Array:
    """Return squared first-order distances (N,) of matches from epipolar lines (Hartley and Zisserman, 11.4.3)."""
    lines = np.hstack([first_points, np.ones((len(first_points), 1))]) @ fundamental.T
    back = np.hstack([second_points, np.ones((len(second_points), 1))]) @ fundamental
    off = (lines[:, :2] * second_points).sum(axis=1) + lines[:, 2]
    return np.asarray(off**2 / np.maximum((lines[:, :2] ** 2 + back[:, :2] ** 2).sum(axis=1), 1e-12), np.float64)


def same_hand(first_points: Array, second_points: Array) -> bool:
    """Return whether the best affine map between points (N, 2) keeps orientation; a mirror reverses it."""
    return bool(
        np.linalg.det((first_points - first_points.mean(axis=0)).T @ (second_points - second_points.mean(axis=0))) >= 0
    )


def _transfer(matrix: Array, first_points: Array, second_points: Array) -> Array:
    mapped = np.hstack([first_points, np.ones((len(first_points), 1))]) @ matrix.T
    depth = np.where(np.abs(mapped[:, 2:]) < 1e-9, 1e-9, mapped[:, 2:])
    return np.asarray(((mapped[:, :2] / depth - second_points) ** 2).sum(axis=1), np.float64)
