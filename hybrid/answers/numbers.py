"""Parse a reply to a question that asks for a number with a fraction, a sign or an exponent; None if it has no number.

Accepts digits, a decimal point, commas between groups of three, a sign, and e-notation. A percent sign and units after
the number are ignored, because the question names the unit.
"""

import math
import re
from typing import Final

from hybrid.answers._precedence import read_corrected, read_own
from hybrid.answers.base import CUE, Parsed, first_match, is_asked, statement, undecided
from hybrid.answers.integers import drop_uncounted, only_number, spelled_out

MAX_DIGITS: Final = 30
_SIGN: Final = r"(?:[-+−](?=[0-9.]))?"
_DIGITS: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]{1,30})(?:\.[0-9]{1,30})?|\.[0-9]{1,30}"
_NUMBER: Final = rf"(?<![\w.,]){_SIGN}(?:{_DIGITS})(?:[eE][-+]?[0-9]{{1,3}})?(?![0-9]|\.[0-9]|,[0-9])"
_FOUND: Final = re.compile(_NUMBER)
_ONLY: Final = re.compile(rf"[\s\"'(\[≈~=$€£]{{0,3}}({_NUMBER})\s?(?:%|°|[a-zA-Z²³/%°]{{1,12}})?[\s\"').\]]{{0,3}}")
_ANNOUNCED: Final = re.compile(rf"(?i)(?:{CUE})[\s:=\"'≈~$€£(]{{0,6}}({_NUMBER})")
_EQUALS: Final = re.compile(rf"[=≈]\s?({_NUMBER})")


def value_of(text: str) -> float | None:
    """Return the value of a written number; None if it is not a number or not finite."""
    try:
        value = float(text.replace(",", "").replace("−", "-"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def only(text: str) -> float | None:
    """Read a reply that is only the number, with or without a unit: `3.5`, `-2 m`, `12%`."""
    match = _ONLY.fullmatch(text)
    return value_of(match[1]) if match else None


def announced(text: str) -> float | None:
    """Read the last number that is announced as the answer: `Answer: 0.75`."""
    texts = [match[1] for match in _ANNOUNCED.finditer(text) if not is_asked(match)]
    return value_of(texts[-1]) if texts else None


def closing(text: str) -> float | None:
    """Read the last of several lines if it is only a number."""
    *earlier_lines, last = text.split("\n")
    return only(last) if earlier_lines else None


def result(text: str) -> float | None:
    """Read the last number after an equals sign."""
    texts = _EQUALS.findall(text)
    return value_of(texts[-1]) if texts else None


def word(text: str) -> float | None:
    """Read a reply that is only a number word: `seven`."""
    number = only_number(text)
    return None if number is None else float(number)


def single(text: str) -> float | None:
    """Read the only number of the reply; None if there are several."""
    values = {value_of(number) for number in _FOUND.findall(drop_uncounted(text))}
    return next(iter(values)) if len(values) == 1 else None


RULES: Final = (only, announced, closing, result, word, single)


def parse_number(text: str) -> Parsed[float]:
    """Read the number in any text; None if there is none, or several."""
    return read_own(statement(text), lambda part: read_corrected(part, _read, _read))


def _read(text: str) -> Parsed[float]:
    return first_match(RULES, spelled_out(text)) if text else undecided()
