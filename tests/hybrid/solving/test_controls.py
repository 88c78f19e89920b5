"""Tests of controls: what replaces a tool's output, and that the cache never stores the replacement."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict

from hybrid.config import ToolOutput
from hybrid.core.types import Kind, Prompt, Question, StoredImage
from hybrid.plugins.registry import load
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import AskedQuestion, OracleWords, ToolCondition, clip, partners
from hybrid.tool.args import Args


def make_question(service: CachedTools, fakes: Any, identity: str, seed: int, **changes: Any) -> Question:
    question: Question = fakes.question(identity, images=(fakes.stored(service.store, seed),), **changes)
    return question


def prompt_of(question: Question, fakes: Any) -> Prompt:
    refs = [fakes.ImageRef(f"img:{place}", image) for place, image in enumerate(question.images, 1)]
    return Prompt((question.text, *refs), Kind.CHOICE, question.choices, route=question.route)


def subject(question: Question) -> AskedQuestion:
    return AskedQuestion(question.id, question.unit, question.images)


async def find(service: CachedTools, fakes: Any, mode: ToolOutput, question: Question, others: list[Question]) -> Any:
    tool = fakes.counter(fakes.CountingBackend(draw=True))
    control = ToolCondition(
        service,
        mode,
        lambda identity, p: OracleWords(f"{identity} is (A) of {len(p.choices)}", "Answer: (A)"),
        partners([question, *others], 0),
    )
    prompt = prompt_of(question, fakes)
    return await control.find(tool, fakes.NumberArgs(number=5), prompt.images, subject(question), prompt, 0)


async def test_a_shuffled_finding_never_answers_for_the_question_itself(service: CachedTools, fakes: Any) -> None:
    question, other = make_question(service, fakes, "q1", 1), make_question(service, fakes, "q2", 2)
    await find(service, fakes, "shuffled", question, [other])
    for item, seed in ((question, 1), (other, 2)):
        real = await find(service, fakes, "real", item, [])
        assert (real.backend, real.version) == ("classical", "1")
        assert real.data["mean"] == pytest.approx(fakes.pixels(seed).mean())


async def test_each_image_stands_for_the_partners_image_in_its_place(service: CachedTools, fakes: Any) -> None:
    first, second, third, fourth = (fakes.stored(service.store, seed) for seed in (1, 2, 3, 4))
    question = fakes.question("q1", images=(first, second))
    other = fakes.question("q2", images=(third, fourth))
    control = ToolCondition(service, "shuffled", None, partners([question, other], 0))
    prompt = prompt_of(question, fakes)
    tool = fakes.counter(fakes.CountingBackend())
    derived = fakes.ImageRef("img:2.1", fakes.stored(service.store, 9), parent="img:2")
    for ref, seed in ((prompt.images[0], 3), (prompt.images[1], 4), (derived, 4)):
        result = await control.find(tool, fakes.NumberArgs(), [ref], subject(question), prompt, 0)
        assert result.data["mean"] == pytest.approx(fakes.pixels(seed).mean())


def group(*specs: tuple[str, str, int, str]) -> list[Question]:
    """Questions whose images identify them: their sha256 is the id in hex."""
    return [
        Question(
            identity,
            "T",
            (StoredImage(identity.encode().hex().zfill(64), 1, 1, "image/png"),) * count,
            "?",
            Kind.CHOICE,
            route=route,
            cluster=cluster,
        )
        for identity, route, count, cluster in specs
    ]


def owners(results: Mapping[str, tuple[StoredImage, ...]]) -> dict[str, str]:
    """Return, by a question's id, the id of the question whose images it receives."""
    return {identity: bytes.fromhex(images[0].sha256).lstrip(b"\0").decode() for identity, images in results.items()}


SPEC = st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "#s1", "#r2"]), st.sampled_from("rs"))


@given(st.lists(SPEC, max_size=14, unique_by=lambda spec: spec[0] + spec[1]), st.integers(0, 5))
def test_partners_are_strangers_of_the_same_route_whatever_the_order(
    specs: list[tuple[str, str, str]], seed: int
) -> None:
    routes = {base: route for base, _, route in specs}
    questions = group(*((base + variant, routes[base], 1, "") for base, variant, _ in specs))
    result = partners(questions, seed)
    by_id = {question.id: question for question in questions}
    for identity, owner in owners(result).items():
        assert by_id[owner].base != by_id[identity].base
        assert by_id[owner].route == by_id[identity].route
    alone = {q.id for q in questions if len({o.base for o in questions if o.route == q.route}) < 2}
    assert set(result) == set(by_id) - alone
    assert partners(list(reversed(questions)), seed) == result


def test_points_named_by_their_letter_and_boxes_are_clipped_too() -> None:
    depth, saliency = load("tools", "depth"), load("tools", "saliency")
    sample = depth.args.model_validate({"points": [{"label": "A"}, {"x": 300, "y": 5}]})
    assert [(point.x, point.y, point.label) for point in clip(sample, [(100, 50)]).points] == [
        (None, None, "A"),
        (99, 5, None),
    ]
    boxes = saliency.args.model_validate(
        {"boxes": [{"x0": 90, "y0": 10, "x1": 300, "y1": 40}, {"x0": 400, "y0": 400, "x1": 500, "y1": 500}]}
    )
    moved = [(box.x0, box.y0, box.x1, box.y1) for box in clip(boxes, [(100, 50)]).boxes]
    # A box beyond the image keeps its last pixel: an empty one would be another kind of call.
    assert moved == [(90, 10, 100, 40), (99, 49, 100, 50)]


def test_a_candidate_is_clipped_to_the_image_it_lies_in() -> None:
    pair = load("tools", "correspondence")
    args = pair.args.model_validate({"point": {"x": 80, "y": 8}, "candidates": [{"x": 80, "y": 80}]})
    clipped = clip(args, [(50, 50), (100, 60)])
    assert (clipped.point.x, clipped.point.y) == (49, 8)
    assert (clipped.candidates[0].x, clipped.candidates[0].y) == (80, 59)


@given(box=st.tuples(*[st.floats(-1e4, 1e4)] * 4), is_whole=st.booleans(), at=st.integers(1, 2))
def test_arguments_that_are_json_alone_are_moved_inside_as_ours_are(
    box: tuple[float, ...], is_whole: bool, at: int
) -> None:
    class Anything(Args):
        model_config = ConfigDict(frozen=True, extra="allow")

    numbers = [int(number) if is_whole else number for number in box]
    given_box = dict(zip(("x0", "y0", "x1", "y1"), numbers, strict=True))
    args = Anything.model_validate({"boxes": [{**given_box, "image": at, "name": "x"}], "x": numbers[0], "on": True})
    moved: Any = clip(args, [(40, 30), (20, 10)]).model_dump()
    width, height = ((40, 30), (20, 10))[at - 1]
    (result,) = moved["boxes"]
    assert 0 <= result["x0"] <= width - 1
    assert 1 <= result["x1"] <= width
    assert 0 <= result["y0"] <= height - 1
    assert 1 <= result["y1"] <= height
    assert (result["name"], result["image"], moved["on"]) == ("x", at, True)
    assert 0 <= moved["x"] <= 39
    inside = {"x": 3.5, "deep": {"y": 4, "x1": 40}}
    assert clip(Anything.model_validate(inside), [(40, 30)]).model_dump() == inside
