import json
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.letters import USUAL_LETTERS, parse_letter
from hybrid.core.types import LETTERS
from tests.tables import cases

UNKNOWN = ("", "", "", "")
TWO_IMAGES = ("the second image", "the third image")
POINTS = tuple(f"Point {c}" for c in "ABCD")
BOXES = ("Box A", "Box B")
SIDES = ("left", "right")
YES_NO = ("yes", "no")
DEPTH = ("A is closer", "B is closer")
MODELS = ("GPT4V", "GPT4o", "QwenVLMax", "llava-v1.6-34b")

# BLINK's fixed wording; the answer texts of Counting are not in the published outputs.
CHOICES = {
    **dict.fromkeys(("Visual_Similarity", "Jigsaw", "Art_Style"), TWO_IMAGES),
    **dict.fromkeys(("Visual_Correspondence", "Semantic_Correspondence", "Functional_Correspondence"), POINTS),
    "Forensic_Detection": ("the first image", "the second image", "the third image", "the fourth image"),
    "Relative_Depth": DEPTH,
    "Relative_Reflectance": ("A is darker", "B is darker", "About the same"),
    "Object_Localization": BOXES,
    "Multi-view_Reasoning": SIDES,
    "Spatial_Relation": YES_NO,
    "IQ_Test": tuple(f"picture {c}" for c in "ABCD"),
    "Counting": UNKNOWN,
}


@pytest.mark.parametrize(*cases(__file__, "test_reads_what_the_reply_says"))
def test_reads_what_the_reply_says(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(*cases(__file__, "test_does_not_guess"))
def test_does_not_guess(text: str, choices: tuple[str, ...]) -> None:
    parsed = parse_letter(text, choices)
    assert (parsed.value, parsed.rule) == (None, "none")


@pytest.mark.parametrize(
    "form", ["{} ({})", "{} ({}).", "{} - {}", "{}, {}", "Option {} ({})", "{} [{}]", "**{}** ({})"]
)
def test_a_letter_with_its_own_text_is_that_letter(form: str) -> None:
    for choices in (("yes", "no"), ("both", "neither", "none"), ("0", "1", "2"), ("the left one", "the right one")):
        for letter, choice in zip("ABC", choices, strict=False):
            assert parse_letter(form.format(letter, choice), choices).value == letter
            other = choices[1] if choice == choices[0] else choices[0]
            assert parse_letter(form.format(letter, other), choices).rule != "closing_option"


def test_says_which_rule_fired() -> None:
    assert parse_letter("(B)", UNKNOWN).rule == "only_letter"
    assert parse_letter("the third image", TWO_IMAGES).rule == "only_choice"
    assert parse_letter("So the answer is B, I think.", UNKNOWN).rule == "announced_letter"


def test_letters_may_stand_for_choice_texts_and_be_renamed() -> None:
    assert parse_letter("The answer is B", ("A", "B", "C")).value == "B"
    assert parse_letter("(Q)", ("one", "two"), letters="PQR").value == "Q"
    assert parse_letter("(R)", ("one", "two"), letters="PQR").value is None


def test_more_choices_than_letters_is_an_error() -> None:
    with pytest.raises(ValueError, match="27 choices, but only 26 letters"):
        parse_letter("A", ("",) * 27)
    with pytest.raises(ValueError, match="9 choices, but only 8 letters"):
        parse_letter("A", ("",) * 9, letters=LETTERS[:8])


@given(st.sampled_from(CHOICES["Forensic_Detection"] + POINTS + YES_NO + SIDES), st.integers(0, 3))
def test_a_reply_that_is_a_choice_is_that_choice(choice: str, place: int) -> None:
    choices = ["thing one", "thing two", "thing three"]
    choices.insert(place, choice)
    match = re.fullmatch("Point (.)", choice)
    assert parse_letter(choice, choices).value == (match[1] if match else USUAL_LETTERS[place])


@pytest.mark.system
@pytest.mark.shared_data
def test_agrees_with_the_published_letters(shared_data: Path) -> None:
    files = sorted((shared_data / "blink").glob("*/val-*.parquet"))
    tables = [pq.read_table(file, columns=["idx", "choices"]).to_pylist() for file in files]
    real = {row["idx"]: tuple(row["choices"]) for table in tables for row in table}
    agree: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for model in MODELS:
        for task, fixed in CHOICES.items():
            for row in json.loads((shared_data / "blink_outputs" / model / f"{task}.json").read_text())["val"]:
                value = parse_letter(row["full_prediction"] or "", real.get(row["idx"], fixed)).value or "Z"
                rows[model] += 1
                agree[model] += f"({value})" == (row["prediction"] or "")[:3]
    assert set(rows.values()) == {1901}
    assert agree.total() / rows.total() >= 0.96
    assert all(agree[model] / rows[model] >= 0.95 for model in MODELS), agree
