"""MVP-Bench's rules for extracting answers (`evaluate.py`, `evaluate_mcq.py`), and the options in its texts.

The judge model that the authors use if the yes/no rule fails is not included: such a reply is undecided.
"""

from __future__ import annotations

import re

from hybrid.core.types import LETTERS

_OPTION = re.compile(r"([A-Z])\. (.*\S)")


def read_options(text: str) -> tuple[str, ...]:
    """Return the option texts of a question, in order, from its lines `A. ...`, `B. ...`; empty without such lines.

    The last block counts, because one published question lists its options twice.
    """
    options: list[str] = []
    for line in text.splitlines():
        match = _OPTION.fullmatch(line.strip())
        if match is None:
            continue
        if match[1] == "A":
            options = []
        if match[1] == LETTERS[len(options) : len(options) + 1]:
            options.append(match[2])
    return tuple(options)


def yes_no_rule(text: str) -> str | None:
    """Return the text before the first full stop or comma, in lower case, if it is "yes" or "no"."""
    word = _first_clause(text).lower()
    return word if word in ("yes", "no") else None


def single_run_rule(text: str, choices: int) -> str | None:
    """Return the letter, upper or lower case, before the first full stop, comma or ")": `a`, `(B)`, `C) cat`."""
    return _offered_letter(_first_clause(text).split(")")[0].strip("()").strip().upper(), choices)


def circular_rule(text: str, choices: int) -> str | None:
    """Return the letter before the first full stop or comma, upper case and without parentheses.

    `(A)`, `A)`, `A: cat` and `a` are undecided, which is why some models are near 0 under the circular protocol.
    """
    return _offered_letter(_first_clause(text), choices)


def _first_clause(text: str) -> str:
    return text.strip().split(".")[0].strip().split(",")[0].strip()


def _offered_letter(letter: str, choices: int) -> str | None:
    return letter if letter and letter in tuple(LETTERS[:choices]) else None
