"""The decomposition of the gain: a worked example, what adds up exactly, and factors that multiply to their part."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.scoring.sections.decomposition import GAIN, PARTS, SIGNS, TERMS, ToolQuestion, decompose
from hybrid.types import Combine
from tests.tables import cases

# Ten questions, as docs/study.md goes through them.
EXAMPLE = [ToolQuestion(*row) for row in cases(__file__, "EXAMPLE")[1]]


def values(questions: Sequence[ToolQuestion], how: Combine) -> dict[str, float]:
    """The numbers that are defined."""
    return {name: one.value for name, one in decompose(questions, how).items() if one.value is not None}


def test_the_worked_example() -> None:
    found = values(EXAMPLE, "ratio")
    assert [found[name] for name in (GAIN, *PARTS)] == pytest.approx([0.2, 0.3, 0.1, 0.1, 0.1])
    factors = [[found[name] for name in (term.mass, term.policy, term.quality)] for term in TERMS]
    assert factors[0] == pytest.approx([6 / 10, 4 / 6, 3 / 4])
    assert factors[1] == pytest.approx([6 / 10, 2 / 6, 1 / 2])
    assert factors[2] == pytest.approx([4 / 10, 2 / 4, 1 / 2])
    assert factors[3] == pytest.approx([4 / 10, 2 / 4, 1 / 2])


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
    questions: Sequence[ToolQuestion], how: Combine, seed: int
) -> None:
    clusters = sorted({one.cluster for one in questions})
    drawn = random.Random(seed).choices(clusters, k=len(clusters))
    resample = [one for cluster in drawn for one in questions if one.cluster == cluster]
    for own in (questions, resample):
        found = values(own, how)
        total = sum(sign * found[part] for part, sign in zip(PARTS, SIGNS, strict=True))
        assert total == pytest.approx(found[GAIN], abs=1e-12)


@settings(max_examples=15)
@given(QUESTIONS, st.sampled_from(["ratio", "mean_of_ratios"]))
def test_each_part_is_mass_times_policy_times_quality(questions: Sequence[ToolQuestion], how: Combine) -> None:
    found = values(questions, how)
    for term in TERMS:
        # A factor is undefined where nothing is in its condition, and the part is then nothing.
        factors = [found.get(name, 0.0) for name in (term.mass, term.policy, term.quality)]
        assert math.prod(factors) == pytest.approx(found[term.part], abs=1e-12)
        assert all(-1e-12 <= factor <= 1 + 1e-12 for factor in factors)


@settings(max_examples=15)
@given(QUESTIONS, st.sampled_from(["ratio", "mean_of_ratios"]))
def test_every_interval_is_around_its_value(questions: Sequence[ToolQuestion], how: Combine) -> None:
    for name, one in decompose(questions, how).items():
        if one.value is not None and one.interval is not None:
            assert (-1 if name == GAIN else 0) <= one.interval.low <= one.value + 1e-12
            assert one.value - 1e-12 <= one.interval.high <= 1


@given(QUESTIONS)
def test_a_question_adds_to_one_part_at_most(questions: Sequence[ToolQuestion]) -> None:
    for one in questions:
        assert sum(part > 0 for part in one.parts) <= 1
        assert sum(s * p for s, p in zip(SIGNS, one.parts, strict=True)) == pytest.approx(one.with_tools - one.alone)
    assert len(PARTS) == len(SIGNS) == 4
