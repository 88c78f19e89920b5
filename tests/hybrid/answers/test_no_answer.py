"""What names an answer and gives none: questions, lists of choices, guesses of others, words that are no number."""

import pytest

from hybrid.answers import parse
from hybrid.types import Kind

COLOURS = ("red", "green", "blue", "black")
PAIRS = ("red/green", "blue/yellow")
LETTERS = ("", "", "", "")


@pytest.mark.parametrize(
    ("text", "kind", "choices", "value"),
    [
        ("Is the answer A?", "choice", LETTERS, None),
        ("Could it be (B)?", "choice", LETTERS, None),
        ("Is the answer A? Hard to say.", "choice", LETTERS, None),
        ("Is the answer A? Yes.", "choice", LETTERS, "A"),
        ("Which one is it? The answer is C.", "choice", LETTERS, "C"),
        ("Is the answer red?", "choice", COLOURS, None),
        ("Is it red?", "choice", ("Is it red?", "Is it blue?"), "A"),
        ("Is the answer yes?", "yes_no", (), None),
        ("Is the answer 7?", "number", (), None),
        ("Is the order BA?", "order", ("", ""), None),
        ("Is it (12, 30)?", "point", (), None),
        ("red/green", "choice", COLOURS, None),
        ("The answer is red/green.", "choice", COLOURS, None),
        ("red, green", "choice", COLOURS, None),
        ("red / green", "choice", PAIRS, "A"),
        ("red/green, blue/yellow", "choice", PAIRS, None),
        ("red, not green", "choice", COLOURS, "A"),
        ("People guess 7", "integer", (), None),
        ("Some say the answer is 7, I count 5.", "integer", (), 5),
        ("Most people would pick (B).", "choice", LETTERS, None),
        ("People guess A but it is B.", "choice", LETTERS, "B"),
        ("Most people say A, and I agree.", "choice", LETTERS, "A"),
        ("I would most likely go with B.", "choice", LETTERS, "B"),
        ("sei bravo", "integer", (), None),
        ("sei gentile", "integer", (), None),
        ("sei cani", "integer", (), 6),
        ("Sei persone.", "integer", (), 6),
    ],
)
def test_what_gives_no_answer_is_not_read(text: str, kind: str, choices: tuple[str, ...], value: object) -> None:
    assert parse(text, Kind(kind), choices).value == value
