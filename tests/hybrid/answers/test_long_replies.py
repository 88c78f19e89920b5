"""Replies of any length with any characters are read in bounded time and never raise an exception.

A rule that takes quadratic time would need hours for these texts: parsing 1 MB of a dozen shapes with every parser
finishes in reasonable time only if each rule is linear or reads a bounded part.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.answers import parse
from hybrid.answers.base import READ_FIRST, READ_LAST, normalise, within_reach
from hybrid.answers.views import official_continue, official_keep_shift, official_part, official_views
from hybrid.answers.words import comparable
from hybrid.benchmarks.actiview.metrics import official_answer
from hybrid.benchmarks.blink import analyze_answer
from hybrid.benchmarks.mm_sap.metrics import read_answer
from hybrid.benchmarks.mvp_bench.parse import circular_rule, read_options, single_run_rule, yes_no_rule
from hybrid.core.errors import UsageError
from hybrid.core.types import LETTERS, Kind
from hybrid.models.dialects import read
from hybrid.plugins.registry import load
from hybrid.running.probes import read_frame
from tests.tables import cases, stored

MB = 1_000_000
CHOICES = ("left", "right", "the third image", "no")
SHAPES = stored(__file__, "SHAPES")


def choices_of(kind: Kind) -> tuple[str, ...]:
    return CHOICES if kind in (Kind.CHOICE, Kind.ORDER) else ()


def calls_in(text: str) -> None:
    read(text, (load("tools", "crop"),))


def distinct(value: str) -> bool:
    return set(value) <= set(LETTERS[: len(CHOICES)]) and len(set(value)) == len(value)


PARTS = {1, 2, 3, 4}
OF_ITS_KIND: Mapping[Kind, Callable[[Any], bool]] = {
    Kind.CHOICE: lambda value: len(value) == 1 and distinct(value),
    Kind.YES_NO: lambda value: value in ("yes", "no"),
    Kind.INTEGER: lambda value: value >= 0,
    Kind.NUMBER: math.isfinite,
    Kind.TEXT: lambda value: bool(value.strip()) and comparable(comparable(value)) == comparable(value),
    Kind.POINT: lambda value: math.isfinite(value.x) and math.isfinite(value.y),
    Kind.BOX: lambda value: value.x0 < value.x1 and value.y0 < value.y1,
    Kind.ORDER: distinct,
    Kind.SCANPATH: lambda value: (
        len(value.x) == len(value.y) == len(value.t_ms) > 0
        and all(map(math.isfinite, (*value.x, *value.y, *value.t_ms)))
    ),
    Kind.VIEWS: lambda value: value <= PARTS,
    Kind.CONTINUE: lambda value: value in ("yes", "no"),
    Kind.VIEW_PLAN: lambda value: (value.part or value.keep or value.shift or PARTS) <= PARTS,
    Kind.FREE: bool,
}


def is_parsed(text: str, kind: Kind, choices: tuple[str, ...]) -> bool:
    """Return whether the parsed value of a text is an answer of this kind, or missing by the rule `none`."""
    parsed = parse(text, kind, choices)
    if parsed.value is None:
        return parsed.rule == "none"
    return parsed.rule != "none" and OF_ITS_KIND[kind](parsed.value)


def every_parser(text: str) -> None:
    for kind in Kind:
        assert is_parsed(text, kind, choices_of(kind)), kind
    others(text)


def others(text: str) -> None:
    """Apply the other readers: the authors' own rules, and the parsers of replies that are not answers."""
    for official in (official_views, official_continue, official_part, yes_no_rule, read_options, calls_in):
        official(text)
    assert {*official_part(text), *(official_keep_shift(text, (1, 2)) or ())} <= PARTS
    official_answer(text, CHOICES, "A")
    analyze_answer(text, 4)
    read_answer(text, CHOICES, "official")
    single_run_rule(text, 4)
    circular_rule(text, 4)
    with suppress(UsageError):
        read_frame(text)


# Shapes that the default selection tests; the remaining ones take longer than all other tests in this file.
OFTEN = ("digits", "fences")


@pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=() if shape in OFTEN else pytest.mark.slow) for shape in SHAPES]
)
def test_a_megabyte_is_read_in_bounded_time(shape: str) -> None:
    unit = SHAPES[shape]
    text = (unit * (MB // len(unit) + 1))[:MB]
    every_parser(text)
    assert parse(f"{text}\nAnswer: (B)", Kind.CHOICE, CHOICES).value == "B"


@pytest.mark.system
@pytest.mark.parametrize(("prefix", "after"), [("[", "x"), ("X = [", "x")])
def test_digits_that_lead_nowhere_are_not_tried_over_and_over(prefix: str, after: str) -> None:
    text = prefix + "7" * MB + after
    every_parser(text)
    assert {kind for kind in Kind if parse(text, kind, choices_of(kind)).value is not None} == {Kind.FREE, Kind.TEXT}


pieces = st.sampled_from(
    [*SHAPES.values(), "Answer: ", "(B)", "yes", "no", "\n", "Y = [0.1]", "T: (3", "```", "1.", "e9", "nan", "wait, "]
)
signs = st.text("ABCDE12345.,- ()[]<>{}:\"'_*`andorpartkeepshiftXYT\n", max_size=30)
texts = st.lists(pieces | signs | st.text(max_size=20) | st.just("\udfff"), max_size=30).map("".join)


@pytest.mark.system
@pytest.mark.parametrize(*cases(__file__, "test_a_piece_over_and_over_is_read_in_bounded_time"))
def test_a_piece_over_and_over_is_read_in_bounded_time(kinds: tuple[str, ...], pieces: tuple[str, ...]) -> None:
    for piece in pieces:
        text = piece * (100_000 // len(piece))
        for kind in map(Kind, kinds):
            for message in (f"X = [{text}" if kind is Kind.SCANPATH else text, f"{text}}}"):
                assert is_parsed(message, kind, CHOICES)


@pytest.mark.system
@settings(max_examples=200)
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
        assert parse(f"Answer: {gap.join(letters)}", Kind.ORDER, ("",) * count).value == "".join(letters)


@pytest.mark.parametrize(*cases(__file__, "test_the_speaker_is_no_letter"))
def test_the_speaker_is_no_letter(reply: str) -> None:
    assert parse(reply, Kind.CHOICE, tuple(f"thing {number}" for number in range(26))).value is None


def test_a_27th_choice_is_an_error() -> None:
    with pytest.raises(ValueError, match="27 choices, but only 26 letters"):
        parse("A", Kind.CHOICE, ("",) * 27)
