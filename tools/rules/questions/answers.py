"""Answers to each kind of question that a text can ask: the tools called, and the decision from their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Final, NamedTuple

from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Fault, Finding, Json, Kind, Prompt
from hybrid.tool.finding_data import box_of, number_of, rows_of
from hybrid.tool.rules import Abstained, RuleContext, SpecialistAnswer, choose, image_names, say
from tools.detection.models import Detection
from tools.detection.rules import count_of, counted_choice, seen_from
from tools.relation import RIVAL
from tools.relation.box_relations import BY_DEPTH, CERTAIN, holds
from tools.rules._shared.options_in_words import best_fitting, written_choice
from tools.rules.questions.sentence import Thing
from tools.rules.questions.values import (
    AttributeQuestion,
    CountQuestion,
    ExistenceQuestion,
    NearestQuestion,
    PositionQuestion,
    RelationQuestion,
    TextQuestion,
    Third,
    yes_and_no,
)

# Long side from which the quarters of an image are searched as well: detectors shrink it to about a thousand pixels.
LARGE_PX: Final = 1500
QUARTERS: Final[Mapping[str, Json]] = {"grid": {"rows": 2, "columns": 2}, "scale": 1.0}


class FoundBoxes(NamedTuple):
    """A box for each object of a question, in pixels of the image.

    `sure` is the lowest confidence, 0..1, in any of the boxes. `tool` is the tool that was used last, and `finding` its
    output.
    """

    boxes: tuple[Box, ...]
    sure: float
    tool: str
    finding: Finding


async def places_of(prompt: Prompt, ctx: RuleContext, entities: Sequence[Thing]) -> FoundBoxes:
    """Return a box for each object, at least one. Raises `Abstained` if one is not found or not unique."""
    marked = [entity for entity in entities if entity.color or entity.letter]
    names = [str(entity.name) for entity in entities if not (entity.color or entity.letter)]
    boxes: dict[Thing, tuple[Box, float]] = {}
    if marked:
        tool, finding = "markers", await _marks(prompt, ctx, marked, boxes)
    if names:
        seen, finding = await search(prompt, ctx, names)
        tool = "detection"
        for name in names:
            fits = sorted(
                (detection for detection in seen if detection.name == name), key=lambda detection: -detection.score
            )
            if not fits:
                raise Abstained("not found", f"detection finds no {name}")
            # The question might mean the second object.
            if len(fits) > 1 and fits[1].score >= RIVAL * fits[0].score:
                raise Abstained("several", f"detection finds more than one {name}")
            boxes[Thing(name)] = (fits[0].box, fits[0].score ** 0.25)
    return FoundBoxes(
        tuple(boxes[entity][0] for entity in entities), min(boxes[entity][1] for entity in entities), tool, finding
    )


async def search(prompt: Prompt, ctx: RuleContext, names: Sequence[str]) -> tuple[list[Detection], Finding]:
    """Detect named objects, in pixels of the image; return them and the last output that found any, else the first.

    Raises `Abstained` if detection does not know one of the names.
    """
    image, unique_names = image_names(prompt)[0], list(dict.fromkeys(names))
    finding = await detected(ctx, image, unique_names)
    if unknown := [name for name in unique_names if count_of(finding, name) is None]:
        raise Abstained("unknown", f"detection does not know {', '.join(unknown)}")
    detections = seen_from(finding.data)
    missing = [name for name in unique_names if all(detection.name != name for detection in detections)]
    size = prompt.images[0].image
    if not missing or max(size.width, size.height) <= LARGE_PX:
        return detections, finding
    for part in (await ctx.tool("crop", [image], QUARTERS)).images:
        if part.box is None:
            continue
        try:
            inside = await detected(ctx, part.name, missing)
        except Abstained as abstained:
            ctx.rule(*abstained.args)
            continue
        # Convert from pixels of the crop to those of the image.
        (x_offset, y_offset), scale = (part.box.x0, part.box.y0), part.scale
        more = [
            detection._replace(
                box=Box(x_offset + x0 / scale, y_offset + y0 / scale, x_offset + x1 / scale, y_offset + y1 / scale)
            )
            for detection in seen_from(inside.data)
            for x0, y0, x1, y1 in (astuple(detection.box),)
        ]
        finding = inside if more else finding
        detections += more
    return detections, finding


async def detected(ctx: RuleContext, image: str, names: Sequence[str]) -> Finding:
    """Return the output of detection. Raises `Abstained` if it knows none of the names."""
    try:
        return await ctx.tool("detection", [image], {"names": list(names)})
    except ToolError as error:
        if error.fault is not Fault.BAD_ARGUMENTS:
            raise
        raise Abstained("unknown", str(error)) from error


async def _marks(
    prompt: Prompt, ctx: RuleContext, entities: Sequence[Thing], boxes: dict[Thing, tuple[Box, float]]
) -> Finding:
    """Add the box and the confidence of each marked object to `boxes`; return the output of the markers tool."""
    colors: list[Json] = [entity.color for entity in entities if entity.color]
    letters: list[Json] = [entity.letter for entity in entities if entity.letter]
    if colors and letters:
        raise Abstained(
            "not found", "the question names coloured boxes and letters, which are looked for in different ways"
        )
    args: dict[str, Json] = {"colors": colors} if colors else {"labels": letters}
    finding = await ctx.tool("markers", [image_names(prompt)[0]], args)
    for entity in entities:
        key, expected = ("color", entity.color) if entity.color else ("label", entity.letter)
        fits = []
        for row in (*rows_of(finding, "boxes_px"), *rows_of(finding, "points_px")):
            box, certainty = box_of(row), number_of(row, "confidence")
            x, y, radius = (number_of(row, side) for side in ("x", "y", "radius_px"))
            if box is None and x is not None and y is not None and radius is not None:
                box = Box(x - radius, y - radius, x + radius, y + radius)
            if row.get(key) == expected and box is not None and certainty is not None:
                fits.append((box, certainty))
        if len(fits) != 1:
            raise Abstained("several" if fits else "not found", f"markers finds {len(fits)} of {entity.label}")
        boxes[entity] = fits[0]
    return finding


# Minimum degree at which a relation of two boxes holds, as in the relation tool.
CLEARLY: Final = 0.6
# Distance from a border between parts, as a share of the image's side, within which the part is undecided.
EDGE: Final = 0.05
# Width of a drawn box's line, including the colour that JPEG spreads around it.
FRAME_PX: Final = 4
# Margin around a detected box, as a share of its sides, that is shown.
ROUND_IT: Final = 0.1
_TEXT, _MATERIAL = "a {value} {name}", "a {name} made of {value}"


async def answer_existence(question: ExistenceQuestion, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Answer yes if detection finds an object, in the image or in its quarters; else no."""
    detections, finding = await search(prompt, ctx, [question.name])
    return _yes_no(prompt, bool(detections), "detection", finding, None)


async def answer_count(question: CountQuestion, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Return detection's count, or the choice that states it."""
    finding = await detected(ctx, image_names(prompt)[0], [question.name])
    if (count := count_of(finding, question.name)) is None:
        return None
    if prompt.kind is not Kind.CHOICE:
        return say(str(count), "detection", finding)
    place = counted_choice(prompt, finding, question.name)
    if place is None:
        raise Abstained("no count", f"no choice states {count} x {question.name}")
    return choose(place, "detection", finding, on_card=True)


async def answer_nearest(question: NearestQuestion, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Choose the object whose centre is nearest by depth or, if the farther of two is asked for, the other one."""
    lettered = all(entity.letter for entity in question.things)
    places = None if lettered else await places_of(prompt, ctx, question.things)
    labels = [entity.letter or "" for entity in question.things]
    args: dict[str, Json] = {"labels": [*labels]}
    if places is not None:
        labels = [str(place) for place in range(len(question.things))]
        # Bounds are exclusive: the centre of a one-pixel box at the border is still a pixel of the image.
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
    certainty = None if places is None else 0.5 + (finding.confidence - 0.5) * places.sure
    match question.form:
        case "nearer than" | "farther than":
            return _yes_no(prompt, (first == 0) is (question.form == "nearer than"), "depth", finding, certainty)
        case "nearer or farther":
            return choose(question.places[first], "depth", finding, sure=certainty)
        case "farthest" | "nearest":
            place = question.places[first if question.form == "nearest" else 1 - first]
            return choose(place, "depth", finding, sure=certainty, on_card=lettered)


async def answer_relation(question: RelationQuestion, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Choose the only relation that holds: by the relation tool for names, by boxes if one object has a mark."""
    relations = question.options or ((question.relation,) if question.relation else ())
    entities, verdicts = (question.subject, question.reference), []
    if all(entity.name and not entity.color for entity in entities):
        for relation in relations:
            args = {"subject": question.subject.name, "relation": relation, "reference": question.reference.name}
            finding = await ctx.tool("relation", image_names(prompt), args)
            if finding.data.get("subject") is None or finding.data.get("reference") is None:
                break
            verdicts.append((finding.data.get("holds"), "relation", finding, finding.confidence))
    if len(verdicts) < len(relations):
        if any(relation in BY_DEPTH for relation in relations):
            raise Abstained(
                "not found", f"the boxes of {entities[0].label} and {entities[1].label} say nothing about depth"
            )
        places, verdicts = await places_of(prompt, ctx, entities), []
        for relation in relations:
            degree = holds(relation, places.boxes[0], places.boxes[1])
            verdict = None if 1 - CLEARLY < degree < CLEARLY else degree >= CLEARLY
            certainty = 0.5 + (CERTAIN[relation] - 0.5) * abs(2 * degree - 1) * places.sure
            verdicts.append((verdict, places.tool, places.finding, certainty))
    if question.relation is not None:
        ((holds_true, tool, finding, certainty),) = verdicts
        if isinstance(holds_true, bool):
            return _yes_no(prompt, holds_true, tool, finding, certainty)
    true = [place for place, (holds_true, *_) in enumerate(verdicts) if holds_true is True]
    if question.relation is not None or len(true) != 1:
        raise Abstained("undecided", f"{len(true)} of the relations in question clearly hold")
    _, tool, finding, certainty = verdicts[true[0]]
    return choose(true[0], tool, finding, sure=certainty)


async def answer_position(question: PositionQuestion, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Choose the only part of the image that contains the object's centre, away from its borders."""
    places = await places_of(prompt, ctx, [question.thing])
    parts = question.options or ((question.part,) if question.part else ())
    size, box = prompt.images[0].image, places.boxes[0]
    x = _third([part.x for part in parts], (box.x0 + box.x1) / 2 / size.width)
    y = _third([part.y for part in parts], (box.y0 + box.y1) / 2 / size.height)
    # Whether the object is in each part; None if that is too close to call.
    fits: list[bool | None] = []
    for part in parts:
        verdicts = []
        for option_third, thirds, actual_third in (
            (part.x, [p.x for p in parts], x),
            (part.y, [p.y for p in parts], y),
        ):
            # An axis counts only if a part is low or high on it. If the parts are left, middle and right, "middle" says
            # nothing about up and down.
            if option_third is not None and any(third in ("low", "high") for third in thirds):
                verdicts.append(None if actual_third is None else option_third == actual_third)
        fits.append(False if False in verdicts else None if None in verdicts or not verdicts else True)
    if None in fits or (question.options and sum(map(bool, fits)) != 1):
        raise Abstained("undecided", f"{question.thing.label} lies near a border of the parts asked for")
    if question.part is not None:
        return _yes_no(prompt, bool(fits[0]), places.tool, places.finding, places.sure)
    return choose(fits.index(True), places.tool, places.finding, sure=places.sure)


def _third(thirds: Sequence[Third | None], share: float) -> Third | None:
    """Return which of the named thirds of a side contains a position; None near a border."""
    borders = (1 / 3, 2 / 3) if "middle" in thirds else (0.5, 0.5)
    if min(abs(share - border) for border in borders) < EDGE:
        return None
    return "low" if share < borders[0] else "high" if share > borders[1] else "middle"


async def answer_attribute(question: AttributeQuestion, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Choose the value that fits the region of the object best."""
    places = await places_of(prompt, ctx, [question.thing])
    name = question.thing.name or "thing"
    form = _MATERIAL if question.attribute == "material" else _TEXT
    texts = [form.format(value=value.lower(), name=name) for value in question.values]
    best, finding = await best_fitting(prompt, ctx, texts, _region(places.boxes[0], bool(question.thing.color)))
    return choose(best, "attributes", finding)


def _region(box: Box, has_frame: bool) -> Box:
    """Return the crop that shows an object: a detected box with a margin, a drawn one without its line."""
    if has_frame and min(box.x1 - box.x0, box.y1 - box.y0) > 4 * FRAME_PX:
        return Box(box.x0 + FRAME_PX, box.y0 + FRAME_PX, box.x1 - FRAME_PX, box.y1 - FRAME_PX)
    wide, high = ROUND_IT * (box.x1 - box.x0), ROUND_IT * (box.y1 - box.y0)
    return Box(max(0.0, box.x0 - wide), max(0.0, box.y0 - high), box.x1 + wide, box.y1 + high)


async def answer_text(question: TextQuestion, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Choose the only choice whose words are in the text that ocr reads."""
    del question
    finding = await ctx.tool("ocr", [image_names(prompt)[0]], {})
    place = written_choice(prompt.choices, str(finding.data.get("text", "")))
    if place is None:
        raise Abstained("not read", "not one choice alone stands in the text that ocr reads")
    return choose(place, "ocr", finding)


def _yes_no(prompt: Prompt, holds_true: bool, tool: str, finding: Finding, certainty: float | None) -> SpecialistAnswer:
    if prompt.kind is Kind.YES_NO:
        return say("yes" if holds_true else "no", tool, finding, certainty)
    places = yes_and_no(prompt.choices)
    return choose(None if places is None else places[0 if holds_true else 1], tool, finding, sure=certainty)
