"""Recognise what a question asks from its text, kind, choices and number of images: `recognise_question(prompt)`.

    Nearest((Thing("desk", "red"), Thing("shelf", "blue")), "nearest")      # or an `Unclear` with the reason

Every wording is listed here (those of positions in `values.py`). If none matches the full sentence, or the choices
do not fit, the question is unclear: a confident wrong answer is worse than an abstention.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from hybrid.core.types import Kind, Prompt
from tools._shared.question_words import counted_thing
from tools.relation.box_relations import PHRASES
from tools.rules.questions.sentence import PICTURE, Unclear, alternatives, sentence_of, thing_in, things_in
from tools.rules.questions.values import (
    Attribute,
    AttributeQuestion,
    CountQuestion,
    ExistenceQuestion,
    NearestForm,
    NearestQuestion,
    PositionQuestion,
    RecognisedQuestion,
    RelationQuestion,
    TextQuestion,
    is_color,
    numbers_in,
    part_in,
    parts_in,
    relation_in,
    relations_in,
    same_thing,
    values_in,
    yes_and_no,
)

_PART: Final = r"(?:side|half|part|corner|quadrant|area|region)"
_LIES: Final = r"(?: (?:be )?(?:located|positioned|placed|situated|seen|found))?"
_WORDS: Final = r"(?:(?:top|bottom|upper|lower|left|right|center|centre|middle)[ -]?){1,2}"
_A_PART: Final = rf"(?:the )?{_WORDS} ?{_PART}?"
_SIDE: Final = r"(?:(?:on|to|at) (?:the )?)?(?:left|right)(?:[- ]hand)?(?: side)?(?: of)?"
_EITHER: Final = rf"(?:{_SIDE}|above|below|over|under|beneath|in front of|behind|inside(?: of)?|outside(?: of)?)"
_COMPARED: Final = r"(?:relative to|in relation to|with respect to|compared (?:to|with))"


def placed(sentence: str, prompt: Prompt) -> PositionQuestion | Unclear | None:
    """Recognise a question about the part of the image that contains an object."""
    forms = (
        rf"where (?:in|on) {PICTURE} (?:is|are|can) (?P<x>.+?){_LIES}",
        rf"where (?:is|are|can) (?P<x>.+?){_LIES} (?:in|on|within) {PICTURE}",
        rf"(?:is|are) (?P<x>.+?){_LIES} (?:in|on|at) {_A_PART} or (?:in |on |at )?{_A_PART} of {PICTURE}",
        rf"(?:in|on|at) (?:which|what) {_PART} of {PICTURE} (?:is|are|can) (?P<x>.+?){_LIES}",
        rf"(?:which|what) {_PART} of {PICTURE} (?:is|are) (?P<x>.+?){_LIES} (?:in|on|at)",
        rf"what is the (?:position|location) of (?P<x>.+?) (?:in|on|within) {PICTURE}",
    )
    match, stated = _first(forms, sentence), None
    if match is None:
        form = rf"(?:is|are) (?P<x>.+?){_LIES} (?:in|on|at) (?P<part>the {_WORDS} ?{_PART}?) of {PICTURE}"
        match = stated = re.fullmatch(form, sentence, re.IGNORECASE)
    if match is None:
        return None
    if (entity := thing_in(match["x"])) is None:
        return _no_thing(match["x"])
    if stated is not None:
        if _yes_or_no(prompt) and (part := part_in(stated["part"])) is not None:
            return PositionQuestion(entity, part)
        return Unclear("it asks whether a thing lies in a part of the picture, in words unknown")
    options = parts_in(prompt.choices) if prompt.kind is Kind.CHOICE else None
    if options is None:
        return Unclear("it asks where in the picture a thing is, and the choices are not different parts of it")
    return PositionQuestion(entity, options=options)


def related(sentence: str, prompt: Prompt) -> RelationQuestion | Unclear | None:
    """Recognise a question about the relation of two objects."""
    forms = (
        rf"where (?:is|are|does|do) (?P<x>.+?)(?: stand| sit| lie)?{_LIES}{_IN} {_COMPARED} (?P<y>.+?){_IN}",
        rf"what is the (?:relative )?(?:position|location) of (?P<x>.+?) {_COMPARED} (?P<y>.+?){_IN}",
        rf"(?:is|are) (?P<x>.+?){_LIES} (?P<one>{_EITHER}) or (?P<other>{_EITHER}) (?P<y>.+?){_IN}",
        rf"(?:which|what) side of (?P<y>.+?) (?:is|are) (?P<x>.+?){_LIES} (?:on|at)",
        rf"on (?:which|what) side of (?P<y>.+?) (?:is|are) (?P<x>.+?){_LIES}",
    )
    if (match := _first(forms, sentence)) is None:
        return _holds(sentence, prompt)
    subject, reference = thing_in(match["x"]), thing_in(match["y"])
    if subject is None or reference is None:
        return _no_two(match["x"], match["y"])
    options = relations_in(prompt.choices, subject, reference) if prompt.kind is Kind.CHOICE else None
    if options is None:
        return Unclear("it asks how two things lie, and the choices are not different relations of these two")
    words = match.groupdict()
    stated = {relation_in(words[key]) for key in ("one", "other") if words.get(key)}
    if stated and stated != set(options):
        return Unclear("it names other relations than the choices")
    return RelationQuestion(subject, reference, options=options)


def _holds(sentence: str, prompt: Prompt) -> RelationQuestion | Unclear | None:
    """Recognise a yes-no question about a relation; longer phrases first: "on top of" before "on"."""
    match = re.fullmatch(r"does (?P<x>.+?) contain (?P<y>the .+)", sentence, re.IGNORECASE)
    phrase = "containing"
    for candidate in sorted(PHRASES, key=len, reverse=True):
        if match is not None:
            break
        phrase = candidate
        match = re.fullmatch(
            rf"(?:is|are) (?P<x>.+?) {candidate} (?P<y>(?:the |point |box )?.+)", sentence, re.IGNORECASE
        )
    if match is None:
        return None
    if not _yes_or_no(prompt):
        return Unclear("it asks whether two things lie so, and the answers are not yes and no")
    subject, reference = thing_in(match["x"]), thing_in(match["y"])
    if subject is None or reference is None:
        return _no_two(match["x"], match["y"])
    return RelationQuestion(subject, reference, PHRASES.get(phrase, "containing"))


def _yes_or_no(prompt: Prompt) -> bool:
    return prompt.kind is Kind.YES_NO or yes_and_no(prompt.choices) is not None


def _no_two(first: str, second: str) -> Unclear:
    return Unclear(
        f"{first[:60]!r} and {second[:60]!r} are not two things that can be looked for by name or mark alone"
    )


NUMBER_KINDS: Final = ("integer", "number")
_IN: Final = rf"(?: (?:in|on|within) {PICTURE})?"
_SEEN: Final = r"(?: (?:visible|shown|seen|present|depicted|pictured|displayed))?"
_NEAR: Final = r"(?P<near>closer|nearer|closest|nearest)"
_FAR: Final = r"(?:farther|further|farthest|furthest)(?: away)?"
_NEARNESS: Final = rf"(?:{_NEAR}|{_FAR})"
_CAMERA: Final = (
    r"(?:to|from) (?:(?:the )?(?:camera|viewer|observer|photographer)|us|you)"
    r"(?: (?:taking|that took) (?:this|the) (?:photo|picture|image))?"
)
_NEAR_OR_FAR: Final = r"(?:closer|nearer)(?: to)? or (?:farther|further)(?: away)?(?: from)?(?: the camera)?"
_WHICH: Final = (
    r"(?:which|what)(?: (?:one|[a-z]+))??"
    r"(?: of (?:the|these|them)(?: (?:following|two|three|four|marked|circled))*(?: (?:objects|points|things|items))?)?"
)
_AMONG: Final = "(?:between|of|comparing|among)"
_WORD: Final = r"(?P<word>colou?r|material|shape|pattern)"


def recognise_question(prompt: Prompt) -> RecognisedQuestion | Unclear:
    """Recognise what a prompt asks; with several images, it is unclear which image is meant."""
    if len(prompt.images) != 1:
        return Unclear(f"it shows {len(prompt.images) or 'no'} images, and these rules look at one")
    sentence = sentence_of(prompt)
    if isinstance(sentence, Unclear):
        return sentence
    unclear = Unclear("its words are none of those that are known to ask for something that a tool can tell")
    first: Unclear | None = None
    for recognise in RECOGNISERS:
        question = recognise(sentence, prompt)
        if isinstance(question, Unclear):
            first = first or question
        elif question is not None:
            return question
    return first or unclear


def _exists(sentence: str, prompt: Prompt) -> ExistenceQuestion | Unclear | None:
    forms = (
        rf"(?:is|are) there (?:(?:an?|any|some) )?(?P<x>.+?){_SEEN}{_IN}",
        rf"(?:can|do) you (?:see|find|spot) (?:an?|any) (?P<x>.+?){_IN}",
        rf"does {PICTURE} (?:contain|show|include|have|depict) (?:an?|any) (?P<x>.+)",
        rf"(?:is|are) (?:an?|any) (?P<x>.+?) (?:visible|shown|present|depicted){_IN}",
        rf"(?:does|do) (?:an?|any) (?P<x>.+?) appear{_IN}",
    )
    if (match := _first(forms, sentence)) is None:
        return None
    if prompt.kind is not Kind.YES_NO and yes_and_no(prompt.choices) is None:
        return Unclear("it asks whether there is something, and the answers are not yes and no")
    entity = thing_in(match["x"])
    return (
        _no_thing(match["x"])
        if entity is None or entity.name is None or entity.color
        else ExistenceQuestion(entity.name)
    )


def _recognise_count(sentence: str, prompt: Prompt) -> CountQuestion | Unclear | None:
    match = _first(
        (rf"(?:please )?count (?:the )?(?:number of )?(?:all )?(?:the )?(?P<x>.+?){_IN}",
         rf"what is the (?:total )?number of (?P<x>.+?){_IN}"),
        sentence,
    )  # fmt: skip
    if match is None and not re.match(r"how many\b", sentence, re.IGNORECASE):
        return None
    name = counted_thing(f"How many {match['x']} are there?" if match else f"{sentence}?")
    entity = None if name is None else thing_in(name)
    if name is None or entity is None or entity.name is None:
        return Unclear(
            "it counts several kinds, or only some of a kind, which detection by name cannot tell from the others"
        )
    if prompt.kind.value not in NUMBER_KINDS and not (prompt.kind is Kind.CHOICE and numbers_in(prompt.choices)):
        return Unclear("it counts, and the answers are not different numbers")
    return CountQuestion(name)


def _nearest(sentence: str, prompt: Prompt) -> NearestQuestion | Unclear | None:
    than = _first((rf"(?:is|are) (?P<x>.+?) {_NEARNESS} (?:{_CAMERA} )?than (?P<y>.+)",), sentence)
    either = _first((rf"(?:is|are) (?P<x>.+?) {_NEAR_OR_FAR} than (?P<y>.+)",), sentence)
    if (match := either or than) is not None:
        if (pair := things_in([match["x"], match["y"]])) is None:
            return _no_thing(f"{match['x']} or {match['y']}")
        if either is not None:
            nearer = [bool(re.search(r"(?i)\b(?:closer|nearer)\b", choice)) for choice in prompt.choices]
            farther = [bool(re.search(r"(?i)\b(?:farther|further)\b", choice)) for choice in prompt.choices]
            if sorted(nearer) != [False, True] or farther != [not near for near in nearer]:
                return Unclear("it asks for nearer or farther, and the answers are not these two")
            order = (0, 1) if nearer[0] else (1, 0)
            return NearestQuestion(pair, "nearer or farther", order)
        if prompt.kind is not Kind.YES_NO and yes_and_no(prompt.choices) is None:
            return Unclear("it asks whether one thing is nearer, and the answers are not yes and no")
        return NearestQuestion(pair, "nearer than" if match["near"] else "farther than")
    return _which_is_nearest(sentence, prompt)


def _which_is_nearest(sentence: str, prompt: Prompt) -> NearestQuestion | Unclear | None:
    with_options = _first(
        (
            rf"{_WHICH} (?:is|are|appears) {_NEARNESS}(?: {_CAMERA})?(?:\s*[,:]\s*| - )(?P<x>.+)",
            rf"{_AMONG} (?P<x>.+?), {_WHICH} is {_NEARNESS}(?: {_CAMERA})?",
            rf"which of (?P<x>the .+ and the .+) is {_NEARNESS} {_CAMERA}",
            rf"(?:is|are) (?P<x>.+ or .+) {_NEARNESS} {_CAMERA}",
        ),
        sentence,
    )
    unnamed = (
        _first((rf"{_WHICH} (?:is|are|appears) {_NEARNESS} {_CAMERA}",), sentence) if with_options is None else None
    )
    if (match := with_options or unnamed) is None:
        return None
    words = re.sub(r"\band\b", "or", match["x"]) if with_options else ""
    options_text = alternatives(words) if with_options else [_bare_option(choice) for choice in prompt.choices]
    entities = things_in(options_text)
    if entities is None or len(entities) < 2:
        return _no_thing(" or ".join(options_text) or "any of its choices")
    options = [thing_in(_bare_option(choice)) for choice in prompt.choices]
    fits = [[place for place, option in enumerate(options) if same_thing(option, entity)] for entity in entities]
    order = tuple(places[0] for places in fits if len(places) == 1)
    # Each object is exactly one choice, and there are no other choices.
    if len({*order}) != len(entities) or len(options) != len(entities):
        return Unclear("it asks which thing is nearest, and the choices are not the things that it names")
    form: NearestForm = "nearest" if match["near"] else "farthest"
    if form == "farthest" and len(entities) > 2:
        return Unclear("it asks for the farthest of more than two things, and depth tells the nearest")
    return NearestQuestion(entities, form, order)


def _bare_option(choice: str) -> str:
    bare = re.sub(rf"(?i)\s+is {_NEARNESS.replace('?P<near>', '?:')}(?: {_CAMERA})?\s*\.?$", "", choice.strip())
    return bare.strip(" .")


def _described(sentence: str, prompt: Prompt) -> AttributeQuestion | Unclear | None:
    asks = _first(
        (
            rf"what(?:'s|’s| is| are) the {_WORD} (?:of|on) (?P<x>.+?){_IN}",
            rf"(?:of )?(?:what|which) {_WORD} (?:is|are) (?P<x>.+?)(?: made (?:of|from|out of))?{_IN}",
            rf"what {_WORD} (?:does|do) (?P<x>.+?) have{_IN}",
            r"(?:is|are) the (?P<word>colou?r) of (?P<x>.+?) (?P<one>[a-z]+) or (?P<other>[a-z]+)",
        ),
        sentence,
    )
    material = _first((rf"(?P<word>what) (?:is|are) (?P<x>.+?) made (?:of|from|out of){_IN}",), sentence)
    either = _first((r"(?P<word>is|are) (?P<x>.+?) (?P<one>[a-z-]+) or (?P<other>[a-z-]+)",), sentence)
    if either is not None and not (is_color(either["one"]) and is_color(either["other"])):
        either = None
    if (match := asks or material or either) is None:
        return None
    word = match["word"].lower()
    attributes: dict[str, Attribute] = {
        "what": "material",
        "material": "material",
        "shape": "shape",
        "pattern": "pattern",
    }
    attribute = attributes.get(word, "color")
    if (entity := thing_in(match["x"])) is None or entity.letter:
        return _no_thing(match["x"])
    values = values_in(prompt.choices, attribute, entity) if prompt.kind is Kind.CHOICE else None
    if values is None:
        return Unclear(f"it asks for the {attribute} of a thing, and the choices are not different ones")
    return AttributeQuestion(entity, attribute, values)


def _recognise_text(sentence: str, prompt: Prompt) -> TextQuestion | Unclear | None:
    noun = r"(?:words?|text|numbers?|letters)"
    surface = r"(?:the|this|that) (?:[a-z]+ ){0,2}?[a-z]+"
    forms = (
        rf"what (?:is|are) (?:written|printed|painted) (?:on|in) {surface}{_IN}",
        rf"what {noun} (?:is|are)(?: written| printed| painted| shown)? on {surface}{_IN}",
        rf"what (?:is|are) the (?:{noun}|(?:brand )?name) (?:written |printed )?on {surface}{_IN}",
        rf"what (?:does|do) (?:the (?:text|word|writing) on )?{surface} (?:say|read){_IN}",
    )
    if _first(forms, sentence) is None:
        return None
    return (
        TextQuestion() if prompt.kind is Kind.CHOICE and len(prompt.choices) > 1 else Unclear("it asks for text freely")
    )


Recogniser = Callable[[str, Prompt], RecognisedQuestion | Unclear | None]
# Tried in this order; positions in the image before relations, because "the image" is not an object.
RECOGNISERS: Final[tuple[Recogniser, ...]] = (
    _exists,
    _recognise_count,
    _nearest,
    placed,
    related,
    _described,
    _recognise_text,
)


def _first(forms: tuple[str, ...], sentence: str) -> re.Match[str] | None:
    return next((match for form in forms if (match := re.fullmatch(form, sentence, re.IGNORECASE))), None)


def _no_thing(words: str) -> Unclear:
    return Unclear(f"{words[:80]!r} names no object that can be looked for by its name or its mark alone")
