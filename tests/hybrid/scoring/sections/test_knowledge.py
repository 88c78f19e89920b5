"""Knowledge that reaches the answer: the worked example of docs/study.md, abstentions, and what there is nothing of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections.knowledge import SECTION
from tests.hybrid.scoring.sections.rows import by_quantity

REACHED, LOST = "right by the specialist only: share kept", "right by the model only: share lost"


@pytest.fixture
def made(tmp_path: Path, made_up_runs: Any) -> Any:
    """The rows over all and the conclusion of solvers that answer Jigsaw so."""

    def section(**said: str) -> tuple[Mapping[str, Result], str]:
        path = tmp_path / "-".join(said.values())
        made_up_runs.from_letters(path, {name: {"Jigsaw": letters} for name, letters in said.items()})
        found = compare(compare_paths([path]).solvers)
        rows = tuple(SECTION.rows(found))
        return by_quantity(rows), SECTION.lead(found, rows)

    return section


def test_the_worked_example(made: Any) -> None:
    rows, lead = made(controller="rrrwrwrwwr", mllm="wwwwwwrrrr", specialist="rrwrawwwra")
    assert (rows[REACHED].value, rows[REACHED].n) == (pytest.approx(2 / 3), 3)
    assert rows[REACHED].ids == ("val_Jigsaw_1", "val_Jigsaw_2")
    assert (rows[LOST].value, rows[LOST].n, rows[LOST].ids) == (0.5, 2, ("val_Jigsaw_8",))
    assert all(row.low < row.value < row.high for row in rows.values())
    assert lead == (
        "controller answers 2 of the 3 questions rightly that specialist knows and mllm alone does not, and loses 1 of "
        "2 the other way round."
    )


@pytest.mark.parametrize("there", ["mllm", "specialist"])
def test_without_either_part_there_is_no_row(made: Any, there: str) -> None:
    assert made(controller="rw", **{there: "wr"}) == ({}, "")
