"""Detections in a finding of `tools/detection/`, as the tools that need it read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from hybrid.errors import ToolError
from hybrid.types import Box, Json

# A name that the detection tool can be asked for.
ThingName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


class _Seen(BaseModel):
    name: str
    score_0_1: float = Field(ge=0, le=1)
    box_px: tuple[float, float, float, float]


class _Data(BaseModel):
    boxes: tuple[_Seen, ...]


@dataclass(frozen=True)
class DetectedThing:
    """A detected thing: its name, score 0..1, box in pixels."""

    name: str
    score: float
    box: Box


def seen_from(data: Mapping[str, Json]) -> list[DetectedThing]:
    """The detections in a finding's `data`, best first. Raises `ToolError` for data of another shape."""
    try:
        parsed = _Data.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ToolError(f"detection: the finding's {place} cannot be used: {first['msg']}") from error
    things = [DetectedThing(one.name, one.score_0_1, Box(*one.box_px)) for one in parsed.boxes]
    return sorted(things, key=lambda one: -one.score)
