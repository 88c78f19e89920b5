"""Questions solved only with tools: compared with the union of the settings without tools, and with luck."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections.tool_only import SECTION
from tests.hybrid.scoring.sections.rows import by_quantity


def compute_section(folder: Path, synthetic_runs: Any, messages: Mapping[str, str]) -> tuple[dict[str, Result], str]:
    """Return the rows over all tasks of a run with these answers to one task, and the conclusion."""
    synthetic_runs.from_letters(folder, {name: {"Jigsaw": letters} for name, letters in messages.items()})
    comparison = compare(compare_paths([folder]).solvers)
    rows = tuple(SECTION.rows(comparison))
    return by_quantity(rows), SECTION.lead(comparison, rows) if rows else ""


def test_where_nothing_is_solved_there_is_no_share(tmp_path: Path, synthetic_runs: Any) -> None:
    rows, lead = compute_section(tmp_path / "run", synthetic_runs, {"controller": "ww", "mllm": "rw"})
    assert "solved without tools too" not in rows
    assert (rows["tool-only lost"].value, lead) == (1.0, "")


def test_without_a_model_alone_nothing_is_told(tmp_path: Path, synthetic_runs: Any) -> None:
    assert compute_section(tmp_path / "run", synthetic_runs, {"controller": "rw"}) == ({}, "")
