"""Where the things of a question are in its image: by the colour or letter of their mark, or by detection of the name.

Names that are not found in a large image are looked for again in its four quarters (Wu & Xie 2024 search deeper): a
question has eight tool calls. A thing that a border of two quarters cuts is found twice, and of two things that may be
meant none is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hybrid.errors import ToolError
from hybrid.tool.finding_data import box_of, number_of, rows_of
from hybrid.tool.rules import RuleContext, image_names
from hybrid.types import Box, Fault, Finding, Json, Prompt
from tools.detection.detection_json import DetectedThing, seen_from
from tools.detection.rules import count_of
from tools.relation import RIVAL
from tools.rules.questions.things import Thing

# Long side from which an image is looked at in quarters as well: detectors reduce it to about a thousand.
LARGE_PX: Final = 1500
QUARTERS: Final[Mapping[str, Json]] = {"grid": {"rows": 2, "columns": 2}, "scale": 1.0}


class Places(NamedTuple):
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
    if named:
        seen = await search(prompt, ctx, [str(thing.name) for thing in named])
        if seen is None:
            return None
        last = ("detection", seen.finding)
        for thing in named:
            one = only_one(ctx, seen.of(str(thing.name)), str(thing.name))
            if one is None:
                return None
            found[thing] = (one.box, one.score**0.25)
    if last is None:
        return None
    return Places(tuple(found[thing][0] for thing in things), min(found[thing][1] for thing in things), *last)


class Seen(NamedTuple):
    """The detections, in pixels of the image, and the last finding that had some of it, else the first."""

    things: tuple[DetectedThing, ...]
    finding: Finding

    def of(self, name: str) -> list[DetectedThing]:
        """The things of a name, best first."""
        return sorted((one for one in self.things if one.name == name), key=lambda one: -one.score)


async def search(prompt: Prompt, ctx: RuleContext, names: Sequence[str]) -> Seen | None:
    """The things of some names; None, with a note, where detection does not know each of them."""
    image, wanted = image_names(prompt)[0], list(dict.fromkeys(names))
    finding = await detected(ctx, image, wanted)
    if finding is None:
        return None
    if unknown := [name for name in wanted if count_of(finding, name) is None]:
        ctx.rule("unknown", f"detection does not know {', '.join(unknown)}")
        return None
    things = seen_from(finding.data)
    missing = [name for name in wanted if all(one.name != name for one in things)]
    size = prompt.images[0].image
    if not missing or max(size.width, size.height) <= LARGE_PX:
        return Seen(tuple(things), finding)
    quarters = (await ctx.tool("crop", [image], QUARTERS)).images
    for part in quarters:
        inside = None if part.box is None else await detected(ctx, part.name, missing)
        if part.box is None or inside is None:
            continue
        more = [replace(one, box=_in_parent(one.box, part.box, part.scale)) for one in seen_from(inside.data)]
        finding = inside if more else finding
        things += more
    return Seen(tuple(things), finding)


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
    found: dict[Thing, tuple[Box, float]] = {}
    for thing in things:
        key, wanted = ("color", thing.color) if thing.color else ("label", thing.letter)
        fits = [
            (box, sure)
            for row in (*rows_of(finding, "boxes_px"), *rows_of(finding, "points_px"))
            if row.get(key) == wanted
            and (box := box_of(row) or _around(row)) is not None
            and (sure := number_of(row, "confidence")) is not None
        ]
        if len(fits) != 1:
            ctx.rule("several" if fits else "not found", f"markers finds {len(fits)} of {thing.told}")
            return None
        found[thing] = fits[0]
    return found, finding


def _around(row: Mapping[str, Json]) -> Box | None:
    """The box around a ring."""
    x, y, radius = (number_of(row, key) for key in ("x", "y", "radius_px"))
    return None if x is None or y is None or radius is None else Box(x - radius, y - radius, x + radius, y + radius)


def _in_parent(box: Box, crop: Box, scale: float) -> Box:
    x, y = crop.x0, crop.y0
    return Box(x + box.x0 / scale, y + box.y0 / scale, x + box.x1 / scale, y + box.y1 / scale)
