"""Phrasings by phenomenon: for each, at least ten that must be read, and some that must not."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.letters import parse_letter
from tests.tables import every

UNKNOWN = ("", "", "", "")
NUMBERS = ("2", "3", "4", "1")
COLOURS = ("red", "green", "blue", "black")
# Choices for the tables whose rows state no choices.
CHOICES = {"what_is_taken_back_is_no_answer": UNKNOWN, "a_stated_number_is_the_choice_with_that_number": NUMBERS}


@pytest.mark.parametrize(("phenomenon", "row"), every(__file__))
def test_what_is_said_is_read_and_nothing_else(phenomenon: str, row: Mapping[str, Any]) -> None:
    choices = row["choices"] if "choices" in row else CHOICES[phenomenon]
    assert parse_letter(row["text"], choices).value == row.get("letter")


@given(st.integers(2, 4), st.sampled_from(["({}) ", "[{}] ", "{}. ", "{}) "]), st.sampled_from([" ", "\n", "; ", ", "]))
def test_no_list_of_all_options_is_an_answer(n: int, mark: str, gap: str) -> None:
    choices = COLOURS[:n]
    listing = gap.join(mark.format(letter) + text for letter, text in zip("ABCD", choices, strict=False))
    for text in (listing, f"The correct answer is: {listing}", f"The answer is:\n{listing}", f"Answer: {listing}."):
        assert parse_letter(text, choices).value is None


@given(st.permutations(range(12)), st.sampled_from(["{} plates", "There are {} plates.", "I see {} of them in all."]))
def test_every_offered_number_is_read(order: list[int], form: str) -> None:
    choices = [str(n) for n in order[:4]]
    for letter, number in zip("ABCD", choices, strict=True):
        assert parse_letter(form.format(number), choices).value == letter
