"""Splits options in one cell, by named patterns: `"(a) X (b) Y"` is two choices, X and Y.

split("(a) X (b) Y", "Open (a) Yes (b) No")     # ("Open", ("Yes", "No"))
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from hybrid.core.types import LETTERS

# The text before the first option, and the options.
Split = tuple[str, tuple[str, ...]]


def _lettered(prefix: str, suffix: str) -> Callable[[str], Split]:
    """Split options that follow letters in order from A, all in upper or all in lower case."""

    def split_text(text: str) -> Split:
        for letters in (LETTERS, LETTERS.lower()):
            stem, options = _in_order(text, [f"{prefix}{letter}{suffix}" for letter in letters])
            if options:
                return stem, options
        return text.strip(), ()

    return split_text


def _on_lines(prefix: str, suffix: str) -> Callable[[str], Split]:
    """Split options on separate lines, each after its letter; text after the last of these lines is not an option."""
    split_letters = _lettered(prefix, suffix)

    def split_text(text: str) -> Split:
        stem, options = split_letters(text)
        return stem, tuple(option.partition("\n")[0].strip() for option in options)

    return split_text


def _in_order(text: str, marks: list[str]) -> Split:
    """Cut at the marks that begin a word: at the first mark, then at the second mark after it, and so on."""
    cuts: list[tuple[int, int]] = []
    for mark in marks:
        match = re.compile(rf"(?:(?<=\s)|\A){re.escape(mark)}(?=\s)").search(text, cuts[-1][1] if cuts else 0)
        if match is None:
            break
        cuts.append(match.span())
    if len(cuts) < 2:
        return text.strip(), ()
    ends = [begin for begin, _ in cuts[1:]] + [len(text)]
    return text[: cuts[0][0]].strip(), tuple(text[at:end].strip() for (_, at), end in zip(cuts, ends, strict=True))


def _apart(mark: str) -> Callable[[str], Split]:
    """Split options separated by a mark, with no text before them."""

    def split_text(text: str) -> Split:
        return "", tuple(part.strip() for part in text.split(mark))

    return split_text


def _json(text: str) -> Split:
    """Parse a list of texts in JSON."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip(), ()
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return text.strip(), ()
    return "", tuple(items)


# Patterns by their name in a mapping; a letter in a name matches upper and lower case.
PATTERNS: Final[Mapping[str, Callable[[str], Split]]] = {
    "(a) X (b) Y": _lettered("(", ")"),
    "a) X b) Y": _lettered("", ")"),
    "a. X b. Y": _lettered("", "."),
    "a: X b: Y": _lettered("", ":"),
    "(a) X\\n(b) Y": _on_lines("(", ")"),
    "a. X\\nb. Y": _on_lines("", "."),
    "X|Y": _apart("|"),
    "X; Y": _apart(";"),
    "X, Y": _apart(","),
    "X\\nY": _apart("\n"),
    '["X", "Y"]': _json,
}


def split(pattern: str, text: str) -> Split:
    """Return the text before the options, and the options; no options if the text does not match.

    Raises:
        KeyError: a pattern that is not in `PATTERNS`.
    """
    return PATTERNS[pattern](text)
