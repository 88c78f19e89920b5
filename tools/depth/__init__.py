"""Relative depth: which of several points is nearest to the camera. Larger is nearer, 0..1.

`hybrid tools run depth photo.jpg --args '{"points": [{"x": 40, "y": 300}, {"x": 200, "y": 90}]}'`; without points it
compares the rings drawn on the image. `bench/depth.py` prints the scores of the weight-free backend.

The learned backend runs any checkpoint of the families in `models.FAMILIES` (Depth Anything V2 by default: Yang
et al. 2024) and draws its map; the weight-free one weights the cues of `cues.py` at the points and has no map.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import at, spot_px
from hybrid.core.types import Json
from hybrid.marks.marks_json import Label
from hybrid.tool import Args, CheckCase, Claims, Evidence, Picture, Pixels, Request, Tool
from hybrid.tool.args import UNTOLD
from hybrid.tool.backends import Learned, WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, drawn_labels, letter
from tools._shared.args import PointArg, Spot, point_markers, read_points
from tools._shared.batches import shape
from tools._shared.finding_text import Lines
from tools._shared.picture_content import shows_something, support_by_edges, support_by_patches, support_by_size
from tools._shared.reading import unmarked
from tools._shared.wording import wording_of
from tools.depth.checks import CHECKS
from tools.depth.cues import WEIGHTS, depth_of, measure, score_of
from tools.depth.models import MAX_SIDE_PX, USEFUL_SIDE_PX, DepthInput, DepthModel, DepthValues, depth_map
from tools.depth.picture import draw_depth, draw_order

# Two points are on one row if their rows differ by at most this fraction of the height.
SAME_ROW = 0.02
# Log odds below which two points count as equally near: differences of this size are rounding.
NO_EVIDENCE = 0.001
# Log odds at which the confidence of the cues is capped (85 %), because no cue shows what an object rests on. Compared
# with true depth, the most confident choices were right in 74 % of cases in a furnished room and in all cases on a
# street (docs/specialists.md).
MAX_CERTAINTY = 1.73
# Highest confidence for points on one row: there the strongest cue is no evidence, and the other cue measures haze,
# which is rare indoors.
SAME_ROW_CONFIDENCE = 0.6
# Difference of learned relative depths at which the confidence has gained 63 % of its range; an assumption, not
# measured.
SURE_GAP = 0.05
# Learned depths closer than this are equal: half a grey level of an 8-bit map.
TIE_GAP = 0.002
# Largest number of points that the text lists.
LISTED = 4
# Characters of a point's name in the text.
MAX_NAME_LENGTH = 12


class DepthArgs(Args):
    """Arguments of the depth tool."""

    points: tuple[PointArg, ...] = Field(default=(), max_length=32, description="else those drawn")
    labels: tuple[Label, ...] = Field(
        json_schema_extra=UNTOLD, default=(), max_length=5, description="drawn letters, if known"
    )


class DepthPoint(TypedDict):
    """A compared point."""

    label: str | None
    x_px: float
    y_px: float
    depth_0_1: Annotated[float, Field(description="1 is nearest")]
    depth_m: Annotated[NotRequired[float], Field(description="from networks that predict metres")]


@with_config(extra="forbid")
class DepthData(TypedDict):
    """Data of depth."""

    points: list[DepthPoint]
    nearer: Annotated[str | None, Field(description="label of the nearest point")]
    nearer_index: Annotated[int | None, Field(description="index of the nearest point, null if undecided")]
    rows_differ_px: Annotated[float | None, Field(description="between the nearest point and the next")]
    cues: Annotated[dict[str, list[float]], Field(description="each cue at each point; empty with a network")]
    decided_by: Annotated[
        NotRequired[Literal["position", "clear"] | None], Field(description="the decisive cue, without a network")
    ]


class Ranking(NamedTuple):
    """Which of the compared points is nearest, with a confidence 0..1.

    `nearest` is the point's index; None if undecided. `rows_differ` is the distance in rows between the first two
    points.
    """

    nearest: int | None
    rows_differ: float | None
    confidence: float
    runner_up: int | None = None


# Ranking for an image that shows nothing: without a visible ground, positions are no evidence.
UNSEEN = Ranking(None, None, 0.5)
SHOWS_NOTHING = "Basis: the picture shows nothing but flat colours or noise."


def spots_of(request: Request[DepthArgs]) -> list[Spot]:
    """Return the given points, else those found by the markers tool; if some of these have labels, only those.

    Raises:
        ToolError: a given point is outside the image, or no drawn point has the given letter.
    """
    size = (request.images[0].shape[0], request.images[0].shape[1])
    return read_points("depth", request.args.points, request.needs.get("markers", ()), size)


def clean_image(request: Request[DepthArgs], longest: int = MAX_SIDE_PX) -> Pixels:
    """Return the image (h, w, 3) without its drawn marks, shrunk to a long side of at most `longest` px."""
    return unmarked(request.images[0], request.needs.get("markers", ()), longest)


def rank_by_cues(scores: Sequence[float], spots: Sequence[Spot], height: int) -> Ranking:
    """Rank by log odds of nearness, one per spot, in an image `height` px high."""

    def certainty(evidence: float, rows: float) -> float:
        probability = 1 / (1 + math.exp(-min(evidence, MAX_CERTAINTY)))
        return min(probability, SAME_ROW_CONFIDENCE) if rows <= SAME_ROW * height else probability

    return _ranked(scores, spots, 0.3, NO_EVIDENCE, certainty)


def rank_by_map(depths: Sequence[float], spots: Sequence[Spot]) -> Ranking:
    """Rank by relative depths 0..1 of a learned map, one per spot."""
    return _ranked(depths, spots, 0.5, TIE_GAP, lambda gap, _: 0.5 + 0.48 * (1 - math.exp(-gap / SURE_GAP)))


def scale_confidence(ranking: Ranking, share: float) -> Ranking:
    """Return the ranking after multiplying the part of its confidence that is above a guess by `share`, 0..1."""
    if ranking.nearest is None:
        return ranking
    return ranking._replace(confidence=0.5 + (ranking.confidence - 0.5) * share)


def _ranked(
    values: Sequence[float], spots: Sequence[Spot], alone: float, tie: float, certainty: Callable[[float, float], float]
) -> Ranking:
    """Rank by the largest value.

    `certainty` maps its lead over the runner-up, and the distance of their rows, to a confidence.
    """
    if len(spots) < 2:
        return Ranking(None, None, alone)
    first, second = sorted(range(len(values)), key=lambda index: -values[index])[:2]
    gap, rows = values[first] - values[second], abs(spots[first].y - spots[second].y)
    if gap < tie:
        return Ranking(None, rows, 0.5)
    # If a point may be misplaced, the confidence in the order of the two points approaches that of a guess.
    placed = min(spots[first].confidence, spots[second].confidence)
    return Ranking(first, rows, 0.5 + (certainty(gap, rows) - 0.5) * placed, second)


class DepthCues(WeightFree[DepthArgs]):
    """The weight-free backend: cues at the points with fixed weights, no map; a fallback without a network."""

    def answer(self, request: Request[DepthArgs]) -> Evidence:
        """Rank the points of a request. Raises `ToolError` for a point outside the image."""
        size = (request.images[0].shape[0], request.images[0].shape[1])
        spots, image = spots_of(request), clean_image(request)
        maps = measure(image)
        cues = [maps.at(spot.x, spot.y, size) for spot in spots]
        scores = [score_of(values) for values in cues]
        # Weight, 0..1, of the cues: 0 if the image shows nothing, consists of flat patches, which have no shading, or
        # of soft blobs without an edge.
        shading = support_by_patches(image) * support_by_edges(image) if shows_something(image) else 0.0
        ranking = UNSEEN
        if shading > 0:
            ranking = scale_confidence(rank_by_cues(scores, spots, size[0]), support_by_size(image) * shading)
        # The cue that favours the nearest point over the runner-up most.
        decisive = None
        if ranking.nearest is not None and ranking.runner_up is not None:
            near, far = cues[ranking.nearest], cues[ranking.runner_up]
            decisive = max(WEIGHTS, key=lambda name: WEIGHTS[name] * (near[name] - far[name]))
        data: dict[str, Json] = {
            **_data(spots, [{"depth_0_1": depth_of(values)} for values in cues], ranking),
            "cues": {name: [values[name] for values in cues] for name in WEIGHTS},
            "decided_by": decisive,
        }
        reason = [SHOWS_NOTHING] if ranking is UNSEEN and spots else []
        if ranking.rows_differ is not None:
            row = f"rows differ by {at('height', ranking.rows_differ)} px"
            if ranking.rows_differ <= SAME_ROW * size[0]:
                row = "the points lie on one row, so evidence is weak"
            reason = [f"Basis: no cue decides; {row}."]
            if ranking.nearest is not None and decisive is not None:
                reason = [f"Basis: {_name(spots, ranking.nearest)} {WORDED[decisive]}; {row}."]
        order = sorted(range(len(spots)), key=lambda index: -scores[index])
        title = "Points" if ranking.nearest is None else "Nearest first"
        text = "\n".join((_head(spots, ranking), *_order(spots, order, title), *reason, NO_MAP))
        points = [(spots[index].label or str(index + 1), spots[index].x, spots[index].y) for index in order]
        picture = partial(draw_order, request.images[0], points, decided=ranking.nearest is not None)
        pictures = (Picture(picture),) if spots else ()
        return Evidence(text, data, ranking.confidence, pictures)


NO_MAP = "Read from cues at the points: there is no depth map, and what hangs or stands raised misleads them."
# Phrase for each cue that distinguishes the nearest point.
WORDED = {"position": "lies lower in the picture", "clear": "lies behind less haze"}


# The points of a request, its image prepared for the network, and whether the image shows anything.
SpottedImage = tuple[list[Spot], DepthInput, bool]


class LearnedDepth(Learned[DepthArgs, SpottedImage, DepthValues, DepthModel]):
    """The learned backend: a monocular depth model through transformers."""

    load = DepthModel

    def prepare(self, request: Request[DepthArgs]) -> SpottedImage:
        """Return the points and the unmarked image. Raises `ToolError` like `spots_of`, or for an elongated image."""
        spots, image = spots_of(request), clean_image(request, USEFUL_SIDE_PX)
        return spots, self.model.prepare(image), shows_something(image)

    def batch_key(self, prepared: SpottedImage) -> Hashable:
        """Return the shape of the image."""
        return shape(prepared[1].values)

    def compute(self, prepared: Sequence[SpottedImage]) -> list[DepthValues]:
        """Run the network on each image; one forward pass per input shape."""
        return self.model.predict([image for _, image, _ in prepared])

    def finish(self, request: Request[DepthArgs], prepared: SpottedImage, output: DepthValues) -> Evidence:
        """Rank the points and draw the map. Raises `ToolError` for values that are not finite."""
        (spots, _, seen), depth = prepared, depth_map(output, metric=self.model.metric)
        size = (request.images[0].shape[0], request.images[0].shape[1])
        values = [depth.at(spot.x, spot.y, size) for spot in spots]
        depths = [value["depth_0_1"] for value in values]
        ranking = scale_confidence(rank_by_map(depths, spots), support_by_size(request.images[0])) if seen else UNSEEN
        order = sorted(range(len(spots)), key=lambda index: -depths[index])
        metres = [
            f"{spot.label or n} {v['depth_m']:.1f} m"
            for n, (spot, v) in list(enumerate(zip(spots, values, strict=True), 1))
            if "depth_m" in v
        ]
        basis = "Basis: a depth network" + (f"; {', '.join(metres[:LISTED])}" if metres else "") + "."
        picture = Picture(
            partial(
                draw_depth,
                depth.nearness,
                size,
                [(spot.label or str(number), spot.x, spot.y) for number, spot in enumerate(spots, 1)],
            )
        )
        data = {**_data(spots, values, ranking), "cues": {}}
        reason = () if seen or not spots else (SHOWS_NOTHING,)
        text = "\n".join((_head(spots, ranking), *_order(spots, order, RELATIVE, depths), *reason, basis))
        return Evidence(text, data, ranking.confidence, (picture,))


def _data(spots: Sequence[Spot], values: Sequence[Mapping[str, float]], ranking: Ranking) -> dict[str, Json]:
    return {
        "points": [
            {"label": spot.label, "x_px": spot.x, "y_px": spot.y, **value}
            for spot, value in zip(spots, values, strict=True)
        ],
        "nearer": None if ranking.nearest is None else spots[ranking.nearest].label,
        "nearer_index": ranking.nearest,
        "rows_differ_px": ranking.rows_differ,
    }


def _name(spots: Sequence[Spot], index: int) -> str:
    return (spots[index].label or f"point {index + 1}")[:MAX_NAME_LENGTH]


def _head(spots: Sequence[Spot], ranking: Ranking) -> str:
    """Name the nearest point, or say why none is chosen."""
    if not spots:
        return "Image 1: no point was given and no mark was found, so nothing is compared."
    if len(spots) == 1:
        return "Image 1: only one point, so nothing is compared."
    if ranking.nearest is None:
        return "Image 1: undecided which point is nearer to the camera."
    return f"Image 1: {_name(spots, ranking.nearest)} is nearest to the camera, confidence {ranking.confidence:.2f}."


RELATIVE = "Relative depth (1 = nearest, 0 = farthest)"


def _order(
    spots: Sequence[Spot], order: Sequence[int], title: str, values: Sequence[float] | None = None
) -> tuple[str, ...]:
    """List points in `order` after a title, with their depth if `values` are given; empty without points."""
    if not spots:
        return ()
    labels = [
        f"{_name(spots, index)}{'' if values is None else f' {values[index]:.2f}'} "
        f"at {spot_px(spots[index].x, spots[index].y)}"
        for index in order
    ]
    more = [f" and {len(labels) - count} more" if len(labels) > count else "" for count in range(len(labels) + 1)]
    fewer = range(min(LISTED, len(labels)), 0, -1)
    line = Lines(most=160).fitting(f"{title}: {', '.join(labels[:count])}{more[count]}." for count in fewer)
    return (line,)


def points_apart(draw: Callable[[int, int], Pixels]) -> CheckCase:
    """Make a question about a high and a low point that could be answered from their heights alone."""
    points: list[Json] = [{"x": 60, "y": 40, "label": "A"}, {"x": 220, "y": 200, "label": "B"}]
    return CheckCase((draw(240, 320),), {"points": points}, lambda _: None)


TOOL = Tool(
    card=tool_card(__file__, LearnedDepth, DepthCues, point_markers),
    args=DepthArgs,
    checks=CHECKS,
    claims=Claims(("nearer_index",), compares="points", pose=points_apart),
    # Without a model, the rule answers with the nearest of the drawn points.
    rules={"Relative_Depth": OneCall("depth", letter("nearer"), drawn_labels)},
    wording=wording_of(__file__),
    output=schema_of(DepthData),
)
