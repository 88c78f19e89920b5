from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.base import Parsed
from hybrid.answers.orders import parse_order

FOUR = ("",) * 4


@pytest.mark.parametrize(
    ("text", "order"),
    [
        # HVSBench, Table 10.
        ("[A]", "A"),
        ("A.", "A"),
        ("D B C A", "DBCA"),
        ("the answer is only B", "B"),
        ("its A and B", "AB"),
        ("[A] and [C]", "AC"),
        ("The order between the A,B,C should be BCA", "BCA"),
        ("Between A,B,C, so the answer is BCA", "BCA"),
        # More of what models write.
        ("BCA", "BCA"),
        ("B > C > A", "BCA"),
        ("（Ｂ）, （Ａ）", "BA"),
        ("1. B\n2. (C) the dog\n3. A", "BCA"),
        ("Answer: BCA", "BCA"),
        ("A dog is most salient, so the order is C, then A, and B.", "CAB"),
        # An order in words.
        ("First B, then A, finally C", "BAC"),
        ("First B, then A, and finally C.", "BAC"),
        ("Firstly B, secondly A, thirdly C.", "BAC"),
        ("First: B. Second: A. Third: C.", "BAC"),
        ("First is B, second is A, third is C", "BAC"),
        ("The first is B, the second is A and the last is C.", "BAC"),
        ("B first, then A, then C", "BAC"),
        ("B, followed by A, followed by C", "BAC"),
        ("B is the most salient, followed by A and then C.", "BAC"),
        ("B, next A, lastly C", "BAC"),
        ("B before A before C", "BAC"),
        ("B comes before A, ahead of C", "BAC"),
        ("B, after that A, after that C", "BAC"),
        ("First comes B, then comes A, and last comes C.", "BAC"),
        ("First the dog (B), then the red cat (A), finally the tree (C).", "BAC"),
        ("B (the dog), then A (the cat), finally C (the tree)", "BAC"),
        ("I look at B first, A second and C third.", "BAC"),
        ("A is second, C is third, and B is first.", "BAC"),
        ("C is last, B is first, A is second", "BAC"),
        ("First B, then A, finally C. So B stands out most.", "BAC"),
        ("The order is first B, then A, finally C", "BAC"),
        ("The answer is B, then A, followed by C", "BAC"),
        ("The answer is B first, then A, finally C", "BAC"),
        ("First B\nSecond A\nThird C", "BAC"),
        ("ABC. Actually no, BAC.", "BAC"),
        ("The answer is ABC. Wait, the answer is BAC.", "BAC"),
        ("First A, then B. The answer is BA.", "BA"),
        ("1. B\n2. C\nThe answer is A", "BC"),
        ("A is first and B is second. The answer is BA.", "BA"),
        ("A is first and B is second: B, then A", "AB"),
        ("1. B\n\n2. A", "BA"),
        ("B is second, X is first.", "B"),
        ("Both (A) the second image and (C) fit, but (B)", "B"),
    ],
)
def test_reads(text: str, order: str) -> None:
    assert parse_order(text, FOUR).value == order


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "ABA",
        "BXA?",
        "E",
        "D E A",
        "A dog is salient",
        "I'm sorry, I can't.",
        "BADGE",
        "First B, then A, then B",
        "First B, then A, then E",
        "B first, A first",
        "E is first, A is second.",
        "A first one, then a dog, then a cat",
        "BAC. Scratch that.",
    ],
)
def test_does_not_guess(text: str) -> None:
    assert parse_order(text, FOUR).value is None


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
SHORT = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")


@pytest.mark.parametrize("words", [ORDINALS, SHORT, tuple(word.upper() for word in ORDINALS)])
@pytest.mark.parametrize("form", ["{} is {}", "{} comes {}", "{} goes {}", "{} ranks {}", "{} is the {}", "({}) {}"])
def test_every_place(words: tuple[str, ...], form: str) -> None:
    said = [form.format(letter, word) for letter, word in zip("HGFEDCBA", words, strict=True)]
    for text in (", ".join(said), ", ".join(reversed(said)), ".\n".join(said)):
        assert parse_order(text, ("",) * 8).value == "HGFEDCBA"
    assert parse_order(f"{form.format('A', 'last')}, {said[-3]}, {said[-2]}", ("",) * 8).value == "CBA"


@pytest.mark.parametrize("ordinal", ORDINALS[1:])
@pytest.mark.parametrize("form", ["first B, {} A", "first B, {}ly A", "first B, the {} is A", "First B. {}: A."])
def test_every_ordinal_leads_to_a_label(ordinal: str, form: str) -> None:
    parsed = parse_order(form.format(ordinal), FOUR)
    assert (parsed.value, parsed.rule) == ("BA", "in_words")


@pytest.mark.parametrize(
    "link",
    [
        "then", "next", "afterwards", "after that", "followed by", "before", "ahead of", "last", "finally", "lastly",
        "and then", "and the last is", "then comes", "then goes", "then the object", "then the box",
        "then the item", "then the most salient one", "next,", "next is an object", "followed by the", "next place:",
    ],
)  # fmt: skip
def test_every_word_that_leads_to_a_label(link: str) -> None:
    for text in (f"B {link} A", f"B, {link} A", f"B (the dog), {link} A", f"B is the most salient, {link} A"):
        assert parse_order(text, FOUR).value == "BA"
    assert parse_order(f"I see B, {link} A.", FOUR).rule == "in_words"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("BCA", "only_letters"),
        ("1. B\n2. A", "numbered_lines"),
        ("So the answer is BCA.", "announced"),
        ("The order is BCA.", "announced"),
        ("The order should be BCA.", "announced"),
        ("My order: BCA.", "announced"),
        ("B is first, A is second.", "with_places"),
        ("I see B, then A.", "in_words"),
        ("its A and B", "last_letters"),
        ("1. B\n3. A", "last_letters"),
        ("2. B\n3. A", "last_letters"),
        ("B, and in the middle of all that lies there, then, with its tail, A", "last_letters"),
    ],
)
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


@given(st.text() | st.text(alphabet="ABCDE ,.[]()>and\n1234"), st.integers(0, 8))
def test_never_raises(text: str, n: int) -> None:
    parsed = parse_order(text, ("",) * n)
    assert parsed.value is None or (
        set(parsed.value) <= set("ABCDEFGH"[:n]) and len(set(parsed.value)) == len(parsed.value)
    )
    for variant in (f"  {text}\n", f"**{text}**", f"_{text}_", f"`{text}`"):
        assert parse_order(variant, ("",) * n) == parsed


@pytest.mark.parametrize("piece", ["A", "A ", "[A", "A,", "A and ", "(((", "1. A\n", ">>", "order: "])
def test_long_replies_end(piece: str) -> None:
    assert isinstance(parse_order(piece * (100_000 // len(piece)) + "x", FOUR), Parsed)
