"""Questions solved only with tools: counted against the union of the settings without, and against luck."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections.tool_only import SECTION
from tests.hybrid.scoring.sections.rows import by_quantity


def made(folder: Path, made_up_runs: Any, said: Mapping[str, str]) -> tuple[dict[str, Result], str]:
    """The rows over all of a run whose solvers answer one task so, and the conclusion."""
    made_up_runs.from_letters(folder, {name: {"Jigsaw": letters} for name, letters in said.items()})
    found = compare(compare_paths([folder]).solvers)
    rows = tuple(SECTION.rows(found))
    return by_quantity(rows), SECTION.lead(found, rows) if rows else ""


def test_the_union_of_all_settings_without_tools_counts(tmp_path: Path, made_up_runs: Any) -> None:
    said = {"controller": "rrrrww", "mllm": "wwwrrw", "text_only": "rwwwww"}
    rows, lead = made(tmp_path / "run", made_up_runs, said)
    assert rows["tool-only solved"].ids == ("val_Jigsaw_2", "val_Jigsaw_3")
    assert rows["tool-only lost"].ids == ("val_Jigsaw_5",)
    assert (rows["solved without tools too"].value, rows["solved without tools too"].n) == (0.5, 4)
    assert (rows["tool-only solved"].value, rows["tool-only solved"].n) == (2.0, 6)
    assert lead.startswith("controller: 50 % of the 4 questions solved with tools are solved without too, 2 only with")


def test_one_drawn_run_bounds_luck_by_its_accuracy(tmp_path: Path, made_up_runs: Any) -> None:
    rows, lead = made(tmp_path / "run", made_up_runs, {"controller": "rrrr", "mllm": "rwww"})
    assert rows["by luck at most"].value == pytest.approx(4 * 0.25 * 0.75)
    assert "at most" in rows["by luck at most"].note
    assert "3 only with tools, by luck at most 0.8." in lead


def test_repetitions_count_luck(tmp_path: Path, made_up_runs: Any) -> None:
    """Each of three runs without tools against the two others: 1, 0 and 2 questions that they do not solve."""
    said = {"controller": "rrrrrr", "mllm": "rrwwww", "mllm@2": "wrwwww", "mllm@3": "wrrrww"}
    rows, _ = made(tmp_path / "run", made_up_runs, said)
    assert rows["by luck"].value == pytest.approx((1 + 0 + 2) / 3)
    assert rows["by luck"].note == ""
    assert rows["tool-only solved"].value == 2.0


def test_other_settings_are_no_repetitions(tmp_path: Path, made_up_runs: Any) -> None:
    said = {"controller": "rr", "mllm": "rw", "text_only": "wr"}
    rows, _ = made(tmp_path / "run", made_up_runs, said)
    assert rows["by luck at most"].value == pytest.approx(2 * 0.5 * 0.5)


def test_what_one_of_them_failed_is_left_out(tmp_path: Path, made_up_runs: Any) -> None:
    rows, _ = made(tmp_path / "run", made_up_runs, {"controller": "rrr", "mllm": "fww"})
    assert (rows["tool-only solved"].value, rows["tool-only solved"].n) == (2.0, 2)
    assert "left out: 1 that one of them failed" in rows["tool-only solved"].note


def test_without_a_setting_without_tools_there_is_no_row(tmp_path: Path, made_up_runs: Any) -> None:
    assert made(tmp_path / "run", made_up_runs, {"controller": "rr", "specialist": "rw"}) == ({}, "")


def test_where_nothing_is_solved_there_is_no_share(tmp_path: Path, made_up_runs: Any) -> None:
    rows, lead = made(tmp_path / "run", made_up_runs, {"controller": "ww", "mllm": "rw"})
    assert "solved without tools too" not in rows
    assert (rows["tool-only lost"].value, lead) == (1.0, "")
