"""Correspondence: where a point of one image is in another image of the same scene, and which candidate is there.

    hybrid tools run correspondence one.png two.png --args '{"point": {"x": 40, "y": 90}}'

By default the point is the one marked REF in image 1 and the candidates are those marked in image 2. Matches between
the images transfer the point (`point_transfer.py`); the candidate nearest to it is the answer. The learned backend
finds the matches with a network (`_shared/match_models.py`), the weight-free one with RootSIFT and ORB.
`bench/correspondence.py` prints the scores of the weight-free one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import at, size_px, spot_px
from hybrid.core.types import Finding, Json
from hybrid.marks.marks import Marks
from hybrid.marks.marks_json import Label, marks_from
from hybrid.tool import Args, CheckCase, Claims, Evidence, KnownAnswer, Picture, Request, Tool
from hybrid.tool.backends import WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, letter
from tools._shared.args import CandidateArg, PointArg, Spot, read_points
from tools._shared.flat_pairs import NEAR, SIZES, agreeing, flat_pair, wrong_matches
from tools._shared.known_answers import expects, known_item, number, point_args
from tools._shared.match_models import LearnedPairs
from tools._shared.pair_picture import DrawnPoint, dot_colours, draw_view, thinned
from tools._shared.picture_content import is_patchwork, repeats, shows_something
from tools._shared.reflection import match_either_hand
from tools._shared.view_matches import FRAME_PX, Matches, MatchView, view_of
from tools._shared.wording import wording_of
from tools.correspondence.point_transfer import (
    FAR,
    POINT_UNKNOWN,
    CandidateChoice,
    choose,
    descriptor_distances,
    distances_px,
    place_confidence,
    transfers,
)
from tools.markers import MarkersArgs, locate

REFERENCE: Label = "REF"
# Height and width in pixels.
Size = tuple[int, int]


class CorrespondenceArgs(Args):
    """Arguments of the correspondence tool."""

    point: PointArg | None = Field(default=None, description="in image 1, else the drawn REF")
    candidates: tuple[CandidateArg, ...] = Field(default=(), max_length=16, description="in image 2, else those drawn")


class Position(TypedDict):
    """A point in pixels."""

    x: float
    y: float


class CandidateDistance(TypedDict):
    """A candidate of image 2."""

    label: str | None
    x_px: float
    y_px: float
    distance_px: Annotated[float | None, Field(description="to the transferred point")]
    descriptor_distance: Annotated[float | None, Field(description="of the surroundings; null if the matches decide")]


@with_config(extra="forbid")
class CorrespondenceData(TypedDict):
    """Data of correspondence."""

    method: Annotated[
        Literal["homography", "local_affine", "descriptor", "none"], Field(description="what the transfer rests on")
    ]
    transferred_px: Annotated[Position | None, Field(description="the point of image 1 in image 2, null if unknown")]
    inliers: Annotated[int, Field(description="matches that agree with the transfer")]
    matches: Annotated[int, Field(description="matches of both images")]
    matcher: Annotated[str, Field(description="what found the matches")]
    best: Annotated[str | None, Field(description="label of the chosen candidate")]
    best_index: Annotated[int | None, Field(description="index of the chosen candidate, null if undecided")]
    point_px: Annotated[Position | None, Field(description="the point in image 1, null if it was not found")]
    candidates: list[CandidateDistance]


def reference_of(request: Request[CorrespondenceArgs]) -> Spot | None:
    """Return the point of image 1: the argument, else the mark REF, else the only mark; None if no mark identifies it.

    Raises:
        ToolError: the given point is outside the image, or no drawn point has the given letter.
    """
    markers = list(request.needs.get("markers", ())[:1])
    if request.args.point is not None:
        return read_points("correspondence", [request.args.point], markers, _size(request, 0))[0]
    spots = read_points("correspondence", (), markers, _size(request, 0))
    references = [spot for spot in spots if spot.label == REFERENCE]
    if not references and len(spots) > 1:
        # Searching for a named letter succeeds in some images where searching for any letter fails.
        located = locate(request.images[0], MarkersArgs(labels=(REFERENCE,), kind="point"))
        markers = [Finding(located.text, located.data, located.confidence, "classical", "")]
        spots = read_points("correspondence", (), markers, _size(request, 0))
        references = [spot for spot in spots if spot.label == REFERENCE]
    if len(spots) == 1:
        return spots[0]
    return references[0] if len(references) == 1 else None


def candidates_of(request: Request[CorrespondenceArgs]) -> list[Spot]:
    """Return the given candidates, else the points marked in image 2. Raises `ToolError` if one is outside image 2."""
    markers = request.needs.get("markers", ())[1:2]
    spots = read_points("correspondence", request.args.candidates, markers, _size(request, 1))
    return [spot for spot in spots if spot.label != REFERENCE or request.args.candidates]


def views_of(request: Request[CorrespondenceArgs]) -> tuple[MatchView, MatchView]:
    """Return both images, shrunk, without their drawn marks."""
    marks = [marks_from(finding.data) for finding in request.needs.get("markers", ())]
    point_marks = [Marks(mark.points) for mark in marks]
    point_marks += [Marks()] * (2 - len(point_marks))
    return view_of(request.images[0], point_marks[0]), view_of(request.images[1], point_marks[1])


def solve(request: Request[CorrespondenceArgs], views: tuple[MatchView, MatchView], matches: Matches) -> Evidence:
    """Transfer the point of one request with the matches of its views (from `views_of`).

    Returns:
        Evidence with `CorrespondenceData` and, if the point is known, an overlay of each image.

    Raises:
        ToolError: raised by `reference_of` or `candidates_of`.
    """
    point, candidates = reference_of(request), candidates_of(request)
    sizes = (_size(request, 0), _size(request, 1))
    confidence = POINT_UNKNOWN
    choice = CandidateChoice(None, None, "none", POINT_UNKNOWN)
    if point is not None:
        position = (point.x, point.y)
        # In a picture that repeats itself, only the border distinguishes equal places.
        repeated = all(map(repeats, request.images))

        def compare() -> Sequence[float]:
            # Similar descriptors prove nothing in an image that shows nothing or only flat patches; agreeing matches
            # still do.
            if not all(map(shows_something, request.images)) or any(map(is_patchwork, request.images)):
                return [math.nan] * len(candidates)
            if repeated:
                return [math.nan] * len(candidates)
            return descriptor_distances(views, position, [(spot.x, spot.y) for spot in candidates])

        ranked = [] if repeated else transfers(position, matches, sizes)
        choice = choose(ranked, compare, candidates, float(np.hypot(*sizes[1])))
        # If a mark may be misplaced, the confidence approaches that of a guess among the candidates.
        trust = min(spot.confidence for spot in (point, *candidates))
        chance = 1 / max(2, len(candidates))
        confidence = chance + (choice.confidence - chance) * trust if choice.confidence > chance else choice.confidence
    transfer = choice.transfer
    distances = None if transfer is None else distances_px(transfer, candidates)
    data: dict[str, Json] = {
        "method": choice.method,
        "transferred_px": None if transfer is None else {"x": transfer.x, "y": transfer.y},
        "inliers": 0 if transfer is None else transfer.inliers,
        "matches": len(matches),
        "matcher": matches.matcher,
        "best": None if choice.best is None else candidates[choice.best].label,
        "best_index": choice.best,
        "point_px": None if point is None else {"x": point.x, "y": point.y},
        "candidates": _candidate_rows(candidates, distances, choice.likeness),
    }
    if point is None:
        text = "Undecided: no point marked REF was found in image 1.\nGive the point's x and y."
        return Evidence(text, data, POINT_UNKNOWN)
    text = describe(choice, candidates, matches, confidence, sizes[1], searched="markers" in request.needs)
    return Evidence(text, data, confidence, _pictures(request, point, candidates, choice, matches))


def _candidate_rows(
    candidates: Sequence[Spot], distances: Sequence[float] | None, likeness: Sequence[float]
) -> list[Json]:
    """List the data of each candidate: distance to the transferred point in px, descriptor distance if known."""
    return [
        {
            "label": spot.label,
            "x_px": spot.x,
            "y_px": spot.y,
            "distance_px": None if distances is None else distances[number],
            "descriptor_distance": likeness[number] if likeness and np.isfinite(likeness[number]) else None,
        }
        for number, spot in enumerate(candidates)
    ]


def _pictures(
    request: Request[CorrespondenceArgs],
    point: Spot,
    candidates: Sequence[Spot],
    choice: CandidateChoice,
    matches: Matches,
) -> tuple[Picture, ...]:
    """Draw the points on both images, and the agreeing matches if a transfer was accepted."""
    transfer = choice.transfer
    distances = None if transfer is None else distances_px(transfer, candidates)
    agreeing = np.zeros(0, np.intp) if transfer is None else transfer.agreeing
    sampled = agreeing[thinned(len(agreeing))]
    colours = dot_colours(matches.first[sampled])
    dots = (
        "dots of one colour: matched points (x, y in px)" if len(sampled) else "no matches agree on where the point is"
    )
    query_point = DrawnPoint(point.label or "point", point.x, point.y)
    spots = [
        DrawnPoint(
            name if distances is None else f"{name} {distances[number]:.0f} px",
            spot.x,
            spot.y,
            chosen=number == choice.best,
        )
        for number, (name, spot) in enumerate(zip(names_of(candidates), candidates, strict=True))
    ]
    legend = [dots]
    if transfer is not None:
        spots.append(DrawnPoint("from image 1", transfer.x, transfer.y, cross=True))
        rings = "; rings: distance to it" if candidates else ""
        legend.append(f"cross: where the point of image 1 goes{rings}")
    if choice.best is not None:
        legend.append("yellow: the chosen point")
    return (
        Picture(partial(draw_view, request.images[0], matches.first[sampled], colours, [query_point], [dots]), of=0),
        Picture(partial(draw_view, request.images[1], matches.second[sampled], colours, spots, legend), of=1),
    )


def _size(request: Request[CorrespondenceArgs], image: int) -> Size:
    return request.images[image].shape[0], request.images[image].shape[1]


class FeatureMatches(WeightFree[CorrespondenceArgs]):
    """The weight-free backend: RootSIFT and ORB."""

    def answer(self, request: Request[CorrespondenceArgs]) -> Evidence:
        """Solve a request. Raises what `solve` raises."""
        views = views_of(request)
        return solve(request, views, match_either_hand(*views))


class LearnedMatches(LearnedPairs[CorrespondenceArgs]):
    """The learned backend: a network finds the matches; the point is transferred as in `FeatureMatches`."""

    views, solve = staticmethod(views_of), staticmethod(solve)


def marker_arguments(_: CorrespondenceArgs) -> Mapping[str, Json]:
    """Return the markers tool's arguments, which request all drawn points."""
    # The letters differ between the two images, so none is named.
    return {"labels": [], "kind": "point"}


LISTED = 4
# Confidence in the transferred point below which the text calls it unsure.
UNSURE_PLACE = 0.5
BASES = {
    "homography": "one flat mapping of the whole picture",
    "local_affine": "the matches nearest to the point",
    "descriptor": "how alike the surroundings of the points look; no mapping hit a candidate",
    "none": "nothing: the matches around the point do not agree",
}


def names_of(candidates: Sequence[Spot]) -> list[str]:
    """Return the label of each candidate, else `candidate N`."""
    return [spot.label or f"candidate {number}" for number, spot in enumerate(candidates, 1)]


def describe(
    choice: CandidateChoice,
    candidates: Sequence[Spot],
    matches: Matches,
    certainty: float,
    size: Size,
    *,
    searched: bool,
) -> str:
    """Describe a choice in lines. `size` is (height, width) of image 2; `searched`: whether marks were sought."""
    names = names_of(candidates)
    if choice.best is not None:
        lines = [f"{names[choice.best]} of image 2 is the point of image 1, confidence {certainty:.2f}."]
    elif not candidates:
        lines = [] if choice.transfer else ["Undecided where in image 2 the point of image 1 is."]
    elif choice.transfer is not None:
        lines = ["None of the points of image 2 lies where the point of image 1 goes."]
    else:
        lines = ["Undecided which point of image 2 is the point of image 1."]
    if choice.transfer is not None:
        (height, width), (x, y) = size, (choice.transfer.x, choice.transfer.y)
        inside = "" if 0 <= x < width and 0 <= y < height else ", outside of it"
        lies = "lies" if place_confidence(choice.transfer) >= UNSURE_PLACE else "may lie (unsure)"
        location = f"{spot_px(x, y, 2)} of image 2 ({size_px(width, height, 2)}){inside}"
        lines.append(f"By the matches the point of image 1 {lies} at {location}.")
        if choice.transfer.gap >= FAR:
            lines.append("No match near the point supports that.")
        distances = distances_px(choice.transfer, candidates)
        order = sorted(range(len(candidates)), key=lambda index: distances[index])[:LISTED]
        if order:
            distance_texts = ", ".join(f"{names[index]} {at('width', distances[index], 2)} px" for index in order)
            lines.append(f"Distance from there: {distance_texts}.")
    if not candidates and searched:
        lines.append("No points to choose from were found in image 2.")
    if matches.mirrored:
        lines.append("Image 2 shows the scene as in a mirror.")
    inliers = 0 if choice.transfer is None else choice.transfer.inliers
    lines.append(f"Basis: {BASES[choice.method]}; {len(matches)} matches, {inliers} agree.")
    return "\n".join(lines)


# The queried point, as fractions of the first image's size.
ASKED = (0.6, 0.4)


def _same_place(index: int) -> CheckCase:
    from hybrid.samples.geometry import visual_correspondence
    from hybrid.samples.item import CorrespondenceFacts

    item = known_item(visual_correspondence, "Visual_Correspondence", index, 1 - index)
    assert isinstance(item.facts, CorrespondenceFacts)  # noqa: S101 - the only type of this task
    facts = item.facts
    args: dict[str, Json] = {"point": point_args([facts.ref])[0], "candidates": point_args(facts.candidates)}
    return CheckCase(item.images, args, expects("best_index", item.answer))


def _flat(index: int) -> CheckCase:
    pair = flat_pair(index)
    height, width = pair.images[0].shape[:2]
    query = (ASKED[0] * width, ASKED[1] * height)
    args: dict[str, Json] = {"point": point_args([query])[0]}

    def misplaced(evidence: Evidence) -> str | None:
        place = evidence.data["transferred_px"]
        if not isinstance(place, dict):
            return "the point was not found"
        predicted = np.array([number(place, "x"), number(place, "y")])
        unit = max(pair.images[1].shape[:2]) / FRAME_PX
        off = float(np.hypot(*(predicted - pair.true_points(np.array([query]))[0]))) / unit
        return f"the point is {off:.1f} of {FRAME_PX:.0f} off" if off > NEAR else agreeing(evidence)

    return CheckCase(pair.images, args, misplaced, partial(wrong_matches, pair=pair))


CHECKS = (
    *(KnownAnswer(f"same place, pair {index}", partial(_same_place, index)) for index in (0, 1)),
    *(KnownAnswer(f"flat scene, pair {index}", partial(_flat, index)) for index in range(len(SIZES))),
)


TOOL = Tool(
    card=tool_card(__file__, LearnedMatches, FeatureMatches, marker_arguments),
    args=CorrespondenceArgs,
    checks=CHECKS,
    claims=Claims(("best_index",), compares="candidates"),
    # Without a model, the rule answers with the drawn candidate that corresponds to REF.
    rules={"Visual_Correspondence": OneCall("correspondence", letter())},
    wording=wording_of(__file__),
    output=schema_of(CorrespondenceData),
)
