"""Where the things of a question are in its image: by the colour or letter of their mark, or by detection of the name.

A name that is not found in a large image is looked for again in overlapping crops of it (Wu & Xie 2024 search so). Of
two things that may be meant none is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hybrid.errors import ToolError
from hybrid.marks.marks import BoxMark, PointMark
from hybrid.marks.marks_json import marks_from
from hybrid.tool.rules import RuleContext, image_names
from hybrid.types import Box, Fault, Finding, Json, Prompt
from tools._shared.boxes import area, shared_area
from tools.detection.detection_json import DetectedThing, seen_from
from tools.relation import RIVAL
from tools.rules.questions.things import Thing

CROP_PX: Final = 1000
"""Side of a crop: about what detectors reduce an image to. An image of at most 1.5 times it is not cut."""
CROP_OVERLAP: Final = 0.2
"""Share of a crop that the next one shows again, so that a thing is whole in one of them."""
MOST_CROPS: Final = 4
"""Along one side."""
SAME_SHARE: Final = 0.6
"""Share of the smaller box from which two boxes of overlapping crops are one thing."""


@dataclass(frozen=True)
class Places:
    """A box for each thing, in pixels of the image, the least of their confidences 0..1, and what found the last."""

    boxes: tuple[Box, ...]
    sure: float
    tool: str
    finding: Finding


async def places_of(prompt: Prompt, ctx: RuleContext, things: Sequence[Thing]) -> Places | None:
    """A box for each thing; None, with a note, where one is not found or not the only one."""
    marked = [thing for thing in things if thing.color or thing.letter]
    named = [thing for thing in things if not (thing.color or thing.letter)]
    found: dict[Thing, tuple[Box, float]] = {}
    last: tuple[str, Finding] | None = None
    if marked:
        marks = await _marks(prompt, ctx, marked)
        if marks is None:
            return None
        last = ("markers", marks[1])
        found |= marks[0]
    for thing in named:
        seen = await search(prompt, ctx, str(thing.name), [str(one.name) for one in named])
        one = None if seen is None else only_one(ctx, seen[0], str(thing.name))
        if seen is None or one is None:
            return None
        last = ("detection", seen[1])
        found[thing] = (one.box, one.score**0.25)
    if last is None:
        return None
    return Places(tuple(found[thing][0] for thing in things), min(found[thing][1] for thing in things), *last)


async def search(
    prompt: Prompt, ctx: RuleContext, name: str, among: Sequence[str] = ()
) -> tuple[list[DetectedThing], Finding] | None:
    """The things of a name, best first, and a finding of detection; None for a name that it does not know.

    `among` are all names of the question, so that one call answers for each of them.
    """
    names = list(dict.fromkeys(among or [name]))
    finding = await detected(ctx, image_names(prompt)[0], names)
    if finding is None:
        return None
    counts = finding.data.get("counts")
    if not isinstance(counts, dict) or name not in counts:
        ctx.rule("unknown", f"detection does not know {name}")
        return None
    things = [one for one in seen_from(finding.data) if one.name == name]
    if things:
        return things, finding
    for tile in _tiles(prompt):
        crop = await ctx.tool("crop", [image_names(prompt)[0]], {"box": _corners(tile), "scale": 1.0})
        part = crop.images[0]
        if part.box is None or (inside := await detected(ctx, part.name, [name])) is None:
            continue
        for one in seen_from(inside.data):
            finding = inside
            things.append(DetectedThing(one.name, one.score, _in_parent(one.box, part.box, part.scale)))
    return _distinct(things), finding


async def detected(ctx: RuleContext, image: str, names: Sequence[str]) -> Finding | None:
    """The finding of detection; None, with a note, where it knows none of the names."""
    try:
        return await ctx.tool("detection", [image], {"names": list(names)})
    except ToolError as error:
        if error.fault is not Fault.BAD_ARGUMENTS:
            raise
        ctx.rule("unknown", str(error))
        return None


def only_one(ctx: RuleContext, things: Sequence[DetectedThing], name: str) -> DetectedThing | None:
    """The best of some things; None, with a note, where there is none or the second might be meant as well."""
    if not things:
        ctx.rule("not found", f"detection finds no {name}")
        return None
    if len(things) > 1 and things[1].score >= RIVAL * things[0].score:
        ctx.rule("several", f"detection finds more than one {name}")
        return None
    return things[0]


async def _marks(
    prompt: Prompt, ctx: RuleContext, things: Sequence[Thing]
) -> tuple[dict[Thing, tuple[Box, float]], Finding] | None:
    colors: list[Json] = [thing.color for thing in things if thing.color]
    letters: list[Json] = [thing.letter for thing in things if thing.letter]
    if colors and letters:
        ctx.rule("not found", "the question names coloured boxes and letters, which are looked for in different ways")
        return None
    args: dict[str, Json] = {"colors": colors} if colors else {"labels": letters}
    finding = await ctx.tool("markers", [image_names(prompt)[0]], args)
    marks = marks_from(finding.data)
    found: dict[Thing, tuple[Box, float]] = {}
    drawn: list[BoxMark | PointMark] = [*marks.boxes, *marks.points]
    for thing in things:
        fits = [mark for mark in drawn if (mark.color == thing.color if thing.color else mark.label == thing.letter)]
        if len(fits) != 1:
            ctx.rule("not found" if not fits else "several", f"markers finds {len(fits)} of {thing.told}")
            return None
        found[thing] = (_box(fits[0]), fits[0].confidence)
    return found, finding


def _box(mark: BoxMark | PointMark) -> Box:
    if isinstance(mark, BoxMark):
        return mark.box_px
    return Box(mark.x - mark.radius_px, mark.y - mark.radius_px, mark.x + mark.radius_px, mark.y + mark.radius_px)


def _tiles(prompt: Prompt) -> list[Box]:
    """Overlapping boxes over a large image, row by row; none over a small one."""
    size = prompt.images[0].image
    if max(size.width, size.height) <= 1.5 * CROP_PX:
        return []
    rows, columns = _spans(size.height), _spans(size.width)
    return [Box(x0, y0, x1, y1) for y0, y1 in rows for x0, x1 in columns]


def _spans(length: int) -> list[tuple[float, float]]:
    count = min(MOST_CROPS, math.ceil(length / CROP_PX))
    side = length / (count - (count - 1) * CROP_OVERLAP)
    return [(place * side * (1 - CROP_OVERLAP), place * side * (1 - CROP_OVERLAP) + side) for place in range(count)]


def _corners(box: Box) -> dict[str, Json]:
    return {"x0": box.x0, "y0": box.y0, "x1": box.x1, "y1": box.y1}


def _in_parent(box: Box, crop: Box, scale: float) -> Box:
    return Box(crop.x0 + box.x0 / scale, crop.y0 + box.y0 / scale, crop.x0 + box.x1 / scale, crop.y0 + box.y1 / scale)


def _distinct(things: Sequence[DetectedThing]) -> list[DetectedThing]:
    """Things, best first, without those that a better one shows again."""
    kept: list[DetectedThing] = []
    for one in sorted(things, key=lambda thing: -thing.score):
        if all(shared_area(one.box, k.box) < SAME_SHARE * min(area(one.box), area(k.box)) for k in kept):
            kept.append(one)
    return kept
