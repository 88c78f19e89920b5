"""Ways of saying one thing, by phenomenon: at least ten phrasings each that are read, and some that must not be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.letters import parse_letter

UNKNOWN = ("", "", "", "")
TWO = ("the second image", "the third image")
FOUR = ("the first image", "the second image", "the third image", "the fourth image")
POINTS = tuple(f"Point {c}" for c in "ABCD")
PICTURES = tuple(f"picture {c}" for c in "ABCD")
BOXES = ("Box A", "Box B")
SIDES = ("left", "right")
YES_NO = ("yes", "no")
NUMBERS = ("2", "3", "4", "1")
COLOURS = ("red", "green", "blue", "black")
DEPTH = ("A is closer", "B is closer")

DOUBT = "It is difficult to determine with certainty which image is most likely to be a real photograph."
OTHERS = "The other images may have been edited, making it more difficult to determine their authenticity."
CLEAR = "my assessment is that the third image is most likely to be a real photograph."


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        ("The answer is B, Point B.", POINTS, "B"),
        ("The answer is (D), picture D.", PICTURES, "D"),
        ("The answer is C, option C.", UNKNOWN, "C"),
        ("The answer is B, B.", UNKNOWN, "B"),
        ("I would choose (B), Point (B).", POINTS, "B"),
        ("So the answer is B, that is, point B or simply B.", POINTS, "B"),
        ("The correct choice is (B), and (B) alone.", UNKNOWN, "B"),
        ("Answer: C / C", UNKNOWN, "C"),
        ("答案是 B，B。", UNKNOWN, "B"),
        ("Die Antwort lautet B, Bild B.", UNKNOWN, "B"),
        ("The answer is A, Box A, since A is tighter.", BOXES, "A"),
        ("(C), option C", UNKNOWN, "C"),
    ],
)
def test_the_same_letter_is_no_second_option(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("The answer is B, Point C.", POINTS),
        ("The answer is B, Point B or Point C.", POINTS),
        ("The answer is (D), picture D, or (A).", PICTURES),
        ("The answer is B, B and C.", UNKNOWN),
        ("I would choose B or B or D.", UNKNOWN),
        ("The answer is the second image or the third image.", TWO),
        ("The answer is left or right.", SIDES),
        ("The answer is either left or right.", SIDES),
        ("Answer: the second image, or possibly the third image.", TWO),
        ("答案是 B 或者 C", UNKNOWN),
    ],
)
def test_another_letter_is_a_second_option(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("The correct answer is: (A)... (B)... (C)...", UNKNOWN),
        ("The correct answer is: (A) Point A (B) Point B (C) Point C (D) Point D", POINTS),
        ("The correct answer is:\n(A) yes\n(B) no", YES_NO),
        ("The correct answer is:\n\n(A) yes\n\n(B) no", YES_NO),
        ("The answer is (A) yes (B) no.", YES_NO),
        ("Answer: A. red B. green C. blue D. black", COLOURS),
        ("Answer: A) red, B) green, C) blue, D) black", COLOURS),
        ("The correct answer is: (A) red; (B) green; (C) blue; (D) black.", COLOURS),
        ("Choose: (A) 2 (B) 3 (C) 4 (D) 1", NUMBERS),
        ("The answer is:\nA. the second image\nB. the third image", TWO),
        ("The answer is: [A] left [B] right", SIDES),
        ("Answer: (A) (B) (C) (D)", UNKNOWN),
        ("(A) yes (B) no", YES_NO),
        ("A. red B. green C. blue D. black", COLOURS),
        ("The answer is (A) A is closer (B) B is closer", DEPTH),
        ("The correct answer is: (A) red\n(B) green", COLOURS[:2]),
        ("The answer is (A) a small dog (B) a large dog (C) a cat", UNKNOWN),
        ("The answer is (A) a (B) b (C) c (D) d (E) e (F) f (G) g (H) h", tuple("abcdefgh")),
    ],
)
def test_a_list_of_the_options_chooses_none(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        ("The answer is (A). (B) is too large.", UNKNOWN, "A"),
        ("The answer is (A) because (B) is wrong and (C) is, too.", UNKNOWN, "A"),
        ("The answer is (A) yes, because (B) would be odd.", YES_NO, "A"),
        ("The answer is A.\n\nA: red\nB: green\nC: blue", UNKNOWN, "A"),
        ("The options are: (A) yes (B) no. The answer is (B) no.", YES_NO, "B"),
        ("The correct answer is: (A) yes (B) no\n\nTherefore, the answer is (B).", YES_NO, "B"),
        ("The answer is (A) the second image. (B) shows a dog.", TWO, "A"),
        ("The answer is (B) no.", YES_NO, "B"),
        ("The answer is (B)... (C) and (D) are wrong.", UNKNOWN, "B"),
        ("The answer is (A)... as (B) and (C) are wrong.", UNKNOWN, "A"),
        ("The answer is (A) red. The blue (C) is behind it.", COLOURS, "A"),
        ("The answer is A\n\nA: red\nB: green\nC: blue", UNKNOWN, "A"),
        ("The answer is (A) yes (B) tail", YES_NO, "A"),
        ("The answer is (A) yes", ("yes",), "A"),
        ("The answer is (D) [(B) (C)]", UNKNOWN, "D"),
    ],
)
def test_other_options_behind_an_answer_do_not_make_it_a_list(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@given(st.integers(2, 4), st.sampled_from(["({}) ", "[{}] ", "{}. ", "{}) "]), st.sampled_from([" ", "\n", "; ", ", "]))
def test_no_list_of_all_options_is_an_answer(n: int, mark: str, gap: str) -> None:
    choices = COLOURS[:n]
    listed = gap.join(mark.format(letter) + text for letter, text in zip("ABCD", choices, strict=False))
    for text in (listed, f"The correct answer is: {listed}", f"The answer is:\n{listed}", f"Answer: {listed}."):
        assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        ("Without identifying any individuals, the third image is most likely the match.", TWO, "B"),
        ("I would say, without identifying any individuals, the third image is the best match.", TWO, "B"),
        ("Based on the edges, without naming anyone, the third image fits best.", TWO, "B"),
        ("The third image, without a doubt, is the most similar.", TWO, "B"),
        ("Without a doubt, Box A encloses the cat more accurately.", BOXES, "A"),
        ("Without any further context, the second image is the most likely one.", TWO, "A"),
        ("Box B fits the plane best without including any of the sky.", BOXES, "B"),
        ("Box B fits the plane best, without too much of the sky.", BOXES, "B"),
        ("There is no doubt that the third image is the most similar one.", TWO, "B"),
        ("No doubt the third image is the most similar one.", TWO, "B"),
        ("Based on these similar but different images, the third image is the most similar.", TWO, "B"),
        ("Of two similar but slightly different images, the second image is the better match.", TWO, "A"),
        ("Of two similar but not identical images the second image is the better match.", TWO, "A"),
        ("From small but clear differences, the third image is the best match.", TWO, "B"),
        ("A subtle but visible line makes the third image the best match.", TWO, "B"),
        ("In these related but distinct pictures, Point C matches the marked corner.", POINTS, "C"),
        ("The third image not only matches the colours of the first, it has its shapes.", TWO, "B"),
    ],
)
def test_what_only_sounds_like_a_negation(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("The second image is without the missing part.", TWO),
        ("The third image comes without the missing part.", TWO),
        ("The third image is not the most similar.", TWO),
        ("No, nothing makes the third image the most similar.", TWO),
        ("There is no way that the third image is the most similar.", TWO),
        ("The third image isn't the best match without the sky.", TWO),
        ("Without the dog, the third image is not the best match.", TWO),
        ("Neither the second image nor the third image is the best match.", TWO),
        ("Box A is too large to be the best fit.", BOXES),
        ("The third image is the least similar.", TWO),
    ],
)
def test_what_is_a_negation(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        ("The second image is most similar but the third image has its colours.", TWO, "A"),
        ("The second image is most similar but lacks the sky of the third image.", TWO, "A"),
        ("The second image is most similar, but slightly darker than the third image.", TWO, "A"),
        ("Box A fits best but Box B is close.", BOXES, "A"),
        ("Box A fits best but with less room than Box B.", BOXES, "A"),
        ("Box A fits best but close to it Box B is good.", BOXES, "A"),
        ("Unlike the other one, left fits best.", SIDES, "A"),
        ("The second image matches best, while the third image does not.", TWO, "A"),
        ("While the third image has a similar sky, the second image matches best.", TWO, "A"),
        ("Unlike the third image, the second image matches best.", TWO, "A"),
        ("The second image is more similar than the third image.", TWO, "A"),
        ("The second image matches best because the third image is darker.", TWO, "A"),
    ],
)
def test_what_is_set_against_a_claim_is_no_part_of_it(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        ("It's (A). Actually no, (B).", UNKNOWN, "B"),
        ("It's (A). Actually, no: (B).", UNKNOWN, "B"),
        ("It's (A). Actually, it's (B).", UNKNOWN, "B"),
        ("The answer is A. No wait, the answer is B.", UNKNOWN, "B"),
        ("The answer is A. Wait, no, it's B.", UNKNOWN, "B"),
        ("A... wait, B.", UNKNOWN, "B"),
        ("The answer is (A). Scratch that, (C).", UNKNOWN, "C"),
        ("The answer is (A). Correction: the answer is (D).", UNKNOWN, "D"),
        ("(A)\n\nOn second thought, (B).", UNKNOWN, "B"),
        ("I would choose (A). On reflection, I would choose (B).", UNKNOWN, "B"),
        ("I would choose A. Sorry, I mean B.", UNKNOWN, "B"),
        ("I would choose A - sorry, B.", UNKNOWN, "B"),
        ("Answer: A, or rather B.", UNKNOWN, "B"),
        ("It's A. My mistake: it's B.", UNKNOWN, "B"),
        ("The answer is (A). I was wrong. The answer is (B).", UNKNOWN, "B"),
        ("It's (A). No, (B).", UNKNOWN, "B"),
        ("It's A. No, it's B.", UNKNOWN, "B"),
        ("It's the second image. Actually no, the third image.", TWO, "B"),
        ("It's yes. Actually, no.", YES_NO, "B"),
        ("It's A. Actually, B is closer.", DEPTH, "B"),
        ("It's A. Wait, it's B. No, wait, it's C.", UNKNOWN, "C"),
        ("It's (A). Actually no, (B). Wait, the edges do fit.", UNKNOWN, "B"),
        ("It is A. Hold on, the box is cut off. The answer is B.", UNKNOWN, "B"),
    ],
)
def test_a_correction_outweighs_what_it_corrects(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(
    "text",
    [
        "It's (A). Actually no.",
        "The answer is A. Scratch that.",
        "The answer is A. No, wait.",
        "The answer is (B). I was wrong.",
        "The answer is (B). I made a mistake, the sky is grey.",
        "(B). My mistake.",
    ],
)
def test_what_is_taken_back_is_no_answer(text: str) -> None:
    assert parse_letter(text, UNKNOWN).value is None


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        ("The answer is (A). Actually, that sky is odd.", UNKNOWN, "A"),
        ("The answer is B. Wait for the next picture.", UNKNOWN, "B"),
        ("B is actually the answer: it's B.", UNKNOWN, "B"),
        ("Actually, the answer is A.", UNKNOWN, "A"),
        ("No, the cat is on the car.", YES_NO, "B"),
        ("No, it's behind the car.", YES_NO, "B"),
        ("The answer is (A). The third image would rather fit elsewhere.", TWO, "A"),
        ("The answer is B rather than A.", UNKNOWN, "B"),
        ("The answer is (A). Sorry for the long reply.", UNKNOWN, "A"),
        ("The correction of the colours shows it. The answer is (A).", UNKNOWN, "A"),
        ("The answer is (A). No other option fits.", UNKNOWN, "A"),
        ("The answer is (A). No, nobody else is there.", UNKNOWN, "A"),
    ],
)
def test_what_only_sounds_like_a_correction(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        # QwenVLMax, val_Forensic_Detection_77: the doubt is about the other images, the conclusion is clear.
        (f"{DOUBT} However, the third image appears to be the most realistic. {OTHERS} Therefore, {CLEAR}", FOUR, "C"),
        (f"{DOUBT} However, {CLEAR} The image shows a person.", FOUR, "C"),
        ("It's difficult to determine with certainty, but point B appears to be closer.", DEPTH, "B"),
        ("It is hard to tell. However, the third image is the most similar.", TWO, "B"),
        ("I cannot tell for sure. Still, Box A fits better.", BOXES, "A"),
        ("It is hard to say which is real. If I must choose, the fourth image is the most likely.", FOUR, "D"),
        ("It is impossible to determine this from pixels; however, point C is the best match.", POINTS, "C"),
        ("It is hard to say. I would say:\n\n(D) The fourth image is most likely real. It has noise.", FOUR, "D"),
        ("None of the images share its style. However, the third image is closer than the second image.", TWO, "B"),
        ("Neither image fits well. But the second image is the better match, although it is dark.", TWO, "A"),
        ("It is impossible to identify the people. That said, the third image is the best match.", TWO, "B"),
        ("It is challenging to decide. Given the light, the first image (A) is the most likely.", FOUR, "A"),
    ],
)
def test_a_conclusion_after_a_doubt_counts(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("The third image may be the most similar. However, it is impossible to say for certain.", TWO),
        ("The third image is the most similar, but I cannot determine it without seeing them.", TWO),
        ("It is hard to tell. However, the second image or the third image is the best match.", TWO),
        ("It is hard to tell. However, the third image is not the best match.", TWO),
        ("Neither the second nor the third image shares its style. Answer: (N/A).", TWO),
        ("It is hard to tell. The second image may match best. So it could be either (A) or (B).", TWO),
        ("It is hard to tell. However, similar to the second image, the soft light suggests staging. So be it.", TWO),
        ("It is impossible to determine. The images show boats.", TWO),
        ("Therefore, the third image matches best. Without more light, it is difficult to say.", TWO),
        ("Therefore, the third image matches best. It is difficult to say. The light is poor.", TWO),
        ("I cannot tell which box fits better.", BOXES),
        ("I'm sorry, but I can't help with this. The third image is the most similar.", TWO),
        ("Sorry, I am unable to see them. The third image is the most similar.", TWO),
    ],
)
def test_a_doubt_that_nothing_follows_declines(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("3 plates", "B"),
        ("3 plates.", "B"),
        ("three plates", "B"),
        ("Four", "C"),
        ("There are 3 plates.", "B"),
        ("There are three yellow stars on the colourful bridge.", "B"),
        ("There are six (6) nuggets. So there are 4 of them here.", "C"),
        ("I count 4 people in the water.", "C"),
        ("There is one dog.", "D"),
        ("There are 3 plates. All 3 are white.", "B"),
        ("On the left there are 2 plates and on the right 1. So there are 3 plates in total.", "B"),
        ("The picture shows 2 wooden beams on top of the person.", "A"),
        ("Answer: 3 plates", "B"),
    ],
)
def test_a_stated_number_is_the_choice_with_that_number(text: str, letter: str) -> None:
    assert parse_letter(text, NUMBERS).value == letter


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("5 plates", NUMBERS),
        ("3.5 plates", NUMBERS),
        ("10 plates", NUMBERS),
        ("3.5 plates", ("0", "1")),
        ("3.5 plates", ("3.5", "1")),
        ("There are 2 cats and 1 dog. I see 3 plates.", NUMBERS),
        ("There are 2 cats and 1 dog. So there are not 3 of them.", NUMBERS),
        ("So there are 2 cats and 1 dog. Thus 3 or 4 in all.", NUMBERS),
        ("2 or 3 plates", NUMBERS),
        ("There are 2 red plates and 1 blue plate.", NUMBERS),
        ("There are not 3 plates.", NUMBERS),
        ("I cannot tell whether there are 3 plates.", NUMBERS),
        ("3 plates", ("2 or 3", "4")),
        ("3 plates", ("3", "three", "4")),
        ("3 plates", UNKNOWN),
        ("3 plates", ("3", "a few")),
        ("The one on the left", NUMBERS),
        ("plates", NUMBERS),
    ],
)
def test_no_other_number_is_taken_for_a_choice(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@given(st.permutations(range(12)), st.sampled_from(["{} plates", "There are {} plates.", "I see {} of them in all."]))
def test_every_offered_number_is_read(order: list[int], form: str) -> None:
    choices = [str(n) for n in order[:4]]
    for letter, number in zip("ABCD", choices, strict=True):
        assert parse_letter(form.format(number), choices).value == letter
