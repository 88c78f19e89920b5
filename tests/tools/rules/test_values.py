"""Numbers, sides, parts of the picture, values and things that the words of questions and choices name."""

import pytest

from hybrid.types import Box
from tools.rules.questions.answers import _middles, _region, _third
from tools.rules.questions.things import Thing, alternatives, thing_in, things_in
from tools.rules.questions.values import (
    Attribute,
    Part,
    Third,
    is_color,
    numbers_in,
    part_in,
    parts_in,
    relation_in,
    relations_in,
    same_thing,
    values_in,
    yes_and_no,
)

CUP, BOX = Thing("cup"), Thing("box")


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (("1", "2"), True),
        (("two dogs", "Three dogs."), True),
        (("There are 3 cats in the image.", "4"), True),
        (("two", "2"), False),
        (("2", "more than 3"), False),
        (("about 2", "3"), False),
        (("3", "x"), False),
        (("2",), False),
        ((), False),
    ],
)
def test_choices_are_different_numbers(choices: tuple[str, ...], said: bool) -> None:
    assert numbers_in(choices) is said


@pytest.mark.parametrize(
    ("choices", "places"),
    [
        (("Yes", "No"), (0, 1)),
        (("no.", " A) yes "), (1, 0)),
        (("B. No", "A. Yes"), (1, 0)),
        (("yes", "no", "maybe"), None),
        (("yes", "yes"), None),
        (("yes it is", "no"), None),
        ((), None),
    ],
)
def test_yes_and_no_are_all_choices(choices: tuple[str, ...], places: tuple[int, int] | None) -> None:
    assert yes_and_no(choices) == places


@pytest.mark.parametrize(
    ("words", "relation"),
    [
        ("on the left side of", "left of"),
        ("to the right", "right of"),
        ("At the Right.", "right of"),
        ("It is on its left-hand side", "left of"),
        ("left of", "left of"),
        ("above", "above"),
        ("It is behind", "behind"),
        ("in front of", "in front of"),
        ("in front", "in front of"),
        ("inside,", "inside"),
        ("blue", None),
        ("", None),
    ],
)
def test_words_name_a_relation(words: str, relation: str | None) -> None:
    assert relation_in(words) == relation


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
    ("words", "part"),
    [
        ("in the upper left corner", Part("low", "low")),
        ("Bottom Right", Part("high", "high")),
        ("right side", Part("high", None)),
        ("the lower half of the picture", Part(None, "high")),
        ("the center of the image", Part("middle", "middle")),
        ("top middle", Part("middle", "low")),
        ("left center", Part("low", "middle")),
        ("It is on the left.", Part("low", None)),
        ("upper left left", None),
        ("top bottom", None),
        ("blue left", None),
        ("the side", None),
        ("", None),
    ],
)
def test_words_name_a_part_of_the_picture(words: str, part: Part | None) -> None:
    assert part_in(words) == part


def test_choices_are_different_parts() -> None:
    assert parts_in(("left", "right")) == (Part("low", None), Part("high", None))
    assert parts_in(("top", "upper")) is None
    assert parts_in(("left", "blue")) is None
    assert parts_in(("left",)) is None


@pytest.mark.parametrize("words", ["red", "Dark Blue", " gray ", "grey", "red and white", "red/green or blue"])
def test_a_colour_or_several(words: str) -> None:
    assert is_color(words)


@pytest.mark.parametrize("words", ["", "reddish", "wood", "dark", "red and", "red car"])
def test_no_colour(words: str) -> None:
    assert not is_color(words)


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


@pytest.mark.parametrize(
    ("words", "thing"),
    [
        ("the desk (highlighted by a red box)", Thing("desk", "red")),
        ("the left desk (red box)", None),
        ("the Blue bounding box", Thing(color="blue")),
        ("object in the green rectangle", Thing(color="green")),
        ("Point B", Thing(letter="B")),
        ("the box A.", Thing(letter="A")),
        ("a  cup, ", Thing("cup")),
        ("some cups", Thing("cup")),
        ("the trash cans", Thing("trash can")),
        ("photo frame", Thing("photo frame")),
        ("the brick building", Thing("brick building")),
        ("two dogs", None),
        ("left lamp", None),
        ("the woman's jacket", None),
        ("the left", None),
        ("", None),
    ],
)
def test_words_name_one_thing(words: str, thing: Thing | None) -> None:
    assert thing_in(words) == thing


def test_things_are_named_each_and_are_different() -> None:
    assert things_in(["cup", "the box"]) == (CUP, BOX)
    assert things_in(["cup", "the cup"]) is None
    assert things_in(["cup", "left one"]) is None
    assert things_in([]) == ()
    assert [Thing("cup", "red").told, Thing(color="red").told, Thing(letter="A").told] == [
        "cup",
        "the red box",
        "point A",
    ]


def test_a_question_may_name_the_thing_more_closely() -> None:
    assert same_thing(CUP, Thing("cup", "red"))
    assert not same_thing(CUP, BOX)
    assert not same_thing(None, CUP)
    assert same_thing(Thing(color="red"), Thing("cup", "red"))
    assert not same_thing(Thing(color="blue"), Thing("cup", "red"))
    assert not same_thing(Thing(letter="A"), Thing(letter="B"))


def test_alternatives_are_set_apart_by_commas_and_or() -> None:
    assert alternatives("the cup, the plate or the bowl") == ["the cup", "the plate", "the bowl"]
    assert alternatives(" a, b, and c ") == ["a", "b", "c"]
    assert alternatives("a, or b") == ["a", "b"]
    assert alternatives("a organ") == ["a organ"]


@pytest.mark.parametrize(
    ("named", "share", "third"),
    [
        (["low", "high"], 0.44, "low"),
        (["low", "high"], 0.46, None),
        (["low", "high"], 0.54, None),
        (["low", "high"], 0.56, "high"),
        (["low", "middle", "high"], 0.28, "low"),
        (["low", "middle", "high"], 0.29, None),
        (["low", "middle"], 0.38, None),
        (["low", "middle"], 0.39, "middle"),
        (["low", "middle"], 0.61, "middle"),
        (["low", "middle"], 0.7, None),
        (["middle", None], 0.72, "high"),
    ],
)
def test_a_place_is_clear_of_the_borders_by_a_twentieth(
    named: list[Third | None], share: float, third: Third | None
) -> None:
    assert _third(named, share) == third


def test_what_is_shown_of_a_thing() -> None:
    # A detected box with a tenth around it, inside of the picture; a drawn one without its line of four pixels.
    assert _region(Box(100, 100, 120, 140), False) == Box(98, 96, 122, 144)
    assert _region(Box(1, 0, 101, 10), False) == Box(0, 0, 111, 11)
    assert _region(Box(100, 100, 120, 140), True) == Box(104, 104, 116, 136)
    assert _region(Box(100, 100, 120, 116), True) == Box(98, pytest.approx(98.4), 122, pytest.approx(117.6))
    assert _region(Box(100, 100, 117, 117), True) == Box(104, 104, 113, 113)


def test_depth_is_asked_at_the_middle_pixel_of_each_box() -> None:
    assert _middles([Box(0, 0, 1, 1), Box(10, 20, 31, 41)]) == [
        {"x": 0.0, "y": 0.0, "label": "0"},
        {"x": 20.0, "y": 30.0, "label": "1"},
    ]
    assert _middles([Box(0, 0, 0.5, 0.5)]) == [{"x": 0.0, "y": 0.0, "label": "0"}]
