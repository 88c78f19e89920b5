"""The p values of a table are adjusted over the rows that it shows: a study's effects, and the tables of a section."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.display.tables import p_value
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections import gain, results
from hybrid.scoring.study_tables import study_tables
from hybrid.stats import holm

EFFECTS = (gain.PRESENCE, gain.CONTENT, gain.SHUFFLED)


def test_the_effects_of_a_study_are_one_family(tmp_path: Path, made_up_runs: Any) -> None:
    """The gain, which is no row of the table, is none of the family."""
    found = compare_paths(made_up_runs.write(tmp_path, "blink", size=10).paths).comparison
    (table,) = (one for one in study_tables(results(found)) if one.title.startswith("effects on"))
    rows: dict[str, Result] = {row.quantity: row for row in results(found, ["gain"])[0].rows if not row.group}
    p_values = [p for name in EFFECTS if (p := rows[name].p) is not None]
    place = table.names.index("p (Holm)")
    assert [line[place] for line in table.rows] == [*map(p_value, holm(p_values))]
    assert holm(p_values) != pytest.approx([rows[name].p_holm for name in EFFECTS])
    assert [line[0].partition(":")[0] for line in table.rows][:2] == ["presence", "content"]
