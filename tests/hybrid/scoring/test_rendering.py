"""Hand-made rows of a section as tables and as csv; the tested code knows no section."""

import csv
import io
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.rendering import SENTENCE, _extra, _extras, as_csv, neutral, printed, tables_of, unescape
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, Result, Section, SectionResult
from hybrid.scoring.score import Scored
from hybrid.scoring.sections import sections
from tests.tables import cases

DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")


def card(name: str, values: str = "0 to 1") -> MetricCard:
    return MetricCard(name, name, "questions", "by hand", values=values)


SECTION = Section(
    "made_up",
    "How many cups?",
    (card("share"), card("change", "-1 to 1"), card("cups"), card("<word>")),
    lambda result: (),
    about="share: of all cups.\ncups: whole ones.",
    headings={"a": "solver"},
)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory, synthetic_runs: Any) -> Comparison:
    """Two solvers, one of which failed a question."""
    messages = {"mllm": {"Jigsaw": "rwrr", "Counting": "rr"}, "specialist": {"Jigsaw": "rwfr", "Counting": "aw"}}
    path = synthetic_runs.from_letters(tmp_path_factory.mktemp("run") / "run", messages).path
    return compare_paths([path], allow_failed=True).comparison


def row(quantity: str, value: float | None, solver: str = "mllm", unit: str = FRACTION, **fields: Any) -> Result:
    return Result("made_up", quantity, unit, value, solver, **fields)


@pytest.mark.parametrize(*cases(__file__, "test_a_value_is_rounded_by_its_unit"))
def test_a_value_is_rounded_by_its_unit(unit: str, value: float | None, expected: str) -> None:
    assert printed(SECTION, row("share", value, unit=unit)) == expected


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("points per tokens", ("+81.9", "[-12.3, +176]")),
        ("points per seconds", ("+81.9", "[-12.3, +176]")),
        (FRACTION, ("81.900", "[-12.27, 176.09]")),
    ],
)
def test_an_interval_of_a_rate_is_rounded_like_its_value(unit: str, words: tuple[str, str]) -> None:
    rate = row("share", 81.9, unit=unit, low=-12.27, high=176.086)
    assert (printed(SECTION, rate), _extra(SECTION, rate, "interval")) == words


def lines_of(comparison: Comparison, *rows: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(comparison.solvers, rows), newline="")))


# One number per line.


@given(st.text(max_size=8) | st.text("'=+-@\t\r\n\u3000\ufeff\uff1da", max_size=8))
@example("'=1+1")
@example("-")
@example("")
def test_a_name_begins_no_formula_and_comes_back(name: str) -> None:
    cell = neutral(name)
    assert not cell.startswith(DANGEROUS)
    assert unescape(cell) == name
    if not set(name) & {*DANGEROUS, *"\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"}:
        assert cell == name


@pytest.mark.parametrize("name", ["=HYPERLINK('http://x')", "@SUM(1)", "+1", "-2+3", "\t=1", 'a,b"c\nd'])
def test_names_of_solvers_and_tasks_are_harmless_in_a_spreadsheet(comparison: Comparison, name: str) -> None:
    solvers: list[Scored] = [replace(comparison.solvers[0], solver=name), comparison.solvers[1]]
    (line,) = lines_of(compare(solvers), row("share", -1.0, name, group=name, note=name))
    for column in ("a", "group", "note"):
        assert not line[column].startswith(DANGEROUS)
        assert unescape(line[column]) == name
    assert line["value"] == "-1"


OF_CHANGE = "share, change: of all cups. cups of tea are no cups. p tests the change."
ABOUT = (
    "cups: whole ones. share, change: of all cups. cups of tea are no cups. p tests the change. p (Holm) is adjusted. "
    "p (Holm, FAMILY) is of one family. p (Holm in family) is of several.\nchange: later less earlier."
)
TESTED = row("change", 0.1, b="specialist", low=0.0, high=0.2, p=0.02, p_holm=0.04, family="tea")


@pytest.mark.parametrize(
    ("rows", "notes"),
    [
        ([row("cups", 2.0)], ["cups: whole ones. cups of tea are no cups."]),
        ([row("share", 0.5)], ["share, change: of all cups. cups of tea are no cups."]),
        # A single test has no adjusted p value.
        (
            [replace(TESTED, p_holm=0.02)],
            [OF_CHANGE, "change: later less earlier."],
        ),
        (
            [TESTED],
            [
                f"{OF_CHANGE} p (Holm) is adjusted. p (Holm, FAMILY) is of one family.",
                "change: later less earlier.",
            ],
        ),
        (
            [TESTED, replace(TESTED, a="other", family="coffee")],
            [
                f"{OF_CHANGE} p (Holm) is adjusted. p (Holm in family) is of several.",
                "change: later less earlier.",
            ],
        ),
        # A detail is in no table.
        ([row("cups", 2.0), replace(TESTED, detail=True)], ["cups: whole ones. cups of tea are no cups."]),
    ],
)
def test_a_note_below_a_table_is_about_what_the_tables_have(
    comparison: Comparison, rows: list[Result], notes: list[str]
) -> None:
    section = replace(SECTION, about=ABOUT)
    first, *_ = tables_of(comparison, SectionResult(section, tuple(rows)))
    assert list(first.notes) == notes


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.name)
def test_a_note_on_p_values_begins_with_their_column(section: Section) -> None:
    """Only then is it left out of a table without that column."""
    sentences = [each for line in section.about.splitlines() for each in SENTENCE.split(line)]
    assert [each for each in sentences if re.search(r"\bp (tests|is)|adjusted|Holm", each) and each[:2] != "p "] == []


def test_an_adjusted_p_value_has_a_column_unless_it_is_the_only_test_of_its_family() -> None:
    row = Result("differences", "difference", FRACTION, 0.1, "a", "b", p=0.03, p_holm=0.03, family="gain")
    assert _extras([row]) == ("p",)
    # Another section tests another pair of the family.
    assert _extras([replace(row, p_holm=0.06)]) == ("p", "p_holm")
    assert _extras([row, replace(row, b="c")]) == ("p", "p_holm")
