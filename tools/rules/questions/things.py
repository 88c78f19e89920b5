"""The things that a question names, as far as a tool can find them: by a name, by a drawn box's colour, by a letter.

    thing_in("the desk (highlighted by a red box)")      # Thing("desk", "red")

Words that narrow a thing to one of its kind ("the car behind the bus", "the left lamp", "the woman's jacket") give
none: what is looked for by name alone would be another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, cast

from tools._shared.nouns import singular
from tools._shared.question_words import named_things

MarkColor = Literal["red", "green", "blue"]

_COLOR: Final = r"(?P<color>red|green|blue)"
_BOX: Final = rf"(?:the |a )?{_COLOR} (?:bounding[ -])?(?:box|rectangle)"
_MARKED: Final = r"(?:highlighted|annotated|marked|indicated|outlined|shown|enclosed|surrounded)"
_NAMED_AND_MARKED: Final = re.compile(
    rf"(?P<name>[^()]+?) ?\((?:{_MARKED} )?(?:(?:by|in|with|inside|within) )?{_BOX}\)", re.IGNORECASE
)
_MARKED_ONLY: Final = re.compile(
    rf"(?:the |an? )?(?:(?:object|thing|item|one) (?:{_MARKED} )?(?:by|in|with|inside|within) )?{_BOX}", re.IGNORECASE
)
_LETTER: Final = re.compile(r"(?:[Tt]he )?(?:[Pp]oint |[Bb]ox |[Mm]arker )?(?P<letter>[A-D])")
_ARTICLE: Final = re.compile(r"(?:the|an?|this|these|any|some)\s+", re.IGNORECASE)
_NARROWS: Final = re.compile(
    r"left|right|top|bottom|upper|lower|middle|center|central|first|second|third|fourth|last|next|other|same|only|"
    r"near|nearer|nearest|close|closer|closest|far|farther|farthest|further|furthest|\w+most|larger|largest|bigger|"
    r"biggest|smaller|smallest|taller|tallest|shorter|shortest|longest|highest|lowest|oldest|youngest|"
    r"each|every|all|both|one|ones|two|three|four|five|six|seven|eight|nine|ten|many|much|more|fewer|less|few|"
    r"several|different|various|unique|distinct|total|kinds?|types?|sorts?|my|your|our|i|you|we|me|us|them|they|he|she|"
    r"anything|something|someone|anyone|anybody|somebody|nothing|main|dominant|whole|entire|front|rear|back|"
    r"left-hand|right-hand|visible|open|closed|facing|no|not"
)
# Nouns that would be taken for a verb behind another noun: "trash can", "brick building".
_SECOND_NOUN: Final = re.compile(
    r"(?<= )(?:can|stand|watch|building|painting|ceiling|ring|earring|string|awning|railing|wing|swing|clothing)s?$"
)


class Thing(NamedTuple):
    """A thing that a question names: by a noun in the singular, by the colour of its drawn box, by a drawn letter."""

    name: str | None = None
    color: MarkColor | None = None
    letter: str | None = None

    @property
    def told(self) -> str:
        """The thing in words, for the trace."""
        return self.name or (f"the {self.color} box" if self.color else f"point {self.letter}")


def thing_in(words: str) -> Thing | None:
    """The one thing that some words name; None for none, for one of several of its kind, and for a part of a thing."""
    words = " ".join(words.split()).strip(" .,:;")
    if match := _LETTER.fullmatch(words):
        return Thing(letter=match["letter"])
    if match := _MARKED_ONLY.fullmatch(words):
        return Thing(color=cast(MarkColor, match["color"].lower()))
    if match := _NAMED_AND_MARKED.fullmatch(words):
        name = _name(match["name"])
        return None if name is None else Thing(name, cast(MarkColor, match["color"].lower()))
    name = _name(words)
    return None if name is None else Thing(name)


def things_in(words: Sequence[str]) -> tuple[Thing, ...] | None:
    """The things of several groups of words; None where one of them names none, or two of them the same."""
    things = [thing_in(each) for each in words]
    known = tuple(thing for thing in things if thing is not None)
    return known if len(set(known)) == len(words) else None


def alternatives(words: str) -> list[str]:
    """The parts of "the cup, the plate or the bowl"."""
    return [part for part in re.split(r"\s*,\s*(?:or|and)\s+|\s*,\s*|\s+or\s+", words.strip()) if part]


def _name(words: str) -> str | None:
    bare = _ARTICLE.sub("", words.strip(), count=1).lower()
    if "'" in bare or "’" in bare or any(_NARROWS.fullmatch(word) for word in bare.split()):
        return None
    simple = _SECOND_NOUN.sub("item", re.sub(r"^(?:photo|picture) (?=frames?$|albums?$)", "", bare))
    return singular(bare) if named_things(f"the {simple}") == (simple,) else None
