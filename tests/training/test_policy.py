"""The policy: a question's wording selects the call, numbers are copied, and the tool output's text decides the
answer."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.types import LETTERS
from tests.tables import cases
from training.policy import FRACTION, TaughtAsk, call_for, read

fractions = st.integers(0, 100).map(lambda value: f"{value / 100:.2f}")
boxes = st.lists(st.tuples(fractions, fractions, fractions, fractions), min_size=2, max_size=5)


def make_ask(text: str, choices: tuple[str, ...] = (), images: int = 1) -> TaughtAsk:
    return TaughtAsk(text, choices, tuple(f"img:{number}" for number in range(1, images + 1)))


JIGSAW = make_ask("The lower right corner of the first image is missing.", ("the second image", "the third image"), 3)
DEPTH = make_ask("Which point is closer to the camera?", ("A is closer", "B is closer"))


@given(boxes)
def test_boxes_of_a_question_are_copied_under_the_letters_of_their_options(
    boxes_by_option: list[tuple[str, ...]],
) -> None:
    text = " ".join(f"[{LETTERS[place]}] [{', '.join(box)}]" for place, box in enumerate(boxes_by_option))
    call = call_for(make_ask(f"Which box holds the more salient object? {text}"))
    assert call is not None
    rows = call.args["boxes"]
    assert isinstance(rows, list)
    copied = [tuple(f"{row[key]:.2f}" for key in ("x0", "y0", "x1", "y1")) for row in rows]
    assert copied == boxes_by_option
    assert [row["label"] for row in rows] == list(LETTERS[: len(boxes_by_option)])


@pytest.mark.parametrize(*cases(__file__, "test_the_wording_picks_the_call", list, ask=TaughtAsk))
def test_the_wording_picks_the_call(ask: TaughtAsk, name: str, arguments: dict[str, object]) -> None:
    call = call_for(ask)
    assert call is not None
    assert (call.name, call.args) == (name, arguments)


@pytest.mark.parametrize(*cases(__file__, "test_a_finding_is_read_as_it_is_written", ask=TaughtAsk))
def test_a_finding_is_read_as_it_is_written(ask: TaughtAsk, text: str, answer: str | None) -> None:
    assert read(ask, text) == answer


@given(st.permutations("ABCD"))
def test_an_order_is_read_whole(letters: list[str]) -> None:
    text = " ".join(f"[{letter}] [0.10, 0.20, 0.30, 0.40]" for letter in "ABCD")
    ask = make_ask(f"Sort the objects in these boxes from the most to the least salient. {text}")
    line = ", ".join(f"{letter} {value:.2f}" for letter, value in zip(letters, (1.0, 0.9, 0.5, 0.1), strict=True))
    assert read(ask, f"Order, with the share of the first's saliency: {line}.") == f"Answer: {''.join(letters)}"
    assert read(ask, f"Order: {line.rpartition(',')[0]}.") is None


def test_fractions_are_two_decimals() -> None:
    assert re.findall(FRACTION, "0.5 0.50 1.00 12.34 0.123") == ["0.50", "1.00", "0.12"]
