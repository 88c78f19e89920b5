"""Which candidate a transferred point means, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tools._shared.args import Spot
from tools.correspondence.point_transfer import LOCAL_SHARE, Transfer

# A transfer hits a candidate within this fraction of image 2's diagonal: by chance under 1 % of the picture does.
LANDED = 0.02

# A transfer that hits none may still mean the nearest candidate within this fraction of the diagonal.
NEAR = 0.06

# Share of the matches around the point that a map must explain to overrule how alike the candidates look.
SUPPORTED = 0.7

# Set on warped photographs of the half that is not reported (`bench/warped_pairs.py`): of 456 points by matches of
# either backend 376 and 384 hits were right of as many, 7 and 9 near misses of as many, 57 of 85 choices by descriptors
# beside weak matches and 10 of 36 without any.
SURE_HIT, HIT, MISS, NO_MATCH = 0.98, 0.95, 0.6, 0.3

# Confidence where the point of image 1 was not found: less than a guess among four.
POINT_UNKNOWN = 0.1

# Confidence in the place that one homography gives which explains most of the matches around the point.
PLACED = 0.96

# Most confidence in the place that an affine map gives: below it, the share of the matches that the map explains.
LOCALLY_PLACED = 0.88

# A `Transfer.gap` from which a map is carried on to where no match supports it, as into an empty sky.
FAR = 40.0

# Most confidence in a place beyond `FAR`: right on every flat scene, on those with depth 25 of 49 by a homography.
FAR_PLACE = 0.6


class CandidateChoice(NamedTuple):
    """The candidate (from 0) or None, what it rests on, the transfer where it rests on one, and the confidence 0..1.

    The confidence is that the candidate is right, or, where there are none to choose from, that the transferred point
    is within `LANDED` of the true one.
    """

    best: int | None
    transfer: Transfer | None
    method: str
    confidence: float


def choose(
    ranked: Sequence[Transfer], likeness: Sequence[float], candidates: Sequence[Spot], diagonal_px: float
) -> CandidateChoice:
    """Choose a candidate from transfers (the better first) and descriptor distances, one a candidate.

    The first transfer that hits a candidate decides. Where none does, a well supported one means the nearest candidate
    or none at all; a weak one is wrong there, and the descriptors at the candidates decide.
    """
    if not candidates:
        first = ranked[0] if ranked else None
        return CandidateChoice(None, first, first.method if first else "none", place_confidence(first))
    if len(candidates) == 1:
        return _only(ranked, candidates[0], diagonal_px)
    alike = int(np.argmin(likeness)) if np.isfinite(likeness).any() else None
    hits = [(transfer, nearest) for transfer in ranked for nearest in _hit(transfer, candidates, diagonal_px)]
    chance = 1 / len(candidates)
    if hits:
        transfer, best = hits[0]
        sure = len(hits) > 1 and hits[1][1] == best and best == alike
        return CandidateChoice(best, transfer, transfer.method, max(chance, SURE_HIT if sure else HIT))
    if ranked and ranked[0].support >= SUPPORTED:
        return _near_miss(ranked[0], candidates, diagonal_px)
    # The matches around the point mean none of the candidates, and too few of them agree to say that none is right.
    if alike is None or (not ranked and len(set(likeness)) == 1):
        return CandidateChoice(None, None, "none", chance)
    return CandidateChoice(alike, None, "descriptor", max(chance, MISS if ranked else NO_MATCH))


def place_confidence(transfer: Transfer | None) -> float:
    """How sure it is, 0..1, that a transferred point is within `LANDED` of the true one."""
    if transfer is None:
        return POINT_UNKNOWN
    most = FAR_PLACE if transfer.gap >= FAR else 1.0
    if transfer.method == "homography" and transfer.support >= LOCAL_SHARE:
        return min(most, PLACED)
    return min(most, LOCALLY_PLACED, transfer.support)


def _near_miss(transfer: Transfer, candidates: Sequence[Spot], diagonal_px: float) -> CandidateChoice:
    """The nearest candidate of a well supported transfer that hits none, unless it is far off."""
    distances = distances_px(transfer, candidates)
    best = int(np.argmin(distances))
    chance = 1 / len(candidates)
    if distances[best] > NEAR * diagonal_px:
        return CandidateChoice(None, transfer, transfer.method, chance)
    return CandidateChoice(best, transfer, transfer.method, max(chance, MISS))


def _only(ranked: Sequence[Transfer], candidate: Spot, diagonal_px: float) -> CandidateChoice:
    """Whether the one candidate is the point."""
    hit = next((transfer for transfer in ranked if _hit(transfer, [candidate], diagonal_px)), None)
    first = hit or (ranked[0] if ranked else None)
    confidence = 0.5 if hit is None else FAR_PLACE if hit.gap >= FAR else HIT
    return CandidateChoice(0 if hit else None, first, first.method if first else "none", confidence)


def _hit(transfer: Transfer, candidates: Sequence[Spot], diagonal_px: float) -> list[int]:
    """The candidate that the transferred point hits, or nothing."""
    distances = distances_px(transfer, candidates)
    nearest = int(np.argmin(distances))
    return [nearest] if distances[nearest] <= LANDED * diagonal_px else []


def distances_px(transfer: Transfer, candidates: Sequence[Spot]) -> list[float]:
    """Distance of each candidate to the transferred point, pixels of image 2."""
    return [float(np.hypot(spot.x - transfer.x, spot.y - transfer.y)) for spot in candidates]
