from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.orders import parse_order
from tests.tables import cases

FOUR = ("",) * 4


@pytest.mark.parametrize(*cases(__file__, "test_reads"))
def test_reads(text: str, order: str) -> None:
    assert parse_order(text, FOUR).value == order


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
SHORT = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")


@pytest.mark.parametrize("words", [ORDINALS, SHORT, tuple(word.upper() for word in ORDINALS)])
@pytest.mark.parametrize("form", ["{} is {}", "{} comes {}", "{} goes {}", "{} ranks {}", "{} is the {}", "({}) {}"])
def test_every_place(words: tuple[str, ...], form: str) -> None:
    texts = [form.format(letter, word) for letter, word in zip("HGFEDCBA", words, strict=True)]
    for text in (", ".join(texts), ", ".join(reversed(texts)), ".\n".join(texts)):
        assert parse_order(text, ("",) * 8).value == "HGFEDCBA"
    assert parse_order(f"{form.format('A', 'last')}, {texts[-3]}, {texts[-2]}", ("",) * 8).value == "CBA"


@pytest.mark.parametrize("ordinal", ORDINALS[1:])
@pytest.mark.parametrize("form", ["first B, {} A", "first B, {}ly A", "first B, the {} is A", "First B. {}: A."])
def test_every_ordinal_leads_to_a_label(ordinal: str, form: str) -> None:
    parsed = parse_order(form.format(ordinal), FOUR)
    assert (parsed.value, parsed.rule) == ("BA", "in_words")


@pytest.mark.parametrize(*cases(__file__, "test_every_word_that_leads_to_a_label"))
def test_every_word_that_leads_to_a_label(link: str) -> None:
    for text in (f"B {link} A", f"B, {link} A", f"B (the dog), {link} A", f"B is the most salient, {link} A"):
        assert parse_order(text, FOUR).value == "BA"
    assert parse_order(f"I see B, {link} A.", FOUR).rule == "in_words"


@pytest.mark.parametrize(*cases(__file__, "test_says_which_rule_fired"))
def test_says_which_rule_fired(text: str, rule: str) -> None:
    assert parse_order(text, FOUR).rule == rule


def test_eight_choices_are_not_too_many() -> None:
    assert parse_order("H", ("",) * 8).value == "H"


def test_only_offered_letters() -> None:
    assert parse_order("BCA", ("", "")).value is None
    assert parse_order("A", ()).value is None
    with pytest.raises(ValueError, match="27 choices"):
        parse_order("A", ("",) * 27)


@given(
    st.sampled_from([p for n in range(1, 5) for p in permutations("ABCD", n)]),
    st.sampled_from(["", " ", ", ", " > ", "->"]),
)
def test_every_order_is_read_back(order: tuple[str, ...], gap: str) -> None:
    for text in (gap.join(order), f"So the answer is {gap.join(order)}.", f"**{gap.join(order)}**"):
        assert parse_order(text, FOUR).value == "".join(order)
