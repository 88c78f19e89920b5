import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.base import Parsed
from hybrid.answers.integers import numbers, parse_integer


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # HVSBench, Table 8.
        ("10", 10),
        ("“22”", 22),
        ("there is 1 sample", 1),
        ("three", 3),
        ("Five", 5),
        ("8.", 8),
        ("num of people in this image is 5", 5),
        ("There are five salient objects in the image: four boats and one flower.", 5),
        # More of what models write.
        ("There are 2 cats and 3 dogs.\nAnswer: 5", 5),
        ("the one on the left and two others", 2),
        ("1,200 people", 1200),
        ("1,234", 1234),
        ("Answer: 12,345,678", 12345678),
        ("There are 5, I think.", 5),
        ("There are 5, 6 of them large.\nAnswer: 5", 5),
        ("1,234,", 1234),
        ("It's 3. Actually no, 4.", 4),
        ("There are 3. Correction: 4.", 4),
        ("5. Wait, the answer is 6.", 6),
        ("There are 5. Actually, 2 of them are mirrored.", 5),
        ("5.0", 5),
        ("twenty-one", 21),
        ("thirty four birds", 34),
        ("有5个", 5),
        ("**0**", 0),
        ("zero", 0),
    ],
)
def test_reads(text: str, value: int) -> None:
    assert parse_integer(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "B",
        "GPT4",
        "no one",
        "-3",
        "3.5",
        "9" * 5000,
        "I'm sorry, I can't.",
        "someone",
        "weightless",
        # Commas set groups of three digits apart, and nothing else: a list is no count.
        "1,2,3",
        "1, 2, 3",
        "[1, 2, 3]",
        "12,34",
        "1,2345",
        "1,23",
        "1,234,5",
        "1234,567",
        ",123,4",
        "0,5",
        "Answer: 1,2,3",
        "There are 1,2,3 of them",
        "There are 5. Scratch that.",
    ],
)
def test_no_number_is_none(text: str) -> None:
    assert parse_integer(text).value is None


SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *((word, value) for value, word in enumerate(SMALL)),
        *((word, 20 + 10 * place) for place, word in enumerate(TENS)),
        *((f"{word}{gap}seven", 27 + 10 * place) for place, word in enumerate(TENS) for gap in "- "),
    ],
)
def test_every_number_in_words(word: str, value: int) -> None:
    for text in (word, word.title(), f"There are {word} dogs.", f"I see 2, or 3. Answer: {word}"):
        assert parse_integer(text).value == value


@pytest.mark.parametrize("before", ["no", "the", "this", "that", "each", "every", "which", "any"])
def test_one_may_be_a_pronoun(before: str) -> None:
    assert parse_integer(f"I mean {before} one there").value is None
    assert parse_integer(f"I mean {before} one there, and two others").value == 2


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("5", "only_number"),
        ("Five.", "only_number"),
        ("It's 5", "announced"),
        ("There are 4 red ones, so the answer is 5, I think; the answer is 6", "announced"),
        ("There are 5.", "first_number"),
        ("1, 2, 3", "none"),
    ],
)
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


@given(st.text() | st.text(alphabet="0123456789.,- eon\n"))
def test_never_raises(text: str) -> None:
    parsed = parse_integer(text)
    assert parsed.value is None or parsed.value >= 0
    for variant in (f"  {text}\n", f"**{text}**", f"_{text}_", f"`{text}`"):
        assert parse_integer(variant) == parsed


@pytest.mark.parametrize("piece", ["9", "1,", "1.", "-", "twenty ", "answer is ", "a1"])
def test_long_replies_end(piece: str) -> None:
    assert isinstance(parse_integer(piece * (100_000 // len(piece))), Parsed)
