"""Rows of a section made by hand as tables and as csv; no section is known to what is tested here."""

import csv
import io
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hybrid.benchmarks.card import MetricCard
from hybrid.display.tables import Table, as_text
from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.rendering import COLUMNS, as_csv, named, neutral, printed, tables_of
from hybrid.scoring.reports import ComparisonReport, compare_paths
from hybrid.scoring.result import FRACTION, QUESTIONS, Result, Section, SectionResult
from hybrid.scoring.score import Scored

DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")


def card(name: str, values: str = "0 to 1") -> MetricCard:
    return MetricCard(name, name, "questions", "by hand", values=values)


SECTION = Section(
    "made_up",
    "How many cups?",
    (card("share"), card("change", "-1 to 1"), card("cups"), card("<word>")),
    lambda found: (),
    about="share: of all cups.\ncups: whole ones.",
    headings={"a": "solver"},
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, made_up_runs: Any) -> Comparison:
    """Two solvers, of which one failed a question."""
    said = {"mllm": {"Jigsaw": "rwrr", "Counting": "rr"}, "specialist": {"Jigsaw": "rwfr", "Counting": "aw"}}
    path = made_up_runs.from_letters(tmp_path_factory.mktemp("run") / "run", said).path
    return compare_paths([path], allow_failed=True).comparison


def tables(found: Comparison, *rows: Result, section: Section = SECTION) -> tuple[Table, ...]:
    return tables_of(found, SectionResult(section, rows))


def row(quantity: str, value: float | None, solver: str = "mllm", unit: str = FRACTION, **fields: Any) -> Result:
    return Result("made_up", quantity, unit, value, solver, **fields)


WIDE = """\
blink: made up (specialist: 1 of 6 failed)

solver       n      share          95 %  change             95 %      p  p (Holm)   cups
----------  --  ---------  ------------  ------  ---------------  -----  --------  -----
mllm        40  0.500 [1]  [0.33, 0.67]  +0.250  [-0.010, 0.510]  0.060     0.120  3 (4)
specialist  40  0.750 [1]             -  -0.050   [0.000, 0.100]  0.500     0.500  - [2]

[1] a note of two
[2] not counted
share: of all cups.
cups: whole ones.
"""


def test_a_line_for_each_solver_and_columns_for_each_quantity(found: Comparison) -> None:
    """A value over another n says over how many; a note has one number in a table."""
    rows = [
        row("share", 0.5, n=40, low=0.33, high=0.67, note="a note of two"),
        row("change", 0.25, n=40, low=-0.01, high=0.51, p=0.06, p_holm=0.12),
        row("cups", 3.0, unit=QUESTIONS, n=4),
        row("share", 0.75, "specialist", n=40, note="a note of two"),
        row("change", -0.05, "specialist", n=40, low=0.0, high=0.1, p=0.5, p_holm=0.5),
        row("cups", None, "specialist", unit=QUESTIONS, note="not counted"),
        row("neither", 1.0, "specialist", detail=True),
    ]
    (table,) = tables(found, *rows)
    assert as_text(table) == WIDE


def test_one_test_is_not_adjusted(found: Comparison) -> None:
    (table,) = tables(found, row("change", 0.25, p=0.06, p_holm=0.06))
    assert table.names == ("solver", "change", "p")


def test_groups_have_a_table_of_their_own(found: Comparison) -> None:
    overall, by_task = row("share", 0.5), row("share", 0.25, group="Jigsaw")
    whole, tasks = tables(found, overall, by_task)
    assert (whole.names, tasks.names) == (("solver", "share"), ("solver", "task", "share"))
    assert tasks.title == "blink: made up (specialist: 1 of 6 failed), by task"
    # What the section explains stands once.
    assert (whole.notes, tasks.notes) == (("share: of all cups.", "cups: whole ones."), ())
    by = replace(found, options=ComparisonOptions(by="granularity"))
    assert tables(by, by_task)[0].names == ("solver", "granularity", "share")


def test_a_metric_that_all_rows_share_is_in_the_title(found: Comparison) -> None:
    one, other = row("share", 0.5, metric="mAcc"), row("share", 0.5, metric="qAcc")
    assert tables(found, one)[0].title.endswith("failed): mAcc")
    assert tables(found, one, other)[0].names == ("solver", "metric", "share")


@pytest.mark.parametrize("words", ["abcdefghijklmn", "abc"])
def test_what_is_too_wide_or_mostly_empty_has_a_line_for_each_number(found: Comparison, words: str) -> None:
    """Fourteen quantities of one solver; three, each of which another solver has."""
    solvers = "mllm" if len(words) > 13 else ("one", "two", "three")
    pairs = [(word, solvers if isinstance(solvers, str) else solvers[place]) for place, word in enumerate(words)]
    rows = [row(word, 0.5, solver, none="chance", n=7, low=0.25, high=0.75) for word, solver in pairs]
    (table,) = tables(found, *rows)
    assert table.names == ("solver", "quantity", "n", "value", "95 %")
    assert [line[:4] for line in table.rows] == [(solver, word, "7", "0.500") for word, solver in pairs]


def test_thirteen_columns_are_not_too_wide(found: Comparison) -> None:
    (table,) = tables(found, *(row(word, 0.5) for word in "abcdefghijklm"))
    assert len(table.rows) == 1


def test_labels_that_all_share_are_in_the_title(found: Comparison) -> None:
    labels = ("imported", "unchecked weights: depth")
    labelled = replace(found, solvers=tuple(replace(one, labels=labels) for one in found.solvers))
    assert tables(labelled, row("share", 0.5))[0].title.endswith(" [imported; unchecked weights: depth]")


def test_a_section_that_could_not_be_made_says_why(found: Comparison) -> None:
    (table,) = tables_of(found, SectionResult(SECTION, (), fault="the trace is cut off"))
    assert table.rows == (("made_up", "the trace is cut off"),)


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        (QUESTIONS, 3.0, "3"),
        (QUESTIONS, 2.5, "2.5"),
        ("calls", 4.0, "4"),
        ("samples", 5.0, "5"),
        ("tokens", 1234.0, "1,234"),
        ("seconds", 0.25, "0.250 s"),
        ("seconds", 61.04, "61.0 s"),
        ("USD", 0.5, "0.5000"),
        ("ratio", 1.239, "1.24"),
        ("kappa", -0.001, "0.00"),
        ("probability", 0.0004, "<0.001"),
        (FRACTION, 0.5, "0.500"),
        (FRACTION, None, "-"),
    ],
)
def test_a_value_is_rounded_by_its_unit(unit: str, value: float | None, expected: str) -> None:
    assert printed(SECTION, row("share", value, unit=unit)) == expected


# One number a line.


def lines_of(found: Comparison, *rows: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(found.solvers, rows), newline="")))


def test_csv_has_every_row_with_its_solvers_model_and_run(found: Comparison) -> None:
    told = Result("made_up", "share", FRACTION, 0.5, "mllm", "specialist", n=0, none="chance", detail=True)
    (line,) = lines_of(found, told)
    assert tuple(line) == COLUMNS
    assert (
        *("benchmark", "section", "quantity", "unit", "value", "a", "b", "metric", "group", "n", "low", "high"),
        *("p", "p_holm", "none", "note", "model_a", "run_a", "model_b", "run_b"),
    ) == COLUMNS
    folder = found.solvers[0].folder
    assert folder is not None
    own = {key: one for key, one in line.items() if one}
    filled = ["benchmark", "section", "quantity", "unit", "value", "a", "b", "n", "none", "model_a", "run_a", "run_b"]
    run = str(folder.path)
    cells = ["blink", "made_up", "share", "fraction", "0.5", "mllm", "specialist", "0", "chance", "made:up", run, run]
    assert own == dict(zip(filled, cells, strict=True))


@pytest.mark.parametrize(
    ("value", "cell"), [(-1 / 3, "-0.3333333333333333"), (2.0, "2"), (-0.0, "0"), (1e-17, "1e-17"), (None, "")]
)
def test_a_number_is_a_number_with_all_its_digits(found: Comparison, value: float | None, cell: str) -> None:
    (line,) = lines_of(found, row("share", value, low=value, n=3))
    assert (line["value"], line["low"], line["n"]) == (cell, cell, "3")


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
def test_names_of_solvers_and_tasks_are_harmless_in_a_spreadsheet(found: Comparison, name: str) -> None:
    solvers: list[Scored] = [replace(found.solvers[0], solver=name), found.solvers[1]]
    (line,) = lines_of(compare(solvers), row("share", -1.0, name, group=name, note=name))
    for column in ("a", "group", "note"):
        assert not line[column].startswith(DANGEROUS)
        assert named(line[column]) == name
    assert line["value"] == "-1"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, made_up_runs: Any) -> ComparisonReport:
    """The comparison of a real run and its controls, with all sections."""
    made = made_up_runs.write(tmp_path_factory.mktemp("runs"), "blink", size=4, repeats=2, samples=3)
    return compare_paths(made.paths, all=True)


@pytest.mark.parametrize("form", ["text", "narrow", "markdown", "latex", "csv"])
def test_every_form_has_every_section_of_real_runs(report: ComparisonReport, form: str) -> None:
    text = report.render(form)
    for section in report.sections:
        assert (section.name if form == "csv" else section.section.title.split(",")[0][:60]) in text
    if form == "narrow":
        assert max(map(len, text.splitlines())) <= 80
