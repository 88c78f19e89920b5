"""Rows of a section made by hand as tables and as csv; no section is known to what is tested here."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hybrid.benchmarks.card import MetricCard
from hybrid.display.tables import Table
from hybrid.scoring.compare import Comparison
from hybrid.scoring.rendering import named, neutral, tables_of
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result, Section, SectionResult

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


# One number a line.


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
