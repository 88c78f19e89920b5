"""Numbers with a sign, a fraction or an exponent, and the rule that reads each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.numbers import parse_number, value_of
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_a_number_and_its_rule"))
def test_a_number_and_its_rule(text: str, value: float, rule: str) -> None:
    number = parse_number(text)
    assert (number.value, number.rule) == (value, rule)


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
