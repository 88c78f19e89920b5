import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.base import Parsed
from hybrid.answers.yes_no import parse_yes_no


@pytest.mark.parametrize(
    ("text", "value", "rule"),
    [
        ("Yes", "yes", "only_word"),
        ("no.", "no", "only_word"),
        ("**NO**", "no", "only_word"),
        ("是", "yes", "only_word"),
        ("Yes, the man is smiling.", "yes", "first_clause"),
        ("No. There is no man.", "no", "first_clause"),
        ("The man is tall. So the answer is no.", "no", "announced"),
        ("There is no dog, and a cat.\nAnswer: yes", "yes", "announced"),
        ("Yes the man is smiling", "yes", "opening_word"),
        ("No there is none", "no", "opening_word"),
        ("No - he is not", "no", "opening_word"),
        ("He smiles, so I think so.\n\nYes.", "yes", "closing_word"),
        # MVP-Bench's own rule goes first, then what is announced, then how the reply opens.
        ("No. So the answer is yes.", "no", "first_clause"),
        ("No there is none, so the answer is yes", "yes", "announced"),
        ("Yes the man smiles.\nNo.", "yes", "opening_word"),
    ],
)
def test_reads(text: str, value: str, rule: str) -> None:
    parsed = parse_yes_no(text)
    assert (parsed.value, parsed.rule) == (value, rule)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "yes or no",
        "Unknown",
        "There is no cat here.",
        "No cat is on the mat",
        "Not sure",
        "A",
        "I'm sorry, I can't.",
    ],
)
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
