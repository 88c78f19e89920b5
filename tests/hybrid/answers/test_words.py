"""Answers of one or a few words: what a reply says, and when two answers are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.words import comparable, parse_text, same
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_case_articles_and_marks_are_left_out"))
def test_case_articles_and_marks_are_left_out(text: str, compared: str) -> None:
    assert comparable(text) == compared


def test_the_same_is_one_of_those_accepted() -> None:
    assert same("The dog.", ["cat", "dog"])
    assert not same("dog", ["cat"])
    assert not same("dog", [])
    assert not same("!", ["?"])
    assert not same("1.5", ["15"])
    assert same("1,500", ["1500"])


@pytest.mark.parametrize(*cases(__file__, "test_what_stands_behind_the_last_announcement_is_the_answer"))
def test_what_stands_behind_the_last_announcement_is_the_answer(text: str, answer: str | None, rule: str) -> None:
    result = parse_text(text)
    assert (result.value, result.rule) == (answer, rule)


@given(st.text("bcd ", min_size=1).filter(str.strip))
def test_case_articles_and_punctuation_do_not_count(text: str) -> None:
    assert same(f"The {text.upper()}!", [text])
