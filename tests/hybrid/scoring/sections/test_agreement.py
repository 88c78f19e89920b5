"""Shared mistakes of two solvers by hand: counts, strata, ids, and pairs that cannot be tested."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections.agreement import RATIO, SECTION
from tests.hybrid.scoring.sections.rows import by_quantity


@pytest.fixture
def made(tmp_path: Path, made_up_runs: Any) -> Any:
    """The rows of a run with a solver for each word, or words by task."""

    def rows(*words: dict[str, str], **options: Any) -> list[Result]:
        names = ("mllm", "specialist", "chance")
        folder = made_up_runs.from_letters(tmp_path / "run", dict(zip(names, words, strict=False)))
        return list(SECTION.rows(compare(compare_paths([folder.path]).solvers, ComparisonOptions(**options))))

    return rows


def test_shared_mistakes_by_hand(made: Any) -> None:
    """Jigsaw: 3 and 2 of 4 wrong, both 2; Counting: 1 and 2 of 4, both 0. Expected 4 * 4 / 8, within 6 / 4 + 2 / 4."""
    rows = by_quantity(made({"Jigsaw": "wwwr", "Counting": "wrrr"}, {"Jigsaw": "wwrr", "Counting": "rwar"}))
    assert {name: row.value for name, row in rows.items()} == {
        "wrong a": 4,
        "wrong b": 4,
        "both wrong": 2,
        "expected": 2.0,
        "expected within tasks": 2.0,
        "same wrong answer": 2,
        RATIO: 1.0,
        "kappa": pytest.approx(0.0),
    }
    assert {(row.a, row.b, row.n) for row in rows.values()} == {("mllm", "specialist", 8)}
    assert rows["both wrong"].ids == ("val_Jigsaw_1", "val_Jigsaw_2") == rows["same wrong answer"].ids
