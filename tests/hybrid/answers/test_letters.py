import json
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.base import Parsed
from hybrid.answers.letters import USUAL_LETTERS, parse_letter
from hybrid.types import LETTERS

UNKNOWN = ("", "", "", "")
TWO_IMAGES = ("the second image", "the third image")
FOUR_IMAGES = ("the first image", "the second image", "the third image", "the fourth image")
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
    "Forensic_Detection": FOUR_IMAGES,
    "Relative_Depth": DEPTH,
    "Relative_Reflectance": ("A is darker", "B is darker", "About the same"),
    "Object_Localization": BOXES,
    "Multi-view_Reasoning": SIDES,
    "Spatial_Relation": YES_NO,
    "IQ_Test": tuple(f"picture {c}" for c in "ABCD"),
    "Counting": UNKNOWN,
}

texts = st.text(max_size=200)
WORDS = ("no", "yes", "not", "whereas", "most", "or", "Point", "Answer:")
PIECES = (*WORDS, "A", "(B)", "C.", "D", ",", ".", "**", "_", "`", "（A）")
PHRASES = ("the answer is", "the third image", "is closer", "cannot determine", "I'm sorry", "\n", "\n\n")
wordy = st.lists(st.sampled_from((*PIECES, *PHRASES)), max_size=25).map(" ".join)
option_texts = st.lists(
    st.sampled_from(["", "A", "yes", "no", "the third image", "Point B", "3", "*", "("]), max_size=8
)


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        # HVSBench, Table 9.
        ("[A]", UNKNOWN, "A"),
        ("A.", UNKNOWN, "A"),
        ("So the result is B", UNKNOWN, "B"),
        ("A clock is a clock. So the answer is B", UNKNOWN, "B"),
        # Letters in the forms models write.
        ("A", UNKNOWN, "A"),
        ("b", UNKNOWN, "B"),
        ("(C)", UNKNOWN, "C"),
        ("（C）", UNKNOWN, "C"),
        ("<s> A", UNKNOWN, "A"),
        ("\u00a0D\u200b", UNKNOWN, "D"),
        ("$\\boxed{\\text{B}}$", UNKNOWN, "B"),
        ("```\nB\n```", UNKNOWN, "B"),
        ('{"answer": "C"}', UNKNOWN, "C"),
        ("<think>A or B? (A) looks right.</think>\n(B)", UNKNOWN, "B"),
        ("Point D", POINTS, "D"),
        ("Answer: (B)", UNKNOWN, "B"),
        ("Answer: B because it is nearer.", UNKNOWN, "B"),
        ("The correct choice would be:\n\n(C) Point C\n\nThis is because it is at the base.", POINTS, "C"),
        ("I would choose option (D).", UNKNOWN, "D"),
        ("I think it's B", UNKNOWN, "B"),
        ("The answer is A and (B) is wrong.", UNKNOWN, "A"),
        ("The answer is **B**, not A.", UNKNOWN, "B"),
        ("答案是 B", UNKNOWN, "B"),
        ("答案：B", UNKNOWN, "B"),
        # The languages that models fall into.
        ("Die Antwort lautet: A", UNKNOWN, "A"),
        ("Die Antwort lautet B, weil A falsch ist.", UNKNOWN, "B"),
        ("Antwort: B", UNKNOWN, "B"),
        ("Die richtige Option ist A", UNKNOWN, "A"),
        ("La respuesta es C", UNKNOWN, "C"),
        ("La respuesta correcta es la A.", UNKNOWN, "A"),
        ("La réponse est (D)", UNKNOWN, "D"),
        ("La bonne réponse est la B.", UNKNOWN, "B"),
        ("A resposta correta é B", UNKNOWN, "B"),
        ("La risposta è C", UNKNOWN, "C"),
        ("答案是 A", UNKNOWN, "A"),
        ("正确答案应该是B，因为A不对。", UNKNOWN, "B"),
        ("正解はBです", UNKNOWN, "B"),
        ("정답은 A입니다", UNKNOWN, "A"),
        # Letter and text together.
        ("**(A) the second image**", TWO_IMAGES, "A"),
        ("So, the answer is:\n\n**(B) the third image**", TWO_IMAGES, "B"),
        ("(B) no\n\nThe cat is facing the camera.", YES_NO, "B"),
        ("B. The third image has the same edges and the same colours as the first one does.", TWO_IMAGES, "B"),
        # The text of a choice without a letter.
        ("左", SIDES, "A"),
        ("right.", SIDES, "B"),
        ("The answer is the third image.", TWO_IMAGES, "B"),
        ("No, the car is above the cat.", YES_NO, "B"),
        ("The camera is moving to the right (clockwise) around the object.", SIDES, "B"),
        ("A is closer to the camera.", DEPTH, "A"),
        ("3", ("2", "3", "4", "1"), "B"),
        # Prose that claims one choice and sets it against another.
        ('The point labeled "REF" in the first image corresponds to point "C" in the second image.', POINTS, "C"),
        ("Box B more accurately encloses the bun. Box A, on the other hand, is too large.", BOXES, "B"),
        ("The second image (A) is most similar, whereas the third image (B) shows a cat.", TWO_IMAGES, "A"),
        ("The second image is most similar. The third image, on the other hand, is darker.", TWO_IMAGES, "A"),
        ("(A) first\n(B) second\n(C) third\n(D) fourth\n\nTherefore, point D is most likely to match.", POINTS, "D"),
        # The reply letters the images it saw, which are not the options; the text names one.
        ("The third image (C) is most similar to the first image (A).", TWO_IMAGES, "B"),
    ],
)
def test_reads_what_the_reply_says(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("", UNKNOWN),
        (" \n\u200b", UNKNOWN),
        ("(C)", TWO_IMAGES),
        ("Answer: D", TWO_IMAGES),
        ("Therefore, the answer is (C) cannot be determined.", TWO_IMAGES),
        ("I'm sorry, but I can't assist with that request.", YES_NO),
        ("I'm sorry, I can't provide assistance with these requests.", UNKNOWN),
        ("Failed to obtain answer via API.", POINTS),
        ("(A) x\n(B) y\n(C) z\n(D) w\n\nIt is impossible to determine which of them is real.", FOUR_IMAGES),
        ("Therefore, neither (A) the second image nor (B) the third image would be a match.", TWO_IMAGES),
        ("Therefore, the answer is (A) the second image or (B) the third image.", TWO_IMAGES),
        ("The answer is either (A), (B) or (C).", UNKNOWN),
        ("A clock is on the wall.", UNKNOWN),
        ("Based on the picture, there are things.", UNKNOWN),
        ("(A) yes\n(B) no", YES_NO),
        ("Definitely not (A).", UNKNOWN),
        ("The answers are A and C.", UNKNOWN),
        ("There are three stars on the bridge.", UNKNOWN),
        ("Die Antwort lautet: A oder B", UNKNOWN),
        ("Die Antwort lautet weder B noch C.", UNKNOWN),
        ("Die Antwort ist nicht B.", UNKNOWN),
        ("Antwort B ist falsch.", UNKNOWN),
        ("Answer B is wrong.", UNKNOWN),
        ("La respuesta es B o C", UNKNOWN),
        ("La réponse est B ou C", UNKNOWN),
        ("La réponse n'est pas B", UNKNOWN),
        ("答案是B或C", UNKNOWN),
        ("答案不是 A", UNKNOWN),
        ("Die Antwort lautet: D", TWO_IMAGES),
        ("A", ()),
    ],
)
def test_does_not_guess(text: str, choices: tuple[str, ...]) -> None:
    parsed = parse_letter(text, choices)
    assert (parsed.value, parsed.rule) == (None, "none")


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


@given(texts | wordy, option_texts)
def test_never_raises_and_gives_offered_letters_only(text: str, choices: list[str]) -> None:
    parsed = parse_letter(text, choices)
    assert parsed.value is None or parsed.value in USUAL_LETTERS[: len(choices)]
    assert (parsed.value is None) == (parsed.rule == "none")


@given(st.sampled_from(CHOICES["Forensic_Detection"] + POINTS + YES_NO + SIDES), st.integers(0, 3))
def test_a_reply_that_is_a_choice_is_that_choice(choice: str, place: int) -> None:
    choices = ["thing one", "thing two", "thing three"]
    choices.insert(place, choice)
    named = re.fullmatch("Point (.)", choice)
    assert parse_letter(choice, choices).value == (named[1] if named else USUAL_LETTERS[place])


@pytest.mark.parametrize(
    "piece", ["(", "(A", "A ", "the answer is ", "(A)\n", "_*`", "**(B)** or ", "Point ", "<", "not "]
)
def test_long_replies_end(piece: str) -> None:
    assert isinstance(parse_letter(piece * (100_000 // len(piece)), POINTS), Parsed)
    assert isinstance(parse_letter(piece * (100_000 // len(piece)) + "!", TWO_IMAGES), Parsed)


def _parquet_choices(folder: Path) -> dict[str, tuple[str, ...]]:
    files = sorted(folder.glob("*/val-*.parquet"))
    tables = [pq.read_table(file, columns=["idx", "choices"]).to_pylist() for file in files]
    return {row["idx"]: tuple(row["choices"]) for table in tables for row in table}


@pytest.mark.system
@pytest.mark.shared_data
def test_agrees_with_the_published_letters(shared_data: Path) -> None:
    real = _parquet_choices(shared_data / "blink")
    agree: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for model in MODELS:
        for task, fixed in CHOICES.items():
            for row in json.loads((shared_data / "blink_outputs" / model / f"{task}.json").read_text())["val"]:
                ours = parse_letter(row["full_prediction"] or "", real.get(row["idx"], fixed)).value or "Z"
                rows[model] += 1
                agree[model] += f"({ours})" == (row["prediction"] or "")[:3]
    assert set(rows.values()) == {1901}
    assert agree.total() / rows.total() >= 0.96
    assert all(agree[model] / rows[model] >= 0.95 for model in MODELS), agree
