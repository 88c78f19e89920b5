"""The rules of saliency: which box is most salient, the order of objects, and which fixations hit them.

Results on generated images with artificially salient objects say nothing about people's eyes, so no answer here uses
the reliability on a tool's card. Without `--trust` the arbiter treats answers of weight-free backends as guesses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from hybrid.core.types import LETTERS, Box, Finding, Json, Prompt, Scanpath, StoredImage
from hybrid.tool.finding_data import box_of, number_of, rows_of, whole_number
from hybrid.tool.rules import ORDINALS, Abstained, Rule, RuleContext, SpecialistAnswer, asks, choose, image_names, say
from tools._shared.boxes import overlap

# Largest number of boxes that the saliency tool ranks in one call.
MAX_BOXES: Final = 26
# Confidence in a count, a rank and a longest fixation: assumptions, because nothing was measured on photographs.
COUNT_SURE, RANK_SURE, MAX_SURE_LENGTH = 0.35, 0.45, 0.3
# Confidence in one of two paths: hardly above a guess, because the maps do not model people.
PATH_SURE = 0.55
# Half the side of the box around a fixation, as a fraction of the image's long side: about one degree of visual angle.
GAZE_SHARE: Final = 0.04
# Relative prominences closer than this are tied: rounding of a map in 0..1.
TIE: Final = 0.001
# Minimum intersection over union at which a detected object is the one in the queried box.
SAME_THING: Final = 0.3


@asks("saliency")
async def most_salient_box(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q1 and Q4: choose the most salient box; the text lists the boxes in the order of the choices."""
    order, finding = await _ranked_choices(prompt, ctx)
    refuse_tie(finding, (0,))
    return choose(order[0], "saliency", finding)


@asks("saliency")
async def number_of_objects(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q2: count the salient objects."""
    finding = await ctx.tool("saliency", image_names(prompt), {})
    count = whole_number(finding, "count")
    if count == 0:
        raise Abstained("no evidence", "nothing stands out")
    return None if count is None else say(str(count), "saliency", finding, COUNT_SURE)


@asks("saliency")
async def order_of_boxes(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q3: order the boxes from the most to the least salient; the order is right only if all neighbouring pairs are."""
    order, finding = await _ranked_choices(prompt, ctx)
    refuse_tie(finding, range(len(order) - 1))
    certainty = finding.confidence ** (len(order) - 1)
    return say("".join(LETTERS[place] for place in order), "saliency", finding, certainty)


@asks("saliency")
async def rank_of_box(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q6: return the rank of the queried box among all salient objects."""
    if len(prompt.given.boxes) != 1:
        raise Abstained("no box", f"the text gives {len(prompt.given.boxes)} boxes instead of the one to rank")
    return await nearest_rank(prompt, ctx, prompt.given.boxes[0])


@asks("saliency")
async def human_path(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q8 and Q11: choose the scanpath whose fixations are on the most salient areas."""
    paths = prompt.given.scanpaths
    if len(paths) != len(prompt.choices) or len(paths) < 2:
        raise Abstained("no paths", f"the text gives {len(paths)} scanpaths for {len(prompt.choices)} choices")
    length = MAX_BOXES // len(paths)
    # The first fixation is in the centre of every image.
    cut = [Scanpath(path.x[1 : length + 1], path.y[1 : length + 1], ()) for path in paths]
    return await _most_salient_path(prompt, ctx, cut, PATH_SURE)


@asks("saliency")
async def longest_fixation(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q10 and Q13: choose the fixation on the most salient area."""
    spots = [path for path in prompt.given.scanpaths if len(path.x) == 1]
    if len(spots) != len(prompt.choices) or not 2 <= len(spots) <= MAX_BOXES:
        raise Abstained("no fixations", f"the text gives {len(spots)} fixations for {len(prompt.choices)} choices")
    return await _most_salient_path(prompt, ctx, spots, MAX_SURE_LENGTH)


# Rules by route.
RULES: Mapping[str, Rule] = {
    "Q1": most_salient_box,
    "Q2": number_of_objects,
    "Q3": order_of_boxes,
    "Q4": most_salient_box,
    "Q6": rank_of_box,
    "Q8": human_path,
    "Q10": longest_fixation,
    "Q11": human_path,
    "Q13": longest_fixation,
}


async def ranked_boxes(prompt: Prompt, ctx: RuleContext, boxes: Sequence[Box]) -> tuple[tuple[int, ...], Finding]:
    """Return the indices of the boxes, from the most to the least salient, and the tool output that ranks them.

    Raises `Abstained` if the output does not rank exactly these boxes.
    """
    labelled: list[Json] = [
        {"x0": box.x0, "y0": box.y0, "x1": box.x1, "y1": box.y1, "label": str(place)} for place, box in enumerate(boxes)
    ]
    finding = await ctx.tool("saliency", image_names(prompt), {"boxes": labelled})
    labels = [str(row.get("label")) for row in rows_of(finding, "objects")]
    order = tuple(int(label) for label in labels if label.isdecimal())
    if not order or sorted(order) != list(range(len(boxes))):
        raise Abstained
    return order, finding


def refuse_tie(finding: Finding, places: Sequence[int]) -> None:
    """Check that each of these ranks, from 0, is not tied with the next, and that the first box is salient.

    Raises:
        Abstained: two boxes are tied, or the first is not salient.
    """
    values = [number_of(row, "saliency_0_1") or 0.0 for row in rows_of(finding, "objects")]
    pairs = [values[place : place + 2] for place in places if place >= 0]
    tied = any(len(pair) == 2 and pair[0] - pair[1] <= TIE for pair in pairs)
    # Null means that none is salient; an output without the key makes no statement.
    if tied or (0 in places and finding.data.get("most_salient", "") is None):
        raise Abstained("tie", "two boxes stand out alike, or none does")


async def nearest_rank(prompt: Prompt, ctx: RuleContext, target_box: Box) -> SpecialistAnswer | None:
    """Choose the option nearest to the rank of a box among the other salient objects."""
    ranks = [rank_in(choice) for choice in prompt.choices]
    if None in ranks or len(set(ranks)) < len(ranks):
        raise Abstained("no ranks", "the choices do not state one rank each")
    around = await ctx.tool("saliency", image_names(prompt), {})
    objects = [box for row in rows_of(around, "objects") if (box := box_of(row)) is not None]
    others = [box for box in objects if overlap(box, target_box) < SAME_THING][: MAX_BOXES - 1]
    order, finding = await ranked_boxes(prompt, ctx, [target_box, *others])
    rank = order.index(0) + 1
    refuse_tie(finding, (rank - 2, rank - 1))
    place = min(range(len(ranks)), key=lambda place: abs((ranks[place] or 0) - rank))
    return choose(place, "saliency", finding, sure=RANK_SURE)


def rank_in(choice: str) -> int | None:
    """Return the rank, from 1, that a choice states: "the second most salient", "2nd", "3"; else None."""
    low = choice.lower()
    if ordinal := re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", low):
        return int(ordinal[1])
    places = [place for place, word in enumerate(ORDINALS, 1) if re.search(rf"\b{word}\b", low)]
    if places:
        return places[0] if len(places) == 1 else None
    return 1 if re.search(r"\bmost\b", low) else None


async def _ranked_choices(prompt: Prompt, ctx: RuleContext) -> tuple[tuple[int, ...], Finding]:
    boxes = prompt.given.boxes
    if len(boxes) != len(prompt.choices) or not 2 <= len(boxes) <= MAX_BOXES:
        raise Abstained("no boxes", f"the text gives {len(boxes)} boxes for {len(prompt.choices)} choices")
    return await ranked_boxes(prompt, ctx, boxes)


async def _most_salient_path(
    prompt: Prompt, ctx: RuleContext, paths: Sequence[Scanpath], certainty: float
) -> SpecialistAnswer | None:
    """Choose the path with the highest mean saliency at its fixations; a tie decides nothing."""
    boxes = [box for path in paths for box in _around(path, prompt.images[0].image)]
    order, finding = await ranked_boxes(prompt, ctx, boxes)
    saliencies = [number_of(row, "saliency_0_1") for row in rows_of(finding, "objects")]
    valid = [value for value in saliencies if value is not None]
    if len(valid) != len(order) or not all(path.x for path in paths):
        return None
    values = [valid[order.index(place)] for place in range(len(valid))]
    ends = list(accumulate(len(path.x) for path in paths))
    means = [sum(values[end - len(path.x) : end]) / len(path.x) for path, end in zip(paths, ends, strict=True)]
    best = max(means)
    return choose(means.index(best), "saliency", finding, sure=certainty) if means.count(best) == 1 else None


def _around(path: Scanpath, image: StoredImage) -> list[Box]:
    """Return a box around each fixation, inside the image.

    If a coordinate exceeds 1, all of them are pixels, else fractions of the image.
    """
    fractions = all(0 <= value <= 1 for value in (*path.x, *path.y))
    width, height = (image.width, image.height) if fractions else (1, 1)
    half = max(1.0, GAZE_SHARE * max(image.width, image.height))
    boxes = []
    for x, y in zip(path.x, path.y, strict=True):
        # Clip to the image; a fixation outside becomes the nearest border pixel.
        x0 = min(max(x * width - half, 0.0), image.width - 1.0)
        y0 = min(max(y * height - half, 0.0), image.height - 1.0)
        x1, y1 = min(x * width + half, float(image.width)), min(y * height + half, float(image.height))
        boxes.append(Box(x0, y0, max(x0 + 1.0, x1), max(y0 + 1.0, y1)))
    return boxes
