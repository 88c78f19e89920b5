"""Option rotation moves the options, but neither the picture nor the right option; consistency compares options, not
letters.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.option_rotation import rotated, unrotated_note, with_rotations
from hybrid.core.types import LETTERS, Kind, Outcome, Question, Score
from hybrid.scoring.score import rotation_metrics
from tests.tables import cases

WORDS = st.lists(st.from_regex(r"[a-z]{3,8} [a-z]{1,5}", fullmatch=True), min_size=2, max_size=6, unique=True)
FORMS = st.sampled_from(["({letter}) {words}", "{letter}. {words}", "[{letter}] {words}"])


def make_question(
    words: list[str], form: str = "({letter}) {words}", right: int = 0, target: str = "({letter})"
) -> Question:
    rendered = "\n".join(form.format(letter=letter, words=text) for letter, text in zip(LETTERS, words, strict=False))
    return Question(
        "val_Counting_1",
        "Counting",
        (),
        f"How many are there?\n{rendered}",
        Kind.CHOICE,
        tuple(words),
        target.format(letter=LETTERS[right]),
    )


@pytest.mark.system
@given(WORDS, FORMS, st.data(), st.sampled_from(["({letter})", "{letter}"]))
def test_the_right_words_stay_right(words: list[str], form: str, data: st.DataObject, target: str) -> None:
    right, places = data.draw(st.integers(0, len(words) - 1)), data.draw(st.integers(1, len(words) - 1))
    question = make_question(words, form, right, target)
    rotated_question = rotated(question, places)
    assert rotated_question is not None
    assert rotated_question.choices == tuple(words[places:] + words[:places])
    assert rotated_question.choices[LETTERS.index(str(rotated_question.target).strip("()"))] == words[right]
    assert rotated_question.text == make_question(list(rotated_question.choices), form).text
    assert (rotated_question.id, rotated_question.base, rotated_question.unit) == (
        f"{question.id}#r{places}",
        question.id,
        question.unit,
    )


@given(WORDS, FORMS)
def test_all_rotations_together_put_every_option_at_every_letter_once(words: list[str], form: str) -> None:
    question = make_question(words, form)
    variants = with_rotations([question], ["Counting"])
    assert variants[0] is question
    items = [variant.choices for variant in variants if isinstance(variant, Question)]
    seen = {pair for choices in items for pair in zip(LETTERS, choices, strict=False)}
    assert len(variants) == len(words)
    assert len(seen) == len(words) ** 2


@pytest.mark.parametrize(*cases(__file__, "test_a_text_that_does_not_show_each_option_once_and_in_order_is_excluded"))
def test_a_text_that_does_not_show_each_option_once_and_in_order_is_excluded(text: str) -> None:
    assert rotated(Question("q", "t", (), text, Kind.CHOICE, ("one", "two"), "(A)"), 1) is None


def test_a_target_that_is_no_letter_names_its_option_by_itself() -> None:
    rotated_question = rotated(Question("q", "t", (), "(A) one (B) two", Kind.CHOICE, ("one", "two"), "two"), 1)
    assert rotated_question is not None
    assert rotated_question.target == "two"


def scores(question: Question, answers: list[str | None]) -> tuple[dict[str, Question], list[Score]]:
    """Return the scores of a solver that gives these letters, for the question and its rotations in order."""
    variants = [rotation for rotation in with_rotations([question], ["Counting"]) if isinstance(rotation, Question)]
    results = []
    for variant, answer in zip(variants, answers, strict=True):
        right = float(f"({answer})" == variant.target)
        outcome = Outcome.ANSWERED if answer else Outcome.UNPARSED
        results.append(Score(variant.id, "Counting", right, outcome, answer, cluster=variant.cluster))
    return {variant.id: variant for variant in variants}, results


def values(questions: dict[str, Question], result: list[Score]) -> dict[str, Any]:
    return {metric.name.removeprefix("rotation."): metric.value for metric in rotation_metrics(questions, result)}


QUESTION = make_question(["one", "two", "three"], right=1)


@pytest.mark.parametrize(*cases(__file__, "test_consistency_is_of_options_and_not_of_letters", list))
def test_consistency_is_of_options_and_not_of_letters(
    answers: list[str | None], accuracy: float, consistency: float, all_correct: float
) -> None:
    result = values(*scores(QUESTION, answers))
    says = {letter: result.pop(f"says.{letter}") for letter in "ABC"}
    assert says == {letter: pytest.approx(answers.count(letter) / 3) for letter in "ABC"}
    assert result == {
        "accuracy": pytest.approx(accuracy),
        "consistency": consistency,
        "all_correct": all_correct,
        "excluded": 0.0,
    }


def test_questions_without_rotations_are_counted_as_excluded() -> None:
    questions, result = scores(QUESTION, ["B", "A", "C"])
    alone = Score("other", "Jigsaw", 1.0, Outcome.ANSWERED, "A")
    text = values(questions, [*result, alone])
    assert (text["excluded"], text["excluded_in.Jigsaw"], "excluded_in.Counting" in text) == (1.0, 1.0, False)
    assert unrotated_note([*questions.values(), make_question(["no", "more"])]) == ()
    other = Question("other", "Jigsaw", (), "Which?", Kind.CHOICE, ("x", "y"), "(A)")
    assert unrotated_note([*questions.values(), other]) == (
        "--rotate: 1 of Jigsaw have no options to rotate and are asked once",
    )
    assert rotation_metrics({}, [alone]) == ()


def test_options_that_the_dialogue_writes_are_moved_without_the_text() -> None:
    question = Question("av1", "t", (), "What is there?", Kind.CHOICE, ("x", "y", "z"), {"answer": "B", "views": [1]})
    rotated_question = rotated(question, 2, in_text=False)
    assert rotated_question is not None
    assert (rotated_question.text, rotated_question.choices) == (question.text, ("z", "x", "y"))
    assert rotated_question.target == {"answer": "C", "views": [1]}
