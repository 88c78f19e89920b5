"""The rule of forensics: the image that is a photograph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hybrid.tool.finding_data import number_of, whole_number
from hybrid.tool.rules import ORDINALS, Rule, RuleContext, SpecialistAnswer, asks, choose_matching, image_names
from hybrid.types import Prompt


@asks("forensics")
async def real_photograph(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """The image that a supervised detector finds least synthetic.

    The detector's own confidence, and what a card may count, is of the most synthetic image, so neither is taken.
    """
    finding = await ctx.tool("forensics", image_names(prompt), {})
    place = whole_number(finding, "photograph", min(len(prompt.images), len(ORDINALS) - 1))
    sure = number_of(finding.data, "photograph_confidence_0_1")
    if place is None or sure is None:
        return None
    specialist_answer = choose_matching(prompt, "forensics", finding, rf"\b{ORDINALS[place]} image\b")
    return None if specialist_answer is None else replace(specialist_answer, sure=sure, on_card=False)


# By route.
RULES: Mapping[str, Rule] = {"Forensic_Detection": real_photograph}
