"""Converts marks to the JSON of a tool output and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Corners, Json
from hybrid.marks.marks import BoxMark, Marks, PointMark

# A letter that can be requested.
Label = Literal["A", "B", "C", "D", "REF"]
# Additional descriptions of a mark's fields, for the schema.
ABOUT: Mapping[str, str] = {
    "label": "null if no letter could be read",
    "x": "of the centre, pixels",
    "y": "of the centre, pixels",
    "box_px": "x0, y0, x1, y1",
    "label_box_px": "of the letter; null if none could be read",
    "confidence": "0 to 1",
}


def _model(mark: type[PointMark | BoxMark]) -> type[BaseModel]:
    """Make a model with the fields of a mark, with a box as its corners."""
    boxes: dict[object, object] = {Box: Corners, Box | None: Corners | None}
    fields: dict[str, Any] = {
        name: (boxes.get(kind, kind), Field(description=ABOUT.get(name))) for name, kind in get_type_hints(mark).items()
    }
    model: type[BaseModel] = create_model(
        mark.__name__, __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **fields
    )
    return model


_POINT, _BOX = _model(PointMark), _model(BoxMark)
# The data of the markers tool.
MarksData: type[BaseModel] = create_model(
    "MarksData",
    __config__=ConfigDict(extra="forbid"),
    points_px=(tuple[_POINT, ...], ...),  # type: ignore[valid-type]
    boxes_px=(tuple[_BOX, ...], ...),  # type: ignore[valid-type]
)


def marks_data(marks: Marks) -> dict[str, Json]:
    """Convert marks to the `data` of a tool output: `points_px` and `boxes_px`; boxes as [x0, y0, x1, y1]."""
    dumped: dict[str, Json] = MarksData(
        points_px=tuple(_POINT(**_fields(mark)) for mark in marks.points),
        boxes_px=tuple(_BOX(**_fields(mark)) for mark in marks.boxes),
    ).model_dump(mode="json")
    return dumped


def marks_from(data: Mapping[str, Json]) -> Marks:
    """Parse the marks in a tool output's `data`. Raises `ToolError` naming a missing or mistyped field."""
    try:
        parsed: Any = MarksData.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ToolError(f"markers: {place} of the output cannot be used: {first['msg']}") from error
    return Marks(
        tuple(PointMark(**_with_boxes(point)) for point in parsed.points_px),
        tuple(BoxMark(**_with_boxes(box)) for box in parsed.boxes_px),
    )


def _fields(mark: PointMark | BoxMark) -> dict[str, Any]:
    values = {name: getattr(mark, name) for name in mark.__dataclass_fields__}
    return {name: astuple(value) if isinstance(value, Box) else value for name, value in values.items()}


def _with_boxes(mark: BaseModel) -> dict[str, Any]:
    return {name: Box(*value) if isinstance(value, tuple) else value for name, value in mark.model_dump().items()}
