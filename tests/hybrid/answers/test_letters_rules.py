"""Each letter rule by name: the replies that only it reads, the order of neighbouring rules, and every word that it
knows."""

import pytest

from hybrid.answers._letter_claims import CLAIM_RULES
from hybrid.answers._letter_clauses import CLAUSE_RULES
from hybrid.answers._letter_reasons import reasoned_letter
from hybrid.answers._letter_rules import EXPLICIT_RULES
from hybrid.answers.letters import parse_letter
from tests.tables import cases

TWO = ("the second image", "the third image")
BOXES = ("Box A", "Box B")


# Replies with the only rule that reads them as they should be read: without it the value or the rule differs.
READS = cases(__file__, "READS")[1]


@pytest.mark.parametrize(("text", "choices", "letter", "rule"), READS)
def test_what_each_rule_reads(text: str, choices: tuple[str, ...], letter: str, rule: str) -> None:
    parsed = parse_letter(text, choices)
    assert (parsed.value, parsed.rule) == (letter, rule)


def test_no_rule_is_without_an_example() -> None:
    assert {rule for *_, rule in READS} == {
        rule.__name__ for rule in (*EXPLICIT_RULES, reasoned_letter, *CLAUSE_RULES, *CLAIM_RULES)
    }


@pytest.mark.parametrize(*cases(__file__, "test_of_two_rules_the_more_explicit_goes_first"))
def test_of_two_rules_the_more_explicit_goes_first(text: str, choices: tuple[str, ...], letter: str, rule: str) -> None:
    parsed = parse_letter(text, choices)
    assert (parsed.value, parsed.rule) == (letter, rule)


@pytest.mark.parametrize(*cases(__file__, "test_what_no_rule_reads"))
def test_what_no_rule_reads(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


def test_clauses_are_weighed_in_up_to_200_characters() -> None:
    """Clauses are weighed only in texts of up to 200 characters: in a longer text their meaning also depends on
    neighbours."""
    wall = "There is a table beside the wall. " * 7
    for start, filler, end in (
        ("", wall, ". Not A; B."),
        ("The side is right, not left as in ", "what is seen " * 20, "."),
    ):
        for length, letter in ((200, "B"), (201, None)):
            text = start + filler[: length - len(start + end)] + end
            assert (len(text), parse_letter(text, ("left", "right")).value) == (length, letter)


@pytest.mark.parametrize(*cases(__file__, "test_every_way_to_decline"))
def test_every_way_to_decline(sentence: str) -> None:
    claim = "The third image is the most similar."
    assert parse_letter(f"{claim} {sentence}", TWO).value is None
    assert parse_letter(f"{claim} {sentence} That is how it is.", TWO).value is None
    assert parse_letter(f"{claim} {sentence} That is it. It is so.", TWO).value == "B"
    assert parse_letter(f"{sentence} But {claim}", TWO).value in ("B", None)


@pytest.mark.parametrize(*cases(__file__, "test_an_apology_at_the_start_or_several_answers_decline"))
def test_an_apology_at_the_start_or_several_answers_decline(text: str) -> None:
    assert parse_letter(text, TWO).value is None


@pytest.mark.parametrize(*cases(__file__, "test_an_apology_elsewhere_does_not_decline"))
def test_an_apology_elsewhere_does_not_decline(text: str) -> None:
    assert parse_letter(f"{text} It has oars.", TWO).value in ("B", None)
    assert parse_letter(f"The third image is the closest. {text} It has oars.", TWO).value == "B"


@pytest.mark.parametrize(*cases(__file__, "test_every_predicate_of_a_claim"))
def test_every_predicate_of_a_claim(predicate: str) -> None:
    assert parse_letter(f"The third image {predicate}.", TWO).value == "B"
    assert parse_letter(f"The third image {predicate}, and it is not.", TWO).value is None


@pytest.mark.parametrize(*cases(__file__, "test_every_word_that_opens_a_conclusion"))
def test_every_word_that_opens_a_conclusion(opening: str) -> None:
    text = f"The second image is the most similar at first. {opening} the third image is the best match. It has sails."
    assert parse_letter(text, TWO).rule == "concluding_claim"
    assert parse_letter(text, TWO).value == "B"


@pytest.mark.parametrize(*cases(__file__, "test_every_denial"))
def test_every_denial(denial: str) -> None:
    assert parse_letter(f"The third image {denial}.", TWO).value is None


@pytest.mark.parametrize(*cases(__file__, "test_every_contrast"))
def test_every_contrast(contrast: str) -> None:
    assert parse_letter(f"Box A fits best {contrast.format('Box B')}.", BOXES).value == "A"
    assert parse_letter(f"Box A fits best {contrast.format('Box B').upper()}.", BOXES).value == "A"


@pytest.mark.parametrize(*cases(__file__, "test_every_contrast_that_leads"))
def test_every_contrast_that_leads(contrast: str) -> None:
    assert parse_letter(f"{contrast} Box B that is too small, Box A fits best.", BOXES).value == "A"


@pytest.mark.parametrize("verb", ["is", "are", "was", "were", "be", "comes"])
def test_a_predicate_with_without_denies(verb: str) -> None:
    assert parse_letter(f"Box A {verb} without the best part.", BOXES).value is None
    assert parse_letter(f"Box A {verb} the best, without the rest.", BOXES).value == "A"


@pytest.mark.parametrize("phrase", ["There is no doubt that", "There is no doubt", "No doubt", "No doubt that"])
def test_no_doubt_is_no_denial(phrase: str) -> None:
    assert parse_letter(f"{phrase} Box A fits best.", BOXES).value == "A"


def test_no_less_than_and_not_only_are_no_denials() -> None:
    assert parse_letter("Box A is no less than the best.", BOXES).value == "A"
    assert parse_letter("Box A is not only good, it fits best.", BOXES).value == "A"
