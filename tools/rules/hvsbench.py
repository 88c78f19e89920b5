"""HVSBench's rules that call two tools: objects named in words, found by detection and ranked by saliency.

    hybrid run hvsbench --data sample --solver specialist --backend classical

The other questions need one tool, and their rules are next to that tool. Like those rules, the rules here do not use
the reliability on a tool's card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hybrid.core.types import Box, Prompt
from hybrid.tool.finding_data import box_of, number_of, rows_of
from hybrid.tool.rules import Abstained, Rule, RuleContext, SpecialistAnswer, asks, choose, image_names
from tools.saliency.rules import nearest_rank, ranked_boxes, refuse_tie


@asks("detection", "saliency")
async def more_salient_name(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q5: choose the named object that is most salient; detection finds each one first."""
    names = [re.sub(r"^(?:the|an?)\s+", "", choice.strip(" .").lower()) for choice in prompt.choices]
    order, finding = await ranked_boxes(prompt, ctx, await _detected(prompt, ctx, names))
    refuse_tie(finding, (0,))
    return choose(order[0], "saliency", finding)


@asks("detection", "saliency")
async def rank_of_name(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q7: return the rank of the named object, which detection finds first."""
    name = ranked_thing(prompt.text)
    if name is None:
        raise Abstained("no name", "the question names no object whose rank is asked for")
    (box,) = await _detected(prompt, ctx, [name])
    return await nearest_rank(prompt, ctx, box)


# Rules by question type.
RULES: Mapping[str, Rule] = {"Q5": more_salient_name, "Q7": rank_of_name}


def ranked_thing(text: str) -> str | None:
    """Return the object whose rank a question asks for.

    "Which place has the red car among all objects?" gives "red car".
    """
    match = re.search(
        r"\b(?:place|rank|ranking|position)\s+(?:has|of|does|is)\s+(?:the|an?)\s+(?P<name>[a-z][a-z' -]*?)\s+"
        r"(?:among|in|have|take|hold|rank|by)\b",
        text,
        re.IGNORECASE,
    )
    return match["name"].lower() if match else None


async def _detected(prompt: Prompt, ctx: RuleContext, names: Sequence[str]) -> list[Box]:
    """Return the best box of each name, in order. Raises `Abstained` if one is not found."""
    if not names or not all(names):
        raise Abstained("no name", "a choice names no object")
    finding = await ctx.tool("detection", [image_names(prompt)[0]], {"names": list(names)})
    boxes: dict[str, tuple[float, Box]] = {}
    for row in rows_of(finding, "boxes"):
        name, score, box = str(row.get("name")), number_of(row, "score_0_1"), box_of(row)
        if score is not None and box is not None and score > boxes.get(name, (-1.0, box))[0]:
            boxes[name] = (score, box)
    missing = [name for name in names if name not in boxes]
    if missing:
        raise Abstained("not found", f"detection finds no {missing[0]}")
    return [boxes[name][1] for name in names]
