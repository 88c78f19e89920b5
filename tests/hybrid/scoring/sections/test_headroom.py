"""The headroom above the accuracy of the model alone, and whether a gain within it could be detected."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.sections.headroom import GAIN, LEAST, ROOM, SECTION, lead


@pytest.mark.parametrize(
    ("hybrid", "alone", "sentence"),
    [
        (
            "r" * 20,
            "r" * 20,
            "0 points are left to gain; the smallest gain that can be detected is 31 points, which is more.",
        ),
        ("rw" * 20, "wr" * 20, "50 points are left to gain; gains of 41 points or more can be detected."),
        ("r", "w", "100 points are left to gain; no gain can be detected."),
    ],
)
def test_a_gain_that_is_not_left_cannot_be_shown(
    hybrid: str, alone: str, sentence: str, tmp_path: Path, synthetic_runs: Any
) -> None:
    answers = {"controller": {"Jigsaw": hybrid}, "mllm": {"Jigsaw": alone}}
    run = synthetic_runs.from_letters(tmp_path / "run", answers)
    comparison = compare(compare_paths([run.path]).solvers)
    assert SECTION.lead(comparison, tuple(SECTION.rows(comparison))) == f"controller: {sentence}"


def test_numbers_that_differ_do_not_look_equal() -> None:
    room = Result("headroom", ROOM, FRACTION, 0.098, b="controller")
    least = Result("headroom", f"{LEAST}{GAIN}", FRACTION, 0.102, b="controller")
    comparison: Any = None
    assert lead(comparison, [room, least]) == (
        "controller: 9.8 points are left to gain; the smallest gain that can be detected is 10.2 points, which is more."
    )
