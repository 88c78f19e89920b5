"""Marks as the JSON of a finding and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hybrid.errors import ToolError
from hybrid.marks.marks import BoxMark, Marks, PointMark
from hybrid.types import Box, Json

# A letter that can be asked for.
Label = Literal["A", "B", "C", "D", "REF"]
Corners = tuple[float, float, float, float]


class _Point(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: str | None
    x: float
    y: float
    radius_px: float
    inner_radius_px: float
    color: str
    label_box_px: Corners | None
    ring_score: float
    letter_score: float
    confidence: float


class _Box(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: str | None
    color: str
    box_px: Corners
    label_box_px: Corners | None
    edge_score: float
    letter_score: float
    confidence: float


class _Data(BaseModel):
    points_px: tuple[_Point, ...]
    boxes_px: tuple[_Box, ...]


def marks_data(marks: Marks) -> dict[str, Json]:
    """Marks as the `data` of a finding: `points_px` and `boxes_px`, keys as the fields; boxes as [x0, y0, x1, y1]."""
    data = _Data(
        points_px=tuple(_Point(**_fields(mark)) for mark in marks.points),
        boxes_px=tuple(_Box(**_fields(mark)) for mark in marks.boxes),
    )
    dumped: dict[str, Json] = data.model_dump(mode="json")
    return dumped


def marks_from(data: Mapping[str, Json]) -> Marks:
    """The marks in a finding's `data`. Raises `ToolError` naming the field that is absent or of another type."""
    try:
        parsed = _Data.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ToolError(f"markers: the finding's {place} cannot be used: {first['msg']}") from error
    return Marks(
        tuple(
            PointMark(**{**point.model_dump(), "label_box_px": _box(point.label_box_px)}) for point in parsed.points_px
        ),
        tuple(
            BoxMark(**{**box.model_dump(), "box_px": Box(*box.box_px), "label_box_px": _box(box.label_box_px)})
            for box in parsed.boxes_px
        ),
    )


def _fields(mark: PointMark | BoxMark) -> dict[str, Any]:
    values = {name: getattr(mark, name) for name in mark.__dataclass_fields__}
    return {
        name: (value.x0, value.y0, value.x1, value.y1) if isinstance(value, Box) else value
        for name, value in values.items()
    }


def _box(corners: Corners | None) -> Box | None:
    return None if corners is None else Box(*corners)
