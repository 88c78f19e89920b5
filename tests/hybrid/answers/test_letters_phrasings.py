"""Ways of saying one thing, by phenomenon: at least ten phrasings each that are read, and some that must not be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.letters import parse_letter
from tests.tables import cases

UNKNOWN = ("", "", "", "")
NUMBERS = ("2", "3", "4", "1")
COLOURS = ("red", "green", "blue", "black")


@pytest.mark.parametrize(*cases(__file__, "test_the_same_letter_is_no_second_option"))
def test_the_same_letter_is_no_second_option(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(*cases(__file__, "test_another_letter_is_a_second_option"))
def test_another_letter_is_a_second_option(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(*cases(__file__, "test_a_list_of_the_options_chooses_none"))
def test_a_list_of_the_options_chooses_none(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(*cases(__file__, "test_other_options_behind_an_answer_do_not_make_it_a_list"))
def test_other_options_behind_an_answer_do_not_make_it_a_list(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@given(st.integers(2, 4), st.sampled_from(["({}) ", "[{}] ", "{}. ", "{}) "]), st.sampled_from([" ", "\n", "; ", ", "]))
def test_no_list_of_all_options_is_an_answer(n: int, mark: str, gap: str) -> None:
    choices = COLOURS[:n]
    listed = gap.join(mark.format(letter) + text for letter, text in zip("ABCD", choices, strict=False))
    for text in (listed, f"The correct answer is: {listed}", f"The answer is:\n{listed}", f"Answer: {listed}."):
        assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(*cases(__file__, "test_what_only_sounds_like_a_negation"))
def test_what_only_sounds_like_a_negation(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(*cases(__file__, "test_what_is_a_negation"))
def test_what_is_a_negation(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(*cases(__file__, "test_what_is_set_against_a_claim_is_no_part_of_it"))
def test_what_is_set_against_a_claim_is_no_part_of_it(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(*cases(__file__, "test_a_correction_outweighs_what_it_corrects"))
def test_a_correction_outweighs_what_it_corrects(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(*cases(__file__, "test_what_is_taken_back_is_no_answer"))
def test_what_is_taken_back_is_no_answer(text: str) -> None:
    assert parse_letter(text, UNKNOWN).value is None


@pytest.mark.parametrize(*cases(__file__, "test_what_only_sounds_like_a_correction"))
def test_what_only_sounds_like_a_correction(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(*cases(__file__, "test_a_conclusion_after_a_doubt_counts"))
def test_a_conclusion_after_a_doubt_counts(text: str, choices: tuple[str, ...], letter: str) -> None:
    assert parse_letter(text, choices).value == letter


@pytest.mark.parametrize(*cases(__file__, "test_a_doubt_that_nothing_follows_declines"))
def test_a_doubt_that_nothing_follows_declines(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@pytest.mark.parametrize(*cases(__file__, "test_a_stated_number_is_the_choice_with_that_number"))
def test_a_stated_number_is_the_choice_with_that_number(text: str, letter: str) -> None:
    assert parse_letter(text, NUMBERS).value == letter


@pytest.mark.parametrize(*cases(__file__, "test_no_other_number_is_taken_for_a_choice"))
def test_no_other_number_is_taken_for_a_choice(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


@given(st.permutations(range(12)), st.sampled_from(["{} plates", "There are {} plates.", "I see {} of them in all."]))
def test_every_offered_number_is_read(order: list[int], form: str) -> None:
    choices = [str(n) for n in order[:4]]
    for letter, number in zip("ABCD", choices, strict=True):
        assert parse_letter(form.format(number), choices).value == letter
