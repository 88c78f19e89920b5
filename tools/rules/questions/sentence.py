"""Extract the question from a prompt's text, without its options and requests for a form of reply.

    sentence_of(prompt)      # "How many cars are there", or an `Unclear`

Any other sentence that is not known to be irrelevant ("I am standing at the red mark.") makes the question unclear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, cast

from hybrid.core.types import LETTERS, Prompt
from tools._shared.question_words import named_things, singular

# Words for the image in questions.
PICTURE: Final = r"(?:the|this|that) (?:given |provided )?(?:image|picture|photo|photograph|scene|shot)(?: provided)?"

# Sentences that request a form of reply, or describe the drawing: they do not change the question.
_REQUEST: Final = re.compile(
    r"(?:please )?(?:directly )?(?:answer|respond|reply|select|choose|pick|output|give|provide|use)\b[^?]*|"
    rf"(?:please )?(?:look (?:carefully )?at|examine|observe) {PICTURE}(?: carefully)?|"
    r"estimate the real-world distances(?: between objects in this image)?|"
    r"(?:two|three|four|several|multiple) points are (?:circled|marked|annotated|labell?ed|drawn)\b[^?]*|"
    r"(?:the )?(?:options|choices)(?: are)?",
    re.IGNORECASE,
)
_COUNT: Final = re.compile(r"(?:please )?count\b[^?]*", re.IGNORECASE)
_HEADING: Final = re.compile(r"^(?:the )?(?:question|hint|options|choices)(?: is| are)?:\s*", re.IGNORECASE)
_VIEWER: Final = (
    r"from (?:the )?(?:camera|viewer|observer|photographer)(?:'s|’s)? (?:perspective|point of view|viewpoint)"
)
_PREFACE: Final = re.compile(
    rf"(?:please )?(?:considering the relative positions of .+? in {PICTURE}, |{_VIEWER}, |"
    rf"(?:in|based on|according to|looking at|given) {PICTURE}, |estimate .{{0,60}}distances[^,]*, )?",
    re.IGNORECASE,
)
# An object with its mark in a preface; the question itself may then omit the mark.
_WITH_MARK: Final = re.compile(r"\b(the (?:(?!the )[a-z -])+?) (\([^()]+\))", re.IGNORECASE)
_CLOSING: Final = re.compile(rf",? (?:as seen )?{_VIEWER}$", re.IGNORECASE)
# Words that negate a question, or move it to another time, place or point of view.
_CHANGES: Final = re.compile(
    r"\b(?:not|never|no|nor|neither|without|except|besides|apart|instead|if|would|could|should|will|suppose|imagine|"
    r"assume|after|before|i|my|mine|me|your|was|were|had|did)\b|n['’]t\b",
    re.IGNORECASE,
)


class Unclear(NamedTuple):
    """The reason why the text of a question is not understood."""

    reason: str


def sentence_of(prompt: Prompt) -> str | Unclear:
    """Return the sentence with the question, without its question mark and without irrelevant prefaces."""
    text = prompt.text
    # Remove the options that the prompt also has as choices.
    for letter, choice in zip(LETTERS, prompt.choices, strict=False):
        option = rf"^\s*\(?{letter}[).:]\s*{re.escape(choice.strip())}\s*$|\({letter}\)\s*{re.escape(choice.strip())}"
        text = re.sub(option, "\n", text, count=1, flags=re.MULTILINE)
    parts = (_HEADING.sub("", part.strip()) for part in re.split(r"\n+|(?<=[.?!])\s+", text))
    asking = [part for part in parts if re.search(r"\w", part) and not _REQUEST.fullmatch(part.rstrip(" .:"))]
    if len(asking) > 1 and any("?" in part for part in asking):
        asking = [part for part in asking if not _COUNT.fullmatch(part)]
    if not asking:
        return Unclear("the text holds no question")
    if len(asking) > 1:
        return Unclear("the text holds more than one sentence, which may change what is asked")
    sentence = asking[0].strip().rstrip("?. ")
    if (changes := _CHANGES.search(sentence)) is not None:
        return Unclear(f"the word {changes[0]!r} may change what is asked")
    preface = _PREFACE.match(sentence)
    labelled, rest = (preface[0], sentence[preface.end() :]) if preface else ("", sentence)
    for name, mark in _WITH_MARK.findall(labelled):
        rest = re.sub(rf"\b{re.escape(name)}\b(?! \()", f"{name} {mark}", rest)
    return _CLOSING.sub("", rest)


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
# Nouns that look like a verb after another noun: "trash can", "brick building".
_SECOND_NOUN: Final = re.compile(
    r"(?<= )(?:can|stand|watch|building|painting|ceiling|ring|earring|string|awning|railing|wing|swing|clothing)s?$"
)


class Thing(NamedTuple):
    """An object in a question, identified by a singular noun, by the colour of its drawn box, or by a drawn letter."""

    name: str | None = None
    color: MarkColor | None = None
    letter: str | None = None

    @property
    def label(self) -> str:
        """Text for the trace."""
        return self.name or (f"the {self.color} box" if self.color else f"point {self.letter}")


def thing_in(words: str) -> Thing | None:
    """Return the only object that the words name; None if they name none, one of several of a kind, or a part."""
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
    """Return the objects of several phrases; None if a phrase names none, or two name the same."""
    entities = [thing_in(word) for word in words]
    recognised = tuple(entity for entity in entities if entity is not None)
    return recognised if len(set(recognised)) == len(words) else None


def alternatives(words: str) -> list[str]:
    """Split "the cup, the plate or the bowl" into its parts."""
    return [part for part in re.split(r"\s*,\s*(?:or|and)\s+|\s*,\s*|\s+or\s+", words.strip()) if part]


def _name(words: str) -> str | None:
    bare = _ARTICLE.sub("", words.strip(), count=1).lower()
    if "'" in bare or "’" in bare or any(_NARROWS.fullmatch(word) for word in bare.split()):
        return None
    simple = _SECOND_NOUN.sub("item", re.sub(r"^(?:photo|picture) (?=frames?$|albums?$)", "", bare))
    return singular(bare) if named_things(f"the {simple}") == (simple,) else None
