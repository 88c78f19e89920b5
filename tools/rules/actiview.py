"""ActiView's rules: which parts of an image to see, by detection, ocr and saliency; the question's options in words.

    hybrid run actiview --data sample --solver specialist --backend classical

Routes are kinds of prompts; parts are numbered from 1, and there are as many parts as choices. Objects that the
question names are searched first; without weights, the parts with salient objects are a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from hybrid.core.types import Box, Finding, ImageRef, Json, Prompt
from hybrid.tool.finding_data import box_of, number_of, rows_of
from hybrid.tool.rules import Abstained, Rule, RuleContext, SpecialistAnswer, ask_tool, asks, say
from tools._shared.question_words import MAX_NAMES, asked_question, asks_for_text, named_things
from tools.detection.rules import all_seen
from tools.rules._shared.options_in_words import one_of

# Minimum saliency relative to the first object at which an object selects its part.
STANDS_OUT: Final = 0.5
# Confidence in parts chosen only by saliency.
GUESSED: Final = 0.2
# Columns and rows by the number of parts; parts are counted down the columns, as in the benchmark's text.
GRIDS: Final[Mapping[int, tuple[int, int]]] = {4: (2, 2), 6: (3, 2), 8: (4, 2), 9: (3, 3), 16: (4, 4)}


@asks("detection", "ocr", "saliency")
async def views(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Name the parts to enlarge or, if some are shown already, the others to see next."""
    remaining = re.search(r"you can choose from: (.+)", prompt.text)
    if remaining is None:
        location = await _find_parts(prompt, ctx)
        return say(_list_parts(location.parts), location.tool, location.finding, location.sure)
    enough, finding = await all_seen(prompt, ctx)
    numbers = re.findall(r"\b(\d+) \(", remaining[1])
    return say("no" if enough else ", ".join(numbers), "detection", finding)


@asks("detection", "ocr", "saliency")
async def view_plan(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Name the parts to enlarge and, if some are shown already, which to keep and which others to see."""
    location = await _find_parts(prompt, ctx)
    # Numbers of the parts whose images are shown: each follows a caption such as `Part 3 (upper right):`.
    open_parts = frozenset[int]()
    for caption, part in zip(prompt.parts, prompt.parts[1:], strict=False):
        if isinstance(caption, str) and isinstance(part, ImageRef):
            open_parts |= {
                int(number) for number in re.findall(r"\bpart (\d+) \([^()]*\):\s*$", caption, re.IGNORECASE)
            }
    plan = {"part": _list_parts(location.parts), "reason": f"{location.tool} points there"}
    if open_parts:
        plan = {
            "keep": _list_parts(location.parts & open_parts or open_parts),
            "shift": _list_parts(location.parts - open_parts),
        }
    return SpecialistAnswer(json.dumps(plan), location.tool, location.finding, sure=location.sure)


# Rules by kind of prompt.
RULES: Mapping[str, Rule] = {"choice": one_of, "view_plan": view_plan, "views": views}


class WantedParts(NamedTuple):
    """The parts to look at, the tool that chose them, and the tool's output.

    `sure` is the confidence in the choice; None if it is the confidence of the output.
    """

    parts: frozenset[int]
    tool: str
    finding: Finding
    sure: float | None = None


async def _find_parts(prompt: Prompt, ctx: RuleContext) -> WantedParts:
    """Choose the parts to see from the first image, which is the full one. Raises `Abstained` if there are none."""
    question = asked_question(prompt.text)
    if question is None or not prompt.images or len(prompt.choices) not in GRIDS:
        raise Abstained("no question", "the text holds no question about the parts of a picture")
    full_image, count = prompt.images[0], len(prompt.choices)
    # Tool, arguments and key of the boxes, for each search that the question suggests.
    searches: list[tuple[str, dict[str, Json], str]] = []
    if asks_for_text(question):
        searches.append(("ocr", {}, "lines"))
    if names := named_things(question):
        searches.append(("detection", {"names": list(names[:MAX_NAMES])}, "boxes"))
    for tool, args, key in searches:
        finding = await ask_tool(ctx, tool, full_image.name, args)
        if finding is None:
            continue
        parts = _holding([box for row in rows_of(finding, key) if (box := box_of(row))], full_image, count)
        if parts:
            return WantedParts(parts, tool, finding)
    columns, rows = GRIDS[count]
    # The protocol draws lines between the parts; with this grid, saliency ignores these lines.
    finding = await ctx.tool("saliency", [full_image.name], {"columns": columns, "rows": rows})
    salient = [row for row in rows_of(finding, "objects") if (number_of(row, "saliency_0_1") or 0.0) >= STANDS_OUT]
    if not (parts := _holding([box for row in salient if (box := box_of(row))], full_image, count)):
        raise Abstained
    return WantedParts(parts, "saliency", finding, GUESSED)


def _holding(boxes: list[Box], full_image: ImageRef, count: int) -> frozenset[int]:
    """Return the parts, from 1, that contain the centre of a box."""
    columns, rows = GRIDS[count]
    parts = set()
    for box in boxes:
        column = int((box.x0 + box.x1) / 2 * columns / full_image.image.width)
        row = int((box.y0 + box.y1) / 2 * rows / full_image.image.height)
        parts.add(min(column, columns - 1) * rows + min(row, rows - 1) + 1)
    return frozenset(parts)


def _list_parts(parts: frozenset[int]) -> str:
    return ", ".join(str(number) for number in sorted(parts)) or "none"
