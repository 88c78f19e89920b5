"""Questions where a thing is: in the picture (`placed`), or from another thing (`related`)."""

from __future__ import annotations

import re
from typing import Final

from hybrid.types import Kind, Prompt
from tools.relation.rules import PHRASES
from tools.rules.questions.asked_kinds import Placed, Related
from tools.rules.questions.sentence import PICTURE, Unclear
from tools.rules.questions.things import thing_in
from tools.rules.questions.values import part_in, parts_in, relation_in, relations_in, yes_and_no

_IN: Final = rf"(?: (?:in|on|within) {PICTURE})?"
_PART: Final = r"(?:side|half|part|corner|quadrant|area|region)"
_LIES: Final = r"(?: (?:be )?(?:located|positioned|placed|situated|seen|found))?"
_WORDS: Final = r"(?:(?:top|bottom|upper|lower|left|right|center|centre|middle)[ -]?){1,2}"
_A_PART: Final = rf"(?:the )?{_WORDS} ?{_PART}?"
_SIDE: Final = r"(?:(?:on|to|at) (?:the )?)?(?:left|right)(?:[- ]hand)?(?: side)?(?: of)?"
_EITHER: Final = rf"(?:{_SIDE}|above|below|over|under|beneath|in front of|behind|inside(?: of)?|outside(?: of)?)"
_COMPARED: Final = r"(?:relative to|in relation to|with respect to|compared (?:to|with))"


def placed(sentence: str, prompt: Prompt) -> Placed | Unclear | None:
    """The part of the picture that a question asks for."""
    forms = (
        rf"where (?:in|on) {PICTURE} (?:is|are|can) (?P<x>.+?){_LIES}",
        rf"where (?:is|are|can) (?P<x>.+?){_LIES} (?:in|on|within) {PICTURE}",
        rf"(?:is|are) (?P<x>.+?){_LIES} (?:in|on|at) {_A_PART} or (?:in |on |at )?{_A_PART} of {PICTURE}",
        rf"(?:in|on|at) (?:which|what) {_PART} of {PICTURE} (?:is|are|can) (?P<x>.+?){_LIES}",
        rf"(?:which|what) {_PART} of {PICTURE} (?:is|are) (?P<x>.+?){_LIES} (?:in|on|at)",
        rf"what is the (?:position|location) of (?P<x>.+?) (?:in|on|within) {PICTURE}",
    )
    match = next((found for form in forms if (found := re.fullmatch(form, sentence, re.IGNORECASE))), None)
    said = None
    if match is None:
        form = rf"(?:is|are) (?P<x>.+?){_LIES} (?:in|on|at) (?P<part>the {_WORDS} ?{_PART}?) of {PICTURE}"
        match = said = re.fullmatch(form, sentence, re.IGNORECASE)
    if match is None:
        return None
    if (thing := thing_in(match["x"])) is None:
        return Unclear(f"{match['x'][:80]!r} names no thing that can be looked for by its name or its mark alone")
    if said is not None:
        part = part_in(said["part"]) if _yes_or_no(prompt) else None
        return (
            Unclear("it asks whether a thing lies in a part of the picture, in words unknown")
            if part is None
            else Placed(thing, part)
        )
    options = parts_in(prompt.choices) if prompt.kind is Kind.CHOICE else None
    if options is None:
        return Unclear("it asks where in the picture a thing is, and the choices are not different parts of it")
    return Placed(thing, options=options)


def related(sentence: str, prompt: Prompt) -> Related | Unclear | None:
    """The relation of two things that a question asks for."""
    forms = (
        rf"where (?:is|are|does|do) (?P<x>.+?)(?: stand| sit| lie)?{_LIES}{_IN} {_COMPARED} (?P<y>.+?){_IN}",
        rf"what is the (?:relative )?(?:position|location) of (?P<x>.+?) {_COMPARED} (?P<y>.+?){_IN}",
        rf"(?:is|are) (?P<x>.+?){_LIES} (?P<one>{_EITHER}) or (?P<other>{_EITHER}) (?P<y>.+?){_IN}",
        rf"(?:which|what) side of (?P<y>.+?) (?:is|are) (?P<x>.+?){_LIES} (?:on|at)",
        rf"on (?:which|what) side of (?P<y>.+?) (?:is|are) (?P<x>.+?){_LIES}",
    )
    match = next((found for form in forms if (found := re.fullmatch(form, sentence, re.IGNORECASE))), None)
    if match is None:
        return _holds(sentence, prompt)
    subject, reference = thing_in(match["x"]), thing_in(match["y"])
    if subject is None or reference is None:
        return _no_two(match["x"], match["y"])
    options = relations_in(prompt.choices, subject, reference) if prompt.kind is Kind.CHOICE else None
    if options is None:
        return Unclear("it asks how two things lie, and the choices are not different relations of these two")
    words = match.groupdict()
    named = {relation_in(words[key]) for key in ("one", "other") if words.get(key)}
    if named and named != set(options):
        return Unclear("it names other relations than the choices")
    return Related(subject, reference, options=options)


def _holds(sentence: str, prompt: Prompt) -> Related | Unclear | None:
    """A relation asked about with yes or no; the longest phrase first: "on top of" before "on"."""
    match = re.fullmatch(r"does (?P<x>.+?) contain (?P<y>the .+)", sentence, re.IGNORECASE)
    phrase = "containing"
    for each in sorted(PHRASES, key=len, reverse=True):
        if match is not None:
            break
        phrase = each
        match = re.fullmatch(rf"(?:is|are) (?P<x>.+?) {each} (?P<y>(?:the |point |box )?.+)", sentence, re.IGNORECASE)
    if match is None:
        return None
    if not _yes_or_no(prompt):
        return Unclear("it asks whether two things lie so, and the answers are not yes and no")
    subject, reference = thing_in(match["x"]), thing_in(match["y"])
    if subject is None or reference is None:
        return _no_two(match["x"], match["y"])
    return Related(subject, reference, PHRASES.get(phrase, "containing"))


def _yes_or_no(prompt: Prompt) -> bool:
    return prompt.kind is Kind.YES_NO or yes_and_no(prompt.choices) is not None


def _no_two(one: str, other: str) -> Unclear:
    return Unclear(f"{one[:60]!r} and {other[:60]!r} are not two things that can be looked for by name or mark alone")
