"""The answers that a guess may give: each has a probability, and each draw is one of these answers."""

import json
import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers import parse
from hybrid.answers.offered import draw, list_answers
from hybrid.core.types import Box, Kind, Prompt, PromptFacts, Scanpath

PROMPTS = st.builds(
    Prompt,
    st.just(("?",)),
    st.sampled_from([kind for kind in Kind if kind is not Kind.SCANPATH]),
    st.integers(0, 5).map(lambda count: tuple(f"option {number}" for number in range(count))),
    st.integers(0, 4).map(lambda count: PromptFacts(boxes=(Box(0, 0, 1, 1),) * count)),
)


@given(PROMPTS, st.integers(0, 2**32))
def test_every_draw_is_among_the_answers_that_are_listed(prompt: Prompt, seed: int) -> None:
    listing = list_answers(prompt)
    assert listing is not None
    answers = [answer for answer, _ in listing]
    assert len(set(answers)) == len(answers)
    assert math.fsum(probability for _, probability in listing) == pytest.approx(1, abs=1e-12)
    assert draw(prompt, random.Random(seed)) in answers


@pytest.mark.parametrize(
    ("kind", "choices"),
    [(Kind.CHOICE, 3), (Kind.YES_NO, 0), (Kind.INTEGER, 0), (Kind.ORDER, 3), (Kind.VIEWS, 4), (Kind.VIEW_PLAN, 4)],
)
def test_answers_are_drawn_as_often_as_they_are_said_to_be(kind: Kind, choices: int) -> None:
    prompt = Prompt(("?",), kind, ("x",) * choices)
    rng, draws = random.Random(7), 40_000
    seen = Counter(draw(prompt, rng) for _ in range(draws))
    answers = list_answers(prompt)
    assert answers is not None
    for answer, probability in answers:
        error = math.sqrt(probability * (1 - probability) / draws)
        assert seen[answer] / draws == pytest.approx(probability, abs=4 * error), answer


def test_probabilities_by_hand() -> None:
    assert list_answers(Prompt(("?",), Kind.CHOICE, ("x", "y"))) == (("A", 0.5), ("B", 0.5))
    assert list_answers(Prompt(("?",), Kind.INTEGER)) == tuple((str(number), 0.1) for number in range(1, 11))
    orders = list_answers(Prompt(("?",), Kind.ORDER, ("x", "y", "z")))
    assert orders is not None
    assert dict(orders) == dict.fromkeys(("ABC", "ACB", "BAC", "BCA", "CAB", "CBA"), 1 / 6)
    views = dict(list_answers(Prompt(("?",), Kind.VIEWS)) or ())
    # With probability 1/16 none of the four views is drawn; then one of them is returned.
    assert len(views) == 15
    assert (views["1"], views["1, 3"]) == (1 / 16 + 1 / 64, 1 / 16)


@pytest.mark.parametrize(("choices", "boxes", "letters"), [(3, 5, "ABC"), (0, 4, "ABCD"), (0, 0, "AB")])
def test_without_options_the_boxes_are_put_in_order(choices: int, boxes: int, letters: str) -> None:
    prompt = Prompt(("?",), Kind.ORDER, ("x",) * choices, given=PromptFacts(boxes=(Box(0, 0, 1, 1),) * boxes))
    answers = list_answers(prompt)
    assert answers is not None
    assert len(answers) == math.factorial(len(letters))
    assert answers[0] == (letters, 1 / len(answers))
    assert sorted(draw(prompt, random.Random(1))) == list(letters)


@pytest.mark.parametrize(("fixations", "number"), [(None, 6), (3, 3)])
def test_a_scanpath_is_drawn_over_the_whole_image(fixations: int | None, number: int) -> None:
    prompt = Prompt(("?",), Kind.SCANPATH, given=PromptFacts(fixations=fixations))
    rng = random.Random(0)
    items = [parse(draw(prompt, rng), Kind.SCANPATH).value for _ in range(1500)]
    assert all(isinstance(path, Scanpath) and len(path.x) == number for path in items)
    for axis, ends in (("x", (0.0, 1.0)), ("y", (0.0, 1.0)), ("t_ms", (100, 400))):
        values = [value for path in items for value in getattr(path, axis)]
        assert (min(values), max(values)) == ends
        assert all(value == round(value, 2) for value in values)
        assert math.fsum(values) / len(values) == pytest.approx(sum(ends) / 2, rel=0.03)


def test_a_plan_keeps_what_it_looks_at() -> None:
    plans = [json.loads(answer) for answer, _ in list_answers(Prompt(("?",), Kind.VIEW_PLAN)) or ()]
    assert all(plan == {"part": plan["part"], "keep": plan["part"], "shift": [], "reason": ""} for plan in plans)
    assert {tuple(plan["part"]) for plan in plans} >= {(), (1,), (4,), (1, 2, 3, 4)}
    assert len(plans) == 16


def test_what_is_not_guessed_is_an_empty_reply() -> None:
    for kind in (*NOT_GUESSED, Kind.CHOICE):
        prompt = Prompt(("?",), kind)
        assert list_answers(prompt) == (("", 1.0),)
        assert draw(prompt, random.Random(0)) == ""


def test_what_cannot_be_listed_is_said_to_be_so() -> None:
    assert list_answers(Prompt(("?",), Kind.SCANPATH)) is None
    assert list_answers(Prompt(("?",), Kind.ORDER, ("x",) * 7)) is not None
    assert list_answers(Prompt(("?",), Kind.ORDER, ("x",) * 8)) is None


# Kinds for which the only possible guess is an empty reply.
NOT_GUESSED = (Kind.NUMBER, Kind.TEXT, Kind.POINT, Kind.BOX, Kind.FREE)


@given(PROMPTS)
def test_listed_answers_are_read_as_what_they_are(prompt: Prompt) -> None:
    if prompt.kind in NOT_GUESSED or (prompt.kind is Kind.CHOICE and not prompt.choices):
        return
    if prompt.kind is Kind.ORDER and len(prompt.choices) < 2:
        return
    if prompt.kind in (Kind.VIEWS, Kind.VIEW_PLAN):
        prompt = replace(prompt, choices=("a", "b", "c", "d"))
    read = [parse(answer, prompt.kind, prompt.choices).value for answer, _ in list_answers(prompt) or ()]
    assert None not in read
    assert len(set(map(repr, read))) == len(read)
