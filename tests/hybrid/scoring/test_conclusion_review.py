"""The sentences that answer a reviewer: said where their section decides something, and not otherwise."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.equivalence import SECTION as EQUIVALENCE


def letters(counts: str) -> str:
    """Of `36r 4w` 36 letters r and 4 letters w."""
    return "".join(int(part[:-1]) * part[-1] for part in counts.split())


@pytest.fixture
def compared(made_up_runs: Any, tmp_path: Path) -> Any:
    """Compares runs by their tool output: `compared(real={"controller": "36r 4w"}, blank=...)`."""

    def make(options: ComparisonOptions | None = None, **runs: Mapping[str, str]) -> Comparison:
        paths = []
        for output, answers in runs.items():
            by_solver = {solver: {"Jigsaw": letters(own)} for solver, own in answers.items()}
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            paths.append(made_up_runs.from_letters(folder, by_solver, output, costing=made_up_runs.calling).path)
        return compare(compare_paths(paths).solvers, options)

    return make


def sentences(comparison: Comparison) -> dict[str, str]:
    return {sentence.id: sentence.text for sentence in conclusion(comparison, limits=False)}


def test_what_is_equal_within_the_margin(compared: Any) -> None:
    same = "500r 500w"
    found = compared(real={"controller": same, "mllm": same}, blank={"controller": "495r 505w"})
    assert sentences(found)["equal.shown"] == (
        "Equal within 5 points: with tools and alone (+0 points, 90% CI -0.2 to +0.2); with blank tools and alone "
        "(-1 points, 90% CI -1 to -0.07); with tools and with blank tools (+1 points, 90% CI 0.07 to 1)."
    )


def test_a_narrower_margin_and_fewer_questions_show_less(compared: Any) -> None:
    answers = {"controller": "505r 495w", "mllm": "500r 500w"}
    assert "equal.shown" in sentences(compared(real=answers))
    assert "equal.shown" not in sentences(compared(ComparisonOptions(margin=0.005), real=answers))
    assert "equal.shown" not in sentences(compared(real={"controller": "20r 20w", "mllm": "20r 20w"}))


def test_equality_that_hangs_on_the_rule_is_not_asserted(compared: Any) -> None:
    # A fifth is unanswered with tools: worth nothing or half, and equal by one of the rules alone.
    found = compared(real={"controller": "490r 200a 310w", "mllm": "500r 500w"})
    (row,) = EQUIVALENCE.rows(found)
    assert row.note.endswith("hangs on how unanswered questions count")
    assert "equal.shown" not in sentences(found)


def test_an_equality_that_two_opposite_parts_make_is_not_asserted(compared: Any) -> None:
    # With tools 60 more of those answered are right, and 120 are left unanswered: nothing is equal.
    alone, tools = "500r 500w", "440r 120a 60r 380w"
    found = compared(real={"controller": tools, "mllm": alone})
    assert "equal.shown" not in sentences(found)


def test_failures_and_other_units_are_no_equality(compared: Any) -> None:
    found = compared(real={"controller": "30f 470r 500w", "mllm": "500r 500w"})
    (row,) = EQUIVALENCE.rows(found)
    assert (row.low, row.p) == (None, None)
    assert row.note.startswith("not shown to be equal within 0.05; left out") or "not tested" in row.note
    allowed = replace(found.options, allow_failed=True)
    assert [row.low is not None for row in EQUIVALENCE.rows(compare(found.solvers, allowed))] == [True]
