"""The parts of the gain add up exactly; tests/recomputed recomputes every number of the section."""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.types import Cell, Combine, Fault, Question, Reply, Step
from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.decomposition import (
    ALL_PARTS,
    ALL_SIGNS,
    GAIN,
    PARTS,
    SIGNS,
    ToolQuestion,
    _metric,
    decompose,
    rows,
    rows_of,
)


def values(questions: Sequence[ToolQuestion], combine: Combine) -> dict[str, float]:
    """Decompose the gain; return the parts that are defined."""
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
    """Return a question; the numbers 1 to 3 belong to task x, the others to task y."""
    return ToolQuestion(str(number), "x" if number <= 3 else "y", f"c{number}", alone, with_tools, tools, **more)


REPEATED = tool_question(
    7,
    0,
    1,
    "depth",
    later=(
        tool_question(7, 0, 0.5),
        tool_question(7, 0, 1, "depth"),
        tool_question(7, 0, 1, "depth", answered=False),
    ),
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
    "gain with a call": [1, 0, 0, 0, 0, 0, 2 / 4, 0],
    "gain without a call": [0, 0.5, 0, 0, 0, 0, 0.5 / 4, 0],
    "harm with a call": [0, 0, 1, 0, 0, 0, 0, 0],
    "harm without a call": [0, 0, 0, 0.75, 0, 0, 0, 0],
    "gain by answering": [0, 0, 0, 0, 1, 0, 1 / 4, 0],
    "harm by no answer": [0, 0, 0, 0, 0, 0.5, 0, 0],
}
# By question: correctness without tools, the share of repetitions that were answered, and the share that were answered
# with a call.
ALONE, READ, CALLED = [0, 0, 1, 1, 0, 1, 0, 0.5], [1, 1, 1, 1, 0, 0, 3 / 4, 1], [1, 0, 1, 0, 0, 0, 2 / 4, 1]


@pytest.mark.parametrize("averaging", ["ratio", "mean_of_ratios"])
def test_all_numbers_of_eight_questions_follow_their_definitions(averaging: Combine) -> None:
    weights = [1 / 3] * 3 + [1 / 5] * 5 if averaging == "mean_of_ratios" else [1.0] * 8

    def share(above: Sequence[float], below: Sequence[float] = (1,) * 8) -> float:
        return sum(map(prod, zip(weights, above, strict=True))) / sum(map(prod, zip(weights, below, strict=True)))

    expected = {name: share(amounts) for name, amounts in CONTRIBUTIONS.items()}
    expected["accuracy alone"] = share(ALONE)
    expected[GAIN] = share([1, 0.5, 0, 0.25, 1, 0.5, 3.5 / 4, 0.5]) - share(ALONE)
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


@pytest.mark.parametrize(("averaging", "strata"), [("ratio", ("", "")), ("mean_of_ratios", ("x", "y"))])
def test_a_ratio_has_the_questions_with_a_denominator(averaging: Combine, strata: tuple[str, str]) -> None:
    metric = _metric("some", EXAMPLE[2:5], np.array([1.0, 0.0, 0.5]), np.array([1.0, 0.0, 1.0]), averaging)
    assert metric.cells == (Cell(strata[0], "c3", 1.0, 1.0), Cell(strata[1], "c5", 0.5, 1.0))
    assert (metric.n, metric.value) == (2, 0.75)


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


# The answers of each task, and for each question its call: of crop (`c`), of jigsaw (`j`), of jigsaw with a fault
# (`x`), or none (`-`).
LETTERS = {
    "mllm": {"Counting": "wr", "Jigsaw": "wwrrawrwfwrw", "Spatial_Relation": "w"},
    "controller": {"Counting": "rr", "Jigsaw": "rrwwrarrrrar", "Spatial_Relation": "r"},
    "controller@2": {"Counting": "rr", "Jigsaw": "rwrwrrwrrfrr", "Spatial_Relation": "r"},
}
CALLS = {
    "controller": {"Counting": "--", "Jigsaw": "j-cxjjjjj-j-", "Spatial_Relation": "j"},
    "controller@2": {"Counting": "--", "Jigsaw": "jc--jcjjj-j-", "Spatial_Relation": "j"},
}
# Questions whose line is gone, by repetition.
GONE = {
    "controller": ("Jigsaw_8", "Spatial_Relation_1"),
    "controller@2": ("Jigsaw_7", "Jigsaw_8", "Spatial_Relation_1"),
}


def cost(solver: str, question: Question, reply: Reply) -> Reply:
    place = int(question.id.rsplit("_", 1)[1]) - 1
    call = CALLS[solver][question.task][place] if solver in CALLS else "-"
    tool, fault = {"c": "crop"}.get(call, "jigsaw"), Fault.TOOL_ERROR if call == "x" else None
    step = Step("tool", tool, "", 0.1, fault, {"images": ["img:1"], "args": {}})
    return reply if call == "-" else replace(reply, steps=(step,))


def with_one_neither_right_nor_wrong(scored: Scored) -> Scored:
    value = scored.counted["wrong"]
    scores = [replace(score, correct=None) if score.id == "val_Jigsaw_12" else score for score in value.scores]
    return replace(scored, counted={"wrong": replace(value, scores=tuple(scores))}, unanswered="wrong")


def test_the_rows_of_repetitions_with_calls_faults_and_lines_that_are_gone(
    tmp_path: Path, synthetic_runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic_runs.from_letters(tmp_path / "run", LETTERS, costing=cost, puzzles=True)
    solvers = [with_one_neither_right_nor_wrong(scored) for scored in compare_paths([run.path]).solvers]
    for name, gone in GONE.items():
        path = run.path / name / "attempts.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        ids = [f'"val_{question}"'.encode() for question in gone]
        path.write_bytes(b"".join(line for line in lines if not any(each in line for each in ids)))
    comparison = compare(solvers, ComparisonOptions(allow_failed=True))
    section = list(rows(comparison))
    assert {(row.a, row.b, row.none) for row in section} == {("mllm", "controller", "wrong")}
    assert None not in {row.value for row in section}
    # Eleven questions count: Jigsaw 1 to 7, 10 and 11, and both of Counting. For Jigsaw 7 and 10 the second repetition
    # does not count.
    jigsaw = dict(zip(ALL_PARTS, (1 + 0.5, 0.5 + 1, 0.5, 1, 1, 0.5), strict=True))
    expected = {("Jigsaw", "", part): total / 9 for part, total in jigsaw.items()}
    expected |= {("Counting", "", part): 0.5 * (part == PARTS[1]) for part in PARTS}
    # The values over all questions are means over the two tasks.
    over_all = {part: (total / 9 + 0.5 * (part == PARTS[1])) / 2 for part, total in jigsaw.items()}
    expected |= {("", "", part): value for part, value in over_all.items()}
    # Jigsaw 1 gains with jigsaw, and 3 and 6 change with crop in one repetition.
    of_tools = {"crop": (0.5, 0.5), "jigsaw": (1, 0)}
    for tool, totals in of_tools.items():
        expected |= {("", tool, part): total / 9 / 2 for part, total in zip((PARTS[0], PARTS[2]), totals, strict=True)}
    parts = {(row.group, row.metric, row.quantity): row for row in section if row.quantity in ALL_PARTS}
    assert {place: row.value for place, row in parts.items()} == pytest.approx(expected)
    of_sets = [(row.metric, row.quantity) for row in section if row.metric]
    assert of_sets == [(tool, part) for tool in sorted(of_tools) for part in (PARTS[0], PARTS[2])]
    gains = {row.group: (row.value, row.n) for row in section if row.quantity == GAIN}
    assert {group: n for group, (_, n) in gains.items()} == {"": 11, "Counting": 2, "Jigsaw": 9}
    signed = [sign * jigsaw[part] / 9 for part, sign in zip(ALL_PARTS, ALL_SIGNS, strict=True)]
    assert gains["Jigsaw"][0] == pytest.approx(sum(signed))
    assert parts["", "", PARTS[0]].ids == ("val_Jigsaw_1", "val_Jigsaw_6")
    assert parts["", "crop", PARTS[2]].ids == ("val_Jigsaw_3",)
    (note,) = {row.note for row in section if not row.group and not row.metric}
    assert note == (
        "left out: 1 that one of them failed; 2 without a readable trace; "
        "1 with calls that all ended in faults count as without a call"
    )
    assert {row.note for row in section if row.group or row.metric} == {""}
    # A headline metric over all questions gives no task more weight than its questions.
    monkeypatch.setattr(Overlap, "headline", Overlap.accuracy)
    values = {row.quantity: row.value for row in rows(comparison) if not row.group and not row.metric}
    assert [values[part] for part in PARTS[:2]] == pytest.approx([1.5 / 11, 2.5 / 11])


def test_one_set_of_tools_has_the_parts_over_all(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {"mllm": {"Jigsaw": "wr"}, "controller": {"Jigsaw": "rw"}}
    run = synthetic_runs.from_letters(tmp_path / "run", letters, costing=synthetic_runs.calling, puzzles=True)
    comparison = compare_paths([run.path]).comparison
    section = list(rows(comparison))
    assert {row.metric for row in section} == {""}
    assert {row.note for row in section if not row.group} == {""}
    # Without a trace of the solver with tools, or without the model alone, there are no rows.
    (run.path / "controller" / "attempts.jsonl").write_bytes(b"")
    assert not list(rows(comparison))
    alone = synthetic_runs.from_letters(tmp_path / "alone", {"controller": {"Jigsaw": "rw"}})
    assert not list(rows(compare_paths([alone.path]).comparison))
