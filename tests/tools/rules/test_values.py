"""Reading numbers, sides, parts of the picture, values and things from questions and choices."""

import pytest

from hybrid.core.types import Box
from tests.tables import cases
from tools.rules.questions.answers import _region
from tools.rules.questions.sentence import Thing
from tools.rules.questions.values import Attribute, relations_in, values_in

CUP, BOX = Thing("cup"), Thing("box")


@pytest.mark.parametrize(*cases(__file__, "test_choices_are_different_relations_of_two_things"))
def test_choices_are_different_relations_of_two_things(
    choices: tuple[str, ...], relations: tuple[str, ...] | None
) -> None:
    assert relations_in(choices, CUP, BOX) == relations


@pytest.mark.parametrize(*cases(__file__, "test_choices_are_different_values_of_the_thing"))
def test_choices_are_different_values_of_the_thing(
    choices: tuple[str, ...], attribute: Attribute, values: tuple[str, ...] | None
) -> None:
    assert values_in(choices, attribute, CUP) == values


def test_what_is_shown_of_a_thing() -> None:
    # The region is a detected box plus a tenth on each side, within the picture, or a drawn box without its 4 px line.
    assert _region(Box(100, 100, 120, 140), False) == Box(98, 96, 122, 144)
    assert _region(Box(1, 0, 101, 10), False) == Box(0, 0, 111, 11)
    assert _region(Box(100, 100, 120, 140), True) == Box(104, 104, 116, 136)
    assert _region(Box(100, 100, 120, 116), True) == Box(98, pytest.approx(98.4), 122, pytest.approx(117.6))
    assert _region(Box(100, 100, 117, 117), True) == Box(104, 104, 113, 113)
