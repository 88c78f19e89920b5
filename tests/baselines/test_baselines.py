"""Tests of the baselines: the model alone with the same prompt, the specialist's rule, and a seeded guess."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers import parse
from hybrid.answers.offered import FIXATIONS, draw
from hybrid.answers.scanpaths import parse_scanpath
from hybrid.core.types import Kind, Prompt, PromptFacts

PROMPTS = st.builds(
    Prompt,
    st.just(("?",)),
    st.sampled_from([Kind.CHOICE, Kind.YES_NO, Kind.CONTINUE, Kind.INTEGER, Kind.ORDER, Kind.SCANPATH, Kind.VIEWS]),
    st.lists(st.text(max_size=5), min_size=2, max_size=6).map(tuple),
    st.builds(PromptFacts, fixations=st.none() | st.integers(1, 12)),
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
