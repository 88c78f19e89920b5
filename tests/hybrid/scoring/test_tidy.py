"""One number a line: what is in the table, that nothing is rounded, and names that a spreadsheet would compute."""

import csv
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hybrid.scoring.tidy import COLUMNS, as_csv, named, neutral
from hybrid.scoring.told import Number, Told
from hypothesis import example, given
from hypothesis import strategies as st

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import ComparisonReport, compare_paths

DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")


@pytest.fixture
def report(tmp_path: Path, made_up_runs: Any) -> ComparisonReport:
    """A comparison with a failed question, abstentions and every control."""
    made = made_up_runs.write(tmp_path, "blink", size=6, failed=1)
    return compare_paths(made.paths, allow_failed=True)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_heading_is_the_fields_of_a_number(report: ComparisonReport) -> None:
    assert report.render("csv").splitlines()[0] == (
        "benchmark,section,quantity,unit,value,a,b,metric,group,n,low,high,p,p_holm,none,model_a,run_a,model_b,run_b"
    )


def test_every_number_of_json_is_a_line(report: ComparisonReport) -> None:
    rows, told = rows_of(report.render("csv")), json.loads(json.dumps(report.as_json()))
    assert {row["benchmark"] for row in rows} == {"blink"}
    count = Counter(row["section"] for row in rows)
    assert set(count) == {
        *("metrics", "tasks", "differences", "questions", "outcomes", "noninferior", "gain", "ceiling", "evidence"),
        *("tool_use", "agreement", "floor"),
    }
    found = {(r["section"], r["quantity"], r["a"], r["b"], r["metric"], r["group"], r["none"]): r for r in rows}
    assert len(found) == len(rows)
    for name, solver in told["solvers"].items():
        for metric, value in solver["metrics"].items():
            if metric != "with_failed":
                row = found["metrics", "value", name, "", metric, "", "chance"]
                assert float(row["value"]) == pytest.approx(value, abs=1e-12)
                assert [float(row["low"]), float(row["high"])] == solver["intervals"][metric][:2]
        for task, own in solver["tasks"].items():
            assert float(found["tasks", "accuracy", name, "", "", task, "chance"]["value"]) == pytest.approx(
                own["accuracy"]
            )
        for outcome, number in solver["outcomes"].items():
            assert found["outcomes", outcome, name, "", "", "", ""]["value"] == str(number)
    for pair in told["pairs"]:
        group = "" if pair["group"] == "all tasks" else pair["group"]
        row = found["differences", "difference", pair["a"], pair["b"], pair["metric"], group, "chance"]
        assert float(row["value"]) == pair["difference"]
        assert [float(row[end]) if row[end] else None for end in ("low", "high", "p", "p_holm")] == [
            *(pair["interval"] or [None, None]),
            pair["p"],
            pair["p_holm"],
        ]
        if pair["family"] != "metrics":
            helped = found["differences", "helped", pair["a"], pair["b"], pair["metric"], group, ""]
            assert (helped["value"], helped["unit"]) == (str(pair["helped"]), "questions")
    for meeting in told["questions"]:
        key = ("questions", "failed", meeting["a"], meeting["b"], "", "", "")
        assert found[key]["value"] == str(meeting["failed"])
    spent = found["outcomes", "tokens in", "controller", "", "", "", ""]
    (controller,) = [one for one in report.solvers if one.solver == "controller"]
    assert controller.folder is not None
    asked = (controller.folder.path / "controller" / "attempts.jsonl").read_text().splitlines()
    usage = [each["reply"]["usage"] for line in asked for each in json.loads(line)["exchanges"]]
    assert (spent["value"], spent["unit"]) == (str(sum(one["input_tokens"] for one in usage)), "tokens")
    assert found["outcomes", "cost", "controller", "", "", "", ""]["value"] == ""


def test_a_task_that_nobody_answered_has_no_interval(tmp_path: Path, made_up_runs: Any) -> None:
    folder = made_up_runs.from_letters(tmp_path / "run", {"mllm": {"Jigsaw": "uuu", "Counting": "rwr"}})
    rows = rows_of(compare_paths([folder.path]).render("csv"))
    ends = {row["group"]: (row["low"], row["high"]) for row in rows if row["quantity"] == "accuracy"}
    assert ends["Jigsaw"] == ("", "")
    assert "" not in ends["Counting"]
    assert [row["value"] for row in rows if row["section"] == "tasks" and row["quantity"] == "none"] == ["0", "3"]


def test_a_number_is_a_number_with_all_its_digits(report: ComparisonReport) -> None:
    values = (-1 / 3, 2.0, -0.0, 1e-17, None)
    lines = tuple(Number("s", str(place), "u", value, low=value, n=3) for place, value in enumerate(values))
    rows = rows_of(as_csv(compare(report.solvers[:1]), [Told("s", "?", (), (), lines)]))
    found = [(row["value"], row["low"], row["n"]) for row in rows if row["section"] == "s"]
    cells = ("-0.3333333333333333", "2", "0", "1e-17", "")
    assert found == [(cell, cell, "3") for cell in cells]


@given(st.text(max_size=8) | st.text("'=+-@\t\r\na", max_size=8))
@example("'=1+1")
@example("-")
@example("")
def test_a_name_begins_no_formula_and_comes_back(name: str) -> None:
    cell = neutral(name)
    assert not cell.startswith(DANGEROUS)
    assert named(cell) == name
    if not name.lstrip("'").startswith(DANGEROUS):
        assert cell == name


@pytest.mark.parametrize("name", ["=HYPERLINK('http://x')", "@SUM(1)", "+1", "-2+3", "\t=1", 'a,b"c\nd'])
def test_names_of_solvers_and_tasks_are_harmless_in_a_spreadsheet(report: ComparisonReport, name: str) -> None:
    solvers = [replace(report.solvers[0], solver=name), report.solvers[1]]
    found = compare(solvers)
    line = Number("s", "q", "u", -1.0, name, group=name)
    rows = rows_of(as_csv(found, [Told("s", "?", (), (), (line,))]))
    for row in rows:
        for column in ("a", "b", "metric", "group", "quantity"):
            assert not row[column].startswith(DANGEROUS)
    assert {named(row["a"]) for row in rows if row["a"]} == {name, report.solvers[1].solver}
    assert (named(rows[-1]["group"]), rows[-1]["value"]) == (name, "-1")
    assert set(rows[0]) == set(COLUMNS)
