"""Runs of several models side by side: every output says which model and which run a number belongs to."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.log.folder import RunFolder
from hybrid.scoring.groups import role
from hybrid.scoring.reports import compare_paths, score_paths

LETTERS = {"mllm": {"Jigsaw": "rwwr", "Counting": "rrrw"}, "specialist": {"Jigsaw": "rrrr", "Counting": "wwww"}}


def changed(folder: RunFolder, **changes: Any) -> Path:
    manifest = folder.manifest
    manifest["identity"].update(changes.pop("identity", {}))
    folder.write_manifest({**manifest, **changes})
    return folder.path


def test_a_label_of_a_tool_is_of_the_solvers_that_may_call_it(tmp_path: Path, synthetic_runs: Any) -> None:
    run = synthetic_runs.from_letters(tmp_path / "one", LETTERS)
    labels = ["non-commercial: depth, ocr", "generated questions"]
    tools = {"mllm": {"tools": {}}, "specialist": {"tools": {"depth": {}}}, "controller": {"tools": {"ocr": {}}}}
    changed(run, labels=labels, solvers=tools)
    comparison = compare_paths([run.path], all=True)
    assert {solver.solver: solver.labels for solver in comparison.solvers} == {
        "mllm": ("generated questions",),
        "specialist": ("non-commercial: depth", "generated questions"),
    }
    # Solvers keep their names; the model and the run are above the tables.
    title = "blink: metrics [generated questions; specialist: non-commercial: depth]"
    assert comparison.tables()[0].title == title
    assert (
        score_paths([run.path])
        .render()
        .startswith(
            "made:up | BLINK val | 8 questions | date not recorded\n"
            "warning: generated questions\nwarning: specialist: non-commercial: depth\n"
        )
    )


@pytest.mark.parametrize(("recorded", "expected"), [({}, "mllm"), ({"role": "specialist"}, "specialist")])
def test_a_solver_that_is_no_longer_there_has_the_role_that_was_recorded(
    tmp_path: Path, synthetic_runs: Any, recorded: dict[str, str], expected: str
) -> None:
    run = synthetic_runs.from_letters(tmp_path / "run", {"gone": {"Jigsaw": "rw"}})
    (scored,) = compare_paths([changed(run, solvers={"gone": recorded})]).solvers
    assert role(scored) == expected
