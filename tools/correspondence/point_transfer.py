"""Transfer of a point from one image to another by matches: one homography, a local affine map, or descriptors.

A homography (USAC MAGSAC++, Barath et al. 2020) is valid for flat scenes and pure rotations; otherwise an affine map is
fitted to the matches nearest to the point. With too few of them, descriptors at the point and at the candidates are
compared over scales and angles. Maps are fitted in the frame of each image (`view_matches.FRAME_PX`), so tolerances
scale with the image and the result does not depend on its size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tools._shared.args import Spot
from tools._shared.robust_fit import fit_model
from tools._shared.view_matches import MIN_SIDE_PX, Matches, Points, Sizes, Views, from_frame, root_sift, to_frame

# x and y in pixels.
Place = tuple[float, float]
# Indices of matches.
Numbers = npt.NDArray[np.intp]
Method = Literal["homography", "local_affine", "descriptor"]

MIN_INLIERS = 25
# Smallest ratio of inliers to matches at which a homography is accepted.
MIN_RATIO = 0.3
# Largest error of a match under a homography, in the frame of image 2: 640ths (`FRAME_PX`) of its long side.
INLIER = 2.5
# Number of matches nearest to the point to which an affine map is fitted.
NEIGHBOURS = 12
# Largest error of a match under an affine map, in the frame of image 2.
LOCAL = 5.0
MIN_LOCAL = 4
# Share of the nearest matches that one homography must explain: a wall behind the object can outvote the object.
LOCAL_SHARE = 0.5
# An affine map that stretches or shrinks by more, from frame to frame, comes from wrong matches.
MAX_STRETCH = 5.0
SIZES_PX = (16.0, 24.0, 36.0, 54.0)
CANDIDATE_SIZES_PX = (24.0, 36.0)
# Rotations of the query point's descriptors within a quarter turn; the other three quarters follow from them.
TURNS_DEG = tuple(range(0, 90, 15))
# A SIFT descriptor has `GRID` x `GRID` cells with `DIRECTIONS` gradient directions each.
GRID, DIRECTIONS = 4, 8


class Transfer(NamedTuple):
    """A point in pixels of image 2, and how it was found.

    `agreeing` (N,) are the indices of the matches that fit the map. `support` is the share, 0..1, of the matches
    nearest to the point that the map explains. `gap` is the distance in image 1 from the point to the `MIN_LOCAL`-th
    nearest fitting match, in 640ths (`FRAME_PX`) of the long side.
    """

    x: float
    y: float
    method: Method
    agreeing: Numbers
    support: float
    gap: float

    @property
    def inliers(self) -> int:
        """Number of matches that fit the map."""
        return len(self.agreeing)


def transfers(point: Place, matches: Matches, sizes: Sizes) -> list[Transfer]:
    """Return transfers of a point of image 1 to image 2, more credible map first; empty if the matches give no map.

    `point` and `matches` are in pixels of images of `sizes`, (height, width) each.
    """
    if len(matches) < MIN_LOCAL:
        return []
    first_points, second_points = to_frame(matches.first, sizes[0]), to_frame(matches.second, sizes[1])
    query = to_frame(np.array([point], np.float64), sizes[0])[0]
    near = np.argsort(np.hypot(*(first_points - query).T), kind="stable")[:NEIGHBOURS]
    homography, local = (
        _homography(query, first_points, second_points, near),
        _local_affine(query, first_points, second_points, near),
    )
    first, second = (
        (homography, local) if homography is not None and homography.support >= LOCAL_SHARE else (local, homography)
    )
    ranked = []
    for transfer in (first, second):
        if transfer is not None:
            x, y = from_frame(np.array([[transfer.x, transfer.y]]), sizes[1])[0]
            ranked.append(transfer._replace(x=float(x), y=float(y)))
    return ranked


def _homography(query: Points, first_points: Points, second_points: Points, near: Numbers) -> Transfer | None:
    import cv2

    matrix, mask = fit_model(
        cv2.findHomography, first_points, second_points, cv2.USAC_MAGSAC, INLIER, maxIters=5000, confidence=0.9999
    )
    if matrix is None or mask is None:
        return None
    inliers = np.asarray(mask).ravel().astype(bool)
    if inliers.sum() < MIN_INLIERS or inliers.mean() < MIN_RATIO:
        return None
    x, y, depth = (float(value) for value in matrix @ np.array([*query, 1.0]))
    if abs(depth) < 1e-9:
        return None
    selected, support = np.flatnonzero(inliers), float(inliers[near].mean())
    return Transfer(x / depth, y / depth, "homography", selected, support, _gap(query, first_points[selected]))


def _local_affine(query: Points, first_points: Points, second_points: Points, near: Numbers) -> Transfer | None:
    import cv2

    matrix, mask = fit_model(
        cv2.estimateAffine2D,
        first_points[near],
        second_points[near],
        method=cv2.RANSAC,
        ransacReprojThreshold=LOCAL,
        maxIters=2000,
    )
    if matrix is None or mask is None:
        return None
    inliers = near[np.asarray(mask).ravel() > 0]
    stretch = np.linalg.svd(matrix[:, :2], compute_uv=False)
    if len(inliers) < MIN_LOCAL or stretch[0] > MAX_STRETCH or stretch[1] < 1 / MAX_STRETCH:
        return None
    x, y = matrix @ np.array([*query, 1.0])
    return Transfer(
        float(x), float(y), "local_affine", inliers, len(inliers) / len(near), _gap(query, first_points[inliers])
    )


def _gap(query: Points, agreeing: Points) -> float:
    return float(np.sort(np.hypot(*(agreeing - query).T))[MIN_LOCAL - 1])


def descriptor_distances(views: Views, point: Place, candidates: Sequence[Place]) -> list[float]:
    """Return each candidate's smallest RootSIFT distance, 0..sqrt(2), to the point over scales and rotations.

    It is infinite if an image is too small for descriptors. `point` and `candidates` are in pixels of the original
    images.
    """
    import cv2

    if not candidates or min(min(view.pixels.shape[:2]) for view in views) < MIN_SIDE_PX:
        return [float("inf")] * len(candidates)
    (x, y) = views[0].from_original(np.array([point]))[0]
    query_keypoints = [cv2.KeyPoint(float(x), float(y), size, float(turn)) for size in SIZES_PX for turn in TURNS_DEG]
    query_descriptors = add_quarter_turns(root_sift(views[0].pixels, query_keypoints))
    places = views[1].from_original(np.array(candidates, np.float64).reshape(-1, 2))
    candidate_keypoints = [
        cv2.KeyPoint(float(x), float(y), size, 0.0) for x, y in places for size in CANDIDATE_SIZES_PX
    ]
    # Make one call for all candidates, because each call rescales and smooths the image again.
    candidate_descriptors = root_sift(views[1].pixels, candidate_keypoints).reshape(
        len(places), len(CANDIDATE_SIZES_PX), -1
    )
    return [
        float(np.sqrt(np.maximum(2 - 2 * (query_descriptors @ descriptors.T).max(), 0)))
        for descriptors in candidate_descriptors
    ]


def add_quarter_turns(descriptors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return SIFT descriptors (N, 128) rotated by 0, 90, 180 and 270 degrees: (4 N, 128).

    A quarter turn only permutes a descriptor: it rotates the grid of cells and shifts the directions by two. SIFT would
    need a millisecond per descriptor to read the same pixels again.
    """
    cells = descriptors.reshape(-1, GRID, GRID, DIRECTIONS)
    turned = [np.roll(np.rot90(cells, quarter, axes=(1, 2)), quarter * DIRECTIONS // 4, axis=3) for quarter in range(4)]
    return np.concatenate(turned).reshape(-1, descriptors.shape[1])


# A transfer hits a candidate within this fraction of image 2's diagonal; a random point does so in under 1 % of cases.
LANDED = 0.02

# A transfer that hits none may still select the nearest candidate within this fraction of the diagonal.
NEAR = 0.06

# Share of the matches around the point that a map must explain to overrule the similarity of the candidates.
SUPPORTED = 0.7

# Confidences, fitted on warped photographs of the half that is not reported (`bench/warped_pairs.py`): 456 points with
# the matches of each of the two backends. The choice was right for 376 of 376 and 384 of 384 hits, and for 7 of 7 and 9
# of 9 near misses. By descriptors it was right for 57 of 85 points with weak matches and for 10 of 36 without matches.
SURE_HIT, HIT, MISS, NO_MATCH = 0.98, 0.95, 0.6, 0.3

# Confidence if the point of image 1 was not found: lower than that of a guess among four.
POINT_UNKNOWN = 0.1

# Confidence in a position from a homography that explains most of the matches around the point.
PLACED = 0.96

# Largest confidence in a position from an affine map. Below it, the confidence is the share of the matches that the map
# explains.
LOCALLY_PLACED = 0.88

# `Transfer.gap` from which a map extrapolates to areas without matches, such as an empty sky.
FAR = 40.0

# Largest confidence in a position beyond `FAR`. Such a position is right in every flat scene; in scenes with depth, a
# homography is right in 25 of 49 cases.
FAR_PLACE = 0.6


class CandidateChoice(NamedTuple):
    """The chosen candidate, and how it was chosen.

    `best` is the candidate's index; None if no candidate was chosen. `transfer` is the transfer on which the choice is
    based, if any. `confidence` is the probability that the candidate is right or, without candidates, that the
    transferred point is within `LANDED` of the true one. `likeness` contains the descriptor distances; it is empty if
    they were not needed.
    """

    best: int | None
    transfer: Transfer | None
    method: str
    confidence: float
    likeness: tuple[float, ...] = ()


def choose(
    ranked: Sequence[Transfer], compare: Callable[[], Sequence[float]], candidates: Sequence[Spot], diagonal_px: float
) -> CandidateChoice:
    """Choose a candidate from transfers (best first) or, if they decide nothing, from descriptor distances.

    The first transfer that hits a candidate decides. If none hits, a well-supported transfer selects the nearest
    candidate or none at all; a weak transfer is unreliable, so the descriptors at the candidates decide.

    Args:
        ranked: the transfers of the point.
        compare: computes the descriptor distances, one per candidate. It is called only if the distances decide,
            because they cost more than everything else.
        candidates: positions to choose from.
        diagonal_px: length of image 2's diagonal.
    """
    if not candidates:
        first = ranked[0] if ranked else None
        return CandidateChoice(None, first, first.method if first else "none", place_confidence(first))
    if len(candidates) == 1:
        hit = next((transfer for transfer in ranked if _hit(transfer, candidates, diagonal_px)), None)
        first = hit or (ranked[0] if ranked else None)
        confidence = 0.5 if hit is None else FAR_PLACE if hit.gap >= FAR else HIT
        return CandidateChoice(0 if hit else None, first, first.method if first else "none", confidence)
    hits = [(transfer, nearest) for transfer in ranked for nearest in _hit(transfer, candidates, diagonal_px)]
    chance = 1 / len(candidates)
    if hits:
        transfer, best = hits[0]
        unanimous = len(hits) > 1 and hits[1][1] == best
        return CandidateChoice(best, transfer, transfer.method, max(chance, SURE_HIT if unanimous else HIT))
    if ranked and ranked[0].support >= SUPPORTED:
        # No candidate is hit: select the nearest one, unless it is far away.
        distances = distances_px(ranked[0], candidates)
        best = int(np.argmin(distances))
        if distances[best] > NEAR * diagonal_px:
            return CandidateChoice(None, ranked[0], ranked[0].method, chance)
        return CandidateChoice(best, ranked[0], ranked[0].method, max(chance, MISS))
    # The matches around the point select no candidate, and too few agree to conclude that none is right.
    likeness = tuple(compare())
    if not np.isfinite(likeness).any() or (not ranked and len(set(likeness)) == 1):
        return CandidateChoice(None, None, "none", chance, likeness)
    most_similar = int(np.argmin(likeness))
    return CandidateChoice(most_similar, None, "descriptor", max(chance, MISS if ranked else NO_MATCH), likeness)


def place_confidence(transfer: Transfer | None) -> float:
    """Return the confidence, 0..1, that a transferred point is within `LANDED` of the true one."""
    if transfer is None:
        return POINT_UNKNOWN
    most = FAR_PLACE if transfer.gap >= FAR else 1.0
    if transfer.method == "homography" and transfer.support >= LOCAL_SHARE:
        return min(most, PLACED)
    return min(most, LOCALLY_PLACED, transfer.support)


def _hit(transfer: Transfer, candidates: Sequence[Spot], diagonal_px: float) -> list[int]:
    """Return the candidate that the transferred point hits, as a list of at most one index."""
    distances = distances_px(transfer, candidates)
    nearest = int(np.argmin(distances))
    return [nearest] if distances[nearest] <= LANDED * diagonal_px else []


def distances_px(transfer: Transfer, candidates: Sequence[Spot]) -> list[float]:
    """Return the distance of each candidate to the transferred point, pixels of image 2."""
    return [float(np.hypot(spot.x - transfer.x, spot.y - transfer.y)) for spot in candidates]
