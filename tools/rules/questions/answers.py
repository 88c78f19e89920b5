"""How each question that a text can ask is answered: the tools that are called, and what their findings decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Final, NamedTuple

from hybrid.errors import ToolError
from hybrid.tool.finding_data import box_of, number_of, rows_of
from hybrid.tool.rules import Abstained, RuleContext, SpecialistAnswer, choose, image_names, say
from hybrid.types import Box, Fault, Finding, Json, Kind, Prompt
from tools.detection.models import Detection
from tools.detection.rules import count_of, counted_choice, seen_from
from tools.relation import RIVAL
from tools.relation.box_relations import BY_DEPTH, CERTAIN, holds
from tools.rules._shared.options_in_words import best_fitting, written_choice
from tools.rules.questions.sentence import Thing
from tools.rules.questions.values import (
    Counted,
    Described,
    Exists,
    Nearest,
    Placed,
    Related,
    Third,
    Written,
    yes_and_no,
)

# Long side from which an image is looked at in quarters as well: detectors reduce it to about a thousand.
LARGE_PX: Final = 1500
QUARTERS: Final[Mapping[str, Json]] = {"grid": {"rows": 2, "columns": 2}, "scale": 1.0}


class Places(NamedTuple):
    """A box for each thing, in pixels of the image, the least of their confidences 0..1, and what found the last."""

    boxes: tuple[Box, ...]
    sure: float
    tool: str
    finding: Finding


async def places_of(prompt: Prompt, ctx: RuleContext, things: Sequence[Thing]) -> Places:
    """A box for each thing, at least one. Raises `Abstained` where one is not found or not the only one."""
    marked = [thing for thing in things if thing.color or thing.letter]
    named = [str(thing.name) for thing in things if not (thing.color or thing.letter)]
    found: dict[Thing, tuple[Box, float]] = {}
    if marked:
        tool, finding = "markers", await _marks(prompt, ctx, marked, found)
    if named:
        seen, finding = await search(prompt, ctx, named)
        tool = "detection"
        for name in named:
            fits = sorted((one for one in seen if one.name == name), key=lambda one: -one.score)
            if not fits:
                raise Abstained("not found", f"detection finds no {name}")
            # The second might be meant as well.
            if len(fits) > 1 and fits[1].score >= RIVAL * fits[0].score:
                raise Abstained("several", f"detection finds more than one {name}")
            found[Thing(name)] = (fits[0].box, fits[0].score ** 0.25)
    return Places(tuple(found[thing][0] for thing in things), min(found[thing][1] for thing in things), tool, finding)


async def search(prompt: Prompt, ctx: RuleContext, names: Sequence[str]) -> tuple[list[Detection], Finding]:
    """The things of some names, in pixels of the image, and the last finding that had some of it, else the first.

    Raises `Abstained` where detection does not know each of them.
    """
    image, wanted = image_names(prompt)[0], list(dict.fromkeys(names))
    finding = await detected(ctx, image, wanted)
    if unknown := [name for name in wanted if count_of(finding, name) is None]:
        raise Abstained("unknown", f"detection does not know {', '.join(unknown)}")
    things = seen_from(finding.data)
    missing = [name for name in wanted if all(one.name != name for one in things)]
    size = prompt.images[0].image
    if not missing or max(size.width, size.height) <= LARGE_PX:
        return things, finding
    for part in (await ctx.tool("crop", [image], QUARTERS)).images:
        if part.box is None:
            continue
        try:
            inside = await detected(ctx, part.name, missing)
        except Abstained as why:
            ctx.rule(*why.args)
            continue
        # From pixels of the crop to those of the image.
        (left, top), scale = (part.box.x0, part.box.y0), part.scale
        more = [
            one._replace(box=Box(left + x0 / scale, top + y0 / scale, left + x1 / scale, top + y1 / scale))
            for one in seen_from(inside.data)
            for x0, y0, x1, y1 in (astuple(one.box),)
        ]
        finding = inside if more else finding
        things += more
    return things, finding


async def detected(ctx: RuleContext, image: str, names: Sequence[str]) -> Finding:
    """The finding of detection. Raises `Abstained` where it knows none of the names."""
    try:
        return await ctx.tool("detection", [image], {"names": list(names)})
    except ToolError as error:
        if error.fault is not Fault.BAD_ARGUMENTS:
            raise
        raise Abstained("unknown", str(error)) from error


async def _marks(
    prompt: Prompt, ctx: RuleContext, things: Sequence[Thing], found: dict[Thing, tuple[Box, float]]
) -> Finding:
    """Add the box and the confidence of each marked thing to `found`; return the finding of the markers tool."""
    colors: list[Json] = [thing.color for thing in things if thing.color]
    letters: list[Json] = [thing.letter for thing in things if thing.letter]
    if colors and letters:
        raise Abstained(
            "not found", "the question names coloured boxes and letters, which are looked for in different ways"
        )
    args: dict[str, Json] = {"colors": colors} if colors else {"labels": letters}
    finding = await ctx.tool("markers", [image_names(prompt)[0]], args)
    for thing in things:
        key, wanted = ("color", thing.color) if thing.color else ("label", thing.letter)
        fits = []
        for row in (*rows_of(finding, "boxes_px"), *rows_of(finding, "points_px")):
            box, sure = box_of(row), number_of(row, "confidence")
            x, y, radius = (number_of(row, side) for side in ("x", "y", "radius_px"))
            if box is None and x is not None and y is not None and radius is not None:
                box = Box(x - radius, y - radius, x + radius, y + radius)
            if row.get(key) == wanted and box is not None and sure is not None:
                fits.append((box, sure))
        if len(fits) != 1:
            raise Abstained("several" if fits else "not found", f"markers finds {len(fits)} of {thing.told}")
        found[thing] = fits[0]
    return finding


# Degree from which a relation of two boxes holds, as the relation tool takes it.
CLEARLY: Final = 0.6
# Share of the picture's side on either side of a border within which a thing lies in neither part.
EDGE: Final = 0.05
# Width of a drawn box's line and of the colour that JPEG spreads beside it.
FRAME_PX: Final = 4
# Share of a detected box's sides that is shown around it.
ROUND_IT: Final = 0.1
_TEXT, _MATERIAL = "a {value} {name}", "a {name} made of {value}"


async def exists(asked: Exists, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Yes if detection finds one, in the image or in its quarters; else no."""
    things, finding = await search(prompt, ctx, [asked.name])
    return _yes_no(prompt, bool(things), "detection", finding, None)


async def counted(asked: Counted, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """The number that detection counts, where a choice states it."""
    finding = await detected(ctx, image_names(prompt)[0], [asked.name])
    if (count := count_of(finding, asked.name)) is None:
        return None
    if prompt.kind is not Kind.CHOICE:
        return say(str(count), "detection", finding)
    place = counted_choice(prompt, finding, asked.name)
    if place is None:
        raise Abstained("no count", f"no choice states {count} x {asked.name}")
    return choose(place, "detection", finding, on_card=True)


async def nearest(asked: Nearest, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """The thing whose middle depth finds nearest; of two the other one is farther."""
    lettered = all(thing.letter for thing in asked.things)
    places = None if lettered else await places_of(prompt, ctx, asked.things)
    labels = [thing.letter or "" for thing in asked.things]
    args: dict[str, Json] = {"labels": [*labels]}
    if places is not None:
        labels = [str(place) for place in range(len(asked.things))]
        # Bounds are exclusive: the middle of a box of one pixel at the border is still a pixel of the image.
        middles: list[Json] = [
            {"x": max(0.0, (box.x0 + box.x1 - 1) / 2), "y": max(0.0, (box.y0 + box.y1 - 1) / 2), "label": label}
            for label, box in zip(labels, places.boxes, strict=True)
        ]
        args = {"points": middles}
    finding = await ctx.tool("depth", image_names(prompt), args)
    near = finding.data.get("nearer")
    if not isinstance(near, str) or near not in labels:
        raise Abstained("undecided", "depth does not say which is nearest")
    first = labels.index(near)
    sure = None if places is None else 0.5 + (finding.confidence - 0.5) * places.sure
    match asked.form:
        case "nearer than" | "farther than":
            return _yes_no(prompt, (first == 0) is (asked.form == "nearer than"), "depth", finding, sure)
        case "nearer or farther":
            return choose(asked.places[first], "depth", finding, sure=sure)
        case "farthest" | "nearest":
            place = asked.places[first if asked.form == "nearest" else 1 - first]
            return choose(place, "depth", finding, sure=sure, on_card=lettered)


async def related(asked: Related, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """The one relation that holds of those asked for: by the relation tool for names, by boxes where one has a mark."""
    relations = asked.options or ((asked.relation,) if asked.relation else ())
    things, verdicts = (asked.subject, asked.reference), []
    if all(thing.name and not thing.color for thing in things):
        for relation in relations:
            args = {"subject": asked.subject.name, "relation": relation, "reference": asked.reference.name}
            finding = await ctx.tool("relation", image_names(prompt), args)
            if finding.data.get("subject") is None or finding.data.get("reference") is None:
                break
            verdicts.append((finding.data.get("holds"), "relation", finding, finding.confidence))
    if len(verdicts) < len(relations):
        if any(relation in BY_DEPTH for relation in relations):
            raise Abstained("not found", f"the boxes of {things[0].told} and {things[1].told} say nothing about depth")
        places, verdicts = await places_of(prompt, ctx, things), []
        for relation in relations:
            degree = holds(relation, places.boxes[0], places.boxes[1])
            verdict = None if 1 - CLEARLY < degree < CLEARLY else degree >= CLEARLY
            sure = 0.5 + (CERTAIN[relation] - 0.5) * abs(2 * degree - 1) * places.sure
            verdicts.append((verdict, places.tool, places.finding, sure))
    if asked.relation is not None:
        ((held, tool, finding, sure),) = verdicts
        if isinstance(held, bool):
            return _yes_no(prompt, held, tool, finding, sure)
    true = [place for place, (held, *_) in enumerate(verdicts) if held is True]
    if asked.relation is not None or len(true) != 1:
        raise Abstained("undecided", f"{len(true)} of the relations asked for hold clearly")
    _, tool, finding, sure = verdicts[true[0]]
    return choose(true[0], tool, finding, sure=sure)


async def placed(asked: Placed, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """The one part of the picture that the middle of the thing lies in, clear of its borders."""
    places = await places_of(prompt, ctx, [asked.thing])
    parts = asked.options or ((asked.part,) if asked.part else ())
    size, box = prompt.images[0].image, places.boxes[0]
    x = _third([part.x for part in parts], (box.x0 + box.x1) / 2 / size.width)
    y = _third([part.y for part in parts], (box.y0 + box.y1) / 2 / size.height)
    # Whether it lies in each part; None where that is too near to call.
    fits: list[bool | None] = []
    for part in parts:
        verdicts = []
        for own, named, where in ((part.x, [p.x for p in parts], x), (part.y, [p.y for p in parts], y)):
            # The middle of a picture whose other parts are only left and right says nothing about up and down.
            if own is not None and any(each in ("low", "high") for each in named):
                verdicts.append(None if where is None else own == where)
        fits.append(False if False in verdicts else None if None in verdicts or not verdicts else True)
    if None in fits or (asked.options and sum(map(bool, fits)) != 1):
        raise Abstained("undecided", f"{asked.thing.told} lies near a border of the parts asked for")
    if asked.part is not None:
        return _yes_no(prompt, bool(fits[0]), places.tool, places.finding, places.sure)
    return choose(fits.index(True), places.tool, places.finding, sure=places.sure)


def _third(named: Sequence[Third | None], share: float) -> Third | None:
    """Where a share of a side lies among the parts named along it; None near a border of two."""
    borders = (1 / 3, 2 / 3) if "middle" in named else (0.5, 0.5)
    if min(abs(share - border) for border in borders) < EDGE:
        return None
    return "low" if share < borders[0] else "high" if share > borders[1] else "middle"


async def described(asked: Described, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """The value that fits the thing's own region best."""
    places = await places_of(prompt, ctx, [asked.thing])
    name = asked.thing.name or "thing"
    form = _MATERIAL if asked.attribute == "material" else _TEXT
    texts = [form.format(value=value.lower(), name=name) for value in asked.values]
    best, finding = await best_fitting(prompt, ctx, texts, _region(places.boxes[0], bool(asked.thing.color)))
    return choose(best, "attributes", finding)


def _region(box: Box, drawn: bool) -> Box:
    """The crop that shows a thing: a detected box with some of its surroundings, a drawn one without its line."""
    if drawn and min(box.x1 - box.x0, box.y1 - box.y0) > 4 * FRAME_PX:
        return Box(box.x0 + FRAME_PX, box.y0 + FRAME_PX, box.x1 - FRAME_PX, box.y1 - FRAME_PX)
    wide, high = ROUND_IT * (box.x1 - box.x0), ROUND_IT * (box.y1 - box.y0)
    return Box(max(0.0, box.x0 - wide), max(0.0, box.y0 - high), box.x1 + wide, box.y1 + high)


async def written(asked: Written, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """The one choice whose words stand in the text that is read."""
    del asked
    finding = await ctx.tool("ocr", [image_names(prompt)[0]], {})
    place = written_choice(prompt.choices, str(finding.data.get("text", "")))
    if place is None:
        raise Abstained("not read", "not one choice alone stands in the text that ocr reads")
    return choose(place, "ocr", finding)


def _yes_no(prompt: Prompt, holds_true: bool, tool: str, finding: Finding, sure: float | None) -> SpecialistAnswer:
    if prompt.kind is Kind.YES_NO:
        return say("yes" if holds_true else "no", tool, finding, sure)
    places = yes_and_no(prompt.choices)
    return choose(None if places is None else places[0 if holds_true else 1], tool, finding, sure=sure)
