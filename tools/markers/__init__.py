"""Markers: the labelled points and boxes drawn on an image, with their letters.

    hybrid tools run markers picture.png --args '{"labels": ["A", "B"]}'

Letters in black boxes are matched with rendered templates; rings are scored by the uniformity of a circle and its
contrast to both sides. Letters and rings are paired on the assumption of one style for the full image
(`hybrid/marks/finding.py`). `bench/markers.py` prints the accuracy. Coordinates are pixel indices of the original
image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from pydantic import Field

from hybrid.core.coordinates import at, unit
from hybrid.core.types import Box
from hybrid.marks.finding import find_colored_boxes
from hybrid.marks.marks import BoxMark, Marks, PointMark
from hybrid.marks.marks_json import Label, MarksData, marks_data
from hybrid.marks.pairs import CLEAR_LETTER
from hybrid.tool import Args, Claims, Evidence, Picture, Pixels, Request, Tool
from hybrid.tool.args import UNTOLD
from hybrid.tool.backends import WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from tools._shared.finding_text import Lines
from tools._shared.overlay import Overlay
from tools._shared.wording import wording_of
from tools.markers.views import AS_IS, MIN_SIDE_PX, find_at_any_size, seen_in

# A ring or an outline with a lower confidence is not drawn or passed on, and is listed only if its letter is clear.
# Random structure yields rings without a clear letter on every second photograph; a model or a tool that compares
# points would use them.
UNSURE = 0.5
MAX_LINES = 6
LEGEND = "cyan: marks found (x, y in px from the top-left)"
# Cyan, the complement of red: no mark has this colour.
INK = (0, 255, 255)


class MarkersArgs(Args):
    """Arguments of the mark finder."""

    labels: tuple[Label, ...] = Field(default=(), max_length=5, description="letters to look for, if known")
    kind: Literal["point", "box", "any"] = Field(default="any", description="point: circled points")
    colors: tuple[Literal["red", "green", "blue"], ...] = Field(
        json_schema_extra=UNTOLD, default=(), max_length=3, description="only boxes of these colours, without letters"
    )


class DrawnMarks(WeightFree[MarkersArgs]):
    """The weight-free backend."""

    def answer(self, request: Request[MarkersArgs]) -> Evidence:
        """Find the marks of the image."""
        return locate(request.images[0], request.args)


def locate(pixels: Pixels, args: MarkersArgs) -> Evidence:
    """Find the marks of one image (H, W, 3).

    Returns:
        Evidence with `MarksData`, all lengths in pixels of the image, scores and confidence 0..1, and an overlay. The
        data and the overlay contain the marks with a confidence of at least 0.5; only the text also lists less certain
        marks with a clear letter. The confidence is the probability that every expected mark was found. Without
        expectations, it is the probability that the marks found are right, 0 if none were found. An image with a side
        below 12 px has no marks.
    """
    marks = find_all(pixels, args)
    certain = marks_for_data(marks)
    overall = least_sure(marks, args.colors) if args.colors else confidence(marks, args.labels)
    return Evidence(
        describe(marks_for_text(marks), args),
        marks_data(certain),
        overall,
        (Picture(partial(overlay, pixels, certain)),),
    )


def find_all(pixels: Pixels, args: MarkersArgs) -> Marks:
    """Find every mark of one image (H, W, 3), at any confidence."""
    if min(pixels.shape[:2]) < MIN_SIDE_PX:
        return Marks()
    if args.colors:
        return seen_in(pixels, AS_IS, lambda scaled: find_colored_boxes(scaled, args.colors))
    return find_at_any_size(pixels, args.labels, args.kind)


def marks_for_data(marks: Marks) -> Marks:
    """Return the marks that are drawn, listed in data and passed to other tools: confidence at least `UNSURE`."""
    return _filter_marks(marks, lambda mark: mark.confidence >= UNSURE)


def marks_for_text(marks: Marks) -> Marks:
    """Return the marks that the text names: the certain ones, and those with a clear letter."""
    return _filter_marks(marks, lambda mark: mark.confidence >= UNSURE or mark.letter_score >= CLEAR_LETTER)


def _filter_marks(marks: Marks, predicate: Callable[[PointMark | BoxMark], bool]) -> Marks:
    return Marks(tuple(filter(predicate, marks.points)), tuple(filter(predicate, marks.boxes)))


def all_marks(marks: Marks) -> list[PointMark | BoxMark]:
    """List points, then boxes."""
    return [*marks.points, *marks.boxes]


def confidence(marks: Marks, labels: Sequence[str]) -> float:
    """Return the probability, 0..1, that every expected mark was found: the lowest confidence, 0 if one is missing."""
    by_label = {mark.label: mark.confidence for mark in all_marks(marks) if mark.label is not None}
    expected = tuple(labels) or tuple(by_label)
    return min((by_label.get(label, 0.0) for label in expected), default=0.0)


def least_sure(marks: Marks, colors: Sequence[str]) -> float:
    """Return the lowest confidence of the boxes of these colours; 0 if a colour does not have exactly one box."""
    confidences = [[mark.confidence for mark in marks.boxes if mark.color == color] for color in colors]
    return min((values[0] if len(values) == 1 else 0.0 for values in confidences), default=0.0)


def describe(marks: Marks, args: MarkersArgs) -> str:
    """Describe the marks in at most six lines for the model: marks, positions, and uncertain or missing marks."""
    lines = [_say(mark) for mark in all_marks(marks)]
    labels = {mark.label for mark in all_marks(marks)}
    missing = [label for label in args.labels if label not in labels]
    first_lines = lines[: MAX_LINES - bool(missing)]
    last = [f"Not found in image 1: {', '.join(missing)}."] if missing else []
    text = Lines().fitting("\n".join([*first_lines[:count], *last]) for count in range(len(first_lines), -1, -1))
    return text or "No drawn point or box was found in image 1."


def _say(mark: PointMark | BoxMark) -> str:
    if isinstance(mark, PointMark):
        noun, place = ("Point", "circled point"), f"circle at x={at('x', mark.x)}, y={at('y', mark.y)}"
    else:
        box = mark.box_px
        to = f"to x={at('x', box.x1)}, y={at('y', box.y1)}"
        noun, place = ("Box", "box"), f"outline from x={at('x', box.x0)}, y={at('y', box.y0)} {to}"
    head = f"{noun[0]} {mark.label}" if mark.label else f"A {noun[1]} without a readable letter"
    unsure = " (unsure)" if mark.confidence < UNSURE else ""
    return f"{head}{unsure}: {mark.color} {place}{unit()} of image 1."


def overlay(pixels: Pixels, marks: Marks) -> Pixels:
    """Outline and name the marks in cyan on a copy of the image, with a legend that covers no mark."""
    canvas = Overlay(pixels)
    for point in marks.points:
        canvas.point(point.x, point.y, point.label or "?", INK, radius_px=point.radius_px + 4)
    for mark in marks.boxes:
        box = mark.box_px
        canvas.box(Box(box.x0 - 3, box.y0 - 3, box.x1 + 3, box.y1 + 3), mark.label or "?", INK)
    canvas.legend(LEGEND if all_marks(marks) else "no mark found")
    return canvas.pixels


TOOL = Tool(
    card=tool_card(__file__, DrawnMarks),
    args=MarkersArgs,
    claims=Claims(("points_px", "boxes_px")),
    wording=wording_of(__file__),
    output=schema_of(MarksData),
)
