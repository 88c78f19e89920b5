"""Segmentation: the mask of the object at a point, in a box, or named by words.

`hybrid tools run segmentation photo.jpg --args '{"points": [{"x": 120, "y": 80}]}' --picture mask.png`

The learned backend runs SAM 2 (points, boxes), CLIPSeg (words) or SAM 3 (both), depending on its weights; the
weight-free one runs GrabCut from points or a box and does not understand words.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import span_px
from hybrid.core.errors import NoBackend
from hybrid.core.types import Box, Corners, Fault, Json
from hybrid.tool import Args, CheckCase, Claims, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.backends import Learned, WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from tools._shared.args import PointArg, RegionArg, Spot, marker_labels, read_boxes, read_points
from tools._shared.boxes import corners
from tools._shared.known_answers import BALL, CUBE, ball_and_cube, box_arg, number, point_args, pop_out_scene
from tools._shared.overlay import overlay
from tools._shared.picture_content import is_patchwork, shows_something, support_by_size
from tools._shared.wording import wording_of
from tools.segmentation.cues import contrast, cut_out, is_one_colour
from tools.segmentation.models import MaskOutput, SegmentationPrompt, Segmenter, segmenter

if TYPE_CHECKING:
    from hybrid.samples.pop_out import NamedObject

Mask = npt.NDArray[np.bool_]

# Largest number of corners of the outline in `data`.
OUTLINE_POINTS = 48
# Contrast, in L*a*b* units, at which the confidence in a weight-free mask is 63 % of its maximum; an assumption, not
# measured.
CLEAR_CONTRAST = 25.0
WEIGHT_FREE_CERTAIN = 0.6
# Confidence factor for a mask whose outline partly follows the edge of the searched area; an assumption, not measured.
CUT_OFF = 0.4
LEARNED_CERTAIN = 0.9


class SegmentationArgs(Args):
    """Arguments of segmentation: points and a box together, or words."""

    points: tuple[PointArg, ...] = Field(default=(), max_length=16, description="on the thing")
    away: tuple[PointArg, ...] = Field(default=(), max_length=16, description="off the thing")
    box: RegionArg | None = Field(default=None, description="around the thing")
    words: str | None = Field(default=None, min_length=1, max_length=200, description="e.g. a dog")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        placed = bool(self.points) or self.box is not None
        if placed == (self.words is not None):
            raise ValueError("give points or a box, or else words")
        return self


@with_config(extra="forbid")
class SegmentationData(TypedDict):
    """Data of segmentation."""

    found: bool
    box_px: Annotated[Corners | None, Field(description="of the mask as x0, y0, x1, y1, null for an empty one")]
    area_px: Annotated[int, Field(description="number of pixels of the mask")]
    area_0_1: Annotated[float, Field(description="share of the image")]
    score_0_1: Annotated[float, Field(description="the network's, or how clearly colours differ")]
    outline_px: Annotated[list[tuple[int, int]], Field(description="x, y of the corners of the largest part")]
    parts: Annotated[int, Field(description="number of connected parts")]
    prompt: Annotated[Literal["points", "box", "words"], Field(description="what the mask was asked by")]


def read_prompt(request: Request[SegmentationArgs]) -> tuple[list[Spot], list[Spot], Box | None]:
    """Return the points on the object, those off it, and the box. Raises `ToolError` if any is outside the image."""
    args, size = request.args, (request.images[0].shape[0], request.images[0].shape[1])
    markers = request.needs.get("markers", ())
    on = read_points("segmentation", args.points, markers, size) if args.points else []
    off = read_points("segmentation", args.away, markers, size) if args.away else []
    boxes = read_boxes("segmentation", [args.box] if args.box else [], size)
    return on, off, boxes[0] if boxes else None


class GrabCut(WeightFree[SegmentationArgs]):
    """The weight-free backend."""

    def answer(self, request: Request[SegmentationArgs]) -> Evidence:
        """Segment as requested. Raises `NoBackend` for words, `ToolError` for an unusable prompt."""
        if request.args.words is not None:
            raise NoBackend(
                "segmentation: words need weights (--weights segmentation=DIR_OR_ID of a CLIPSeg or SAM 3 model)",
                Fault.BAD_ARGUMENTS,
            )
        on, off, box = read_prompt(request)
        pixels = request.images[0]
        mask, cut_off = cut_out(pixels, box, on, off)
        # In an image of flat patches without a ground, a point may select one patch, but a box surrounds several
        # patches.
        single = bool(on) and is_one_colour(pixels, mask)
        if not shows_something(pixels) or (is_patchwork(pixels) and not single):
            # Nothing was found: the mask is empty, and there is no outline that could be cut off.
            mask, cut_off = np.zeros_like(mask), False
        clear = 1 - float(np.exp(-contrast(pixels, mask) / CLEAR_CONTRAST))
        certainty = WEIGHT_FREE_CERTAIN * clear * (CUT_OFF if cut_off else 1.0) * support_by_size(pixels)
        basis = "colour alone (GrabCut)"
        if cut_off:
            basis += "; it runs along the edge of what was searched, so part of its outline is no edge of a thing"
        return report(pixels, mask, clear, certainty, "points" if on else "box", basis)


class LearnedSegmentation(Learned[SegmentationArgs, Any, MaskOutput, Segmenter]):
    """The learned backend: SAM 2, SAM 3 or CLIPSeg through transformers."""

    load = staticmethod(segmenter)

    def prepare(self, request: Request[SegmentationArgs]) -> Any:
        """Prepare image and prompt for the network. Raises `ToolError` for a prompt that it does not support."""
        model, words = self.model, request.args.words
        if words is not None:
            return model.prepare(request.images[0], SegmentationPrompt(words=words))
        on, off, box = read_prompt(request)
        return model.prepare(request.images[0], SegmentationPrompt(tuple(on), tuple(off), box))

    def batch_key(self, prepared: Any) -> Hashable:
        """Return the type of prompt, words or positions: SAM 3 has a network for each."""
        return type(prepared).__name__

    def compute(self, prepared: Sequence[Any]) -> list[MaskOutput]:
        """Run the network on each request; images share passes."""
        return self.model.predict(prepared)

    def finish(self, request: Request[SegmentationArgs], prepared: Any, output: MaskOutput) -> Evidence:
        """Build the tool output from the mask. Raises `ToolError` for values that are not finite."""
        model, pixels, args = self.model, request.images[0], request.args
        mask, score = model.mask(pixels, output)
        if not shows_something(pixels):
            mask = np.zeros_like(mask)
        prompt = "words" if args.words is not None else "points" if args.points else "box"
        certainty = LEARNED_CERTAIN * score if mask.any() else 0.3
        return report(pixels, mask, score, certainty, prompt, "a segmentation network")


def report(pixels: Pixels, mask: Mask, score: float, confidence: float, prompt: str, basis: str) -> Evidence:
    """Build the tool output from a mask (H, W) of an image (H, W, 3).

    Returns:
        Evidence with `SegmentationData` and an overlay. The confidence is the probability that the mask overlaps the
        intended object with an IoU above 0.5.
    """
    import cv2

    count, parts = cv2.connectedComponents(mask.astype(np.uint8))
    box = bounds(mask)
    data: dict[str, Json] = {
        "found": box is not None,
        "box_px": corners(box),
        "area_px": int(mask.sum()),
        "area_0_1": float(mask.mean()),
        "score_0_1": score,
        "outline_px": outline(mask),
        "parts": int(count) - 1,
        "prompt": prompt,
    }
    legend = f"mask from {prompt}, score {score:.2f} (0-1)" if mask.any() else "nothing found"
    text = f"Nothing was found in image 1 for these {prompt}; basis: {basis}."
    if box is not None:
        number = int(parts.max())
        text = (
            f"Mask from {prompt}: {span_px(box)} of image 1, "
            f"{mask.mean():.1%} of the image, {number} part{'s' if number != 1 else ''}.\n"
            f"Basis: {basis}, score {score:.2f} (0..1)."
        )
    return Evidence(text, data, confidence, (overlay(pixels, legend, mask=mask),))


def bounds(mask: Mask) -> Box | None:
    """Return the tight box of a mask (H, W) in pixels; None for an empty one."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return None
    return Box(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


def outline(mask: Mask) -> list[Json]:
    """Return the largest part's outline as [x, y] in pixels, at most `OUTLINE_POINTS` corners; empty for no mask."""
    import cv2

    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not contours:
        return []
    largest = max(contours, key=cv2.contourArea)
    tolerance = 0.5
    line = largest
    while len(line) > OUTLINE_POINTS:
        line = cv2.approxPolyDP(largest, tolerance, closed=True)
        tolerance *= 1.5
    return [[int(x), int(y)] for x, y in line.reshape(-1, 2)]


def marker_arguments(args: SegmentationArgs) -> Mapping[str, Json] | None:
    """Return the markers tool's arguments, which request the points given only by letter."""
    labels = marker_labels((*args.points, *args.away))
    return {"labels": labels, "kind": "point"} if labels else None


# Largest offset, in px, of an edge of the mask from that of the shape; doubled on an image `LARGE` times as large.
NEAR_PX = 5.0
# Largest relative error of a mask's area on a plain shape.
AREA_OFF = 0.08
# Margin of the given box around the shape: returning the box itself would fail the check.
LOOSE_PX = 9
LARGE = 4


def shape_area(figure: NamedObject) -> float:
    """Return the number of pixels that a plain shape covers, from its box."""
    x0, y0, x1, y1 = figure.box
    return (x1 - x0) * (y1 - y0) * (np.pi / 4 if figure.name.shape == "circle" else 1.0)


def _shape(scene: int, by: Literal["box", "point"], scale: int = 1) -> CheckCase:
    import cv2

    layout = pop_out_scene(scene, 2)
    figure = layout.objects[0]
    picture = cv2.resize(layout.draw(), None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    height, width = picture.shape[:2]
    edges = [edge * scale for edge in figure.box]
    true_area, near = shape_area(figure) * scale**2, NEAR_PX * (2 if scale > 1 else 1)
    spare = LOOSE_PX * scale
    start = [max(0, edge - spare) for edge in edges[:2]]
    box = [*start, min(width, edges[2] + spare), min(height, edges[3] + spare)]

    def validation_error(evidence: Evidence) -> str | None:
        seen = evidence.data["box_px"]
        if not isinstance(seen, list):
            return "nothing was found"
        off = [float(str(measured)) - expected_edge for measured, expected_edge in zip(seen, edges, strict=True)]
        if max(map(abs, off)) > near:
            return f"an edge of the mask is {max(off, key=abs):.0f} px beside the {figure.name.shape}'s"
        ratio = number(evidence.data, "area_px") / true_area
        return None if abs(ratio - 1) <= AREA_OFF else f"the mask has {ratio:.2f} of the {figure.name.shape}'s area"

    middle = ((edges[0] + edges[2]) / 2, (edges[1] + edges[3]) / 2)
    args: dict[str, Json] = {"box": box_arg(box)} if by == "box" else {"points": list(point_args([middle]))}
    return CheckCase((np.asarray(picture, np.uint8),), args, validation_error)


def _words_case(name: str) -> CheckCase:
    picture, boxes = ball_and_cube()
    box = boxes[name]

    def validation_error(evidence: Evidence) -> str | None:
        outline = evidence.data["outline_px"]
        if not isinstance(outline, list) or not outline:
            return "nothing was found"
        x, y = np.mean(np.array(outline, float), axis=0)
        if box.x0 <= x < box.x1 and box.y0 <= y < box.y1:
            return None
        corners = tuple(map(round, (box.x0, box.y0, box.x1, box.y1)))
        return f"the mask's largest part is about ({x:.0f}, {y:.0f}) px, {name} in {corners}"

    return CheckCase((picture,), {"words": name}, validation_error)


CHECKS = (
    *(KnownAnswer(f"coloured shape by its box, scene {scene}", partial(_shape, scene, "box")) for scene in (3, 4)),
    *(KnownAnswer(f"coloured shape by a point, scene {scene}", partial(_shape, scene, "point")) for scene in (4, 5)),
    KnownAnswer("coloured shape in a large picture", partial(_shape, 6, "box", LARGE)),
    *(KnownAnswer(f"{name}, named", partial(_words_case, name)) for name in (BALL, CUBE)),
)


CARD = tool_card(__file__, LearnedSegmentation, GrabCut, marker_arguments)
TOOL = Tool(
    CARD,
    SegmentationArgs,
    CHECKS,
    claims=Claims(("found",)),
    wording=wording_of(__file__),
    output=schema_of(SegmentationData),
)
