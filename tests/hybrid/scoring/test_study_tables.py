"""The p values of a table are adjusted over the rows that it shows: a study's effects, and the tables of a section."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.display.tables import p_value
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, Result, SectionResult
from hybrid.scoring.sections import equivalence, gain, results
from hybrid.scoring.study_tables import study_tables
from hybrid.stats import holm

# The first two are the parts of the gain; the third is a separate claim.
FAMILIES = ((gain.PRESENCE, gain.CONTENT), (gain.SHUFFLED,))


def test_the_effects_of_a_study_are_adjusted_in_their_family(tmp_path: Path, synthetic_runs: Any) -> None:
    """The effects of a study are adjusted in their family, to which the gain does not belong: it is not a row of the
    table."""
    comparison = compare_paths(synthetic_runs.write(tmp_path, "blink", size=10).paths).comparison
    (table,) = (item for item in study_tables(results(comparison)) if item.title.startswith("effects on"))
    rows: dict[str, Result] = {row.quantity: row for row in results(comparison, ["gain"])[0].rows if not row.group}
    p_values = [[p for name in family if (p := rows[name].p) is not None] for family in FAMILIES]
    (place,) = (number for number, name in enumerate(table.names) if name.startswith("p (Holm"))
    assert [line[place] for line in table.rows] == [
        p_value(adjusted) for family in p_values for adjusted in holm(family)
    ]
    assert sorted(map(len, p_values)) == [1, 2]
    assert [line[0].partition(":")[0] for line in table.rows][:2] == ["presence", "content"]


@pytest.mark.parametrize(
    ("note", "p_holm", "verdict"),
    [
        (equivalence.EQUAL, 0.04, "equal within 0.05"),
        (equivalence.EQUAL, 0.06, "not shown to be equal within 0.05"),
        (f"{equivalence.EQUAL} 0.05; {equivalence.HANGS}", 0.04, "not shown to be equal within 0.05"),
        (equivalence.BEYOND, 0.9, "different by more than 0.05"),
    ],
)
def test_a_study_and_the_conclusion_have_one_verdict_on_equality(note: str, p_holm: float, verdict: str) -> None:
    note = note if ";" in note else f"{note} 0.05"
    row = Result(equivalence.NAME, "gain", FRACTION, 0.0, "mllm", "controller", low=-0.01, high=0.01, n=9, note=note)
    row = replace(row, p=0.03, p_holm=p_holm, level=equivalence.LEVEL)
    (table,) = study_tables([SectionResult(equivalence.SECTION, (row,))])
    assert table.names[-2:] == ("p (Holm, claim)", "verdict")
    assert table.rows[0][-1] == verdict
    assert table.notes == ()


def test_a_study_says_why_an_equality_is_not_claimed() -> None:
    row = Result(equivalence.NAME, "gain", FRACTION, 0.0, "mllm", "controller", low=-0.01, high=0.01, n=9)
    row = replace(row, note=f"{equivalence.EQUAL} 0.05", p=0.01, p_holm=0.02, level=equivalence.LEVEL, no_claim="why")
    (table,) = study_tables([SectionResult(equivalence.SECTION, (row,))])
    assert table.rows[0][-1] == "not shown to be equal within 0.05"
    assert table.notes == ("no claim for gain: why",)
