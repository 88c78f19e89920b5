"""The sentence about the parts of a gain: it depends on whether the gain, the effect of offering tools and that of tool
output are significant after Holm."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.core.types import Fault, Question, Reply
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.headline_pair import NO_CLAIM
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.sections.gain import CONTENT, GAIN, PRESENCE, SECTION, SHUFFLED, none_said, said_of, unclear_parts

MORE, LESS, OPEN, UNADJUSTED = (0.1, 0.3, 0.01), (-0.3, -0.1, 0.01), (-0.1, 0.1, 0.5), (0.1, 0.3, 0.2)


def row(value: float, ends: tuple[float | None, float | None, float | None]) -> Result:
    return Result("gain", "", FRACTION, value, low=ends[0], high=ends[1], p_holm=ends[2])


@pytest.mark.parametrize(
    ("gain", "presence", "content", "case"),
    [
        (MORE, MORE, MORE, "content.shared"),
        (MORE, OPEN, MORE, "content.source"),
        (MORE, UNADJUSTED, MORE, "content.source"),
        (MORE, MORE, OPEN, "content.parts"),
        (MORE, LESS, MORE, "content.parts"),
        (OPEN, MORE, MORE, "content.parts"),
        (OPEN, OPEN, MORE, "content.parts"),
        (UNADJUSTED, OPEN, MORE, "content.parts"),
        (MORE, OPEN, OPEN, "content.parts"),
        (MORE, OPEN, UNADJUSTED, "content.parts"),
        (LESS, LESS, LESS, "content.parts"),
        (MORE, (None, None, None), MORE, "content.alone"),
    ],
)
def test_the_case_is_what_is_shown_of_each_part(
    gain: tuple[float, float, float],
    presence: tuple[float, float, float],
    content: tuple[float, float, float],
    case: str,
) -> None:
    rows = row(0.2, content), row(0.3, gain), row(0.1, presence)
    assert said_of(*rows)[0] == case
    assert said_of(rows[0])[0] == said_of(*rows[:2])[0] == "content.alone"


@pytest.mark.parametrize(("content", "case"), [(0.16, "content.source"), (0.15, "content.parts")])
def test_the_source_is_more_than_half(content: float, case: str) -> None:
    assert said_of(row(content, MORE), row(0.3, MORE), row(0.3 - content, OPEN))[0] == case


def test_without_an_answered_call_or_with_an_unclear_part_no_part_is_the_source() -> None:
    rows = row(0.2, MORE), row(0.3, MORE), row(0.1, MORE)
    case, words = said_of(*rows, none=True)
    assert case == "content.parts"
    assert "no tool answered a call" in words
    case, words = said_of(*rows, unclear={CONTENT: "depending on the rule"})
    assert case == "content.parts"
    assert "with tool output it changes by +20 points (95% CI 10 to 30), depending on the rule" in words
    assert "already brings 10 points (95% CI 10 to 30)" in words


def test_each_part_has_its_own_reason_to_be_unclear() -> None:
    claims = {("alone", "hybrid"): "rule", ("alone", "blank"): "answering", ("blank", "hybrid"): "uneven"}
    rows: Any = SimpleNamespace(tested_pair=lambda a, b: SimpleNamespace(claim=claims[a, b]))
    group: Any = SimpleNamespace(alone="alone", blank="blank", hybrid="hybrid")
    reasons = {GAIN: NO_CLAIM["rule"], PRESENCE: NO_CLAIM["answering"], CONTENT: NO_CLAIM["uneven"]}
    assert unclear_parts(rows, group) == reasons
    group.blank = None
    assert unclear_parts(rows, group) == {GAIN: reasons[GAIN]}
    claims["alone", "hybrid"] = "more"
    assert unclear_parts(rows, group) == {}


@pytest.mark.parametrize(
    ("presence", "content", "words"),
    [
        (
            row(-0.2, LESS),
            row(0.2, MORE),
            "costs 20 points (95% CI 10 to 30); tool output adds 20 points (95% CI 10 to 30).",
        ),
        (
            row(0.2, MORE),
            row(-0.2, LESS),
            "brings 20 points (95% CI 10 to 30); tool output costs 20 points (95% CI 10 to 30).",
        ),
        (row(0.0, OPEN), row(0.02, OPEN), "tool output has no significant effect (+2 points, 95% CI -10 to +10)."),
        (row(0.0, OPEN), row(0.2, UNADJUSTED), "(+20 points, 95% CI 10 to 30, not after adjustment (Holm))."),
    ],
)
def test_a_part_has_its_sign_in_words(presence: Result, content: Result, words: str) -> None:
    case, text = said_of(content, row(0.0, OPEN), presence)
    assert case == "content.parts"
    assert text.endswith(words)


def test_the_sentence_is_of_all_tasks_and_not_of_the_last(tmp_path: Path, synthetic_runs: Any) -> None:
    right, wrong = "r" * 30, "w" * 30
    real = {"controller": {"Counting": right, "Jigsaw": wrong}, "mllm": {"Counting": wrong, "Jigsaw": wrong}}
    blank = {"controller": {"Counting": wrong, "Jigsaw": wrong}}
    synthetic_runs.from_letters(tmp_path / "real", real)
    synthetic_runs.from_letters(tmp_path / "blank", blank, "blank")
    comparison = compare_paths([tmp_path / "real", tmp_path / "blank"]).comparison
    rows = tuple(SECTION.rows(comparison))
    assert {row.group for row in rows} == {"", "Counting", "Jigsaw"}
    # The interval of a single task would be -9 to +9.
    assert "(+0 points, 95% CI -4 to +4)" in SECTION.lead(comparison, rows)


def test_tool_output_is_measured_without_answers_of_the_model_alone(tmp_path: Path, synthetic_runs: Any) -> None:
    real = {"controller": {"Jigsaw": "r" * 36 + "w" * 4}, "mllm": {"Jigsaw": "a" * 40}}
    controls = {"blank": {"controller": {"Jigsaw": "rw" * 20}}, "cost": synthetic_runs.calling}
    comparison = compare_controls(tmp_path, synthetic_runs, real=real, **controls)
    words = SECTION.lead(comparison, tuple(SECTION.rows(comparison)))
    assert words.startswith("controller: Compared with tools that return nothing, tool output adds 40 points (95% CI ")


SOLVED = {
    "mllm": {"Counting": "r" * 4 + "w" * 16, "Jigsaw": "r" * 8 + "w" * 12},
    "controller": {"Counting": "r" * 9 + "w" * 11, "Jigsaw": "r" * 19 + "w"},
}
SHOWN_BLANK = {"controller": {"Counting": "r" * 5 + "w" * 15, "Jigsaw": "r" * 11 + "w" * 9}}
SHOWN_SHUFFLED = {"controller": {"Counting": "r" * 2 + "w" * 18, "Jigsaw": "r" * 9 + "w" * 11}}


def compare_controls(folder: Path, synthetic_runs: Any, **facts: Any) -> Comparison:
    """Return the comparison of a run with real tools, one with blank tools and one with shuffled tools."""
    real = facts.get("real", SOLVED)
    synthetic_runs.from_letters(folder / "real", real, **({"costing": facts["cost"]} if "cost" in facts else {}))
    synthetic_runs.from_letters(folder / "blank", facts.get("blank", SHOWN_BLANK), "blank")
    synthetic_runs.from_letters(folder / "shuffled", SHOWN_SHUFFLED, "shuffled")
    comparison: Comparison = compare_paths([folder / "real", folder / "blank", folder / "shuffled"]).comparison
    return comparison


def test_the_parts_are_differences_of_these_solvers_over_all_and_by_task(tmp_path: Path, synthetic_runs: Any) -> None:
    comparison = compare_controls(tmp_path, synthetic_runs)
    (group,) = comparison.groups
    assert group.alone is not None
    assert group.blank is not None
    assert group.shuffled is not None
    alone, blank, hybrid = group.alone.solver, group.blank.solver, group.hybrid.solver
    rows = tuple(SECTION.rows(comparison))
    values = {(item.quantity, item.a, item.b, item.group): round(20 * (item.value or 0.0), 6) for item in rows}
    right = {alone: (4, 8), blank: (5, 11), hybrid: (9, 19), group.shuffled.solver: (2, 9)}
    pairs = {GAIN: (alone, hybrid), PRESENCE: (alone, blank), CONTENT: (blank, hybrid)}
    pairs[SHUFFLED] = (blank, group.shuffled.solver)
    differences = {name: [y - x for x, y in zip(right[a], right[b], strict=True)] for name, (a, b) in pairs.items()}
    assert values == {
        (name, *pairs[name], task): value
        for name, of_task in differences.items()
        for task, value in (("Counting", of_task[0]), ("Jigsaw", of_task[1]), ("", sum(of_task) / 2))
    }
    families = {(item.quantity, item.family) for item in rows if not item.group}
    assert families == {
        (GAIN, "gain over the model alone"),
        (PRESENCE, "parts of the gain"),
        (CONTENT, "parts of the gain"),
        (SHUFFLED, "other questions' findings"),
    }
    assert {item.family for item in rows if item.group and item.p is not None} == {"tasks of the pair"}


def test_without_the_model_alone_there_is_only_the_output(tmp_path: Path, synthetic_runs: Any) -> None:
    real = {"controller": SOLVED["controller"]}
    comparison = compare_controls(tmp_path, synthetic_runs, real=real, cost=synthetic_runs.calling)
    rows = tuple(SECTION.rows(comparison))
    assert SECTION.lead(comparison, rows).startswith(
        "controller: Compared with tools that return nothing, tool output adds 30"
    )
    assert {item.quantity for item in rows} == {CONTENT, SHUFFLED}
    assert [item.value for item in rows if (item.quantity, item.group) == (CONTENT, "")] == pytest.approx([0.3])


@pytest.mark.parametrize(("first_fault", "is_none"), [(99, False), (1, True), (2, False)])
def test_faults_of_all_calls_are_no_output(
    first_fault: int, is_none: bool, tmp_path: Path, synthetic_runs: Any
) -> None:
    def cost(solver: str, question: Question, reply: Reply) -> Reply:
        calling: Reply = synthetic_runs.calling(solver, question, reply)
        fault = Fault.TOOL_ERROR if int(question.id.rsplit("_", 1)[1]) >= first_fault else None
        return replace(calling, steps=tuple(replace(step, fault=fault) for step in calling.steps))

    comparison = compare_controls(tmp_path, synthetic_runs, cost=cost)
    (group,) = comparison.groups
    assert none_said(comparison, group) is is_none
    lead = SECTION.lead(comparison, tuple(SECTION.rows(comparison)))
    assert ("no tool answered a call" in lead) is is_none


def test_a_part_that_comes_from_better_answers_and_from_answering_is_unclear(
    tmp_path: Path, synthetic_runs: Any
) -> None:
    silent = {"controller": {"Counting": "r" * 5 + "w" * 5 + "u" * 10, "Jigsaw": "r" * 9 + "u" * 11}}
    real = {**SOLVED, "controller": {"Counting": "r" * 15 + "w" * 5, "Jigsaw": "r" * 20}}
    comparison = compare_controls(tmp_path, synthetic_runs, real=real, blank=silent, cost=synthetic_runs.calling)
    (group,) = comparison.groups
    unclear = unclear_parts(ConclusionRows(comparison, ("differences", "helped", "answered")), group)
    assert unclear == {
        PRESENCE: "depending on how unanswered questions count",
        CONTENT: NO_CLAIM["split"],
    }
    lead = SECTION.lead(comparison, tuple(SECTION.rows(comparison)))
    assert "changes the score by +5 points" in lead
    assert "with tool output it changes by +53 points" in lead
    assert lead.endswith(f"{unclear[CONTENT]}.")


def test_without_blank_tools_there_are_no_parts(tmp_path: Path, synthetic_runs: Any) -> None:
    synthetic_runs.from_letters(tmp_path / "real", SOLVED)
    comparison = compare_paths([tmp_path / "real"]).comparison
    rows = tuple(SECTION.rows(comparison))
    assert (rows, SECTION.lead(comparison, rows)) == ((), "")


def test_parts_without_a_test_have_no_sentence(tmp_path: Path, synthetic_runs: Any) -> None:
    blank = {"controller": {"Counting": "f" * 2 + "w" * 18, "Jigsaw": "w" * 20}}
    comparison = compare_controls(tmp_path, synthetic_runs, blank=blank)
    rows = tuple(SECTION.rows(comparison))
    assert {row.low for row in rows if row.quantity in (GAIN, PRESENCE, CONTENT)} == {None}
    assert SECTION.lead(comparison, rows) == ""
    assert SECTION.lead(comparison, ()) == ""


def test_one_tool_that_answers_is_output(tmp_path: Path, synthetic_runs: Any) -> None:
    def cost(solver: str, question: Question, reply: Reply) -> Reply:
        calling: Reply = synthetic_runs.calling(solver, question, reply)
        failed = (replace(step, name="depth", fault=Fault.TOOL_ERROR) for step in calling.steps)
        return replace(calling, steps=(*calling.steps, *failed))

    comparison = compare_controls(tmp_path, synthetic_runs, cost=cost)
    assert not none_said(comparison, comparison.groups[0])


def test_each_part_has_its_own_number_in_the_sentence() -> None:
    case, words = said_of(row(0.2, MORE), row(0.3, MORE), row(0.1, MORE))
    assert case == "content.shared"
    assert words.startswith("Of the 30 points, 10 (95% CI 10 to 30) come from offering tools that return nothing;")
    assert "tool output adds 20 (95% CI 10 to 30)" in words
    case, words = said_of(row(0.25, (0.12, 0.33, 0.01)), row(0.21, MORE), row(-0.04, (-0.1, 0.06, 0.5)))
    assert case == "content.source"
    assert words == (
        "Tool output accounts for +25 points (95% CI 12 to 33). Offering tools that return nothing has no significant "
        "effect (-4 points, 95% CI -10 to +6)."
    )
