"""Runs of several models side by side: every form says which model and which run a number is of."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.log.folder import RunFolder
from hybrid.scoring.groups import role
from hybrid.scoring.reports import ComparisonReport, compare_paths, score_paths

LETTERS = {"mllm": {"Jigsaw": "rwwr", "Counting": "rrrw"}, "specialist": {"Jigsaw": "rrrr", "Counting": "wwww"}}
MODELS = {"f1": "openai:gpt-4o", "f2": "anthropic:opus"}


def changed(folder: RunFolder, **changes: Any) -> Path:
    manifest = folder.manifest
    manifest["identity"].update(changes.pop("identity", {}))
    folder.write_manifest({**manifest, **changes})
    return folder.path


@pytest.fixture
def report(tmp_path: Path, made_up_runs: Any) -> ComparisonReport:
    paths = [
        changed(made_up_runs.from_letters(tmp_path / name, LETTERS), identity={"model": {"model": model}})
        for name, model in MODELS.items()
    ]
    return compare_paths(paths, all=True)


def test_names_carry_the_model(report: ComparisonReport) -> None:
    names = [one.solver for one in report.solvers]
    assert [name for name in names if name.startswith("mllm")] == [f"mllm [{model}]" for model in MODELS.values()]
    # The specialists asked no model: where their runs lie tells them apart.
    assert [name.startswith("specialist (") for name in names if not name.startswith("mllm")] == [True, True]


def test_every_row_of_csv_and_json_carries_model_and_run(report: ComparisonReport, tmp_path: Path) -> None:
    runs = {f"mllm [{model}]": (model, str(tmp_path / name)) for name, model in MODELS.items()}
    for row in csv.DictReader(io.StringIO(report.render("csv"))):
        for side in "ab":
            told = (row[f"model_{side}"], row[f"run_{side}"])
            if row[side] in runs:
                assert told == runs[row[side]]
            else:
                assert (told[0], bool(told[1])) == ("", bool(row[side]))
    found = json.loads(json.dumps(report.as_json()))
    assert {name: (found["solvers"][name]["model"], found["solvers"][name]["run"]) for name in runs} == runs
    for row in (*found["results"], *report.rows()):
        for side in "ab":
            if row.get(side) in runs:
                assert (row[f"model_{side}"], row[f"run_{side}"]) == runs[row[side]]
            else:
                assert row.get(f"model_{side}") is None


def test_a_table_of_models_by_tasks(report: ComparisonReport) -> None:
    table = report.tables()[0]
    assert table.names == ("solver and model", "n", "accuracy_macro", "Counting", "Jigsaw")
    assert table.rows == tuple((f"mllm [{model}]", "8", "0.625", "0.750 (4)", "0.500 (4)") for model in MODELS.values())


def test_one_model_needs_no_such_table(tmp_path: Path, made_up_runs: Any) -> None:
    made = made_up_runs.from_letters(tmp_path / "one", LETTERS)
    told = compare_paths([made.path], all=True)
    assert told.tables()[0].title == "blink: metrics"
    assert [one.solver for one in told.solvers] == ["mllm", "specialist"]


def test_a_label_of_a_tool_is_of_the_solvers_that_may_call_it(tmp_path: Path, made_up_runs: Any) -> None:
    made = made_up_runs.from_letters(tmp_path / "one", LETTERS)
    labels = ["non-commercial: depth, ocr", "generated questions"]
    tools = {"mllm": {"tools": {}}, "specialist": {"tools": {"depth": {}}}, "controller": {"tools": {"ocr": {}}}}
    changed(made, labels=labels, solvers=tools)
    told = compare_paths([made.path], all=True)
    assert {one.solver: one.labels for one in told.solvers} == {
        "mllm": ("generated questions",),
        "specialist": ("non-commercial: depth", "generated questions"),
    }
    # Named as before, and said above the tables whose it is.
    title = "blink: metrics [generated questions; specialist: non-commercial: depth]"
    assert told.tables()[0].title == title
    assert (
        score_paths([made.path])
        .render()
        .startswith("warning: generated questions\nwarning: specialist: non-commercial: depth\n")
    )


@pytest.mark.parametrize(("recorded", "expected"), [({}, "mllm"), ({"role": "specialist"}, "specialist")])
def test_a_solver_that_is_no_longer_there_has_the_role_that_was_recorded(
    tmp_path: Path, made_up_runs: Any, recorded: dict[str, str], expected: str
) -> None:
    run = made_up_runs.from_letters(tmp_path / "run", {"gone": {"Jigsaw": "rw"}})
    (scored,) = compare_paths([changed(run, solvers={"gone": recorded})]).solvers
    assert role(scored) == expected
