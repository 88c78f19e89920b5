"""Replies of any length and any characters: read in bounded time, never with an exception.

A rule that takes time with the square of the length would need hours for these texts: 1 MB of a dozen shapes through
every parser ends within the tests' own time only where each rule is linear or reads a bounded part.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.answers import parse
from hybrid.answers.base import READ_FIRST, READ_LAST, normalise, within_reach
from hybrid.answers.views import official_continue, official_keep_shift, official_part, official_views
from hybrid.benchmarks.actiview.metrics import official_answer
from hybrid.benchmarks.blink import analyze_answer
from hybrid.benchmarks.mm_sap.metrics import read_answer
from hybrid.benchmarks.mvp_bench.parse import circular_rule, read_options, single_run_rule, yes_no_rule
from hybrid.errors import UsageError
from hybrid.models.dialects import read
from hybrid.registry import load
from hybrid.running.probes import read_frame
from hybrid.types import LETTERS, Kind
from tests.tables import cases, stored

MB = 1_000_000
CHOICES = ("left", "right", "the third image", "no")
SHAPES = stored(__file__, "SHAPES")


def choices_of(kind: Kind) -> tuple[str, ...]:
    return CHOICES if kind in (Kind.CHOICE, Kind.ORDER) else ()


def calls_in(text: str) -> None:
    read(text, (load("tools", "crop"),))


def every_parser(text: str) -> None:
    for kind in Kind:
        parsed = parse(text, kind, choices_of(kind))
        assert (parsed.value is None) == (parsed.rule == "none")
    others(text)


def others(text: str) -> None:
    """The authors' own rules, and what is read of replies that are no answers."""
    for official in (official_views, official_continue, official_part, yes_no_rule, read_options, calls_in):
        official(text)
    official_keep_shift(text, (1, 2))
    official_answer(text, CHOICES, "A")
    analyze_answer(text, 4)
    read_answer(text, CHOICES, "official")
    single_run_rule(text, 4)
    circular_rule(text, 4)
    with suppress(UsageError):
        read_frame(text)


OFTEN = ("digits", "fences")
"""Shapes of the normal suite; the others take longer together than all else here."""


@pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=() if shape in OFTEN else pytest.mark.slow) for shape in SHAPES]
)
def test_a_megabyte_is_read_in_bounded_time(shape: str) -> None:
    unit = SHAPES[shape]
    text = (unit * (MB // len(unit) + 1))[:MB]
    every_parser(text)
    assert parse(f"{text}\nAnswer: (B)", Kind.CHOICE, CHOICES).value == "B"


@pytest.mark.parametrize(("before", "after"), [("[", "x"), ("X = [", "x")])
def test_digits_that_lead_nowhere_are_not_tried_over_and_over(before: str, after: str) -> None:
    text = before + "7" * MB + after
    every_parser(text)
    assert {kind for kind in Kind if parse(text, kind, choices_of(kind)).value is not None} == {Kind.FREE, Kind.TEXT}


pieces = st.sampled_from(
    [*SHAPES.values(), "Answer: ", "(B)", "yes", "no", "\n", "Y = [0.1]", "T: (3", "```", "1.", "e9", "nan", "wait, "]
)
texts = st.lists(pieces | st.text(st.characters(), max_size=20) | st.just("\udfff"), max_size=30).map("".join)


@settings(max_examples=60)
@given(texts)
def test_no_text_is_an_exception(text: str) -> None:
    every_parser(text)


def test_the_ends_of_a_long_reply_are_read() -> None:
    filler = "It is a picture of something or other. " * 50_000
    assert parse(f"Answer: (B)\n{filler}", Kind.CHOICE, CHOICES).value == "B"
    assert parse(f"{filler}\nAnswer: (B)", Kind.CHOICE, CHOICES).value == "B"
    assert parse(f"{filler}\nX = [0.1] Y = [0.2] T = [3]", Kind.SCANPATH).value is not None


def test_how_much_is_read() -> None:
    long = "a" * READ_FIRST + "b" * MB + "c" * READ_LAST
    assert within_reach(long) == "a" * READ_FIRST + "\n\n" + "c" * READ_LAST
    assert within_reach("a" * (READ_FIRST + READ_LAST)) == "a" * (READ_FIRST + READ_LAST)
    assert len(normalise("\ufdfa" * MB)) <= READ_FIRST + READ_LAST + 2


FORMS = ("Answer: ({})", "{}", "({})", "{}.", "The answer is {}.", "Option {}", "**{}**", "I would choose ({}).")


@given(st.integers(2, 26), st.data())
def test_any_of_26_letters_is_read(count: int, data: Any) -> None:
    letter = data.draw(st.sampled_from(LETTERS[:count]))
    form = data.draw(st.sampled_from(FORMS))
    choices = tuple(f"thing {number}" for number in range(count))
    assert parse(form.format(letter), Kind.CHOICE, choices).value == letter


@given(st.integers(2, 26), st.data())
def test_the_text_of_any_of_26_choices_is_read(count: int, data: Any) -> None:
    place = data.draw(st.integers(0, count - 1))
    choices = tuple(f"the {number}th thing" for number in range(count))
    assert parse(f"{choices[place]}.", Kind.CHOICE, choices).value == LETTERS[place]


@given(st.integers(2, 26), st.randoms(use_true_random=False))
def test_an_order_of_26_letters_is_read(count: int, random: Any) -> None:
    letters = list(LETTERS[:count])
    random.shuffle(letters)
    for gap in (", ", " > "):
        found = parse(f"Answer: {gap.join(letters)}", Kind.ORDER, ("",) * count)
        assert found.value == "".join(letters)


@pytest.mark.parametrize(*cases(__file__, "test_the_speaker_is_no_letter"))
def test_the_speaker_is_no_letter(said: str) -> None:
    assert parse(said, Kind.CHOICE, tuple(f"thing {number}" for number in range(26))).value is None


def test_a_27th_choice_is_an_error() -> None:
    with pytest.raises(ValueError, match="27 choices, but only 26 letters"):
        parse("A", Kind.CHOICE, ("",) * 27)
