"""Numbers, sides, parts of the picture, values and things that the words of questions and choices name."""

import pytest

from hybrid.types import Box
from tools.rules.questions.answers import _region
from tools.rules.questions.things import Thing
from tools.rules.questions.values import (
    Attribute,
    relations_in,
    values_in,
)

CUP, BOX = Thing("cup"), Thing("box")


@pytest.mark.parametrize(
    ("choices", "relations"),
    [
        (("left", "above."), ("left of", "above")),
        (("The cup is left of the box", "the cup is right of the box"), ("left of", "right of")),
        (("It is above the box.", "they are below the box"), ("above", "below")),
        (("above the box", "under the box"), ("above", "under")),
        (("left of the dog", "right of the box"), None),
        (("The dog is above the box", "below the box"), None),
        (("left", "to the left"), None),
        (("left", "blue"), None),
        (("left",), None),
    ],
)
def test_choices_are_different_relations_of_two_things(
    choices: tuple[str, ...], relations: tuple[str, ...] | None
) -> None:
    assert relations_in(choices, CUP, BOX) == relations


@pytest.mark.parametrize(
    ("choices", "attribute", "values"),
    [
        (("red", "Blue."), "color", ("red", "Blue")),
        (("The cup is red.", "The cup is blue"), "color", ("red", "blue")),
        (("The colour of the cup is red", "blue"), "color", ("red", "blue")),
        (("The box is red", "blue"), "color", None),
        (("the cup is made of glass", "metal"), "material", ("glass", "metal")),
        (("The material of the cup is wood", "dark grey metal"), "material", ("wood", "dark grey metal")),
        (("wooden in a way that counts", "metal"), "material", None),
        (("Red", "red"), "color", None),
        (("red", "wood"), "color", None),
        (("red",), "color", None),
    ],
)
def test_choices_are_different_values_of_the_thing(
    choices: tuple[str, ...], attribute: Attribute, values: tuple[str, ...] | None
) -> None:
    assert values_in(choices, attribute, CUP) == values


def test_what_is_shown_of_a_thing() -> None:
    # A detected box with a tenth around it, inside of the picture; a drawn one without its line of four pixels.
    assert _region(Box(100, 100, 120, 140), False) == Box(98, 96, 122, 144)
    assert _region(Box(1, 0, 101, 10), False) == Box(0, 0, 111, 11)
    assert _region(Box(100, 100, 120, 140), True) == Box(104, 104, 116, 136)
    assert _region(Box(100, 100, 120, 116), True) == Box(98, pytest.approx(98.4), 122, pytest.approx(117.6))
    assert _region(Box(100, 100, 117, 117), True) == Box(104, 104, 113, 113)
