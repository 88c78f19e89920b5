"""Recognising: the thing that a wording asks, and the reason why another is not clear to the rule by_text."""

import pytest

from hybrid.types import Kind
from tests.tools.rules.wordings import prompt, recognised, wordings
from tools.rules.questions.recognising import asked
from tools.rules.questions.sentence import Unclear


@pytest.mark.parametrize("letters", ["({letter}) {choice}", "{letter}. {choice}"])
@pytest.mark.parametrize("name", ["recognised", "abstained", "held_out"])
def test_each_wording_is_recognised_as_what_it_asks(name: str, letters: str) -> None:
    wrong = [
        (one.question, one.expected, found)
        for one in wordings(name)
        if (found := recognised(one.prompt(letters))) != one.expected
    ]
    assert wrong == []


NO_NAME = "names no thing that can be looked for by its name or its mark alone"
NO_TWO = "are not two things that can be looked for by name or mark alone"


@pytest.mark.parametrize(
    ("text", "choices", "kind", "reason"),
    [
        (
            "Is there a cup?",
            ("red", "blue"),
            None,
            "it asks whether there is something, and the answers are not yes and no",
        ),
        ("Is there a left cup in the image?", (), None, f"'left cup' {NO_NAME}"),
        ("Is there a red bounding box in the image?", (), None, f"'red bounding box' {NO_NAME}"),
        (
            "How many of the dogs are black?",
            ("1", "2"),
            None,
            "it counts some of a kind, or kinds, which detection by name does not tell apart",
        ),
        (
            "How many dogs and cats are there?",
            ("1", "2"),
            None,
            "it counts some of a kind, or kinds, which detection by name does not tell apart",
        ),
        (
            "How many dogs are there?",
            ("1", "more than 1"),
            None,
            "it counts, and the answers are not different numbers",
        ),
        ("How many dogs are there?", (), Kind.TEXT, "it counts, and the answers are not different numbers"),
        ("Is the left cup closer to the camera than the box?", (), None, f"'the left cup or the box' {NO_NAME}"),
        (
            "Is the cup closer to the camera than the box?",
            ("cup", "box"),
            None,
            "it asks whether one thing is nearer, and the answers are not yes and no",
        ),
        (
            "Is the cup closer or farther than the box?",
            ("near", "far"),
            None,
            "it asks for nearer or farther, and the answers are not these two",
        ),
        (
            "Is the cup closer or farther than the box?",
            ("closer", "nearer"),
            None,
            "it asks for nearer or farther, and the answers are not these two",
        ),
        (
            "Which is closer to the camera, the left cup or the box?",
            ("a", "b"),
            None,
            f"'the left cup or the box' {NO_NAME}",
        ),
        ("Which point is closest to the camera?", (), None, f"'any of its choices' {NO_NAME}"),
        (
            "Which is closer to the camera, the cup or the box?",
            ("cup", "dog"),
            None,
            "it asks which thing is nearest, and the choices are not the things that it names",
        ),
        (
            "Which is closer to the camera, the cup or the box?",
            ("cup", "box", "both"),
            None,
            "it asks which thing is nearest, and the choices are not the things that it names",
        ),
        (
            "Which is farthest from the camera, the cup, the box or the dog?",
            ("cup", "box", "dog"),
            None,
            "it asks for the farthest of more than two things, and depth tells the nearest",
        ),
        ("What color is the left cup?", ("red", "blue"), None, f"'the left cup' {NO_NAME}"),
        ("What color is point A?", ("red", "blue"), None, f"'point A' {NO_NAME}"),
        (
            "What color is the cup?",
            ("red", "wood"),
            None,
            "it asks for the color of a thing, and the choices are not different ones",
        ),
        (
            "What is the cup made of?",
            (),
            Kind.TEXT,
            "it asks for the material of a thing, and the choices are not different ones",
        ),
        ("What does the sign say?", ("Push",), None, "it asks for text freely"),
        ("What does the sign say?", ("Push", "Pull"), Kind.TEXT, "it asks for text freely"),
        ("Where is the left cup in the image?", ("left", "right"), None, f"'the left cup' {NO_NAME}"),
        (
            "Where is the cup in the image?",
            ("left", "wood"),
            None,
            "it asks where in the picture a thing is, and the choices are not different parts of it",
        ),
        (
            "Where is the cup in the image?",
            ("left", "right"),
            Kind.TEXT,
            "it asks where in the picture a thing is, and the choices are not different parts of it",
        ),
        (
            "Is the cup on the left side of the image?",
            ("red", "blue"),
            None,
            "it asks whether a thing lies in a part of the picture, in words unknown",
        ),
        (
            "Where is the left cup relative to the box?",
            ("left", "right"),
            None,
            f"'the left cup' and 'the box' {NO_TWO}",
        ),
        (
            "Where is the cup relative to the box?",
            ("left", "wood"),
            None,
            "it asks how two things lie, and the choices are not different relations of these two",
        ),
        (
            "Is the cup to the left or right of the box?",
            ("above", "below"),
            None,
            "it names other relations than the choices",
        ),
        (
            "Is the cup on the box?",
            ("a", "b"),
            None,
            "it asks whether two things lie so, and the answers are not yes and no",
        ),
        ("Is the left cup on the box?", (), None, f"'the left cup' and 'the box' {NO_TWO}"),
        (
            "Is the cup pretty?",
            (),
            None,
            "its words are none of those that are known to ask for something that a tool can tell",
        ),
        ("Look at the image.", (), None, "the text holds no question"),
        (
            "Is there a cup? Is there a dog?",
            (),
            None,
            "the text holds more than one sentence, which may change what is asked",
        ),
        (
            "Count the dogs. Count the cats.",
            ("1", "2"),
            None,
            "the text holds more than one sentence, which may change what is asked",
        ),
        ("Is there not a cup?", (), None, "the word 'not' may change what is asked"),
    ],
)
def test_why_a_question_is_not_clear(text: str, choices: tuple[str, ...], kind: Kind | None, reason: str) -> None:
    assert asked(prompt(text, *choices, kind=kind)) == Unclear(reason)
