"""The sentence about the parts of a gain depends on which of gain, presence and content are significant after Holm."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.sections.gain import CONTENT, SECTION, said_of

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
    rows = SECTION.rows(comparison)
    assert {row.group for row in rows} == {"", "Counting", "Jigsaw"}
    # Of one task the interval is -9 to +9.
    assert "(+0 points, 95% CI -4 to +4)" in SECTION.lead(comparison, rows)
