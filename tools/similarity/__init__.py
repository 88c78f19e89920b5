"""Similarity: which of the other images is closest to the first in content, layout or style.

    hybrid tools run similarity reference.jpg one.jpg two.jpg --args '{"aspect": "style"}'

The weight-free backend compares statistics of colour, gradients and texture (`cues.py`); the learned one compares
features of DINOv2 or SigLIP (`models.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.types import Box, Json
from hybrid.tool import Args, CheckCase, CheckSeries, Claims, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.backends import Learned, WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, later_image
from tools._shared.batches import side_by_side
from tools._shared.finding_text import Lines
from tools._shared.known_answers import FORMS, coloured, expects, lit, pattern
from tools._shared.overlay import PALETTE, overlay
from tools._shared.picture_content import is_coarse_noise, is_patchwork, shows_something
from tools._shared.wording import wording_of
from tools.similarity import cues, models
from tools.similarity.models import ImageFeatures, Layers

Aspect = Literal["content", "layout", "style", "all"]
ASPECTS: tuple[Aspect, ...] = ("content", "layout", "style", "all")
MAX_IMAGES = 6
TIE = 1e-6
# Gap below which images of one colour or noise are tied: two samples of one noise differ by up to 0.02.
GRAIN_TIE = 0.05
# Images are copies if their versions reduced to COPY_PX differ by at most COPY_LEVELS grey levels on average.
COPY_PX, COPY_LEVELS = 32, 4.0
# Gap of similarity at which the confidence has gained 63 % of its range; an assumption, not measured.
SURE_GAP = 0.3
# Highest confidences. Colour statistics say little about perceived similarity; neither backend was measured on labelled
# pairs.
WEIGHT_FREE_CEILING, LEARNED_CEILING = 0.65, 0.85


class SimilarityArgs(Args):
    """Arguments of the similarity tool."""

    aspect: Aspect = Field(default="all", description="content: what is shown; style: how it is made")


class Likeness(TypedDict):
    """How similar an image is to the first."""

    image: Annotated[int, Field(description="its number, from 1")]
    content_0_1: float
    layout_0_1: float
    style_0_1: float
    all_0_1: Annotated[float, Field(description="content, layout and style together")]


@with_config(extra="forbid")
class SimilarityData(TypedDict):
    """Data of similarity."""

    aspect: Aspect
    best: Annotated[int | None, Field(description="index of the closest image, 0 for image 2; null if undecided")]
    candidates: list[Likeness]
    margin_0_1: Annotated[float | None, Field(description="lead of the closest image, null for a single one")]


def decide(scores: Sequence[float], ceiling: float, tie: float = TIE) -> tuple[int | None, float]:
    """Return the index of the highest similarity and the confidence in it; None and the chance level for a tie.

    A single image is trivially the closest, so nothing is decided and the result is None and 0.
    """
    if len(scores) == 1:
        return None, 0.0
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    gap, chance = scores[order[0]] - scores[order[1]], 1 / len(scores)
    if gap < tie:
        return None, chance
    return order[0], chance + (ceiling - chance) * (1 - float(np.exp(-gap / SURE_GAP)))


def _smallest_gap(images: Sequence[Pixels]) -> float:
    """Return the gap of similarity below which images are tied."""
    if any(shows_something(pixels) and not is_patchwork(pixels) for pixels in images):
        return TIE
    if any(map(shows_something, images)) and any(is_copy(images[0], other) for other in images[1:]):
        return GRAIN_TIE
    # Images of 1/f noise, without an edge, or of patches of any colours differ in colour and layout by chance, by any
    # amount.
    return float("inf") if any(shows_something(pixels) or is_coarse_noise(pixels) for pixels in images) else GRAIN_TIE


def is_copy(first: Pixels, second: Pixels) -> bool:
    """Return whether two images (H, W, 3) are nearly the same, at any size."""
    import cv2

    small = [
        np.asarray(cv2.resize(pixels, (COPY_PX, COPY_PX), interpolation=cv2.INTER_AREA), np.float32)
        for pixels in (first, second)
    ]
    return float(np.abs(small[0] - small[1]).mean()) <= COPY_LEVELS


def evidence_of(
    images: Sequence[Pixels], rows: Sequence[Mapping[str, float]], aspect: Aspect, ceiling: float, basis: str
) -> Evidence:
    """Build the tool output from the similarity of each other image to the first; `rows` has one mapping per image.

    Returns:
        Evidence with `SimilarityData` and an overlay of each other image.
    """
    scores = [row[aspect] for row in rows]
    best, certainty = decide(scores, ceiling, _smallest_gap(images))
    ranked = sorted(scores, reverse=True)
    candidates: list[Json] = [
        {"image": place + 2, **{f"{name}_0_1": round(row[name], 4) for name in ASPECTS}}
        for place, row in enumerate(rows)
    ]
    data: dict[str, Json] = {
        "aspect": aspect,
        "best": best,
        "candidates": candidates,
        "margin_0_1": round(ranked[0] - ranked[1], 4) if len(ranked) > 1 else None,
    }
    pictures = []
    for place, score in enumerate(scores, 1):
        height, width = images[place].shape[:2]
        frame = [(Box(0, 0, width, height), "closest to image 1", PALETTE[1])] if place - 1 == best else []
        caption = f"image {place + 1}: {aspect} likeness {score:.2f} of 1"
        pictures.append(overlay(images[place], caption, boxes=frame, of=place))
    return Evidence(describe(rows, aspect, best, certainty, basis), data, certainty, tuple(pictures))


def describe(
    rows: Sequence[Mapping[str, float]], aspect: Aspect, best: int | None, certainty: float, basis: str
) -> str:
    """Describe the ranking in at most six lines for the model."""
    what = "content, layout and style together" if aspect == "all" else aspect
    if len(rows) == 1:
        head = f"Image 2 is the only one to compare with image 1 in {what}: nothing to choose from."
    elif best is None:
        head = f"Undecided which image is closest to image 1 in {what}: two are equally close."
    else:
        head = f"Image {best + 2} is closest to image 1 in {what}, confidence {certainty:.2f}."
    order = sorted(range(len(rows)), key=lambda place: -rows[place][aspect])
    lines = [
        f"Image {place + 2}: likeness (0 to 1) "
        + ", ".join(f"{name} {rows[place][name]:.2f}" for name in ("content", "layout", "style"))
        + "."
        for place in order[:4]
    ]
    return Lines().cut(head, *lines, f"Basis: {basis}.")


class Statistics(WeightFree[SimilarityArgs]):
    """The weight-free backend."""

    def answer(self, request: Request[SimilarityArgs]) -> Evidence:
        """Compare the images of a request."""
        first, *others = (cues.describe(pixels) for pixels in request.images)
        rows = [cues.likeness(first, other) for other in others]
        basis = "statistics of colour, gradients and texture; it does not know what is shown"
        return evidence_of(request.images, rows, request.args.aspect, WEIGHT_FREE_CEILING, basis)


class LearnedFeatures(Learned[SimilarityArgs, list[Any], list[Layers], ImageFeatures]):
    """The learned backend."""

    load = ImageFeatures

    def prepare(self, request: Request[SimilarityArgs]) -> list[Any]:
        """Prepare each image for the network."""
        return [self.model.prepare(pixels) for pixels in request.images]

    def compute(self, prepared: Sequence[list[Any]]) -> list[list[Layers]]:
        """Run the network on each image; all requests share passes of up to 32 images."""
        return side_by_side(self.model.predict, prepared)

    def finish(self, request: Request[SimilarityArgs], prepared: list[Any], output: list[Layers]) -> Evidence:
        """Compare the other images with the first. Raises `ToolError` for values that are not finite."""
        first, *others = (models.describe(layers) for layers in output)
        rows = [models.likeness(first, other) for other in others]
        basis = "features of a network, their correlations for style"
        return evidence_of(request.images, rows, request.args.aspect, LEARNED_CEILING, basis)


SIDE, PERIOD = 320, 64
DARK, BRIGHT = (80, 60, 40), (230, 210, 180)
LIGHT, TINT = 0.6, (1.0, 0.95, 0.85)
LARGER, TURNED = 1.2, 0.25
SERIES = CheckSeries("the same pattern in another light", 7)


def _picture(form: str, zoom: float, *, larger: float = 1.0, angle: float = 0.0, light: float = 1.0) -> Pixels:
    side = round(SIDE * zoom)
    plane = pattern(form, side, side, period=PERIOD * zoom * larger, angle=angle)
    return lit(coloured(plane, DARK, BRIGHT), light, (1, 1, 1) if light == 1 else TINT)


def _light_case(number: int) -> CheckCase:
    forms = list(FORMS)
    zoom = 3.5 if number == 0 else 1.0
    others = [_picture(forms[(number + step) % len(forms)], zoom) for step in (2, 5)]
    same = _picture(forms[number], zoom, larger=LARGER, angle=TURNED, light=LIGHT)
    place = number % (len(others) + 1)
    candidates = [*others[:place], same, *others[place:]]
    return CheckCase((_picture(forms[number], zoom), *candidates), {"aspect": "content"}, expects("best", place))


CHECKS = tuple(
    KnownAnswer(f"{form} in another light", partial(_light_case, number), SERIES) for number, form in enumerate(FORMS)
)


TOOL = Tool(
    card=tool_card(__file__, LearnedFeatures, Statistics),
    args=SimilarityArgs,
    checks=CHECKS,
    claims=Claims(("best",), same_pictures=True),
    # Without a model, the rule answers with the image most similar to the first in style, or in content.
    rules={
        "Art_Style": OneCall("similarity", later_image, lambda prompt: {"aspect": "style"}),
        "Visual_Similarity": OneCall("similarity", later_image, lambda prompt: {"aspect": "content"}),
    },
    wording=wording_of(__file__),
    output=schema_of(SimilarityData),
)
