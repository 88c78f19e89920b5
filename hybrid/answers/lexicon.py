"""Words of many languages, read from `lexicon.toml`."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_FILE: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_NUMBERS: Final[dict[str, str]] = _FILE["numbers"]


def _numbered(groups: Iterable[Iterable[str]]) -> dict[str, int]:
    return {word: value for value, words in enumerate(groups) for word in words}


TRANSLATIONS: Final = {word: frozenset(words.split()) for word, words in _FILE["translations"].items()}
UNITS: Final = tuple(_NUMBERS["units"].split())
TENS: Final = tuple(_NUMBERS["tens"].split())
# Values of number words: English words, Han digits, and whole replies in other languages.
WORDS: Final = _numbered([word] for word in UNITS) | {word: 10 * n for n, word in enumerate(TENS, 2)}
HAN: Final = _numbered(_NUMBERS["han"].split())
ELSEWHERE: Final = _numbered(line.split() for line in _NUMBERS["elsewhere"].splitlines())
