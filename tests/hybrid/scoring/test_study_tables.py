"""The p values of a table are adjusted over the rows that it shows: a study's effects, and the tables of a section."""

from pathlib import Path
from typing import Any

from hybrid.display.tables import p_value
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections import gain, results
from hybrid.scoring.study_tables import study_tables
from hybrid.stats import holm

# The first two are the parts of the gain, the third is a separate claim.
FAMILIES = ((gain.PRESENCE, gain.CONTENT), (gain.SHUFFLED,))


def test_the_effects_of_a_study_are_adjusted_in_their_family(tmp_path: Path, synthetic_runs: Any) -> None:
    """The gain, which is not a row of the table, is not in the family."""
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
