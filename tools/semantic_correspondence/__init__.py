"""Semantic correspondence: the point of a second image that shows the same part, or serves for the same action.

`hybrid tools run semantic_correspondence one.png two.png --weights DIR --args '{}'`: the drawn REF of the first image
against the drawn A to D of the second.

There is only a learned backend. It compares dense features by their cosine: those of DINO or, for weights in diffusers'
layout, those of Stable Diffusion, called DIFT (Tang et al. 2023; `models.py`). Recognising corresponding parts, such as
two beaks, needs a network.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.errors import ToolError
from hybrid.core.types import Fault, Finding, Json
from hybrid.marks.marks import Marks, remove_marks
from hybrid.marks.marks_json import Label, marks_from
from hybrid.tool import Args, CheckCase, CheckSeries, Claims, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.args import UNTOLD
from hybrid.tool.backends import Learned, check_finite
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, drawn_labels, letter
from tools._shared.args import CandidateArg, PointArg, Spot, read_points
from tools._shared.batches import shape, side_by_side
from tools._shared.dense_features import FeatureGrid, FeatureInput, FeatureMap
from tools._shared.known_answers import SEED, Plane, coloured, expects, lit, pattern, point_args
from tools._shared.overlay import PALETTE, overlay
from tools._shared.picture_content import shows_something
from tools._shared.reading import shrink
from tools._shared.wording import wording_of
from tools.semantic_correspondence.models import FeatureModel, feature_model

REFERENCE = "REF"
# Difference of cosines that multiplies the odds by e; an assumption, not measured.
SOFTNESS = 0.05
MAX_CERTAINTY = 0.85
MAX_SIDE_PX = 1024


class SemanticArgs(Args):
    """Arguments of semantic correspondence."""

    point: PointArg | None = Field(default=None, description="in image 1, else the drawn REF")
    candidates: tuple[CandidateArg, ...] = Field(default=(), max_length=12, description="in image 2, else those drawn")
    labels: tuple[Label, ...] = Field(
        json_schema_extra=UNTOLD, default=("A", "B", "C", "D"), max_length=5, description="letters drawn in image 2"
    )
    thing: str = Field(default="", max_length=60, description="what both show, e.g. cat")


class ComparedPoint(TypedDict):
    """A candidate of image 2."""

    label: str | None
    x_px: float
    y_px: float
    cosine: Annotated[float | None, Field(description="of its features with the reference's, null if not compared")]


@with_config(extra="forbid")
class SemanticData(TypedDict):
    """Data of semantic correspondence."""

    best: Annotated[str | None, Field(description="label of the chosen candidate")]
    best_index: Annotated[int | None, Field(description="index of the chosen candidate, null if undecided")]
    reference_px: Annotated[tuple[float, float] | None, Field(description="x, y in image 1, null if not found")]
    candidates: list[ComparedPoint]
    peak_px: Annotated[
        tuple[float, float] | None, Field(description="x, y of the place of image 2 most like the reference")
    ]


# Confidence if the points were not found: lower than for a guess among four.
NOTHING_COMPARED = 0.1
# Difference of two cosines that is rounding.
TIE = 1e-6


class FeatureMatch(NamedTuple):
    """The comparison of all candidates, with a confidence 0..1 in the best one.

    `cosines` has each candidate's cosine with the reference, -1..1. `best` is the best candidate's index; None for a
    tie.
    """

    cosines: tuple[float, ...]
    best: int | None
    confidence: float


def read_spots(request: Request[SemanticArgs]) -> tuple[Spot | None, list[Spot]]:
    """Return the reference in image 1 (None if not found) and the candidates in image 2 (maybe fewer than two).

    Raises:
        ToolError: the arguments give only 1 candidate, a point outside the image, or a letter that no drawn point has.
    """
    first, second = request.images[0].shape, request.images[1].shape
    findings = request.needs.get("markers", ())
    args = request.args
    if len(args.candidates) == 1:
        raise ToolError("semantic_correspondence: 1 candidate; give at least two, or none", Fault.BAD_ARGUMENTS)
    argument_points = (args.point,) if args.point else ()
    reference_spots = read_points("semantic_correspondence", argument_points, findings[:1], (first[0], first[1]))
    references = reference_spots[:1] if args.point else [spot for spot in reference_spots if spot.label == REFERENCE]
    spots = read_points("semantic_correspondence", args.candidates, findings[1:2], (second[0], second[1]))
    # Both images are searched for all letters, so a REF that was found in image 2 is a false positive.
    candidates = [spot for spot in spots if args.candidates or spot.label != REFERENCE]
    return (references[0] if references else None), candidates


def decide(cosines: Sequence[float], reference: Spot, candidates: Sequence[Spot]) -> FeatureMatch:
    """Choose the candidate with the largest cosine; the confidence is its softmax share, lower for uncertain points."""
    top = max(cosines)
    weights = [math.exp((value - top) / SOFTNESS) for value in cosines]
    best = max(range(len(cosines)), key=lambda index: cosines[index])
    chance = 1 / len(cosines)
    if sum(value >= top - TIE for value in cosines) > 1:
        return FeatureMatch(tuple(cosines), None, chance)
    placed = min(reference.confidence, *(spot.confidence for spot in candidates))
    share = min(MAX_CERTAINTY, weights[best] / sum(weights))
    return FeatureMatch(tuple(cosines), best, chance + (share - chance) * placed)


class SpottedPair(NamedTuple):
    """The reference in image 1, the candidates in image 2, and the network's inputs for both images.

    Without a reference or two candidates there is nothing to compare, so no image is prepared.
    """

    reference: Spot | None
    candidates: tuple[Spot, ...]
    images: tuple[FeatureInput, ...]
    # Whether both images show something.
    seen: bool = True


class DenseMatch(Learned[SemanticArgs, SpottedPair, list[FeatureGrid], FeatureModel]):
    """The learned backend: cosine of dense features at the points."""

    load = staticmethod(feature_model)

    def prepare(self, request: Request[SemanticArgs]) -> SpottedPair:
        """Return points and images without marks. Raises `ToolError` like `read_spots`, or for an elongated image."""
        reference, candidates = read_spots(request)
        if reference is None or len(candidates) < 2:
            return SpottedPair(reference, tuple(candidates), ())
        markers, thing = request.needs.get("markers", ()), request.args.thing.strip()
        cleaned = [
            clean(pixels, markers[place : place + 1], reference=place == 0)
            for place, pixels in enumerate(request.images)
        ]
        images = tuple(self.model.prepare(pixels, thing=thing, seed=request.seed) for pixels in cleaned)
        return SpottedPair(reference, tuple(candidates), images, all(map(shows_something, cleaned)))

    def batch_key(self, prepared: SpottedPair) -> Hashable:
        """Return the shapes of both images."""
        return shape(*(image.values for image in prepared.images))

    def compute(self, prepared: Sequence[SpottedPair]) -> list[list[FeatureGrid]]:
        """Compute the features of the images of each request; all requests share passes."""
        return side_by_side(self.model.predict, [item.images for item in prepared])

    def finish(self, request: Request[SemanticArgs], prepared: SpottedPair, output: list[FeatureGrid]) -> Evidence:
        """Choose the candidate most similar to the reference. Raises `ToolError` for values that are not finite."""
        if prepared.reference is None or not prepared.images:
            return report(request, prepared, None, None)
        check_finite("semantic_correspondence", *output)
        # Points refer to the original images; the features come from shrunk copies.
        first, second = (
            FeatureMap(features, (pixels.shape[0], pixels.shape[1]))
            for features, pixels in zip(output, request.images, strict=True)
        )
        reference_vector = first.at(prepared.reference.x, prepared.reference.y)
        cosines = [float(np.clip(reference_vector @ second.at(spot.x, spot.y), -1, 1)) for spot in prepared.candidates]
        match = FeatureMatch(tuple(cosines), None, 1 / len(cosines))
        if prepared.seen:
            match = decide(cosines, prepared.reference, prepared.candidates)
        return report(request, prepared, match, second.similarity(reference_vector))


def clean(pixels: Pixels, markers: Sequence[Finding], *, reference: bool) -> Pixels:
    """Remove the marks of one role (REF, or the candidates) from an image and shrink it to `MAX_SIDE_PX`."""
    for finding in markers:
        points = marks_from(finding.data).points
        pixels = remove_marks(
            pixels, Marks(tuple(point for point in points if (point.label == REFERENCE) == reference), ())
        )
    return shrink(pixels, MAX_SIDE_PX)


def report(
    request: Request[SemanticArgs], seen: SpottedPair, match: FeatureMatch | None, similarity: FeatureGrid | None
) -> Evidence:
    """Build the tool output from a match; without one, the reference or two candidates were not found.

    Returns:
        Evidence with `SemanticData` and an overlay of each image. The confidence is the probability that `best` is
        right.
    """
    reference, candidates, peak = seen.reference, seen.candidates, None
    # In an even map no place is more like the reference than another.
    if similarity is not None and seen.seen and float(np.ptp(similarity)) > TIE:
        spot = np.unravel_index(int(similarity.argmax()), similarity.shape)
        sides = zip(spot, request.images[1].shape[:2], similarity.shape, strict=True)
        peak = [float((cell + 0.5) * side / cells - 0.5) for cell, side, cells in sides][::-1]
    best = None if match is None else match.best
    data: dict[str, Json] = {
        "best": None if best is None else candidates[best].label,
        "best_index": best,
        "reference_px": None if reference is None else [reference.x, reference.y],
        "candidates": [
            {"label": spot.label, "x_px": spot.x, "y_px": spot.y, "cosine": None if match is None else match.cosines[n]}
            for n, spot in enumerate(candidates)
        ],
        "peak_px": peak,
    }
    if reference is None or match is None:
        missing = "no REF" if reference is None else "a reference"
        text = (
            f"Undecided: {missing} in image 1 and {len(candidates)} candidates in image 2 were given or found; a "
            "reference and at least two candidates are needed.\nGive `point` and `candidates` in pixels."
        )
        return Evidence(text, data, NOTHING_COMPARED)
    names = [spot.label or str(number) for number, spot in enumerate(candidates, 1)]
    head = "The candidates of image 2 are equally like the reference: undecided."
    if best is not None:
        head = f"Point {names[best]} of image 2 is most like the reference point of image 1."
    values = ", ".join(f"{name} {value:.2f}" for name, value in list(zip(names, match.cosines, strict=True))[:8])
    text = f"{head}\nCosine of features (1 = alike): {values}.\nBasis: features of a network."
    point = (reference.x, reference.y, REFERENCE, PALETTE[0])
    points = [
        (spot.x, spot.y, f"{names[n]} {match.cosines[n]:.2f}", PALETTE[0 if n == best else 1])
        for n, spot in enumerate(candidates)
    ]
    first = overlay(request.images[0], "reference point (x, y in px)", points=[point])
    second = overlay(request.images[1], "cosine with the reference (-1 to 1); cyan: best", points=points, of=1)
    return Evidence(text, data, match.confidence, (first, second))


def marker_arguments(args: SemanticArgs) -> Mapping[str, Json]:
    """Return the markers tool's arguments, which request the reference and the given letters."""
    return {"labels": list(dict.fromkeys((*args.labels, REFERENCE))), "kind": "point"}


HEIGHT, WIDTH, RADIUS, PERIOD = 480, 640, 84, 42
DARK, BRIGHT, GROUND = (70, 60, 50), (215, 195, 165), (140, 130, 120)
# Forms, scale in pixels per pixel of the plan, and the index of each form's quarter in the second image.
SCENES: tuple[tuple[tuple[str, ...], float, tuple[int, ...]], ...] = (
    (("rings", "stripes", "checks", "spokes"), 1.0, (1, 3, 0, 2)),
    (("dots", "waves", "spokes", "blobs"), 2.2, (3, 2, 1, 0)),
    (("crosses", "rings", "waves", "checks"), 1.0, (2, 0, 3, 1)),
)
MAX_TURNED = 0.35
SMALLER, LARGER = 0.85, 1.2
SERIES = CheckSeries("the same pattern moved, turned and in another light", 10)


def _centres(rng: np.random.Generator) -> list[tuple[float, float]]:
    """Choose one random position (x, y) in each quarter of the plan."""
    shifts = rng.uniform(-24, 24, (4, 2))
    return [
        (WIDTH * (0.25 + 0.5 * (n % 2)) + dx, HEIGHT * (0.25 + 0.5 * (n // 2)) + dy)
        for n, (dx, dy) in enumerate(shifts)
    ]


def _scene(patterns: list[tuple[str, float, float]], places: list[tuple[float, float]], zoom: float) -> Plane:
    """Draw discs of patterns (form, scale, angle) at positions on a plain ground, (h, w, 3) of 0..255."""
    import cv2

    height, width = round(HEIGHT * zoom), round(WIDTH * zoom)
    canvas = np.empty((height, width, 3), np.float32)
    canvas[:] = GROUND
    for (form, scale, angle), (x, y) in zip(patterns, places, strict=True):
        radius = round(RADIUS * scale * zoom)
        side = 2 * radius + 1
        patch = coloured(pattern(form, side, side, period=PERIOD * scale * zoom, angle=angle), DARK, BRIGHT)
        disc = cv2.circle(np.zeros((side, side), np.float32), (radius, radius), radius - 1, 1.0, -1, cv2.LINE_AA)
        x0, y0 = round(x * zoom) - radius, round(y * zoom) - radius
        window = canvas[max(0, y0) : y0 + side, max(0, x0) : x0 + side]
        starts = zip((max(0, -y0), max(0, -x0)), window.shape[:2], strict=True)
        rows, columns = (slice(start, start + length) for start, length in starts)
        share = disc[rows, columns, None]
        window[:] = share * patch[rows, columns] + (1 - share) * window
    return canvas


@lru_cache(maxsize=1)
def pair(number: int) -> tuple[Pixels, Pixels, list[tuple[float, float]], list[tuple[float, float]]]:
    """Return two images of scene `number` of `SCENES`, and the centre (x, y) of each form in both, pixels.

    The last scene is cached: four consecutive questions are about one scene.
    """
    forms, zoom, moved = SCENES[number]
    rng = np.random.default_rng((SEED, number))
    first, quarters = _centres(rng), _centres(rng)
    second = [quarters[place] for place in moved]
    changed = [
        (form, float(rng.choice((SMALLER, LARGER))), float(rng.choice((-1, 1)) * rng.uniform(0.15, MAX_TURNED)))
        for form in forms
    ]
    first_image = lit(_scene([(form, 1.0, 0.0) for form in forms], first, zoom), 1.0)
    second_image = _scene(changed, second, zoom)
    fading = np.broadcast_to(np.linspace(0.55, 0.95, second_image.shape[1], dtype=np.float32), second_image.shape[:2])
    first, second = ([(x * zoom, y * zoom) for x, y in places] for places in (first, second))
    return first_image, lit(second_image, fading, (1.0, 0.95, 0.85)), first, second


def _same_pattern(number: int, place: int) -> CheckCase:
    first_image, second_image, first, second = pair(number)
    args: dict[str, Json] = {"point": point_args(first)[place], "candidates": point_args(second)}
    return CheckCase((first_image, second_image), args, expects("best_index", place))


CHECKS = tuple(
    KnownAnswer(f"{form}, scene {number + 1}", partial(_same_pattern, number, place), SERIES)
    for number, (forms, _, _) in enumerate(SCENES)
    for place, form in enumerate(forms)
)


TOOL = Tool(
    card=tool_card(__file__, DenseMatch, marker_arguments),
    args=SemanticArgs,
    checks=CHECKS,
    claims=Claims(("best_index",), compares="candidates"),
    # Without a model, the rule answers with the drawn candidate that is the same part, or serves the same action.
    rules={
        "Functional_Correspondence": OneCall("semantic_correspondence", letter(), drawn_labels),
        "Semantic_Correspondence": OneCall("semantic_correspondence", letter(), drawn_labels),
    },
    wording=wording_of(__file__),
    output=schema_of(SemanticData),
)
