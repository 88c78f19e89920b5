"""Parse the words of a question: objects, counted objects, numbers, and whether it asks for text.

Every function uses explicit patterns; if none matches, nothing is named and the rule abstains.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_IRREGULAR: Final[Mapping[str, str]] = tomllib.loads(Path(__file__).with_name("nouns.toml").read_text("utf-8"))


def singular(name: str) -> str:
    """Return a noun phrase in the singular: "red cars" gives "red car", "wolves" gives "wolf", "cat" stays."""
    if name.strip().lower() in _IRREGULAR:
        return _IRREGULAR[name.strip().lower()]
    head, _, last = name.strip().rpartition(" ")
    return f"{head} {_one(last)}" if head else _one(last)


def _one(word: str) -> str:
    low = word.lower()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low.endswith(("ss", "us", "is")) or not low.endswith("s") or len(low) < 4:
        return word
    if low.endswith("ies"):
        return word[:-3] + "y"
    if low.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


# Largest number of named objects to look for.
MAX_NAMES: Final = 4
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
PEOPLE: Final = r"man|men|woman|women|people|person|boys?|girls?|child|children|kids?|couple|crowd"

_QUESTION: Final = re.compile(r"(?im)^(?:The )?question(?: about the whole picture is)?: (.+)$")
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
# Nouns that end a name: the words after such a noun describe it, as in "the man angry".
_SAID_OF: Final = re.compile(rf"{PEOPLE}|subjects?|background|setting|scene|image|picture|photo|photograph")

_PLACE = r"(?:in|on|within) (?:the|this|that) (?:image|picture|photo|photograph|scene|shot|view)"
_SEEN = r"visible|shown|seen|present|pictured|depicted|displayed|in view|here|there|total|in total|altogether"
# Words after a counted noun that do not restrict it: "are there in the picture", "can you see".
_ALL_OF_THEM = re.compile(
    rf"(?:(?:are|is|were|was|do|does|can|could) )?(?:(?:you|we) )?(?:(?:be|see|count|find|appear|appears) ?)?"
    rf"(?:(?:{_SEEN}) ?)*(?:{_PLACE})?(?: ?(?:{_SEEN}))?",
    re.IGNORECASE,
)
# Words that restrict a counted noun to some of its kind: a detector given only the noun counts too many.
_NARROWS = re.compile(
    r"in|on|at|of|to|from|by|with|without|for|near|under|over|above|below|behind|beside|next|inside|outside|between|"
    r"among|around|and|or|not|that|which|who|whose|the|a|an|this|these|those|his|her|their|other|"
    r"(?!(?:building|painting|ceiling|king|ring|string|wing|earring|clothing|railing|awning|lighting|swing)s?$)[a-z]+ing",
    re.IGNORECASE,
)


def asked_question(text: str) -> str | None:
    """Return the question in one of ActiView's prompts, from its line `Question: ...`; None without such a line."""
    match = _QUESTION.search(text)
    return match[1].strip() if match else None


def named_things(question: str) -> tuple[str, ...]:
    """List the concrete objects that a question names after an article or "how many", in order, lower case, once each.

    For "What is the man in the red car holding?" they are "man" and "red car"; words such as "picture" or "colour" do
    not count as objects.
    """
    phrases: list[str] = []
    for match in _THING.finditer(question):
        words: list[str] = []
        for word in match["name"].lower().split():
            if _ENDS.fullmatch(word) or (words and word.endswith("ing")):
                break
            words.append(word)
            if _SAID_OF.fullmatch(word):
                break
        if words and not _NO_THINGS.fullmatch(words[-1]):
            phrases.append(" ".join(words))
    return tuple(dict.fromkeys(phrases))


def asks_for_text(question: str) -> bool:
    """Return whether the answer to a question is likely to be written in the image."""
    return _TEXT.search(question) is not None


def counted_thing(text: str) -> str | None:
    """Return the noun that a question counts, in the singular: "How many red cars are there?" gives "red car".

    Return None if the question counts only some of a kind, as in "How many people are wearing a hat?" or "How many dogs
    on the bed are there?": a detector given the noun would count them all.
    """
    match = re.search(
        r"\bhow many (?P<name>[a-z][a-z' -]*?)"
        r"(?P<rest> (?:are|is|were|was|can|could|do|does|have|has|in|on|appear|appears|you|altogether|total)\b[^?\n]*)?"
        r"\s*(?:\?|$)",
        text,
        re.IGNORECASE | re.MULTILINE,
    )
    if match is None or any(_NARROWS.fullmatch(word) for word in match["name"].split()):
        return None
    if match["name"].split()[0].lower() in ("are", "is") or not _ALL_OF_THEM.fullmatch(
        (match["rest"] or "").strip(" .")
    ):
        return None
    return singular(match["name"])


def number_in(choice: str) -> int | None:
    """Return the only number in a choice, in digits or in words up to twelve; None if it has no number or several."""
    words = [word for word in re.findall(r"\d+|[a-z]+", choice.lower()) if word.isdigit() or word in NUMBERS]
    numbers = [int(word) if word.isdigit() else NUMBERS.index(word) for word in words]
    return numbers[0] if len(numbers) == 1 else None
