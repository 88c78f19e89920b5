"""A lead over the specialists is one where they answer: r right, w wrong, a abstained, f failed."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import results
from hybrid.scoring.sections.answered import SILENT, SPOKEN
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_the_two_parts"))
def test_the_two_parts(said: Any, expected: Any, made_up_runs: Any, tmp_path: Path) -> None:
    run = made_up_runs.from_letters(tmp_path / "run", said)
    found = compare_paths([run.path], allow_failed=True).comparison
    made = [row for one in results(found, ["answered"]) for row in one.rows]
    parts = {
        part: (made_of[0].n, {row.quantity: row.value for row in made_of})
        for part in (SPOKEN, SILENT)
        if (made_of := [row for row in made if row.group == part])
    }
    assert parts.keys() == expected.keys()
    for part, (n, values) in expected.items():
        assert parts[part] == (n, pytest.approx(values))
