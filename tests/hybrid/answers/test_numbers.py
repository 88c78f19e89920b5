"""Numbers with a sign, a fraction or an exponent, and the rule that reads each."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.numbers import parse_number, value_of


@pytest.mark.parametrize(
    ("text", "value", "rule"),
    [
        ("3.5", 3.5, "only"),
        ("-2 m", -2.0, "only"),
        ("−2", -2.0, "only"),
        ("12%", 12.0, "only"),
        ("1,234.5 kg", 1234.5, "only"),
        ("6e-3", 0.006, "only"),
        (".5", 0.5, "only"),
        ("It may be 3. Answer: 0.75", 0.75, "announced"),
        ("Answer: 1. No: the answer is 2 m, of 7", 2.0, "announced"),
        ("Left 3 m, right 4 m\n7.5", 7.5, "closing"),
        ("3 + 4 = 7 and 7 / 2 = 3.5 m", 3.5, "result"),
        ("seven", 7.0, "word"),
        ("The detector says 4. 5", 5.0, "only"),
        ("The wall has a length of 4.25 m.", 4.25, "single"),
        ("Both have 2 m, so 2 m.", 2.0, "single"),
    ],
)
def test_a_number_and_its_rule(text: str, value: float, rule: str) -> None:
    found = parse_number(text)
    assert (found.value, found.rule) == (value, rule)


@pytest.mark.parametrize("text", ["", "none", "3 m and 4 m.", "1.2.3", "9" * 40, "1e999"])
def test_what_is_no_number_or_several_is_none(text: str) -> None:
    assert parse_number(text).value is None


def test_the_value_of_a_written_number() -> None:
    assert value_of("−1,234.5") == -1234.5
    assert value_of("1e999") is None
    assert value_of("m") is None


@given(
    st.floats(-1e6, 1e6).map(lambda value: round(value, 4)),
    st.sampled_from(["{}", "Answer: {}", "It is {}.", "**{}**"]),
)
def test_a_written_number_is_read(value: float, form: str) -> None:
    assert parse_number(form.format(f"{value:.4f}")).value == value


@given(st.text(max_size=120))
def test_any_text_is_read_without_an_error(text: str) -> None:
    number = parse_number(text).value
    assert number is None or math.isfinite(number)
