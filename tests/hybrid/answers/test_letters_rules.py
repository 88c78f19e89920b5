"""Each letter rule by name: what only it reads, which of two neighbours goes first, and every word that it knows."""

import pytest

from hybrid.answers._letter_claims import CLAIM_RULES
from hybrid.answers._letter_clauses import CLAUSE_RULES
from hybrid.answers._letter_rules import EXPLICIT_RULES
from hybrid.answers.letters import parse_letter
from tests.tables import cases

UNKNOWN = ("", "", "", "")
TWO = ("the second image", "the third image")
POINTS = tuple(f"Point {c}" for c in "ABCD")
BOXES = ("Box A", "Box B")
SIDES = ("left", "right")
YES_NO = ("yes", "no")
NUMBERS = ("2", "3", "4", "1")

LONG = "The man is showing a trick with two cards to a crowd"

# What only this rule reads: without it the value is another, or another rule reads it.
READS = [
    ("b", UNKNOWN, "B", "only_letter"),
    ("Option (A)", UNKNOWN, "A", "only_letter"),
    ("Point c.", POINTS, "C", "only_letter"),
    ("(((((((((((((((((((((((((((B)))))))))))))))))))))))))))))))", UNKNOWN, "B", "only_letter"),
    ("the third image", TWO, "B", "only_choice"),
    ("third image.", TWO, "B", "only_choice"),
    ("右", SIDES, "B", "only_choice"),
    ("A could be it, were it not too large for the gap that it fills.\nSo:\n(B) no", YES_NO, "B", "closing_option"),
    ("So this is what I see in it:\nC. Point C", POINTS, "C", "closing_option"),
    ("So this is what I see in it:\nPoint C", POINTS, "C", "closing_option"),
    ('So this is what I see in it:\n"C".', POINTS, "C", "closing_option"),
    ("So this is what I see in it:\n- (C) Point C", POINTS, "C", "closing_option"),
    ("So this is it:\n(B) no. That is since the cat sits still on the tall chair.", YES_NO, "B", "closing_option"),
    ("So this is it:\n(B) no; that is since the cat sits still on the tall chair.", YES_NO, "B", "closing_option"),
    ("So this is it:\n(B) no: that is since the cat sits still on the tall chair.", YES_NO, "B", "closing_option"),
    (f"So this is it:\n(B) {LONG}", ("x", LONG), "B", "closing_option"),
    ("Let me see.\n(A) yes\n(X) is no label, as it goes on and on, and on.\nWell.", YES_NO, "A", "lone_option"),
    ("Let me see.\n(A) yes\nX. is no label, as it goes on and on, and on.\nWell.", YES_NO, "A", "lone_option"),
    ("Let me see.\n(A) yes\nPoint X is no label, as it goes on and on, and on.\nWell.", YES_NO, "A", "lone_option"),
    ("So this is it:\nOption (B) no", YES_NO, "B", "closing_option"),
    ("So this is it:\nOption B) no", YES_NO, "B", "closing_option"),
    ("So this is it:\nOption B", YES_NO, "B", "closing_option"),
    ("So this is it:\n[B]. no", YES_NO, "B", "closing_option"),
    ("So this is it:\n(B), no", YES_NO, "B", "closing_option"),
    ("So this is it:\n• B: no", YES_NO, "B", "closing_option"),
    ("So this is it:\n> 'B'", YES_NO, "B", "closing_option"),
    ("So the answer is B, I think.", UNKNOWN, "B", "announced_letter"),
    ("I would choose option D, I think.", UNKNOWN, "D", "announced_letter"),
    ('I would choose "D", I think.', UNKNOWN, "D", "announced_letter"),
    ("The answer is most likely point D, I think.", UNKNOWN, "D", "announced_letter"),
    ("The answer is clearly D, I think.", UNKNOWN, "D", "announced_letter"),
    ("The answer is D, I think.", UNKNOWN, "D", "announced_letter"),
    ("The answer is E is wrong, no: the answer is D, I think.", UNKNOWN, "D", "announced_letter"),
    # An X is no label here.
    ("The answer is (B), then.\n\n(X) no", UNKNOWN, "B", "announced_letter"),
    ("The answer is (B), then.\n\nX: no", UNKNOWN, "B", "announced_letter"),
    ("The answer is (B), then.\n\nX", UNKNOWN, "B", "announced_letter"),
    ("X", ("X", "Y"), "A", "only_choice"),
    ("The cat lies there. My answer is yes, I think.", YES_NO, "A", "announced_choice"),
    ("I would pick left, as the camera does.", SIDES, "A", "announced_choice"),
    ("(A) yes\nThat is it.\nB: it has a tail, and this line goes on about it.", YES_NO, "A", "opening_option"),
    ("Let me see.\n(A) yes\nThat is what it looks like.", YES_NO, "A", "lone_option"),
    ("No, the cat is under it", YES_NO, "B", "opening_choice"),
    ("Yes; it has a tail", YES_NO, "A", "opening_choice"),
    ("Yes: it has a tail", YES_NO, "A", "opening_choice"),
    ("Yes! It has a tail", YES_NO, "A", "opening_choice"),
    ("Yes. It has a tail", YES_NO, "A", "opening_choice"),
    ("Yes\nIt has a tail", YES_NO, "A", "opening_choice"),
    ("B. The dog on it has the tail that I would have wanted to see here.", YES_NO, "B", "opening_letter"),
    ("(B) The dog on it has the tail that I would have wanted to see here.", YES_NO, "B", "opening_letter"),
    ("3 plates", NUMBERS, "B", "stated_number"),
    ("I see 2 on the left. Therefore I count 3 plates.", ("2 plates", "3 plates"), "B", "stated_number"),
    ("A: no, B: yes, C: no, D: no", UNKNOWN, "B", "verdicts"),
    ("(A) is wrong, (B) is right.", UNKNOWN, "B", "verdicts"),
    ("Not A; B.", UNKNOWN, "B", "remaining"),
    ("A or B? B.", UNKNOWN, "B", "remaining"),
    ("The cup is right.", SIDES, "B", "stated_choice"),
    ("A: 20%, B: 80%", UNKNOWN, "B", "largest_share"),
    ("- A: far\n- B: near ✅", UNKNOWN, "B", "ticked"),
    ("A is not closer than B.", ("A is closer", "B is closer"), "B", "denied_comparison"),
    ("The one with the hat seems to be left, not right.", SIDES, "A", "stated_choice"),
    ("It is hard to tell. However, the third image is the most similar. It has noise.", TWO, "B", "reluctant_claim"),
    ("I see boats. Therefore, the third image is most similar. It has sails.", TWO, "B", "concluding_claim"),
    ("Box B is the tighter fit, and fits best. The sky is blue.", BOXES, "B", "opening_claim"),
    ("The sky is blue. Box B fits best.", BOXES, "B", "closing_claim"),
    ("I see the cat in that one (B), with its tail.", UNKNOWN, "B", "only_mark"),
    ("I see the cat in that one (A), with its tail.", ("cat",), "A", "only_mark"),
    ("I see the cat in that one (B). It is not mine.", UNKNOWN, "B", "only_mark"),
    # The last conclusion counts.
    ("I see 2 and 1. So 3 of them are dogs. Thus 4 are here.", NUMBERS, "C", "stated_number"),
    (
        "It is hard to tell. So the second image may be the best match. Thus the third image is the best match.",
        TWO,
        "B",
        "reluctant_claim",
    ),
    # The longest reply that can be a letter, and the longest text of an option.
    ("?" * 59 + "B", UNKNOWN, "B", "only_letter"),
    ("So:\n(B) " + "d" * 40, UNKNOWN, "B", "closing_option"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "choices", "letter", "rule"), READS)
def test_what_each_rule_reads(text: str, choices: tuple[str, ...], letter: str, rule: str) -> None:
    parsed = parse_letter(text, choices)
    assert (parsed.value, parsed.rule) == (letter, rule)


def test_no_rule_is_without_an_example() -> None:
    assert {rule for *_, rule in READS} == {rule.__name__ for rule in (*EXPLICIT_RULES, *CLAUSE_RULES, *CLAIM_RULES)}


@pytest.mark.parametrize(*cases(__file__, "test_of_two_rules_the_more_explicit_goes_first"))
def test_of_two_rules_the_more_explicit_goes_first(text: str, choices: tuple[str, ...], letter: str, rule: str) -> None:
    parsed = parse_letter(text, choices)
    assert (parsed.value, parsed.rule) == (letter, rule)


@pytest.mark.parametrize(*cases(__file__, "test_what_no_rule_reads"))
def test_what_no_rule_reads(text: str, choices: tuple[str, ...]) -> None:
    assert parse_letter(text, choices).value is None


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
