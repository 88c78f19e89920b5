"""The effects of a study: which cells a difference is of, what adds up, and how cells are told apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.effects import SECTION
from hybrid.scoring.study_tables import study_tables
from tests.hybrid.scoring.sections.rows import by_quantity

ALONE, RESULT, LOOP = "wwwrrw" * 6, "rrwrrw" * 6, "rrrrrw" * 6
TEXT, PICTURES, ORACLE = "rrwrrw" * 6, "wwwrrw" * 6, "rrrrrr" * 6


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory, made_up_runs: Any) -> Comparison:
    """A study in four runs over 36 puzzles."""
    folder = tmp_path_factory.mktemp("study")

    def run(name: str, said: Mapping[str, str], output: str = "real", show: str = "both") -> Path:
        letters = {solver: {"Jigsaw": own} for solver, own in said.items()}
        path: Path = made_up_runs.from_letters(folder / name, letters, output, show).path
        return path

    paths = [
        run("with-tools", {"controller": LOOP, "mllm": ALONE, "result_only": RESULT}),
        run("oracle", {"controller": ORACLE}, "oracle"),
        run("text", {"controller": TEXT}, show="text"),
        run("pictures", {"controller": PICTURES}, show="image"),
    ]
    return compare(compare_paths(paths).solvers)


def test_each_effect_is_the_difference_of_its_cells(cells: Comparison) -> None:
    rows = by_quantity(tuple(SECTION.rows(cells)))
    assert {name: round(36 * (row.value or 0)) for name, row in rows.items()} == {
        "result effect": 12,
        "loop effect": 6,
        "oracle": 6,
        "text alone": -6,
        "pictures alone": -18,
    }
    assert {(row.a, row.b) for row in rows.values()} >= {
        ("mllm", "result_only"),
        ("result_only", "controller"),
        ("controller", "controller [findings as text]"),
    }
    assert all(row.p is not None and row.p_holm is not None and row.p_holm >= row.p for row in rows.values())


def test_a_cell_is_no_contestant_of_its_own(cells: Comparison) -> None:
    (group,) = cells.groups
    assert group.hybrid.solver == "controller"
    assert group.result_only is not None


def test_the_tables_of_a_study_fit_eighty_columns(cells: Comparison) -> None:
    from hybrid.display.tables import RENDERERS
    from hybrid.scoring.sections import results

    tables = study_tables(results(cells))
    assert [table.title.split(" ")[0] for table in tables] == ["gain", "effects", "only"]
    assert all(len(line) <= 80 for table in tables for line in RENDERERS["narrow"](table).splitlines())
