"""Tests of parsing the text of HVSBench's questions."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.hvsbench import question_text as text_module
from hybrid.benchmarks.hvsbench.question_text import KINDS, lists, options
from hybrid.core.errors import DataError
from hybrid.core.types import LETTERS, Box, Scanpath
from tests.tables import cases


@settings(max_examples=40)
@given(
    choices=st.lists(
        st.from_regex(r"[a-z]{1,8}( [a-z]{1,8}){0,2}", fullmatch=True), min_size=2, max_size=17, unique=True
    )
)
def test_options_come_back_in_order(choices: list[str]) -> None:
    text = " ".join(f"[{LETTERS[place]}] {choice}" for place, choice in enumerate(choices))
    assert options(f"Which one? {text}") == tuple(choices)


@settings(max_examples=300)
@given(text=st.text(max_size=80), task=st.sampled_from(sorted(KINDS)))
def test_any_text_gives_facts_or_a_data_error(text: str, task: str) -> None:
    for read in (
        lambda: options(text),
        lambda: text_module.prompt_facts(task, text, (10, 10), "xyxy"),
        lambda: lists(text),
    ):
        try:
            read()
        except DataError:
            continue


def test_the_form_of_boxes_is_a_setting() -> None:
    text = "[A] [10, 20, 5, 8] [B] [1, 2, 3, 4]"
    assert text_module.prompt_facts("Q4", text, (200, 100), "xywh").boxes[0] == Box(10, 20, 15, 28)
    with pytest.raises(DataError, match=r"no area as xyxy; try the setting boxes=xywh"):
        text_module.prompt_facts("Q4", text, (200, 100), "xyxy")


def test_candidate_scanpaths_as_lists_and_as_points() -> None:
    as_lists = "[A] X = [0.1, 0.2] Y = [0.3, 0.4] T = [5, 6] [B] X = [0.5, 0.6] Y = [0.7, 0.8] T = [7, 8]"
    scanpaths = text_module.prompt_facts("Q8", as_lists, (10, 10), "xyxy").scanpaths
    assert scanpaths == (Scanpath((0.1, 0.2), (0.3, 0.4), (5, 6)), Scanpath((0.5, 0.6), (0.7, 0.8), (7, 8)))
    as_points = "[A] (0.1, 0.3), (0.2, 0.4) [B] (0.5, 0.7, 7), (0.6, 0.8, 8)"
    scanpaths = text_module.prompt_facts("Q11", as_points, (10, 10), "xyxy").scanpaths
    assert scanpaths == (Scanpath((0.1, 0.2), (0.3, 0.4), ()), Scanpath((0.5, 0.6), (0.7, 0.8), (7, 8)))


@pytest.mark.parametrize(*cases(__file__, "test_lists_that_do_not_fit_are_an_error"))
def test_lists_that_do_not_fit_are_an_error(text: str) -> None:
    with pytest.raises(DataError):
        lists(text)


def can_read(read: Callable[..., object], text: str) -> bool:
    try:
        read(text=text)
    except DataError:
        return False
    return True


@pytest.mark.parametrize(*cases(__file__, "test_a_long_text_is_read_in_bounded_time"))
@pytest.mark.parametrize(("prefix", "after"), [("[", "x"), pytest.param("", "", marks=pytest.mark.slow)])
def test_a_long_text_is_read_in_bounded_time(prefix: str, after: str, unit: str) -> None:
    """Long texts are read in bounded time; a pattern that takes quadratic time would need minutes for each text."""
    text = prefix + unit * (50_000 // len(unit)) + after
    for read in (
        options,
        lists,
        *(partial(text_module.prompt_facts, task, size=(9, 9), box_form="xyxy") for task in KINDS),
    ):
        assert can_read(read, text) is can_read(read, prefix + unit * 3 + after)
