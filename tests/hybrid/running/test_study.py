"""The cells of a study: each differs from the main run in what it is for, and in nothing else."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import RunConfig
from hybrid.running.plan import PlannedRun
from hybrid.running.study import MAIN, cells_of

DIFFERS = {
    "with-tools": {},
    "blank-tools": {"tool_output": "blank"},
    "other-findings": {"tool_output": "shuffled"},
    "oracle": {"tool_output": "oracle"},
    "findings-as-text": {"show": "text"},
    "findings-as-pictures": {"show": "image"},
}


@pytest.mark.parametrize(("depth", "count"), [("quick", 2), ("full", 6)])
def test_a_cell_differs_in_its_options_alone(depth: Any, count: int) -> None:
    config = RunConfig("blink", model="embedded", data="sample", options_as_used={"model": "embedded"})
    cells = cells_of(depth, "controller")
    assert len(cells) == count
    assert cells[0].name == MAIN
    for cell in cells:
        made = cell.config(config, Path("study"))
        changed = {one.name: getattr(made, one.name) for one in fields(made)}
        same = {name: value for name, value in changed.items() if value == getattr(config, name)}
        left = {name: value for name, value in changed.items() if name not in same}
        assert left.pop("out") == Path("study") / cell.name
        assert left.pop("solvers") == cell.changes["solvers"]
        given = left.pop("options_as_used")
        assert left == DIFFERS[cell.name]
        assert given == {
            "model": "embedded",
            "solver": list(cell.changes["solvers"]),
            **{name.replace("_", "-"): value for name, value in DIFFERS[cell.name].items()},
        }


def settings_of(cells: Sequence[PlannedRun]) -> list[tuple[Any, ...]]:
    return [
        (solver, *sorted((name, value) for name, value in cell.changes.items() if name != "solvers"))
        for cell in cells
        for solver in cell.changes["solvers"]
    ]


def test_full_asks_all_of_quick_and_nothing_twice() -> None:
    quick, full = cells_of("quick", "verify"), cells_of("full", "verify")
    asked = settings_of(full)
    assert len(set(asked)) == len(asked)
    assert set(settings_of(quick)) <= set(asked)
    assert {solver for solver, *_ in asked} == {
        "verify",
        "mllm",
        "specialist",
        "result_only",
        "text_only",
    }


def test_a_study_that_was_begun_under_a_former_name_goes_on_there(tmp_path: Path) -> None:
    (tmp_path / "format-only").mkdir()
    folders = {cell.name: cell.folder(tmp_path).name for cell in cells_of("full", "controller")}
    assert folders["blank-tools"] == "format-only"
    assert folders["other-findings"] == "other-findings"
