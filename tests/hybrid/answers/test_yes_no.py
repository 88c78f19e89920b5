import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.base import Parsed
from hybrid.answers.yes_no import parse_yes_no
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_reads"))
def test_reads(text: str, value: str, rule: str) -> None:
    parsed = parse_yes_no(text)
    assert (parsed.value, parsed.rule) == (value, rule)


@pytest.mark.parametrize(*cases(__file__, "test_does_not_guess"))
def test_does_not_guess(text: str) -> None:
    assert parse_yes_no(text).value is None


@given(st.text() | st.lists(st.sampled_from(["yes", "no", "the", "answer is", ",", ".", "\n", "or"])).map(" ".join))
def test_never_raises(text: str) -> None:
    parsed = parse_yes_no(text)
    assert parsed.value in ("yes", "no", None)
    for variant in (f"  {text}\n", f"**{text}**", f"_{text}_", f"`{text}`"):
        assert parse_yes_no(variant) == parsed


@pytest.mark.parametrize("piece", ["no ", "yes,", "answer is ", ". ", "\n"])
def test_long_replies_end(piece: str) -> None:
    assert isinstance(parse_yes_no(piece * (100_000 // len(piece))), Parsed)
