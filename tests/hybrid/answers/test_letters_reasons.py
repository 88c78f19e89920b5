"""A letter with its reason, and a letter that remains after others are rejected, whatever the options are."""

from itertools import product

import pytest

from hybrid.answers.letters import parse_letter
from tests.tables import cases

# Option texts that also occur as words in replies, are letters, or are longer than a word.
TEXTS = ("no", "yes", "both", "none", "left", "right", "the dog", "a", "not clear", "wrong", "red", "because", "D", "3")
OPTIONS = (
    *(("", "", "", ""), ("yes", "no"), ("no", "yes"), ("both", "none"), ("A is closer", "B is closer")),
    *((text, "something else") for text in TEXTS),
    *(("something else", text) for text in TEXTS),
    ("the first image", "the second image", "neither", "cannot be determined"),
)
GIVEN = ("{}", "({})", "Option {}", "Choice {}", "Option ({})", "[{}]", "So {}", "I think {}")
WHY = (
    *(" because {}", ", because {}", ", since {}", ", as {}", " given that {}", " – because {}", " (because {})"),
    *(" since {}", ", considering that {}", ", seeing that {}"),
)
REASONS = (
    "the dog is larger",
    "it is red",
    "no other is near",
    "both are left of it",
    "there is a dog that is not clear",
)
REJECTED = (
    "is wrong",
    "is incorrect",
    "is not correct",
    "can be ruled out",
    "cannot be right",
    "doesn't fit",
    "is out",
)
LEFT = (", so {}", ", leaving {}", "; {}", ", therefore {}", ", which leaves {}", ", so it must be {}", " so {}")


@pytest.mark.system
@pytest.mark.parametrize("options", GIVEN)
def test_no_option_unreads_a_letter_with_its_reason(options: str) -> None:
    for other_reason, reason, choices, letter in product(WHY, REASONS, OPTIONS, "AB"):
        text = options.format(letter) + other_reason.format(reason)
        assert (text, choices, parse_letter(text, choices).value) == (text, choices, letter)


@pytest.mark.parametrize("rejected", REJECTED)
@pytest.mark.parametrize("form", ["{}", "({})", "Option {}"])
def test_no_option_unreads_the_letter_that_is_left(form: str, rejected: str) -> None:
    for remaining, choices, (other, letter) in product(LEFT, OPTIONS, ("AB", "BA")):
        text = f"{form.format(other)} {rejected}{remaining.format(form.format(letter))}"
        assert (text, choices, parse_letter(text, choices).value) == (text, choices, letter)


ASKED = ("{}? No, {} because {}.", "Is it {}? No. {}, since {}.", "{} is wrong. {}, because {}.", "Not {}; {} as {}.")
# Reasons without "it is" before an option's text, because that would announce an answer.
SIMPLE = ("the dog is larger", "no other is near", "both are left of it")


@pytest.mark.parametrize("form", ["{}", "({})", "Option {}"])
def test_no_option_unreads_a_letter_with_its_reason_behind_a_rejected_one(form: str) -> None:
    for phrase, reason, choices, (other, letter) in product(ASKED, SIMPLE, OPTIONS, ("AB", "BA")):
        text = phrase.format(form.format(other), form.format(letter), reason)
        assert (text, choices, parse_letter(text, choices).value) == (text, choices, letter)


@pytest.mark.parametrize("form", ["{}", "({})"])
def test_no_option_unreads_the_letter_behind_a_rejected_list(form: str) -> None:
    lists = ("{}, {} and {} are wrong", "{}, {} and {} do not fit", "{}, {}, and {} can be ruled out")
    for template, remainder, text in product(lists, LEFT, TEXTS):
        choices = (text, "red", "green", "blue")
        *others, letter = map(form.format, "BCDA")
        reply = template.format(*others) + remainder.format(letter)
        assert (reply, text, parse_letter(reply, choices).value) == (reply, text, "A")


@pytest.mark.parametrize("form", ["{}", "({})"])
def test_no_option_unreads_not_this_but_that(form: str) -> None:
    for message, choices in product(("not {} but {}", "Not {}, but {}.", "It is not {} but {}", "not {}; {}"), OPTIONS):
        text = message.format(form.format("A"), form.format("B"))
        assert (text, choices, parse_letter(text, choices).value) == (text, choices, "B")


@pytest.mark.parametrize("noun", ["dog", "person", "man", "given point", "due date", "table", "sale", "cat or a dog"])
def test_the_article_is_no_letter(noun: str) -> None:
    rest = ("is larger because it is near", "stands, since it is tired", "as well, because it is red", "for its colour")
    for ending, choices in product(rest, (("", "", "", ""), ("yes", "no"))):
        text = f"A {noun} {ending}."
        assert (text, choices, parse_letter(text, choices).value) == (text, choices, None)


@pytest.mark.parametrize(*cases(__file__, "test_what_a_reason_reads"))
def test_what_a_reason_reads(text: str, choices: tuple[str, ...], letter: str | None) -> None:
    assert parse_letter(text, choices).value == letter
