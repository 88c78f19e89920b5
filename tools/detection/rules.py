"""The rules of detection: count the objects of a name, and decide whether a named object is still to be found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Corners, Finding, Json, Prompt
from hybrid.tool.finding_data import rows_of
from hybrid.tool.rules import Abstained, Rule, RuleContext, SpecialistAnswer, asks, choose, image_names
from tools._shared.question_words import MAX_NAMES, asked_question, counted_thing, named_things, number_in
from tools.detection.models import Detection

# A name that the detection tool accepts.
ThingName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


class DetectedBox(BaseModel):
    """A detected object in `data`, best first."""

    model_config = ConfigDict(extra="forbid")

    name: str
    score_0_1: float = Field(ge=0, le=1)
    box_px: Corners = Field(description="x0, y0, x1, y1")


class _Data(BaseModel):
    boxes: tuple[DetectedBox, ...]


def seen_from(data: Mapping[str, Json]) -> list[Detection]:
    """Return the detections in a tool output's `data`, best first. Raises `ToolError` for data of another shape."""
    try:
        parsed = _Data.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ToolError(f"detection: the finding's {place} cannot be used: {first['msg']}") from error
    detections = [Detection(box.name, box.score_0_1, Box(*box.box_px)) for box in parsed.boxes]
    return sorted(detections, key=lambda detection: -detection.score)


@asks("detection")
async def counting(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Choose the option that states the number of detected objects; abstain if none does."""
    name = counted_thing(prompt.text)
    if name is None:
        raise Abstained("no name", "the question names no object to count")
    finding = await ctx.tool("detection", image_names(prompt), {"names": [name]})
    return choose(counted_choice(prompt, finding, name), "detection", finding, on_card=True)


@asks("detection")
async def goes_on(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Answer whether more must be seen: yes until every object that the question names was found in the parts shown."""
    enough, finding = await all_seen(prompt, ctx)
    return SpecialistAnswer("no" if enough else "yes", "detection", finding)


# Rules by route.
RULES: Mapping[str, Rule] = {"Counting": counting, "continue": goes_on}


def count_of(finding: Finding, name: str) -> int | None:
    """Return detection's count for a name, or None for a name that a closed-set detector does not know."""
    counts = finding.data.get("counts")
    count = counts.get(name) if isinstance(counts, Mapping) else None
    return count if isinstance(count, int) else None


def counted_choice(prompt: Prompt, finding: Finding, name: str) -> int | None:
    """Return the index of the only choice that states detection's count for a name; None for none or several."""
    count = count_of(finding, name)
    fits = [place for place, choice in enumerate(prompt.choices) if count is not None and number_in(choice) == count]
    return fits[0] if len(fits) == 1 else None


async def all_seen(prompt: Prompt, ctx: RuleContext) -> tuple[bool, Finding]:
    """Return whether every object that the question names is in the images. Raises `Abstained` if it names none."""
    question = asked_question(prompt.text)
    missing = set(named_things(question)[:MAX_NAMES]) if question else set()
    if not missing:
        raise Abstained("no name", "the question names no object to look for")
    finding: Finding | None = None
    for image in prompt.images:
        finding = await ctx.tool("detection", [image.name], {"names": sorted(missing)})
        missing -= {str(row.get("name")) for row in rows_of(finding, "boxes")}
        if not missing:
            break
    if finding is None:
        raise Abstained
    return not missing, finding
