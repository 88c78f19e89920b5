"""Exercises in copying ask for nothing that is not in them."""

import random
import re

import pytest

from hybrid.models.embedded.training.drills import drill
from hybrid.models.embedded.training.policy import TaughtAsk, saliency_of_spots


@pytest.fixture(scope="module")
def drills() -> list[tuple[str, str]]:
    rng = random.Random(0)
    turns = [drill(rng)["turns"] for _ in range(300)]
    return [(asked["content"], told["content"]) for asked, told in turns]


def test_boxes_around_fixations_are_those_of_a_call(drills: list[tuple[str, str]]) -> None:
    boxed = [(asked, told) for asked, told in drills if re.match(r"\[A\] \(", asked) and "boxes" in told]
    assert len(boxed) > 20
    for asked, told in boxed:
        call = saliency_of_spots(TaughtAsk(asked, (), ("img:1",)))
        boxes = call.args["boxes"]
        assert isinstance(boxes, list)
        assert len(boxes) == told.count('"label"')
        for box in boxes:
            assert isinstance(box, dict)
            sides = ", ".join(f'"{side}": {box[side]:.2f}' for side in ("x0", "y0", "x1", "y1"))
            assert f'{{{sides}, "label": "{box["label"]}"}}' in told


def test_what_is_copied_is_the_same(drills: list[tuple[str, str]]) -> None:
    listed = [(asked, told) for asked, told in drills if re.match(r"\[A\] \[", asked)]
    assert len(listed) > 10
    for asked, told in listed:
        assert re.findall(r"[01]\.\d\d", asked) == re.findall(r"[01]\.\d\d", told)
    assert sum(asked == told for asked, told in drills) > 10


def test_an_image_is_named_by_the_option_with_its_number(drills: list[tuple[str, str]]) -> None:
    ordinals = {"second": 2, "third": 3, "fourth": 4}
    numbered = [(asked, told) for asked, told in drills if "continues" in told]
    assert len(numbered) > 10
    for asked, told in numbered:
        option = {ordinals[name]: letter for letter, name in re.findall(r"\(([A-C])\) the (\w+) image", asked)}
        assert all(option[int(number)] == letter for number, letter in re.findall(r"Image (\d).*\(([A-C])\)", told))


def test_what_is_told_of_letters_is_what_was_asked(drills: list[tuple[str, str]]) -> None:
    looked_up = 0
    for asked, told in drills:
        for value, letter in re.findall(r"^(\S+(?: \S+)?): \(([A-H])\)$", told, re.MULTILINE):
            if "continues" not in value and "Image" not in value:
                assert any(form.format(letter, value) in asked for form in ("({}) {}", "[{}] {}", "{}. {}"))
                looked_up += 1
    assert looked_up > 100
