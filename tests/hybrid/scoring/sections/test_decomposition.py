"""The decomposition of the gain: a worked example, what adds up exactly, and factors that multiply to their part."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.scoring.sections.decomposition import PARTS, SIGNS, TERMS, ToolQuestion, decompose

EXAMPLE = [
    # id, task, alone, with tools, tools: ten questions, as docs/study.md goes through them.
    ToolQuestion("q1", "t", "q1", 0, 1, ("depth",)),
    ToolQuestion("q2", "t", "q2", 0, 1, ("crop", "depth")),
    ToolQuestion("q3", "t", "q3", 0, 1, ("depth",)),
    ToolQuestion("q4", "t", "q4", 0, 0, ("crop",)),
    ToolQuestion("q5", "t", "q5", 0, 1, ()),
    ToolQuestion("q6", "t", "q6", 0, 0, ()),
    ToolQuestion("q7", "t", "q7", 1, 1, ("depth",)),
    ToolQuestion("q8", "t", "q8", 1, 0, ("depth",)),
    ToolQuestion("q9", "t", "q9", 1, 0, ()),
    ToolQuestion("q10", "t", "q10", 1, 1, ()),
]


def test_the_worked_example() -> None:
    values = decompose(EXAMPLE, "ratio").values
    assert values[:5] == pytest.approx([0.2, 0.3, 0.1, 0.1, 0.1])
    factors = np.reshape(values[5:], (4, 3))
    assert factors[0] == pytest.approx([6 / 10, 4 / 6, 3 / 4])
    assert factors[1] == pytest.approx([6 / 10, 2 / 6, 1 / 2])
    assert factors[2] == pytest.approx([4 / 10, 2 / 4, 1 / 2])
    assert factors[3] == pytest.approx([4 / 10, 2 / 4, 1 / 2])


def test_a_mean_over_tasks_weighs_each_task_alike() -> None:
    easy = [ToolQuestion(f"e{i}", "easy", f"e{i}", 1, 1, ()) for i in range(9)]
    hard = [ToolQuestion("h", "hard", "h", 0, 1, ("depth",))]
    assert decompose([*easy, *hard], "ratio").values[:2] == pytest.approx([0.1, 0.1])
    assert decompose([*easy, *hard], "mean_of_ratios").values[:2] == pytest.approx([0.5, 0.5])


QUESTIONS = st.lists(
    st.builds(
        ToolQuestion,
        id=st.uuids().map(str),
        task=st.sampled_from("xyz"),
        cluster=st.sampled_from("abcdefgh"),
        alone=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
        with_tools=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
        tools=st.sampled_from([(), ("depth",), ("crop",), ("crop", "depth")]),
    ),
    min_size=1,
    max_size=25,
)


@given(QUESTIONS, st.sampled_from(["ratio", "mean_of_ratios"]))
def test_the_parts_add_up_in_the_sample_and_in_every_resample(questions: Sequence[ToolQuestion], how: str) -> None:
    found = decompose(questions, how)
    for numbers in (found.values[None], found.draws):
        total = sum(sign * numbers[:, 1 + place] for place, sign in enumerate(SIGNS))
        np.testing.assert_allclose(total, numbers[:, 0], rtol=0, atol=1e-12)


@given(QUESTIONS, st.sampled_from(["ratio", "mean_of_ratios"]))
def test_each_part_is_mass_times_policy_times_quality(questions: Sequence[ToolQuestion], how: str) -> None:
    values = decompose(questions, how).values
    for place in range(len(TERMS)):
        mass, policy, quality = values[5 + 3 * place : 8 + 3 * place]
        part = values[1 + place]
        # A factor is undefined where nothing is in its condition, and the part is then nothing.
        product = 0.0 if math.isnan(policy) or math.isnan(quality) else mass * policy * quality
        assert product == pytest.approx(part, abs=1e-12)
        assert all(math.isnan(factor) or -1e-12 <= factor <= 1 + 1e-12 for factor in (mass, policy, quality))


@given(QUESTIONS)
def test_a_question_adds_to_one_part_at_most(questions: Sequence[ToolQuestion]) -> None:
    for one in questions:
        assert sum(part > 0 for part in one.parts) <= 1
        assert sum(s * p for s, p in zip(SIGNS, one.parts, strict=True)) == pytest.approx(one.with_tools - one.alone)
    assert len(PARTS) == len(SIGNS) == 4
