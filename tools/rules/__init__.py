"""What the specialists alone say to a prompt: one rule a route, read by `baselines/specialist` and `graphs/arbiter`.

`testify` looks up the prompt's route in `RULES`, calls the tools of that rule and turns their `data` (never their text)
into a reply of the prompt's kind. A route without a rule, or a finding that does not decide, is an abstention.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hybrid.errors import NoBackend
from hybrid.registry import load
from hybrid.solving.controls import ORACLE
from hybrid.solving.kit import Kit
from hybrid.solving.trust import Curve
from hybrid.tool import Bin, Tool
from hybrid.types import Json, Prompt
from tools.rules.gaze import GAZE
from tools.rules.testimony import OracleSpoke, Rule, Testimony, about, choose, names, number_of, until_oracle
from tools.rules.views import VIEWS
from tools.rules.wording import asked_relation, boxed_thing, counted_thing, number_in
from tools.rules.words import WORDS

ALWAYS = 1_000_000
"""Cases in which an oracle was right: more than any measured model's."""
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def has_rule(prompt: Prompt) -> bool:
    """Whether `testify` would ask a tool about a prompt of this route."""
    return prompt.route in RULES


async def testify(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The specialists' answer, or None for an abstention. Raises `ToolError` when a tool cannot answer.

    A tool that has no weights and no weight-free way to answer is an abstention, not a fault.
    """
    rule = RULES.get(prompt.route)
    if rule is None:
        return None
    try:
        return await rule(prompt, replace(kit, tool=until_oracle(kit.tool)))
    except OracleSpoke as spoke:
        return spoke.testimony(prompt)
    except NoBackend as error:
        kit.rule("no backend", str(error))
        return None


def card_curve(testimony: Testimony, choices: int) -> Curve:
    """What the tool's card says of the reliability of the backend that answered.

    Where the card does not speak of this answer, or nothing was measured, nothing is known: the curve of a guess among
    so many choices. An oracle is always right.
    """
    if testimony.finding.backend == ORACLE:
        return Curve((Bin(0.0, ALWAYS, ALWAYS),))
    tool: Tool = load("tools", testimony.tool)
    card = next((card for card in tool.card.backends if card.name == testimony.finding.backend), None)
    if testimony.on_card and card is not None and card.reliability:
        return Curve(card.reliability)
    # The two cases that `Curve.at` adds make one right of `choices`.
    return Curve((Bin(0.0, 0, max(0, choices - 2)),))


async def jigsaw(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The candidate whose seams fit; choices name candidates by their place among the images."""
    finding = await kit.tool("jigsaw", names(prompt), {})
    best = _place(finding.data.get("best"), len(prompt.images) - 1)
    return None if best is None else about(prompt, "jigsaw", finding, rf"\b{ORDINALS[best + 1]} image\b")


async def relative_depth(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The point that the depth tool puts nearer; choices name points by their drawn letter."""
    labels = [match[1] for choice in prompt.choices if (match := re.search(r"\b([A-Z])\b", choice))]
    finding = await kit.tool("depth", names(prompt), {"labels": labels})
    nearer = finding.data.get("nearer")
    return about(prompt, "depth", finding, rf"\b{nearer}\b") if isinstance(nearer, str) else None


async def object_localization(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The drawn box that fits the named thing; choices name boxes by their letter."""
    name = boxed_thing(prompt.text)
    if name is None:
        kit.rule("no name", "the question names no thing in a box")
        return None
    labels = [match[1] for choice in prompt.choices if (match := re.search(r"\b([A-Z])\b", choice))]
    finding = await kit.tool("localization", names(prompt), {"name": name, "labels": labels})
    best = finding.data.get("best")
    return about(prompt, "localization", finding, rf"\b{best}\b") if isinstance(best, str) else None


async def spatial_relation(prompt: Prompt, kit: Kit) -> Testimony | None:
    """Yes or no to a relation between two named things, where the wording is one that boxes can speak of."""
    asked = asked_relation(prompt.text)
    if asked is None:
        kit.rule("no relation", "the question's wording names no relation that boxes can speak of")
        return None
    args: dict[str, Json] = {"subject": asked.subject, "relation": asked.relation, "reference": asked.reference}
    finding = await kit.tool("relation", names(prompt), args)
    holds = finding.data.get("holds")
    if not isinstance(holds, bool):
        return None
    return about(prompt, "relation", finding, r"(?i)^\W*yes\b" if holds else r"(?i)^\W*no\b")


async def counting(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The choice that states the number of detected things; a number that no choice states is an abstention."""
    name = counted_thing(prompt.text)
    if name is None:
        kit.rule("no name", "the question names no thing to count")
        return None
    finding = await kit.tool("detection", names(prompt), {"names": [name]})
    counts = finding.data.get("counts")
    count = counts.get(name) if isinstance(counts, Mapping) else None
    fits = [place for place, choice in enumerate(prompt.choices) if count is not None and number_in(choice) == count]
    return choose(fits[0], "detection", finding) if len(fits) == 1 else None


async def semantic_correspondence(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The drawn point of the second image that is most like REF; choices name points by their letter."""
    labels = [match[1] for choice in prompt.choices if (match := re.search(r"\b([A-D])\b", choice))]
    finding = await kit.tool("semantic_correspondence", names(prompt), {"labels": labels})
    best = finding.data.get("best")
    return about(prompt, "semantic_correspondence", finding, rf"\b{best}\b") if isinstance(best, str) else None


async def forensic_detection(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The image that a supervised detector finds least synthetic: the real photograph is asked for.

    Choices name images by their place. The detector's own confidence, and what a card may count, is of the most
    synthetic image, so neither is taken.
    """
    finding = await kit.tool("forensics", names(prompt), {})
    place = _place(finding.data.get("photograph"), len(prompt.images))
    sure = number_of(finding.data, "photograph_confidence_0_1")
    if place is None or sure is None:
        return None
    testimony = about(prompt, "forensics", finding, rf"\b{ORDINALS[place]} image\b")
    return None if testimony is None else replace(testimony, sure=sure, on_card=False)


async def visual_correspondence(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The drawn point of the second image where REF is; choices name points by their letter."""
    finding = await kit.tool("correspondence", names(prompt), {})
    best = finding.data.get("best")
    return about(prompt, "correspondence", finding, rf"\b{best}\b") if isinstance(best, str) else None


SIDES = {
    "left": r"(?i)\bleft\b|(?<!counter)(?<!anti)(?<!counter[- ])(?<!anti[- ])clockwise",
    "right": r"(?i)\bright\b|(?:counter|anti)[- ]?clockwise",
}
"""How choices say where a camera went; clockwise, seen from above, is to its left."""


async def multi_view_reasoning(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The side that the camera moved to; choices name sides or turns in words."""
    finding = await kit.tool("motion", names(prompt), {})
    moved = finding.data.get("moved")
    return about(prompt, "motion", finding, SIDES[moved]) if isinstance(moved, str) and moved in SIDES else None


async def relative_reflectance(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The point on the darker surface, or the choice that says they are the same; choices name points by letter."""
    labels = [match[1] for choice in prompt.choices if (match := re.search(r"\b([A-Z])\b", choice))]
    finding = await kit.tool("reflectance", names(prompt), {"labels": labels})
    if finding.data.get("same") is True:
        return about(prompt, "reflectance", finding, r"(?i)\b(?:same|equal(?:ly)?)\b")
    darker = finding.data.get("darker")
    return about(prompt, "reflectance", finding, rf"\b{darker}\b.*\bdarker\b") if isinstance(darker, str) else None


async def visual_similarity(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The image closest to the first in content; choices name images by their place."""
    return await _closest(prompt, kit, "content")


async def art_style(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The image closest to the first in style; choices name images by their place."""
    return await _closest(prompt, kit, "style")


async def _closest(prompt: Prompt, kit: Kit, aspect: str) -> Testimony | None:
    finding = await kit.tool("similarity", names(prompt), {"aspect": aspect})
    best = _place(finding.data.get("best"), len(prompt.images) - 1)
    return None if best is None else about(prompt, "similarity", finding, rf"\b{ORDINALS[best + 1]} image\b")


def _place(value: Json, count: int) -> int | None:
    """A place from 0 among so many images, or None for anything else. True is an integer to Python, and no place."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < min(count, len(ORDINALS) - 1):
        return None
    return value


RULES: Mapping[str, Rule] = {
    # BLINK, by its tasks.
    "Art_Style": art_style,
    "Counting": counting,
    "Forensic_Detection": forensic_detection,
    "Functional_Correspondence": semantic_correspondence,
    "Jigsaw": jigsaw,
    "Multi-view_Reasoning": multi_view_reasoning,
    "Object_Localization": object_localization,
    "Relative_Depth": relative_depth,
    "Relative_Reflectance": relative_reflectance,
    "Semantic_Correspondence": semantic_correspondence,
    "Spatial_Relation": spatial_relation,
    "Visual_Correspondence": visual_correspondence,
    "Visual_Similarity": visual_similarity,
    # HVSBench by its question types; ActiView, MVP-Bench and MM-SAP by the kind of ask.
    **GAZE,
    **VIEWS,
    **WORDS,
}
"""By route. The three other parts of the table say of each rule which tools it needs and what it reads."""
