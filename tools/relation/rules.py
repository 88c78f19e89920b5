"""The rule of relation: whether two named things lie as the question says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from hybrid.tool.rules import OneCall, Rule
from hybrid.types import Finding, Json, Prompt
from tools.relation.relation_names import RelationName

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
# How VSR words its relations (Liu et al. 2023), as far as boxes and depth can tell them.
PHRASES: Final = {phrase: relation for relation, phrases in _WORDED.items() for phrase in phrases}


@dataclass(frozen=True)
class AskedRelation:
    """A question whether the `subject` is in this `relation` to the `reference`."""

    subject: str
    relation: RelationName
    reference: str


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


def two_things(prompt: Prompt) -> dict[str, Json] | None:
    """Two named things and the relation between them."""
    asked = asked_relation(prompt.text)
    return None if asked is None else asdict(asked)


def yes_or_no(finding: Finding, prompt: Prompt) -> str | None:
    """Whether the relation holds."""
    holds = finding.data.get("holds")
    if not isinstance(holds, bool):
        return None
    return r"(?i)^\W*yes\b" if holds else r"(?i)^\W*no\b"


# By route.
RULES: Mapping[str, Rule] = {
    "Spatial_Relation": OneCall(
        "relation",
        yes_or_no,
        two_things,
        ("no relation", "the question's wording names no relation that boxes can speak of"),
    ),
}
