"""Solvers to compare with: the model's own words, the specialist's rule, and a seeded guess of every form."""

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines import chance, mllm, specialist
from hybrid.answers import parse
from hybrid.answers.offered import FIXATIONS, draw
from hybrid.answers.scanpaths import parse_scanpath
from hybrid.errors import ToolError
from hybrid.types import Finding, Given, ImageRef, Kind, Outcome, Prompt, StoredImage

IMAGES = tuple(ImageRef(f"img:{number}", StoredImage("0" * 64, 8, 8, "image/png")) for number in (1, 2, 3))
JIGSAW = Prompt(("Which?", *IMAGES), Kind.CHOICE, ("the second image", "the third image"), route="Jigsaw")


async def test_the_mllm_says_what_the_model_says(fakes: Any) -> None:
    ctx = fakes.context_of(JIGSAW, ["  (B), I think.\n"])
    reply = await mllm.SOLVER.ask(JIGSAW, ctx)
    assert (reply.text, reply.outcome) == ("  (B), I think.\n", Outcome.ANSWERED)
    assert ctx.tool.calls == []


async def test_the_specialist_says_what_its_tool_finds(fakes: Any) -> None:
    ctx = fakes.context_of(JIGSAW, (), [Finding("", {"best": 1}, 0.8, "classical", "1")])
    reply = await specialist.SOLVER.ask(JIGSAW, ctx)
    assert (reply.text, reply.outcome) == ("Answer: (B)", Outcome.ANSWERED)
    (step,) = ctx.log.steps
    assert step.data["specialist_answer"]["confidence"] == 0.8
    assert ctx.model.inner.calls == []


async def test_the_specialist_abstains_where_nothing_decides(fakes: Any) -> None:
    for prompt, findings in (
        (JIGSAW, [Finding("", {"best": None}, 0.0, "classical", "1")]),
        (Prompt(("?",), Kind.YES_NO, route="Spatial_Relation"), []),
    ):
        reply = await specialist.SOLVER.ask(prompt, fakes.context_of(prompt, (), findings))
        assert (reply.text, reply.outcome) == ("", Outcome.ABSTAINED)


async def test_a_failing_tool_is_no_abstention(fakes: Any) -> None:
    with pytest.raises(ToolError, match="too small"):
        await specialist.SOLVER.ask(JIGSAW, fakes.context_of(JIGSAW, (), [ToolError("too small")]))


async def test_chance_repeats_with_its_seed_and_is_about_even(fakes: Any) -> None:
    async def drawn(seed: int) -> str:
        return (await chance.SOLVER.ask(JIGSAW, fakes.context_of(JIGSAW, seed=seed))).text

    texts = [await drawn(seed) for seed in range(400)]
    assert texts == [await drawn(seed) for seed in range(400)]
    counts = Counter(texts)
    assert set(counts) == {"A", "B"}
    assert min(counts.values()) > 150


PROMPTS = st.builds(
    Prompt,
    st.just(("?",)),
    st.sampled_from([Kind.CHOICE, Kind.YES_NO, Kind.CONTINUE, Kind.INTEGER, Kind.ORDER, Kind.SCANPATH, Kind.VIEWS]),
    st.lists(st.text(max_size=5), min_size=2, max_size=6).map(tuple),
    st.builds(Given, fixations=st.none() | st.integers(1, 12)),
)


@given(PROMPTS, st.integers(0, 2**62))
def test_chance_answers_every_kind_in_a_form_that_is_read(prompt: Prompt, seed: int) -> None:
    prompt = replace(prompt, choices=() if prompt.kind is Kind.VIEWS else prompt.choices)
    text = draw(prompt, random.Random(seed))
    assert parse(text, prompt.kind, prompt.choices).value is not None
    if prompt.kind is Kind.SCANPATH:
        path = parse_scanpath(text).value
        assert path is not None
        assert len(path.x) == (prompt.given.fixations or FIXATIONS)


def test_a_plan_of_views_is_json() -> None:
    plan = json.loads(draw(Prompt(("?",), Kind.VIEW_PLAN), random.Random(1)))
    assert set(plan) == {"part", "keep", "shift", "reason"}
