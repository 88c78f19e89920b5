import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.base import Parsed, bare, normalise, plain, sentences, undecided


def test_a_value_goes_with_a_rule() -> None:
    assert undecided() == Parsed(None, "none")
    with pytest.raises(ValueError, match="does not go with rule"):
        Parsed("A", "none")
    with pytest.raises(ValueError, match="does not go with rule"):
        Parsed(None, "only_letter")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("（Ｃ）", "(C)"),
        ("<s> A</s>", "A"),
        ("B<|im_end|>", "B"),
        ("**(A)** the *second*  image", "(A) the second image"),
        ("_left_", "left"),
        ("an _italic_ snake_case word", "an italic snake_case word"),
        ("a\u200bb\u00a0c", "ab c"),
        ("```json\n{}\n```", "{}"),
        ("### Answer\r\n\r\n\r\n\r\nB", "Answer\n\nB"),
        ("“yes”", '"yes"'),
        ("<think>no</think> yes", "yes"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


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
