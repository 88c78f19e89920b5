"""A reply to a yes/no question -> "yes" or "no", or None.

The second rule is MVP-Bench's own rule (the text before the first full stop and comma); the judge that the paper asks
where it fails is replaced by the rules after it.
"""

import re
from typing import Final, Literal

from hybrid.answers.base import CUE, TRANSLATIONS, Parsed, bare, first_match, plain, sentences, undecided

YesNo = Literal["yes", "no"]
_WORDS: Final[tuple[YesNo, YesNo]] = ("yes", "no")
# "No" before one of these opens a sentence of its own ("No there is a cat"); before a noun it is a determiner.
_AFTER_NO: Final = r"(?:the|there|this|that|it|he|she|they|these|those|i|we|because|since|as|you)\b"
_EITHER: Final = re.compile(r"\byes\s?(?:/|or|and)\s?no\b", re.IGNORECASE)


def _word(text: str) -> YesNo | None:
    low = bare(text)
    return next((w for w in _WORDS if low == w or low in TRANSLATIONS[w]), None)


def only_word(text: str) -> YesNo | None:
    """The whole reply is the word: `Yes.`, `NO`, `是`."""
    return _word(text)


def first_clause(text: str) -> YesNo | None:
    """The text before the first full stop, and of that before the first comma, is the word (MVP-Bench's rule)."""
    return _word(text.split(".", 1)[0].split(",", 1)[0])


def announced(text: str) -> YesNo | None:
    """The word that is last announced as the answer: `So the answer is no`."""
    found = re.findall(rf"(?:{CUE})[\s:=\"'\-]{{0,6}}(yes|no)\b(?!\s(?:longer|more)\b)", text, re.IGNORECASE)
    return _word(found[-1]) if found else None


def opening_word(text: str) -> YesNo | None:
    """The reply opens with the word and goes on: `Yes - the man ...`, `No; he is ...`, `Yes the man is`."""
    match = re.match(rf"\W{{0,3}}(yes\b|no\b(?=\s?[^\w\s]|\s?\n|\s{_AFTER_NO}))", text, re.IGNORECASE)
    return _word(match[1]) if match else None


def closing_word(text: str) -> YesNo | None:
    """The last sentence or line is the word alone."""
    return _word(sentences(text)[-1])


RULES: Final = (only_word, first_clause, announced, opening_word, closing_word)


def parse_yes_no(text: str) -> Parsed[YesNo]:
    """The yes or no that `text`, any text, gives; None where it gives neither, or offers both ("yes or no")."""
    clean = plain(text)
    if not clean or _EITHER.match(clean):
        return undecided()
    return first_match(RULES, clean)
