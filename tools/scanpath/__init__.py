"""Scanpath: where a person would look, in which order and for how long; freely, or in search of a named object.

    hybrid tools run scanpath photo.jpg --args '{"fixations": 6}'
    hybrid tools run scanpath photo.jpg --args '{"target": "cup"}' --weights scanpath=DIR_OR_ID

The next fixation is the most salient position that was not just viewed (`fixations.py`), on the weight-free map of
`tools/saliency/cues.py`. A search multiplies that map by the heat of the target, which needs the learned backend.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Annotated, Final

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import size_px
from hybrid.core.types import Json, Prompt
from hybrid.tool import Args, CheckCase, Evidence, KnownAnswer, Picture, Pixels, Request, Tool
from hybrid.tool.backends import Learned, WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import Rule, RuleContext, SpecialistAnswer, asks, image_names
from tools._shared.finding_text import Lines
from tools._shared.known_answers import BALL, CUBE, ball_and_cube, number, rows_of
from tools._shared.overlay import DARK, WHITE, Overlay, extent, heat
from tools._shared.picture_content import shows_something
from tools._shared.reading import shrink
from tools._shared.target_heat import SearchInput, TargetHeat, probability
from tools._shared.wording import wording_of
from tools.saliency.cues import SaliencyMap, salience, stretch
from tools.scanpath.fixations import Fixation, Return, fixate, returns

FREE_CONFIDENCE = 0.4
UNKNOWN_TARGET_CONFIDENCE = 0.1
FLAT_CONFIDENCE = 0.1
MAX_SIDE_PX = 1024
# Weight of saliency where the target's heat is zero: a search also visits salient objects that are not its target.
SALIENCY_LEFT = 0.15
# Largest number of characters of a target that the text repeats.
QUOTED_CHARS = 24
FREE_BASIS = "Basis: contrast, colour and regions that stand out; no recorded eyes."
NOTHING_BASIS = "Basis: none, because the picture shows nothing but flat colours or noise; the path is a guess."
LEGEND = "numbers: order; disc area: duration\nviolet 0, yellow 1: relative saliency"


class ScanpathArgs(Args):
    """Arguments of the scanpath tool."""

    fixations: int = Field(default=6, ge=1, le=12, description="how many")
    target: str | None = Field(default=None, min_length=1, max_length=100, description="e.g. cup")


class FixationRow(TypedDict):
    """A fixation, in order."""

    x_px: float
    y_px: float
    duration_ms: int
    saliency_0_1: Annotated[float, Field(description="at its place")]


class ReturnRow(TypedDict):
    """A fixation that returns to the place of an earlier fixation; fixations are numbered from 1."""

    fixation: int
    to: int


@with_config(extra="forbid")
class ScanpathData(TypedDict):
    """Data of scanpath."""

    fixations: list[FixationRow]
    x_0_1: Annotated[list[float], Field(description="of the width, two decimals")]
    y_0_1: Annotated[list[float], Field(description="of the height, two decimals")]
    t_ms: Annotated[list[int], Field(description="duration of each fixation")]
    total_ms: Annotated[int, Field(description="sum of the durations, at most 5,000")]
    returns: list[ReturnRow]


def evidence_of(request: Request[ScanpathArgs], values: SaliencyMap, basis: str, certainty: float) -> Evidence:
    """Compute the path over a map (h, w) of the image; deterministic for image, arguments and seed.

    Returns:
        Evidence with `ScanpathData` and an overlay. The confidence is the probability that the path resembles a
        person's.
    """
    pixels, path = request.images[0], fixate(values, request.args.fixations, request.seed)
    height, width = pixels.shape[:2]
    spots = [(fix.x * width, fix.y * height, fix.ms) for fix in path]
    revisited = returns(path, (height, width))
    data: dict[str, Json] = {
        "fixations": [
            {"x_px": round(x, 1), "y_px": round(y, 1), "duration_ms": fix.ms, "saliency_0_1": round(fix.saliency, 4)}
            for fix, (x, y, _) in zip(path, spots, strict=True)
        ],
        "x_0_1": [round(fix.x, 2) for fix in path],
        "y_0_1": [round(fix.y, 2) for fix in path],
        "t_ms": [fix.ms for fix in path],
        "total_ms": sum(fix.ms for fix in path),
        "returns": [{"fixation": revisit.number, "to": revisit.to} for revisit in revisited],
    }

    def draw() -> Pixels:
        canvas = Overlay(with_path(heat(pixels, values), spots))
        canvas.legend(LEGEND)
        return canvas.pixels

    text = describe(path, revisited, (height, width), basis, certainty)
    return Evidence(text, data, certainty, (Picture(draw),))


def describe(
    path: Sequence[Fixation], revisited: Sequence[Return], size: tuple[int, int], basis: str, certainty: float
) -> str:
    """Describe the path in at most 450 characters for the model: the three lists, returns, and the basis.

    Args:
        path: the fixations.
        revisited: the returns to an earlier fixation.
        size: (H, W) of the image.
        basis: a sentence about the map's source.
        certainty: the confidence, 0..1.
    """
    x, y = (", ".join(f"{value:.2f}" for value in column) for column in ([f.x for f in path], [f.y for f in path]))
    times = ", ".join(str(fix.ms) for fix in path)
    rows = [
        f"Image 1 ({size_px(size[1], size[0])} px): predicted scanpath of {len(path)}, confidence {certainty:.2f}.",
        f"X (of the width) = [{x}]",
        f"Y (of the height) = [{y}]",
        f"T (ms, sum {sum(fix.ms for fix in path)}) = [{times}]",
    ]
    listing = "; ".join(f"{revisit.number} to {revisit.to}" for revisit in revisited)
    revisits = f"Returns to a place: {listing}." if revisited else "No return to a place."
    return Lines().fitting("\n".join((*rows, line, basis)) for line in (revisits, f"Returns: {len(revisited)}."))


class FreeViewing(WeightFree[ScanpathArgs]):
    """The weight-free backend: it cannot know what a target looks like."""

    def answer(self, request: Request[ScanpathArgs]) -> Evidence:
        """Predict the path of a request; deterministic for image, arguments and seed."""
        values, args = salience(request.images[0]), request.args
        basis, certainty = free_viewing(request.images[0])
        if args.target is not None:
            basis = f"Where {_quoted(args.target)} is, is not known: this is free viewing, not a search."
            certainty = UNKNOWN_TARGET_CONFIDENCE
        return evidence_of(request, values, basis, certainty)


def free_viewing(pixels: Pixels) -> tuple[str, float]:
    """Return the basis of a path over an image (H, W, 3) without a target, and the confidence in it, 0..1."""
    return (FREE_BASIS, FREE_CONFIDENCE) if shows_something(pixels) else (NOTHING_BASIS, FLAT_CONFIDENCE)


# The weight-free map of an image, and the network's input, None for free viewing.
ViewedImage = tuple[SaliencyMap, SearchInput | None]


class TargetSearch(Learned[ScanpathArgs, ViewedImage, SaliencyMap | None, TargetHeat]):
    """The learned backend: the weight-free map and, for a search, the heat of the target from CLIPSeg."""

    load = TargetHeat

    def prepare(self, request: Request[ScanpathArgs]) -> ViewedImage:
        """Return the weight-free map and, for a search, the network's input."""
        import cv2

        pixels, target = request.images[0], request.args.target
        if target is None:
            return salience(pixels), None
        # At most 1024 px long and 4 : 1, because processors fail on images of one row.
        small = shrink(pixels, MAX_SIDE_PX)
        height, width = small.shape[:2]
        least = max(8, max(height, width) // 4)
        size = (max(width, least), max(height, least))
        if size != (width, height):
            small = np.asarray(cv2.resize(small, size), np.uint8)
        return salience(pixels), self.model.prepare(small, target)

    def batch_key(self, prepared: ViewedImage) -> Hashable:
        """Return True for free viewing, which needs no network; the inputs of all searches are squares of one size."""
        return prepared[1] is None

    def compute(self, prepared: Sequence[ViewedImage]) -> list[SaliencyMap | None]:
        """Compute logits of the target's position, None for free viewing; one pass for all searches."""
        heats = iter(self.model.predict([sought for _, sought in prepared if sought is not None]))
        return [None if sought is None else next(heats) for _, sought in prepared]

    def finish(self, request: Request[ScanpathArgs], prepared: ViewedImage, output: SaliencyMap | None) -> Evidence:
        """Build the path, which depends only on the image, the arguments and the seed.

        Raises `ToolError` if the network's values are not finite.
        """
        import cv2

        args, values = request.args, prepared[0]
        if output is None:
            return evidence_of(request, values, *free_viewing(request.images[0]))
        likely = probability("scanpath", output)
        size = (values.shape[1], values.shape[0])
        target = np.asarray(cv2.resize(likely, size, interpolation=cv2.INTER_LINEAR), np.float32)
        sought = stretch((target * (SALIENCY_LEFT + values)).astype(np.float32))
        seen = float(likely.max())
        basis = f"Basis: saliency times where a network sees {_quoted(args.target or '')} (at most {seen:.2f} of 1)."
        # If the target is seen nowhere, or everywhere alike, the order is a guess.
        contrast = float(np.ptp(likely))
        certainty = UNKNOWN_TARGET_CONFIDENCE + (FREE_CONFIDENCE - UNKNOWN_TARGET_CONFIDENCE) * min(1.0, contrast)
        if not shows_something(request.images[0]):
            basis, certainty = NOTHING_BASIS, FLAT_CONFIDENCE
        return evidence_of(request, sought, basis, certainty)


def _quoted(target: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in target)
    return repr(printable if len(printable) <= QUOTED_CHARS else f"{printable[: QUOTED_CHARS - 3]}...")


LINE = (255, 240, 90)


def with_path(pixels: Pixels, fixations: Sequence[tuple[float, float, int]]) -> Pixels:
    """Draw fixations (x, y in px, duration in ms), joined by a line, on a copy of an image (H, W, 3).

    Each is a numbered disc whose area grows with the duration.
    """
    import cv2

    out = np.ascontiguousarray(pixels).copy()
    height, width = out.shape[:2]
    scale = max(0.4, min(height, width) / 500)
    spots = [(round(x), round(y)) for x, y, _ in fixations]
    line, font = max(1, round(2 * scale)), 0.62 * scale
    for start, end in itertools.pairwise(spots):
        cv2.line(out, start, end, DARK, line + 2, cv2.LINE_AA)
        cv2.line(out, start, end, LINE, line, cv2.LINE_AA)
    longest = max((ms for _, _, ms in fixations), default=1)
    placed: list[tuple[int, int]] = []
    for place, ((x, y), (_, _, ms)) in enumerate(zip(spots, fixations, strict=True), 1):
        radius = max(2, round(17 * scale * float(np.sqrt(ms / longest))))
        # If a position was visited before, draw beside the earlier disc so as not to hide its number.
        centre = (x, y)
        while any(np.hypot(centre[0] - a, y - b) < radius for a, b in placed) and centre[0] + radius < width:
            centre = (centre[0] + radius, y)
        placed.append(centre)
        cv2.circle(out, centre, radius, DARK, cv2.FILLED, cv2.LINE_AA)
        cv2.circle(out, centre, radius, LINE, line, cv2.LINE_AA)
        across, high = extent(str(place), font)
        corner = (centre[0] - across // 2, y + high // 2)
        cv2.putText(out, str(place), corner, cv2.FONT_HERSHEY_SIMPLEX, font, WHITE, 1, cv2.LINE_AA)
    return out


# Largest number of fixations that the scanpath tool predicts in one call.
MAX_FIXATIONS: Final = 12
USUAL_FIXATIONS: Final = 6


@asks("scanpath")
async def scanpath(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q9 and Q12: predict a path with the requested number of fixations; Q12 names a target."""
    args: dict[str, Json] = {"fixations": max(1, min(prompt.given.fixations or USUAL_FIXATIONS, MAX_FIXATIONS))}
    if prompt.given.target is not None:
        args["target"] = prompt.given.target
    finding = await ctx.tool("scanpath", image_names(prompt), args)
    lists = [finding.data.get(key) for key in ("x_0_1", "y_0_1", "t_ms")]
    if not all(isinstance(values, Sequence) and values for values in lists):
        return None
    answer = "\n".join(f"{axis} = {values}" for axis, values in zip("XYT", lists, strict=True))
    return SpecialistAnswer(answer, "scanpath", finding)


# Rules by route.
RULES: Mapping[str, Rule] = {"Q9": scanpath, "Q12": scanpath}


def _sought(target: str) -> CheckCase:
    picture, boxes = ball_and_cube()

    def validation_error(evidence: Evidence) -> str | None:
        for fixation in rows_of(evidence, "fixations"):
            x, y = number(fixation, "x_px"), number(fixation, "y_px")
            seen = [name for name, box in boxes.items() if box.x0 <= x < box.x1 and box.y0 <= y < box.y1]
            if seen:
                return None if seen == [target] else f"{seen[0]} is looked at first"
        return "neither thing is looked at"

    return CheckCase((picture,), {"target": target, "fixations": 4}, validation_error)


CHECKS = tuple(KnownAnswer(f"search for {target}", partial(_sought, target)) for target in (BALL, CUBE))


TOOL = Tool(
    card=tool_card(__file__, TargetSearch, FreeViewing),
    args=ScanpathArgs,
    checks=CHECKS,
    rules=RULES,
    gaze="path",
    wording=wording_of(__file__),
    output=schema_of(ScanpathData),
)
