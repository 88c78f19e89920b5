"""What the words of a question name: things to count, the two things of a relation, the thing in a box.

A library of `tools/rules/` and of the tools that are given names. Every function is a list of explicit patterns:
where none fits, the answer is None and the rule abstains.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

RelationName = Literal[
    "left of",
    "right of",
    "above",
    "below",
    "on",
    "under",
    "inside",
    "containing",
    "outside",
    "touching",
    "next to",
    "far from",
    "in front of",
    "behind",
]
RELATIONS: tuple[RelationName, ...] = get_args(RelationName)

PHRASES: Mapping[str, RelationName] = {
    "at the left side of": "left of",
    "to the left of": "left of",
    "on the left of": "left of",
    "left of": "left of",
    "at the right side of": "right of",
    "to the right of": "right of",
    "on the right of": "right of",
    "right of": "right of",
    "above": "above",
    "over": "above",
    "beneath": "under",
    "below": "below",
    "under": "under",
    "underneath": "under",
    "on top of": "on",
    "on": "on",
    "inside": "inside",
    "within": "inside",
    "in": "inside",
    "outside of": "outside",
    "outside": "outside",
    "touching": "touching",
    "in contact with": "touching",
    "next to": "next to",
    "beside": "next to",
    "alongside": "next to",
    "adjacent to": "next to",
    "near": "next to",
    "far away from": "far from",
    "away from": "far from",
    "far from": "far from",
    "in front of": "in front of",
    "behind": "behind",
    "at the back of": "behind",
}
"""How VSR words its relations (Liu et al. 2023), as far as boxes and depth can tell them."""

IRREGULAR: Mapping[str, str] = {
    "people": "person",
    "persons": "person",
    "men": "man",
    "women": "woman",
    "children": "child",
    "mice": "mouse",
    "geese": "goose",
    "teeth": "tooth",
    "feet": "foot",
    "oxen": "ox",
    "knives": "knife",
    "wolves": "wolf",
    "leaves": "leaf",
    "loaves": "loaf",
    "shelves": "shelf",
    "scarves": "scarf",
    "buses": "bus",
    "potatoes": "potato",
    "tomatoes": "tomato",
    "sheep": "sheep",
    "fish": "fish",
    "deer": "deer",
    "scissors": "scissors",
    "glasses": "glasses",
    "skis": "skis",
    "pants": "pants",
    "wine glasses": "wine glass",
}

NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class AskedRelation:
    """A question whether the `subject` is in this `relation` to the `reference`."""

    subject: str
    relation: RelationName
    reference: str


def singular(name: str) -> str:
    """A noun phrase in the singular: "red cars" is "red car", "wolves" is "wolf"; one that ends in no -s stays."""
    if name.strip().lower() in IRREGULAR:
        return IRREGULAR[name.strip().lower()]
    head, _, last = name.strip().rpartition(" ")
    return f"{head} {_one(last)}" if head else _one(last)


def _one(word: str) -> str:
    low = word.lower()
    if low in IRREGULAR:
        return IRREGULAR[low]
    if low.endswith(("ss", "us", "is")) or not low.endswith("s") or len(low) < 4:
        return word
    if low.endswith("ies"):
        return word[:-3] + "y"
    if low.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


_PLACE = r"(?:in|on|within) (?:the|this|that) (?:image|picture|photo|photograph|scene|shot|view)"
_SEEN = r"visible|shown|seen|present|pictured|depicted|displayed|in view|here|there|total|in total|altogether"
_ALL_OF_THEM = re.compile(
    rf"(?:(?:are|is|were|was|do|does|can|could) )?(?:(?:you|we) )?(?:(?:be|see|count|find|appear|appears) ?)?"
    rf"(?:(?:{_SEEN}) ?)*(?:{_PLACE})?(?: ?(?:{_SEEN}))?",
    re.IGNORECASE,
)
"""What may follow a counted thing when all of them are meant: "are there in the picture", "can you see"."""
_NARROWS = re.compile(
    r"in|on|at|of|to|from|by|with|without|for|near|under|over|above|below|behind|beside|next|inside|outside|between|"
    r"among|around|and|or|not|that|which|who|whose|the|a|an|this|these|those|his|her|their|other|"
    r"(?!(?:building|painting|ceiling|king|ring|string|wing|earring|clothing|railing|awning|lighting|swing)s?$)[a-z]+ing",
    re.IGNORECASE,
)
"""Words that narrow a counted thing to some of its kind: what a detector finds by name would be too many."""


def counted_thing(text: str) -> str | None:
    """The thing that a question counts, in the singular: "How many red cars are there in the image?" is "red car".

    None where the question counts some of a kind, such as "How many people are wearing a hat?" or "How many dogs on the
    bed are there?": a detector that is given the name would count them all.
    """
    found = re.search(
        r"\bhow many (?P<name>[a-z][a-z' -]*?)"
        r"(?P<rest> (?:are|is|were|was|can|could|do|does|have|has|in|on|appear|appears|you|altogether|total)\b[^?\n]*)?"
        r"\s*(?:\?|$)",
        text,
        re.IGNORECASE | re.MULTILINE,
    )
    if found is None or any(_NARROWS.fullmatch(word) for word in found["name"].split()):
        return None
    if found["name"].split()[0].lower() in ("are", "is") or not _ALL_OF_THEM.fullmatch(
        (found["rest"] or "").strip(" .")
    ):
        return None
    return singular(found["name"])


def boxed_thing(text: str) -> str | None:
    """The thing that a question about two boxes names: "... encloses the red car more accurately?" is "red car".

    What LVIS adds in brackets to tell two meanings apart, as in "the tank top (clothing)", is left out.
    """
    found = re.search(
        r"\b(?:encloses?|locali[sz]es?|surrounds?|fits?|contains?) the (?P<name>[a-z][a-z' -]*?)"
        r"(?: \([a-z -]+\))?(?: (?:more|most|better|best)\b[a-z ]*)?\s*\?",
        text,
        re.IGNORECASE,
    )
    return found["name"] if found else None


def asked_relation(text: str) -> AskedRelation | None:
    """The relation a yes-no question asks for; None for facing, being part of, or any other wording."""
    if found := re.search(r"\bdoes the (?P<a>[a-z -]+?) contain the (?P<b>[a-z -]+?)\s*\?", text, re.IGNORECASE):
        return AskedRelation(found["a"].lower(), "containing", found["b"].lower())
    # The longest phrase is tried first: "on top of" before "on".
    for phrase in sorted(PHRASES, key=len, reverse=True):
        found = re.search(rf"\b(?:is|are) the (?P<a>[a-z -]+?) {phrase} the (?P<b>[a-z -]+?)\s*\?", text, re.IGNORECASE)
        if found:
            return AskedRelation(found["a"].lower(), PHRASES[phrase], found["b"].lower())
    return None


def number_in(choice: str) -> int | None:
    """The one number a choice states, in digits or in words up to twelve; None for none or several."""
    words = re.findall(r"\d+|[a-z]+", choice.lower())
    found = [
        int(word) if word.isdigit() else NUMBERS.index(word) for word in words if word.isdigit() or word in NUMBERS
    ]
    return found[0] if len(found) == 1 else None
