"""Exercises in copying can be solved from their own text."""

import random
import re

import pytest

from training.drills import drill
from training.policy import TaughtAsk, call_for


@pytest.fixture(scope="module")
def drills() -> list[tuple[str, str]]:
    rng = random.Random(0)
    turns = [drill(rng)["turns"] for _ in range(300)]
    return [(turn["content"], text["content"]) for turn, text in turns]


def test_boxes_around_fixations_are_those_of_a_call(drills: list[tuple[str, str]]) -> None:
    boxed = [(request, text) for request, text in drills if re.match(r"\[A\] \(", request) and "boxes" in text]
    assert len(boxed) > 10
    for question, message in boxed:
        call = call_for(TaughtAsk(f"hold longest? {question}", (), ("img:1",)))
        assert call is not None
        boxes = call.args["boxes"]
        assert isinstance(boxes, list)
        assert len(boxes) == message.count('"label"')
        for box in boxes:
            assert isinstance(box, dict)
            sides = ", ".join(f'"{side}": {box[side]:.2f}' for side in ("x0", "y0", "x1", "y1"))
            assert f'{{{sides}, "label": "{box["label"]}"}}' in message


def test_what_is_copied_is_the_same(drills: list[tuple[str, str]]) -> None:
    rows = [(request, text) for request, text in drills if re.match(r"\[A\] \[", request)]
    assert len(rows) > 10
    for question, message in rows:
        assert re.findall(r"[01]\.\d\d", question) == re.findall(r"[01]\.\d\d", message)
    assert sum(other_drill == drill_value for other_drill, drill_value in drills) > 10


def test_an_image_is_named_by_the_option_with_its_number(drills: list[tuple[str, str]]) -> None:
    ordinals = {"second": 2, "third": 3, "fourth": 4}
    numbered = [(request, text) for request, text in drills if "continues" in text]
    assert len(numbered) > 10
    for question, message in numbered:
        option = {ordinals[name]: letter for letter, name in re.findall(r"\(([A-C])\) the (\w+) image", question)}
        assert all(option[int(number)] == letter for number, letter in re.findall(r"Image (\d).*\(([A-C])\)", message))


def test_what_is_told_of_letters_is_what_was_asked(drills: list[tuple[str, str]]) -> None:
    looked_up = 0
    for request, text in drills:
        for value, letter in re.findall(r"^(\S+(?: \S+)?): \(([A-H])\)$", text, re.MULTILINE):
            if value != "Answer" and "Image" not in value:
                assert any(form.format(letter, value) in request for form in ("({}) {}", "[{}] {}", "{}. {}"))
                looked_up += 1
    assert looked_up > 50


def test_questions_about_what_is_seen_are_answered_by_it(drills: list[tuple[str, str]]) -> None:
    answered = 0
    for request, text in drills:
        seen, _, answer = text.rpartition("\n")
        options = dict(re.findall(r"^\(([A-D])\) (.+)$", request, re.MULTILINE))
        letter = answer.removeprefix("Answer: (").removesuffix(")")
        matches = re.findall(r"\d+ (\w+) (\w+) (\d+) (\d\.\d) (\d\.\d0)", seen)
        if count := re.match(r"How many (\w+) (\w+)s are", request):
            assert options[letter] == str(sum(item[:2] == count.groups() for item in matches))
        elif match := re.match(r"Is there an? (\w+) (\w+) in", request):
            assert (
                answer
                == f"Answer: {'yes' if any(other_name[:2] == match.groups() for other_name in matches) else 'no'}"
            )
        elif colour := re.match(r"What colour is the (\w+) in", request):
            assert [options[letter]] == [name_value[0] for name_value in matches if name_value[1] == colour[1]]
        elif relation := re.match(
            r"Is the (\w+) (\w+) (at the left side of|at the right side of|above|beneath) the (\w+) (\w+)", request
        ):
            a, b = (
                [other_item for other_item in matches if other_item[:2] == name]
                for name in (relation.group(1, 2), relation.group(4, 5))
            )
            axis = 3 if "side" in relation[3] else 4
            nearer = float(a[0][axis]) < float(b[0][axis])
            assert options[letter] == ("yes" if nearer == (relation[3] in ("at the left side of", "above")) else "no")
        else:
            continue
        answered += 1
    assert answered > 60


def test_ranked_letters_are_told_in_their_order(drills: list[tuple[str, str]]) -> None:
    ranked = [(request, text) for request, text in drills if request.startswith("Order")]
    assert len(ranked) > 5
    for question, message in ranked:
        assert message == "Answer: " + "".join(re.findall(r"\b([A-H]) [01]\.\d\d", question))
