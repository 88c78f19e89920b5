"""Parsing of the text of a question."""

import re
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.hvsbench import question_text as text_module
from hybrid.benchmarks.hvsbench.question_text import KINDS, lists, options
from hybrid.benchmarks.hvsbench.sample import TASKS, made
from hybrid.errors import DataError
from hybrid.samples.pop_out import HEIGHT, WIDTH
from hybrid.types import LETTERS, Box, Kind, Scanpath

SEARCH = (
    "[Requirement] Predict eye fixation points for searching for a stop sign in the provided image. Give three lists, "
    "each containing 6 values. X = The X-coordinates, length 6. [Example Output for Another Image] X = [0.50, 0.48]"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Between these two objects — [A] the person [B] the bicycle on the right — please select the salient one.",
            ("the person", "the bicycle on the right"),
        ),
        (
            "Which? [A] (0.48, 0.50) [B] (0.1, 0.2); [C] (0.3,0.3). Reply with one letter.",
            ("(0.48, 0.50)", "(0.1, 0.2)", "(0.3,0.3)"),
        ),
        ("Which?\nA. a dog\nB. a cat\nC. a cow\nPlease answer.", ("a dog", "a cat", "a cow")),
        ("Which? (A) left (B) right", ("left", "right")),
        ("Which? A: [1, 2, 3, 4] B: [5, 6, 7, 8]", ("[1, 2, 3, 4]", "[5, 6, 7, 8]")),
        (
            "[A] X = [0.1, 0.2]\nY = [0.3, 0.4]\n[B] X = [0.5]\nY = [0.6]",
            ("X = [0.1, 0.2] Y = [0.3, 0.4]", "X = [0.5] Y = [0.6]"),
        ),
    ],
)
def test_options(text: str, expected: tuple[str, ...]) -> None:
    assert options(text) == expected


@pytest.mark.parametrize("text", ["", "Which object?", "[A] alone", "[B] second [A] first"])
def test_no_options_are_an_error(text: str) -> None:
    with pytest.raises(DataError, match="no options"):
        options(text)


def test_options_that_read_the_same_are_an_error() -> None:
    with pytest.raises(DataError, match="two options read the same"):
        options("[A] the dog [B] the  dog")


@settings(max_examples=40)
@given(
    choices=st.lists(
        st.from_regex(r"[a-z]{1,8}( [a-z]{1,8}){0,2}", fullmatch=True), min_size=2, max_size=17, unique=True
    )
)
def test_options_come_back_in_order(choices: list[str]) -> None:
    written = " ".join(f"[{LETTERS[place]}] {choice}" for place, choice in enumerate(choices))
    assert options(f"Which one? {written}") == tuple(choices)


@settings(max_examples=300)
@given(text=st.text(max_size=80), task=st.sampled_from(sorted(KINDS)))
def test_any_text_gives_facts_or_a_data_error(text: str, task: str) -> None:
    for read in (lambda: options(text), lambda: text_module.given(task, text, (10, 10), "xyxy"), lambda: lists(text)):
        try:
            read()
        except DataError:
            continue


def test_a_search_question() -> None:
    facts = text_module.given("Q12", SEARCH, (640, 480), "xyxy")
    assert (facts.target, facts.fixations, facts.scanpaths, facts.boxes) == ("stop sign", 6, (), ())


@pytest.mark.parametrize("task", ["Q9", "Q1"])
def test_a_target_is_read_for_searching_only(task: str) -> None:
    assert text_module.given(task, SEARCH, (640, 480), "xyxy").target is None


def test_boxes_are_pixels_whether_written_as_fractions_or_pixels() -> None:
    fractions = text_module.given("Q1", "[A] [0.1, 0.5, 0.2, 1.0] [B] [0, 0, 1, 1]", (200, 100), "xyxy")
    assert fractions.boxes == (Box(20, 50, 40, 100), Box(0, 0, 200, 100))
    pixels = text_module.given("Q4", "[A] [10, 20, 30, 40] [B] (1, 2, 3, 4)", (200, 100), "xyxy")
    assert pixels.boxes == (Box(10, 20, 30, 40), Box(1, 2, 3, 4))


def test_the_form_of_boxes_is_a_setting() -> None:
    text = "[A] [10, 20, 5, 8] [B] [1, 2, 3, 4]"
    assert text_module.given("Q4", text, (200, 100), "xywh").boxes[0] == Box(10, 20, 15, 28)
    with pytest.raises(DataError, match=r"no area as xyxy; the setting boxes=xywh"):
        text_module.given("Q4", text, (200, 100), "xyxy")


def test_candidate_scanpaths_as_lists_and_as_points() -> None:
    as_lists = "[A] X = [0.1, 0.2] Y = [0.3, 0.4] T = [5, 6] [B] X = [0.5, 0.6] Y = [0.7, 0.8] T = [7, 8]"
    found = text_module.given("Q8", as_lists, (10, 10), "xyxy").scanpaths
    assert found == (Scanpath((0.1, 0.2), (0.3, 0.4), (5, 6)), Scanpath((0.5, 0.6), (0.7, 0.8), (7, 8)))
    as_points = "[A] (0.1, 0.3), (0.2, 0.4) [B] (0.5, 0.7, 7), (0.6, 0.8, 8)"
    found = text_module.given("Q11", as_points, (10, 10), "xyxy").scanpaths
    assert found == (Scanpath((0.1, 0.2), (0.3, 0.4), ()), Scanpath((0.5, 0.6), (0.7, 0.8), (7, 8)))


@pytest.mark.parametrize(
    "text",
    [
        "X = [1, 2] Y = [1] T = [1, 2]",
        "X = [1] Y = [1] X = [2]",
        "X = [1, a] Y = [1, 2]",
        "X = [1] Y = [2] T = [3] T = [4]",
    ],
)
def test_lists_that_do_not_fit_are_an_error(text: str) -> None:
    with pytest.raises(DataError):
        lists(text)


@pytest.mark.parametrize("task", TASKS)
def test_every_given_fact_stands_in_the_text(task: str) -> None:
    for index in range(6):
        text = made(task, index, 3).question
        facts = text_module.given(task, text, (WIDTH, HEIGHT), "xyxy")
        numbers = set(re.findall(r"\d+\.?\d*", text))
        for box in facts.boxes:
            fractions = (box.x0 / WIDTH, box.y0 / HEIGHT, box.x1 / WIDTH, box.y1 / HEIGHT)
            assert "[" + ", ".join(f"{value:.2f}" for value in fractions) + "]" in text
        for path in facts.scanpaths:
            assert {f"{value:.2f}" for value in (*path.x, *path.y)} <= numbers
            assert {f"{value:.0f}" for value in path.t_ms} <= numbers
        assert facts.target is None or f"searching for a {facts.target} in" in text
        assert facts.fixations is None or f"{facts.fixations} values" in text
        assert bool(facts.boxes) == (task in {"Q1", "Q3", "Q4", "Q6"})
        assert bool(facts.scanpaths) == (task in {"Q8", "Q10", "Q11", "Q13"})
        assert bool(facts.target) == (task in {"Q11", "Q12", "Q13"})
        assert bool(facts.fixations) == (KINDS[task] is Kind.SCANPATH)


LONG = (
    "7",
    "[",
    "[1, ",
    "[1, 2, 3, 4] ",
    "(1, 2) ",
    "X = [1, ",
    "[A] x ",
    "A. x\n",
    " ",
    "search for a cat ",
    "of 12 ",
)


@pytest.mark.parametrize("unit", LONG)
@pytest.mark.parametrize(("before", "after"), [("[", "x"), pytest.param("", "", marks=pytest.mark.slow)])
def test_a_long_text_is_read_in_bounded_time(before: str, after: str, unit: str) -> None:
    """A form that takes time with the square of the length would need minutes for each."""
    text = before + unit * (50_000 // len(unit)) + after
    for read in (options, lists, *(partial(text_module.given, task, size=(9, 9), box_form="xyxy") for task in KINDS)):
        with suppress(DataError):
            read(text=text)
