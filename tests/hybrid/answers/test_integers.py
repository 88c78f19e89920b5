import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.integers import numbers, parse_integer
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_reads"))
def test_reads(text: str, value: int) -> None:
    assert parse_integer(text).value == value


@pytest.mark.parametrize(*cases(__file__, "test_every_number_in_words"))
def test_every_number_in_words(word: str, value: int) -> None:
    for text in (word, word.title(), f"There are {word} dogs.", f"I see 2, or 3. Answer: {word}"):
        assert parse_integer(text).value == value


@pytest.mark.parametrize("prefix", ["no", "the", "this", "that", "each", "every", "which", "any"])
def test_one_may_be_a_pronoun(prefix: str) -> None:
    assert parse_integer(f"I mean {prefix} one there").value is None
    assert parse_integer(f"I mean {prefix} one there, and two others").value == 2


@pytest.mark.parametrize(*cases(__file__, "test_says_which_rule_fired"))
def test_says_which_rule_fired(text: str, rule: str) -> None:
    assert parse_integer(text).rule == rule


def test_a_count_has_nine_digits_at_most() -> None:
    assert parse_integer("999999999").value == 999_999_999
    assert parse_integer("1000000000").value is None
    assert parse_integer("1,000,000,000").value is None


def test_every_number_of_a_text() -> None:
    assert numbers("2 cats, 3.5 of them grey, five dogs, -1 and 1,2") == (2, None, 5, None, None)
    assert numbers("none") == ()


@given(st.integers(0, 10**9 - 1))
def test_every_count_is_read_back(n: int) -> None:
    for text in (str(n), f"{n}.", f"Answer: {n}", f"There are {n:,} objects.", f"{n}".translate(_WIDE)):
        assert parse_integer(text).value == n


_WIDE = {ord("0") + d: 0xFF10 + d for d in range(10)}
