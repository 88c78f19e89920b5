"""Points and boxes as a model writes them, and their resolution to positions in the image.

A point is given by its pixels or by the letter drawn beside it, which `read_points` looks up in the output of the
markers tool. A field marked `UNTOLD` is hidden from the model but still accepted: rules set it, and a model expresses
it in another way (a letter as the label of a point).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self, get_args

from pydantic import Field, model_validator

from hybrid.core.coordinates import at, size_px
from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Fault, Finding, Json
from hybrid.marks.marks import PointMark
from hybrid.marks.marks_json import Label, marks_from
from hybrid.tool import Args
from hybrid.tool.args import UNTOLD

# The letters that the markers tool can read.
LABELS: tuple[Label, ...] = get_args(Label)


class PointArg(Args):
    """A point of the image."""

    x: float | None = Field(default=None, ge=0)
    y: float | None = Field(default=None, ge=0)
    label: str | None = Field(default=None, max_length=16)

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if (self.x is None) != (self.y is None):
            raise ValueError("a point needs both x and y, or only the letter that is drawn beside it")
        if self.x is None and not self.label:
            raise ValueError("a point needs x and y, or the letter that is drawn beside it")
        return self


class CandidateArg(PointArg):
    """A point of image 2 to choose from; the number tells which image its coordinates belong to."""

    image: Literal[2] = Field(
        default=2, json_schema_extra=UNTOLD, description="the number of the image that it lies in"
    )


class BoxArg(Args):
    """A box of the image; x1 and y1 are exclusive."""

    x0: float = Field(ge=0)
    y0: float = Field(ge=0)
    x1: float = Field(gt=0)
    y1: float = Field(gt=0)
    label: str | None = Field(default=None, max_length=16)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.x1 <= self.x0 or self.y1 <= self.y0:
            raise ValueError("a box needs x0 < x1 and y0 < y1")
        return self


class RegionArg(BoxArg):
    """The only box of a call; like any box it may have a name, but needs none."""

    label: str | None = Field(default=None, max_length=16, json_schema_extra=UNTOLD)


class Spot(NamedTuple):
    """A point to read, in pixels of the original image; `confidence` (0..1) is the confidence in its position."""

    label: str | None
    x: float
    y: float
    confidence: float = 1.0


def read_points(tool: str, points: Sequence[PointArg], markers: Sequence[Finding], size: tuple[int, int]) -> list[Spot]:
    """Return the points of the arguments; without any, the drawn points (if some are labelled, only those).

    Args:
        tool: name of the calling tool, for errors.
        points: as the model wrote them.
        markers: output of the markers tool for the image; may be empty.
        size: height and width of the image in pixels.

    Raises:
        ToolError: a point is outside of the image, or is given by a letter that no drawn point has.
    """
    marks = [mark for finding in markers[:1] for mark in marks_from(finding.data).points]
    if not points:
        return [_spot_of_mark(mark, size) for mark in [mark for mark in marks if mark.label is not None] or marks]
    spots = []
    for number, point in enumerate(points, 1):
        if point.x is None or point.y is None:
            match = next((mark for mark in marks if mark.label == point.label), None)
            if match is None:
                labels = ", ".join(mark.label for mark in marks if mark.label) or "none"
                raise ToolError(
                    f"{tool}: no drawn point {point.label!r} was found (found: {labels}); give its x and y",
                    Fault.BAD_ARGUMENTS,
                )
            spots.append(_spot_of_mark(match, size))
            continue
        image = point.image if isinstance(point, CandidateArg) else 1
        if point.x >= size[1] or point.y >= size[0]:
            raise ToolError(
                f"{tool}: point {number} ({at('x', point.x, image, 'g')}, {at('y', point.y, image, 'g')}) is outside "
                f"the image of {size_px(size[1], size[0], image)} px",
                Fault.BAD_ARGUMENTS,
            )
        spots.append(Spot(point.label, point.x, point.y))
    return spots


def marker_labels(points: Sequence[PointArg], labels: Sequence[Label] = ()) -> list[Label]:
    """List the letters that the markers tool should look for: `labels`, then those of points given by letter alone."""
    alone = {point.label for point in points if point.x is None}
    return [*labels, *(label for label in LABELS if label in alone and label not in labels)]


def point_markers(args: Any) -> Mapping[str, Json]:
    """Return the arguments with which a tool that has `points` and `labels` calls the markers tool."""
    return {"labels": marker_labels(args.points, args.labels), "kind": "point"}


def read_boxes(tool: str, boxes: Sequence[BoxArg], size: tuple[int, int]) -> list[Box]:
    """Return the boxes of the arguments, clipped to an image of `size` (H, W).

    Raises:
        ToolError: a box is outside of the image.
    """
    cut = []
    for number, box in enumerate(boxes, 1):
        if box.x0 >= size[1] or box.y0 >= size[0]:
            raise ToolError(
                f"{tool}: box {number} ({at('x', box.x0, form='g')}, {at('y', box.y0, form='g')}, "
                f"{at('x', box.x1, form='g')}, {at('y', box.y1, form='g')}) is outside the image of "
                f"{size_px(size[1], size[0])} px",
                Fault.BAD_ARGUMENTS,
            )
        cut.append(Box(box.x0, box.y0, min(box.x1, float(size[1])), min(box.y1, float(size[0]))))
    return cut


def _spot_of_mark(mark: PointMark, size: tuple[int, int]) -> Spot:
    # A ring cut by the border may have its estimated centre outside the image.
    x, y = min(max(mark.x, 0.0), size[1] - 1.0), min(max(mark.y, 0.0), size[0] - 1.0)
    return Spot(mark.label, x, y, mark.confidence)
