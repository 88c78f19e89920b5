"""What the words of an open question name: the things in it, whether it asks for text, the statement it asks about.

A library of `tools/rules/views.py` and `tools/rules/words.py`, beside `_wording.py`. Every function is a list of
explicit patterns: where none fits, nothing is named and the rule abstains.
"""

from __future__ import annotations

import re
from typing import Final

MOST_NAMES: Final = 4
"""How many of the things that a question names are looked for."""

_QUESTION: Final = re.compile(
    r"^(?:The )?question(?: about the whole picture is)?: (.+)$", re.IGNORECASE | re.MULTILINE
)
_THING: Final = re.compile(
    r"\b(?:the|an?|this|that|these|those|how many|all|any)\s+(?=(?P<name>[a-z][a-z'-]*(?:\s+[a-z][a-z'-]*){0,2}))",
    re.IGNORECASE,
)
_ENDS: Final = re.compile(
    r"is|are|was|were|am|be|been|being|do|does|did|has|have|had|can|could|will|would|may|might|in|on|at|of|to|"
    r"from|by|with|for|near|under|over|above|below|behind|beside|next|inside|outside|between|among|around|and|or|"
    r"but|that|which|who|whose|where|when|what|how|why|there|here|this|these|those|the|a|an|it|its|his|her|their|"
    r"not|made|belong|belongs|stand|stands|appear|appears|show|shows|say|says|wear|wears|hold|holds|point|points|"
    r"look|looks|come|comes|go|goes|weigh|weighs|smell|smells|cost|costs|directly"
)
_NO_THINGS: Final = re.compile(
    r"image|picture|photo|photograph|scene|view|colour|color|number|place|name|kind|type|brand|country|city|"
    r"object|objects|thing|things|side|left|right|top|bottom|middle|center|centre|background|foreground|way|"
    r"direction|price|time|day|year|word|words|text|letter|letters|most|least|highest|lowest|first|second|third|"
    r"last|same|other|part|parts|front|back|following|emotion|behaviour|behavior|role|identity|main|subject|setting|"
    r"atmosphere|lightness|style|expression|gesture|content|weather|activity"
)
_TEXT: Final = re.compile(
    r"\b(?:written|read(?:s)?|says?|spell(?:s|ed|t)?|words?|text|letters?|sign|signs|label|labels|price|prices|"
    r"title|slogan|printed|phone number|licen[cs]e plate|brand)\b",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(
    r"\b(?P<verb>is|are|was|were) (?P<subject>(?:the|an?|this|these|those|there)\b.*?)\s*\?", re.IGNORECASE
)

_PEOPLE: Final = re.compile(r"man|men|woman|women|people|person|boys?|girls?|child|children|kids?|couple|crowd")
_SAID_OF: Final = re.compile(rf"{_PEOPLE.pattern}|subjects?|background|setting|scene|image|picture|photo|photograph")
"""Nouns that end a name: what comes next, as in "the man angry", is said of them."""
_NOUN: Final = (
    rf"(?:{_PEOPLE.pattern}|group|audience|subjects?|background|foreground|setting|scene|image|picture|photo|"
    r"photograph|gesture|expression|behaviou?r|emotion|role|identity|content|weather|lightness|style|atmosphere|"
    r"objects?)"
)
_SUBJECT: Final = re.compile(
    r"(?:the|an?|this|that|these|those)(?: (?!(?:in|on|of|with|by|an?|the)\b)[\w-]+){0,2}? "
    rf"{_NOUN}(?:'s? (?:facial )?{_NOUN})?"
    rf"(?: of (?:(?:the|an?) )?(?:[\w-]+ )??{_NOUN})?"
    r"(?: in (?:the|this) (?:image|picture|photo|photograph))?(?![\w'’-])",
    re.IGNORECASE,
)
"""A subject whose noun is one of those that such questions are about, with what belongs to it: "the facial expression
of the main subject", "the group of people in the image"."""
_GOES_ON: Final = re.compile(
    r"(?:held|displayed|depicted|shown|captured)\s+(?:by|on|in|an?|the)\b|(?:who|with|or)\b|"
    r"in (?:black|white|red|blue|green|pink|terms|the (?:given context|left|right|middle|image|picture) \w)|"
    r"on the (?:[\w-]+ )?(?:screen|monitor|left|right) \w",
    re.IGNORECASE,
)
"""How what stands behind a noun still belongs to it: "the man | in black holding a gun"."""


def asked_question(text: str) -> str | None:
    """The question inside one of ActiView's asks, from its line `Question: ...`; None where there is no such line."""
    found = _QUESTION.search(text)
    return found[1].strip() if found else None


def named_things(question: str) -> tuple[str, ...]:
    """The concrete things that a question names behind an article or "how many", in order, each once, in lower case.

    Of "What is the man in the red car holding?" they are "man" and "red car"; words such as "picture" or "colour" are
    no things.
    """
    found: list[str] = []
    for match in _THING.finditer(question):
        words: list[str] = []
        for word in match["name"].lower().split():
            if _ENDS.fullmatch(word) or (words and word.endswith("ing")):
                break
            words.append(word)
            if _SAID_OF.fullmatch(word):
                break
        if words and not _NO_THINGS.fullmatch(words[-1]):
            found.append(" ".join(words))
    return tuple(dict.fromkeys(found))


def asks_for_text(question: str) -> bool:
    """Whether what a question asks for is likely to be written in the picture."""
    return _TEXT.search(question) is not None


def statement_of(question: str) -> tuple[str, str] | None:
    """The statement that a yes-no question asks about, and its denial.

    "Is the man sitting on a chair?" gives "the man is sitting on a chair" and "the man is not sitting on a chair". None
    where it does not start with a form of to be, where it cannot be told how far its subject goes, or where nothing is
    said of the subject.
    """
    found = _ASKED.search(question)
    if found is None:
        return None
    verb, whole = found["verb"].lower(), " ".join(found["subject"].split())
    if whole.lower().startswith("there "):
        rest = whole[len("there ") :]
        return f"there {verb} {rest}", f"there {verb} no {_without_article(rest)}"
    subject = _SUBJECT.match(whole)
    end = subject.end() if subject else _end_of_first(whole)
    said = "" if end is None else whole[end:].strip()
    if not said or _GOES_ON.match(said):
        return None
    return f"{whole[:end]} {verb} {said}", f"{whole[:end]} {verb} not {said}"


def _end_of_first(whole: str) -> int | None:
    """Where the first thing named in a statement ends; None where it is not at the start, or goes on behind its end."""
    things = named_things(whole)
    if not things or not (start := re.match(rf"\w+\s+{re.escape(things[0])}\b", whole, re.IGNORECASE)):
        return None
    return (
        None
        if re.match(r"\s+of\b|[\s'-]*[a-z]*ing\s+(?:room|area|table)\b|'s\b", whole[start.end() :])
        else start.end()
    )


def _without_article(words: str) -> str:
    return re.sub(r"^(?:an?|any|the)\s+", "", words, flags=re.IGNORECASE)
