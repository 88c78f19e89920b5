"""The parts of the gain add up exactly; tests/recomputed recomputes every number of the section."""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.types import Combine
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.sections.decomposition import GAIN, PARTS, SIGNS, ToolQuestion, decompose, rows_of


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


def tool_question(number: int, alone: float, with_tools: float, *tools: str, **more: Any) -> ToolQuestion:
    """Return a question: numbers 1 to 3 are of task x, the others of task y."""
    return ToolQuestion(str(number), "x" if number <= 3 else "y", f"c{number}", alone, with_tools, tools, **more)


REPEATED = tool_question(
    7, 0, 1, "depth", later=(tool_question(7, 0, 0.5), tool_question(7, 0, 1, "depth", answered=False))
)
EXAMPLE = (
    tool_question(1, 0, 1, "depth"),
    tool_question(2, 0, 0.5),
    tool_question(3, 1, 0, "crop"),
    tool_question(4, 1, 0.25),
    tool_question(5, 0, 1, "depth", answered=False),
    tool_question(6, 1, 0.5, answered=False),
    REPEATED,
    tool_question(8, 0.5, 0.5, "crop", "depth"),
)
# The contribution of each question to each part.
CONTRIBUTIONS = {
    "gain with a call": [1, 0, 0, 0, 0, 0, 1 / 3, 0],
    "gain without a call": [0, 0.5, 0, 0, 0, 0, 0.5 / 3, 0],
    "harm with a call": [0, 0, 1, 0, 0, 0, 0, 0],
    "harm without a call": [0, 0, 0, 0.75, 0, 0, 0, 0],
    "gain by answering": [0, 0, 0, 0, 1, 0, 1 / 3, 0],
    "harm by no answer": [0, 0, 0, 0, 0, 0.5, 0, 0],
}
# By question: correctness alone, and the share of repetitions that were answered, and that were answered with a call.
ALONE, READ, CALLED = [0, 0, 1, 1, 0, 1, 0, 0.5], [1, 1, 1, 1, 0, 0, 2 / 3, 1], [1, 0, 1, 0, 0, 0, 1 / 3, 1]


@pytest.mark.parametrize("averaging", ["ratio", "mean_of_ratios"])
def test_all_numbers_of_eight_questions_follow_their_definitions(averaging: Combine) -> None:
    weights = [1 / 3] * 3 + [1 / 5] * 5 if averaging == "mean_of_ratios" else [1.0] * 8

    def share(above: Sequence[float], below: Sequence[float] = (1,) * 8) -> float:
        return sum(map(prod, zip(weights, above, strict=True))) / sum(map(prod, zip(weights, below, strict=True)))

    expected = {name: share(amounts) for name, amounts in CONTRIBUTIONS.items()}
    expected["accuracy alone"] = share(ALONE)
    expected[GAIN] = share([1, 0.5, 0, 0.25, 1, 0.5, 2.5 / 3, 0.5]) - share(ALONE)
    for of, side in (("wrong", [1 - right for right in ALONE]), ("right", ALONE)):
        read = [right * answered for right, answered in zip(side, READ, strict=True)]
        expected[f"P({of} alone)"] = share(read)
        for call in ("call", "no call"):
            acting = CALLED if call == "call" else [answered - k for answered, k in zip(READ, CALLED, strict=True)]
            acted = [right * k for right, k in zip(side, acting, strict=True)]
            part = f"{'gain' if of == 'wrong' else 'harm'} {'with' if call == 'call' else 'without'} a call"
            other = "right" if of == "wrong" else "wrong"
            expected[f"P({call} | {of} alone)"] = share(acted, read)
            expected[f"P({other} with tools | {call}, {of} alone)"] = share(CONTRIBUTIONS[part], acted)
    assert values(EXAMPLE, averaging) == pytest.approx(expected)
    without_answering = {name: value for name, value in values(EXAMPLE[:4], averaging).items() if "answer" in name}
    assert without_answering == {}


def test_rows_name_the_questions_of_their_part() -> None:
    rows = {row.quantity: row for row in rows_of(Result("decomposition", "", FRACTION, None), EXAMPLE, "ratio")}
    for name, amounts in CONTRIBUTIONS.items():
        assert rows[name].ids == tuple(str(n) for n, amount in enumerate(amounts, 1) if amount)
    assert rows[GAIN].ids == ()
    assert {row.n for row in rows.values()} == {8}
    assert {name for name, row in rows.items() if not row.detail} == {GAIN, *CONTRIBUTIONS}


def test_questions_with_other_tools_contribute_nothing_to_a_set_of_tools() -> None:
    with_depth, with_crop = ([question.only((tool,)) for question in EXAMPLE] for tool in ("depth", "crop"))
    assert [question.parts[0] for question in with_depth] == pytest.approx(CONTRIBUTIONS["gain with a call"])
    assert [question.parts[2] for question in with_depth] == [0] * 8
    assert [question.parts[0] for question in with_crop] == [0] * 8
    assert [question.parts[2] for question in with_crop] == CONTRIBUTIONS["harm with a call"]
