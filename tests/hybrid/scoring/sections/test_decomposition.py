"""The parts of the gain add up exactly; tests/recomputed recomputes every number of the section."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.types import Combine
from hybrid.scoring.sections.decomposition import GAIN, PARTS, SIGNS, ToolQuestion, decompose


def values(questions: Sequence[ToolQuestion], combine: Combine) -> dict[str, float]:
    """Return the numbers that are defined."""
    return {name: value.value for name, value in decompose(questions, combine).items() if value.value is not None}


GRADES = st.one_of(st.sampled_from([0.0, 1.0]), st.integers(0, 1000).map(lambda grade: grade / 1000))
QUESTIONS = st.lists(
    st.builds(
        ToolQuestion,
        id=st.uuids().map(str),
        task=st.sampled_from("xyz"),
        cluster=st.sampled_from("abcdefgh"),
        alone=GRADES,
        with_tools=GRADES,
        tools=st.sampled_from([(), ("depth",), ("crop",), ("crop", "depth")]),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=15)
@given(QUESTIONS, st.sampled_from(["ratio", "mean_of_ratios"]), st.integers(0, 2**32 - 1))
def test_the_parts_add_up_in_the_sample_and_in_every_resample(
    questions: Sequence[ToolQuestion], combine: Combine, seed: int
) -> None:
    clusters = sorted({question.cluster for question in questions})
    sample = random.Random(seed).choices(clusters, k=len(clusters))
    resample = [item for cluster in sample for item in questions if item.cluster == cluster]
    for current in (questions, resample):
        result = values(current, combine)
        total = sum(sign * result[part] for part, sign in zip(PARTS, SIGNS, strict=True))
        assert total == pytest.approx(result[GAIN], abs=1e-12)


@settings(max_examples=15)
@given(QUESTIONS, st.sampled_from(["ratio", "mean_of_ratios"]))
def test_a_repetition_that_equals_the_first_changes_no_number(
    questions: Sequence[ToolQuestion], combine: Combine
) -> None:
    mixed = [replace(question, answered=place % 3 > 0) for place, question in enumerate(questions)]
    repeated = [replace(question, later=(question,)) for question in mixed]
    assert values(repeated, combine) == values(mixed, combine)
