"""Fuzz every parser of replies.

    uv run --with atheris python -m bench.fuzz answers [--seconds 300]

The first byte of an input chooses the kind of answer, the second the number of choices; the rest is the reply. No text
may raise, take long, or give an answer that was not offered.
"""

from __future__ import annotations

from hybrid import answers
from hybrid.answers import views
from hybrid.core.types import Kind, Scanpath
from hybrid.models import dialects
from hybrid.plugins.registry import load

KINDS = tuple(Kind)
CHOICES = ("yes", "no", "the left one", "2", "A", "is", "右", "The Cat (B)", "", "none of the above", "x" * 40, "left")
# Value of the first byte, modulo `OFFICIAL` + 2, that selects the official parsers of views. The next value selects the
# reader of calls in text.
OFFICIAL = len(KINDS)


def target(data: bytes) -> None:
    """Parse one reply. Raises `AssertionError` for an answer that was not offered, and whatever a parser raises."""
    if len(data) < 2:
        return
    which, text = data[0] % (OFFICIAL + 2), data[2:].decode("utf-8", "surrogateescape")
    if which == OFFICIAL:
        _official(text, data[1] % 6 + 1)
    elif which > OFFICIAL:
        dialects.read(text, (load("tools", "crop"),))
    else:
        _check(text, KINDS[which], CHOICES[: data[1] % (len(CHOICES) + 1)])


def _official(text: str, parts: int) -> None:
    views.official_views(text)
    views.official_continue(text)
    views.official_part(text)
    views.official_keep_shift(text, range(1, parts + 1))


def _check(text: str, kind: Kind, choices: tuple[str, ...]) -> None:
    value = answers.parse(text, kind, choices).value
    letters = "ABCDEFGHIJKL"[: len(choices)]
    if value is None:
        return
    if kind is Kind.CHOICE:
        sound = isinstance(value, str) and value in tuple(letters)
    elif kind is Kind.ORDER:
        sound = isinstance(value, str) and len(set(value)) == len(value) and set(value) <= set(letters)
    elif kind in (Kind.YES_NO, Kind.CONTINUE):
        sound = value in ("yes", "no")
    elif kind is Kind.INTEGER:
        sound = isinstance(value, int) and value >= 0
    elif kind is Kind.VIEWS:
        sound = isinstance(value, frozenset) and value <= set(range(1, (len(choices) or 4) + 1))
    elif kind is Kind.SCANPATH:
        sound = isinstance(value, Scanpath) and len(value.x) == len(value.y)
    else:
        sound = True
    assert sound, f"{kind}: {value!r}"[:200]  # noqa: S101
