"""Texts that mention an answer and give none: questions, lists of choices, guesses about others, words for numbers."""

import pytest

from hybrid.answers import parse
from hybrid.core.types import Kind
from tests.tables import cases

COLOURS = ("red", "green", "blue", "black")
PAIRS = ("red/green", "blue/yellow")
LETTERS = ("", "", "", "")


@pytest.mark.parametrize(*cases(__file__, "test_what_gives_no_answer_is_not_read"))
def test_what_gives_no_answer_is_not_read(text: str, kind: str, choices: tuple[str, ...], value: object) -> None:
    assert parse(text, Kind(kind), choices).value == value
