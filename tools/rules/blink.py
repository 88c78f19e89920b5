"""BLINK's rules: which tool each task asks, and how the choices word what it finds.

    hybrid run blink --solver specialist --backend classical

A choice is found by its words and never by its own letter: choices name points and boxes by the letter drawn in the
picture, and images by their place. IQ_Test has no rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from hybrid.solving.solver import SolverContext
from hybrid.types import Finding, Json, Prompt
from tools._shared.relation_names import RelationName
from tools.rules._shared.findings import counted_choice, names, number_of, whole_number
from tools.rules._shared.question_words import ORDINALS, counted_thing
from tools.rules._shared.specialist_answer import Rule, SpecialistAnswer, asks, choose

SIDES: Final = {
    "left": r"(?i)\bleft\b|(?<!counter)(?<!anti)(?<!counter[- ])(?<!anti[- ])clockwise",
    "right": r"(?i)\bright\b|(?:counter|anti)[- ]?clockwise",
}
"""How choices say where a camera went; clockwise, seen from above, is to its left."""
_WORDED: Final[Mapping[RelationName, tuple[str, ...]]] = {
    "left of": ("at the left side of", "to the left of", "on the left of", "left of"),
    "right of": ("at the right side of", "to the right of", "on the right of", "right of"),
    "above": ("above", "over"),
    "under": ("beneath", "under", "underneath"),
    "below": ("below",),
    "on": ("on top of", "on"),
    "inside": ("inside", "within", "in"),
    "outside": ("outside of", "outside"),
    "touching": ("touching", "in contact with"),
    "next to": ("next to", "beside", "alongside", "adjacent to", "near"),
    "far from": ("far away from", "away from", "far from"),
    "in front of": ("in front of",),
    "behind": ("behind", "at the back of"),
}
PHRASES: Final = {phrase: relation for relation, phrases in _WORDED.items() for phrase in phrases}
"""How VSR words its relations (Liu et al. 2023), as far as boxes and depth can tell them."""

Reading = Callable[[Finding, Prompt], str | None]
"""Turn a finding into a pattern that matches the right choice; None if it does not decide."""


@dataclass(frozen=True)
class OneCall:
    """A rule that calls one tool once, on all images, and takes the one choice that matches its finding."""

    tool: str
    reading: Reading
    args: Callable[[Prompt], Mapping[str, Json] | None] = lambda prompt: {}
    """The tool's arguments; None if the wording of the question does not give them."""
    unread: tuple[str, str] = ("", "")
    """The note written to the trace for an abstention."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The tool of the rule."""
        return (self.tool,)

    async def __call__(self, prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
        """The choice, or None for an abstention."""
        args = self.args(prompt)
        if args is None:
            ctx.rule(*self.unread)
            return None
        finding = await ctx.tool(self.tool, names(prompt), args)
        return _fitting(prompt, self.tool, finding, self.reading(finding, prompt))


def _fitting(prompt: Prompt, tool: str, finding: Finding, pattern: str | None) -> SpecialistAnswer | None:
    """The answer with the one choice that the pattern fits; none or several is an abstention."""
    fits = [place for place, choice in enumerate(prompt.choices) if pattern is not None and re.search(pattern, choice)]
    return choose(fits[0], tool, finding, on_card=True) if len(fits) == 1 else None


def letter(key: str = "best") -> Reading:
    """The letter under a key of the finding, as "Point B", "Box B" or "B is closer" name it."""

    def reading(finding: Finding, prompt: Prompt) -> str | None:
        label = finding.data.get(key)
        return rf"\b{re.escape(label)}\b" if isinstance(label, str) else None

    return reading


def later_image(finding: Finding, prompt: Prompt) -> str | None:
    """Which of the images after the first is the best."""
    best = whole_number(finding, "best", min(len(prompt.images), len(ORDINALS)) - 1)
    return None if best is None else rf"\b{ORDINALS[best + 1]} image\b"


def side(finding: Finding, prompt: Prompt) -> str | None:
    """The side that the camera moved to; choices name sides, or turns in words."""
    moved = finding.data.get("moved")
    return SIDES.get(moved) if isinstance(moved, str) else None


def darker_surface(finding: Finding, prompt: Prompt) -> str | None:
    """The letter of the darker surface, or that both are the same."""
    if finding.data.get("same") is True:
        return r"(?i)\b(?:same|equal(?:ly)?)\b"
    darker = finding.data.get("darker")
    return rf"\b{re.escape(darker)}\b.*\bdarker\b" if isinstance(darker, str) else None


def yes_or_no(finding: Finding, prompt: Prompt) -> str | None:
    """Whether the relation holds."""
    holds = finding.data.get("holds")
    if not isinstance(holds, bool):
        return None
    return r"(?i)^\W*yes\b" if holds else r"(?i)^\W*no\b"


def drawn_labels(prompt: Prompt) -> dict[str, Json]:
    """The letters that the choices name."""
    return {"labels": [match[1] for choice in prompt.choices if (match := re.search(r"\b([A-Z])\b", choice))]}


def boxed_name(prompt: Prompt) -> dict[str, Json] | None:
    """The thing in the boxes, and their letters."""
    name = boxed_thing(prompt.text)
    return None if name is None else {"name": name, **drawn_labels(prompt)}


def two_things(prompt: Prompt) -> dict[str, Json] | None:
    """Two named things and the relation between them."""
    asked = asked_relation(prompt.text)
    return None if asked is None else asdict(asked)


@asks("detection")
async def counting(prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
    """The choice that states the number of detected things; a number that no choice states is an abstention."""
    name = counted_thing(prompt.text)
    if name is None:
        ctx.rule("no name", "the question names no thing to count")
        return None
    finding = await ctx.tool("detection", names(prompt), {"names": [name]})
    place = counted_choice(prompt, finding, name)
    return None if place is None else choose(place, "detection", finding, on_card=True)


@asks("forensics")
async def real_photograph(prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
    """The image that a supervised detector finds least synthetic.

    The detector's own confidence, and what a card may count, is of the most synthetic image, so neither is taken.
    """
    finding = await ctx.tool("forensics", names(prompt), {})
    place = whole_number(finding, "photograph", min(len(prompt.images), len(ORDINALS) - 1))
    sure = number_of(finding.data, "photograph_confidence_0_1")
    if place is None or sure is None:
        return None
    specialist_answer = _fitting(prompt, "forensics", finding, rf"\b{ORDINALS[place]} image\b")
    return None if specialist_answer is None else replace(specialist_answer, sure=sure, on_card=False)


same_kind_of_point = OneCall("semantic_correspondence", letter(), drawn_labels)

RULES: Mapping[str, Rule] = {
    "Art_Style": OneCall("similarity", later_image, lambda prompt: {"aspect": "style"}),
    "Counting": counting,
    "Forensic_Detection": real_photograph,
    "Functional_Correspondence": same_kind_of_point,
    "Jigsaw": OneCall("jigsaw", later_image),
    "Multi-view_Reasoning": OneCall("motion", side),
    "Object_Localization": OneCall(
        "localization", letter(), boxed_name, ("no name", "the question names no thing in a box")
    ),
    "Relative_Depth": OneCall("depth", letter("nearer"), drawn_labels),
    "Relative_Reflectance": OneCall("reflectance", darker_surface, drawn_labels),
    "Semantic_Correspondence": same_kind_of_point,
    "Spatial_Relation": OneCall(
        "relation",
        yes_or_no,
        two_things,
        ("no relation", "the question's wording names no relation that boxes can speak of"),
    ),
    "Visual_Correspondence": OneCall("correspondence", letter()),
    "Visual_Similarity": OneCall("similarity", later_image, lambda prompt: {"aspect": "content"}),
}
"""By task."""


@dataclass(frozen=True)
class AskedRelation:
    """A question whether the `subject` is in this `relation` to the `reference`."""

    subject: str
    relation: RelationName
    reference: str


def boxed_thing(text: str) -> str | None:
    """The thing that a question about two boxes names: "... encloses the red car more accurately?" is "red car".

    What LVIS adds in brackets to tell two meanings apart, as in "the tank top (clothing)", is left out.
    """
    match = re.search(
        r"\b(?:encloses?|locali[sz]es?|surrounds?|fits?|contains?) the (?P<name>[a-z][a-z' -]*?)"
        r"(?: \([a-z -]+\))?(?: (?:more|most|better|best)\b[a-z ]*)?\s*\?",
        text,
        re.IGNORECASE,
    )
    return match["name"] if match else None


def asked_relation(text: str) -> AskedRelation | None:
    """The relation a yes-no question asks for; None for facing, being part of, or any other wording."""
    if match := re.search(r"\bdoes the (?P<a>[a-z -]+?) contain the (?P<b>[a-z -]+?)\s*\?", text, re.IGNORECASE):
        return AskedRelation(match["a"].lower(), "containing", match["b"].lower())
    # The longest phrase is tried first: "on top of" before "on".
    for phrase in sorted(PHRASES, key=len, reverse=True):
        match = re.search(rf"\b(?:is|are) the (?P<a>[a-z -]+?) {phrase} the (?P<b>[a-z -]+?)\s*\?", text, re.IGNORECASE)
        if match:
            return AskedRelation(match["a"].lower(), PHRASES[phrase], match["b"].lower())
    return None
