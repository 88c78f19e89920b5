"""A reply to a counting question (HVSBench Q2) -> a whole number, or None.

Follows Table 8 of the HVSBench paper: digits or number words, and the first number of a sentence counts. The value that
counts for a reply without a number belongs to the scorer.
"""

import re
from typing import Final

from hybrid.answers._corrections import read_corrected
from hybrid.answers.base import CUE, Parsed, bare, first_match, plain, undecided

WORDS: Final[dict[str, int]] = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
# Counts in these questions are small; a longer run of digits is no count.
MAX_DIGITS: Final = 9
_DIGITS: Final = r"(?<![A-Za-z0-9_.,])-?[0-9][0-9,]*(?:\.[0-9]+)?(?![A-Za-z_])"
# Commas set groups of three digits apart; "1,2,3" is a list and "0,5" a fraction.
_WHOLE: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+")
_LIST: Final = re.compile(r"[0-9]+(?:,\s?[0-9]+)+")
_TEN: Final = "|".join(word for word, value in WORDS.items() if value >= 20)
_UNIT: Final = "|".join(sorted((word for word, value in WORDS.items() if value < 20), key=len, reverse=True))
# "one" is a pronoun after these: "the one on the left", "no one".
_PRONOUN: Final = "".join(
    rf"(?<!\b{word}\s)" for word in ("no", "the", "this", "that", "each", "every", "which", "any")
)
_WORD: Final = rf"{_PRONOUN}\b(?:(?:{_TEN})(?:[-\s](?:{_UNIT}))?|{_UNIT})\b"
_NUMBER: Final = re.compile(rf"{_DIGITS}|{_WORD}", re.IGNORECASE)


def _value(number: str) -> int | None:
    """The whole number that a match of `_NUMBER` spells; None for fractions, lists, negative and endless numbers."""
    if number[0] in "-0123456789":
        whole, _, fraction = number.rstrip(",").partition(".")
        digits = whole.replace(",", "")
        ok = _WHOLE.fullmatch(whole) is not None and len(digits) <= MAX_DIGITS and not fraction.strip("0")
        return int(digits) if ok else None
    return sum(WORDS[part] for part in re.split(r"[-\s]", number.casefold()))


def numbers(text: str) -> tuple[int | None, ...]:
    """Every number in a text in order, None for those that are no count."""
    return tuple(_value(match[0]) for match in _NUMBER.finditer(text))


def only_number(text: str) -> int | None:
    """The whole reply is the number: `10`, `"22"`, `8.`, `Five`."""
    match = _NUMBER.fullmatch(bare(text)) if not text.startswith("-") else None
    return _value(match[0]) if match else None


def announced(text: str) -> int | None:
    """The last number that is announced as the answer: `Answer: 5`."""
    found = re.findall(rf"(?:{CUE})[\s:=\"'\-]{{0,6}}({_NUMBER.pattern})", text, re.IGNORECASE)
    return _value(found[-1]) if found else None


def first_number(text: str) -> int | None:
    """The first number of a reply that is no list: `There are five salient objects: four boats and one flower` -> 5."""
    match = None if _LIST.fullmatch(bare(text)) else _NUMBER.search(text)
    return _value(match[0]) if match else None


RULES: Final = (only_number, announced, first_number)


def parse_integer(text: str) -> Parsed[int]:
    """The count, 0 or more, that `text`, any text, gives.

    None without a number, for a list of numbers, and where the number that counts is a fraction or negative.
    """
    return read_corrected(plain(text), _read, _read_again)


def _read(text: str) -> Parsed[int]:
    return first_match(RULES, text) if text else undecided()


def _read_again(text: str) -> Parsed[int]:
    # A number in the prose behind "actually" may count something else.
    return first_match((only_number, announced), text) if text else undecided()
