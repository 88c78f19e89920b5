"""Parse choices: numbers, sides of an object, parts of the image, values of an attribute, yes and no."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from tools._shared.question_words import NUMBERS, number_in
from tools.relation.box_relations import PHRASES, RelationName
from tools.rules.questions.sentence import Thing, thing_in

Attribute = Literal["color", "material", "shape", "pattern"]
Third = Literal["low", "middle", "high"]

COLORS: Final = (
    r"(?:(?:dark|light|bright|pale|deep)[ -])?(?:red|orange|yellow|green|blue|purple|violet|pink|brown|black|white|"
    r"gr[ae]y|beige|silver|gold|golden|cyan|turquoise|magenta|maroon|navy|tan|cream|teal|khaki)"
)
_A_COLOR: Final = re.compile(rf"{COLORS}(?:(?: and |/| or ){COLORS})*", re.IGNORECASE)
_PLAIN_NUMBER: Final = re.compile(
    rf"(?:there (?:is|are) )?(?:\d+|{'|'.join(NUMBERS)})(?: [a-z]+){{0,3}}(?: in the (?:image|picture|photo))?",
    re.IGNORECASE,
)
_ABOUT: Final = re.compile(r"(?i)\b(?:more|less|fewer|least|most|than|over|under|about|around|or|between|nearly)\b")
_YES_NO: Final = re.compile(r"(?:[A-Z][.)] )?(?P<said>yes|no)\.?", re.IGNORECASE)
_SIDE: Final = re.compile(
    r"(?:it is |it's )?(?:(?:on|to|at) (?:the |its )?|the )?(?P<side>left|right)(?:[ -]hand)?(?: side)?", re.IGNORECASE
)
_UPRIGHT: Final[Mapping[str, Third]] = {"top": "low", "upper": "low", "bottom": "high", "lower": "high"}
_ACROSS: Final[Mapping[str, Third]] = {"left": "low", "right": "high"}
_PLAIN_VALUE: Final = re.compile(r"[A-Za-z-]+(?: [A-Za-z-]+){0,2}")
_NO_PART: Final = re.compile(
    r"(?i)\b(?:in|on|at|to|it|is|the|side|half|part|corner|quadrant|area|region|of|image|picture|photo)\b"
)
_MIDDLE: Final = ("center", "centre", "middle", "central")


class PicturePart(NamedTuple):
    """A part of the image: low, middle or high along x and along y; None for an axis that the words do not mention."""

    x: Third | None
    y: Third | None


def numbers_in(choices: Sequence[str]) -> bool:
    """Return whether every choice states one number, without "more" or "less", and all numbers differ."""
    plain = all(_PLAIN_NUMBER.fullmatch(choice.strip(" .")) and not _ABOUT.search(choice) for choice in choices)
    return plain and len({number_in(choice) for choice in choices} - {None}) == len(choices) > 1


def yes_and_no(choices: Sequence[str]) -> tuple[int, int] | None:
    """Return the indices of the choices yes and no, if these are the only choices."""
    words = [match["said"].lower() if (match := _YES_NO.fullmatch(choice.strip())) else "" for choice in choices]
    return (words.index("yes"), words.index("no")) if sorted(words) == ["no", "yes"] else None


def relation_in(words: str) -> RelationName | None:
    """Return the relation that words such as "on the left side of", "above" or "to the right" name."""
    words = words.strip(" .,").lower()
    bare = re.sub(r" of$", "", words)
    if match := _SIDE.fullmatch(bare):
        return "left of" if match["side"].lower() == "left" else "right of"
    bare = re.sub(r"^it is ", "", words)
    return PHRASES.get(bare) or PHRASES.get(f"{bare} of")


def relations_in(choices: Sequence[str], subject: Thing, reference: Thing) -> tuple[RelationName, ...] | None:
    """Return the relation that each choice states, in words or a sentence; None if one states none, or two the same."""
    relations = [_stated_relation(choice.strip(" ."), subject, reference) for choice in choices]
    distinct = tuple(relation for relation in relations if relation is not None)
    return distinct if len(set(distinct)) == len(choices) > 1 else None


def _stated_relation(choice: str, subject: Thing, reference: Thing) -> RelationName | None:
    if (relation := relation_in(choice)) is not None:
        return relation
    for split in re.finditer(r" (?=the\b)", choice, re.IGNORECASE):
        words, last = choice[: split.start()], choice[split.end() :]
        head = re.fullmatch(r"(?:(?P<first>.+?) (?:is|are) )?(?P<relation>.+)", words, re.IGNORECASE)
        if head is None or not same_thing(thing_in(last), reference):
            continue
        first = head["first"]
        if first is not None and first.lower() not in ("it", "they") and not same_thing(thing_in(first), subject):
            continue
        if (relation := relation_in(head["relation"])) is not None:
            return relation
    return None


def same_thing(first: Thing | None, second: Thing) -> bool:
    """Return whether the words name the same object, which the question may describe in more detail."""
    if first is None:
        return False
    if first.name is not None:
        return first.name == second.name
    return (first.color, first.letter) == (second.color, second.letter)


def part_in(words: str) -> PicturePart | None:
    """Return the part of the image that words such as "in the upper left corner" or "right side" name."""
    named_words = re.findall(r"[a-z]+", _NO_PART.sub(" ", words).lower())
    upright = [_UPRIGHT[word] for word in named_words if word in _UPRIGHT]
    across = [_ACROSS[word] for word in named_words if word in _ACROSS]
    middle = [word for word in named_words if word in _MIDDLE]
    if (
        len(upright) + len(across) + len(middle) != len(named_words)
        or not named_words
        or max(map(len, (upright, across, middle))) > 1
    ):
        return None
    rest: Third | None = "middle" if middle else None
    return PicturePart(across[0] if across else rest, upright[0] if upright else rest)


def parts_in(choices: Sequence[str]) -> tuple[PicturePart, ...] | None:
    """Return the part of the image that each choice names; None if one names none, or two name the same."""
    parts = tuple(part for part in map(part_in, choices) if part is not None)
    return parts if len(set(parts)) == len(choices) > 1 else None


def is_color(words: str) -> bool:
    """Return whether the words are one or several colours."""
    return _A_COLOR.fullmatch(words.strip()) is not None


def values_in(choices: Sequence[str], attribute: Attribute, entity: Thing) -> tuple[str, ...] | None:
    """Return the value that each choice gives, in a word or in a sentence about the object; None if one gives none."""
    word = "colou?r" if attribute == "color" else attribute
    form = rf"(?:the {word} (?:of|on) )?(?P<thing>(?:the|this|an?) .+?) (?:is|are) (?:made of )?(?P<value>.+)"
    values = []
    for choice in (text.strip(" .") for text in choices):
        statement = re.fullmatch(form, choice, re.IGNORECASE)
        if statement is not None and not same_thing(thing_in(statement["thing"]), entity):
            return None
        value = statement["value"] if statement is not None else choice
        if not (is_color(value) if attribute == "color" else _PLAIN_VALUE.fullmatch(value)):
            return None
        values.append(value)
    return tuple(values) if len({value.lower() for value in values}) == len(choices) > 1 else None


NearestForm = Literal["nearest", "farthest", "nearer than", "farther than", "nearer or farther"]


class ExistenceQuestion(NamedTuple):
    """A question about whether there is an object with this name."""

    name: str


class CountQuestion(NamedTuple):
    """A question about the number of objects with a name."""

    name: str


class NearestQuestion(NamedTuple):
    """A question about which object is nearest or farthest, or whether the first is nearer or farther (yes or no)."""

    things: tuple[Thing, ...]
    form: NearestForm
    # Indices of the choices for each object, or for "nearer" and "farther"; empty for yes or no.
    places: tuple[int, ...] = ()


class RelationQuestion(NamedTuple):
    """A question about which relation the subject has to the reference, or whether it has this `relation`."""

    subject: Thing
    reference: Thing
    # Relation of a yes-no question.
    relation: RelationName | None = None
    # Relation that each choice states.
    options: tuple[RelationName, ...] = ()


class PositionQuestion(NamedTuple):
    """A question about the part of the image that contains an object: which part it is, or whether it is `part`."""

    thing: Thing
    part: PicturePart | None = None
    options: tuple[PicturePart, ...] = ()


class AttributeQuestion(NamedTuple):
    """A question about which value of an attribute an object has; `values` has one value per choice."""

    thing: Thing
    attribute: Attribute
    values: tuple[str, ...]


class TextQuestion(NamedTuple):
    """A question about which choice is written in the image."""


RecognisedQuestion = (
    ExistenceQuestion
    | CountQuestion
    | NearestQuestion
    | RelationQuestion
    | PositionQuestion
    | AttributeQuestion
    | TextQuestion
)
