import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.base import (
    READ_FIRST,
    READ_LAST,
    Parsed,
    answer_part,
    bare,
    denies_existence,
    first_match,
    normalise,
    plain,
    sentences,
    undecided,
    within_reach,
)
from tests.tables import cases


def test_a_value_goes_with_a_rule() -> None:
    assert undecided() == Parsed(None, "none")
    with pytest.raises(ValueError, match="does not match rule"):
        Parsed("A", "none")
    with pytest.raises(ValueError, match="does not match rule"):
        Parsed(None, "only_letter")


@pytest.mark.parametrize(*cases(__file__, "test_normalise"))
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize(*cases(__file__, "test_the_part_that_is_marked_as_the_answer"))
def test_the_part_that_is_marked_as_the_answer(text: str, expected: str) -> None:
    assert answer_part(text) == expected


@pytest.mark.parametrize(*cases(__file__, "test_one_sentence_denies_that_a_thing_is_there"))
def test_one_sentence_denies_that_a_thing_is_there(text: str, denied: bool) -> None:
    assert denies_existence(text) is denied


def test_of_a_long_reply_both_ends_are_read() -> None:
    full = "a" * READ_FIRST + "b" * READ_LAST
    assert within_reach(full) == full
    assert within_reach("x" * READ_FIRST + "." + "y" * READ_LAST) == "x" * READ_FIRST + "\n\n" + "y" * READ_LAST


def test_the_first_rule_that_decides_gives_its_name() -> None:
    def _never(text: str) -> str | None:
        return None

    def _always(text: str) -> str:
        return text

    assert first_match((_never, _always), "x") == Parsed("x", "always")
    assert first_match((_never,), "x") == undecided()


def test_plain_drops_latex() -> None:
    assert plain(r"\(\boxed{\text{B}}\)") == "B"
    assert plain('{"answer": "B"}') == '"answer": "B"'


def test_sentences_and_bare() -> None:
    assert sentences('One. "Two!" Three\nfour。五') == ("One.", '"Two!', "Three", "four。", "五")
    assert bare(" “Yes”. ".replace("“", '"').replace("”", '"')) == "yes"


@given(st.text())
def test_every_wrapping_reads_alike(text: str) -> None:
    expected = normalise(text)
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    for variant in (f" \n{text}\t", f"**{text}**", f"_{text}_", f"`{text}`", wide):
        assert normalise(variant) == expected


@pytest.mark.parametrize("piece", ["_", " _", "\n", " \n", "`", "<|", "</s", "#", "# ", "\\text", "*a"])
def test_long_texts_end(piece: str) -> None:
    assert isinstance(plain("x" + piece * (100_000 // len(piece)) + "x"), str)
