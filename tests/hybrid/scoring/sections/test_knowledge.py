"""Knowledge that reaches the answer: the worked example of docs/study.md, abstentions, and what there is nothing of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import UNTESTED, Result
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


def test_an_abstaining_specialist_knows_nothing_and_contradicts_nothing(made: Any) -> None:
    rows, _ = made(controller="rwrw", mllm="wwrr", specialist="aaaa")
    assert {name: (row.value, row.low, row.n) for name, row in rows.items()} == dict.fromkeys(
        (REACHED, LOST), (None, None, 0)
    )


def test_no_answer_alone_is_something_the_mllm_lacks(made: Any) -> None:
    rows, _ = made(controller="rw", mllm="ua", specialist="rr")
    assert (rows[REACHED].value, rows[REACHED].n, rows[LOST].n) == (0.5, 2, 0)
    rows, _ = made(controller="rw", mllm="uw", specialist="rr")
    # The first weighs half: a guess of the model alone would have been right as often.
    assert rows[REACHED].value == pytest.approx(0.5 / 1.5)


def test_no_answer_with_tools_is_lost(made: Any) -> None:
    """Half of it, where no answer counts as a guess of two."""
    rows, lead = made(controller="ar", mllm="rr", specialist="ww")
    assert (rows[LOST].value, rows[LOST].ids) == (0.25, ("val_Jigsaw_1",))
    assert "loses 25 % of 2" in lead


def test_one_question(made: Any) -> None:
    rows, _ = made(controller="r", mllm="w", specialist="r")
    assert (rows[REACHED].value, rows[REACHED].n, rows[REACHED].high) == (1.0, 1, 1.0)
    assert rows[REACHED].low == pytest.approx(0.2065, abs=1e-4)


def test_what_one_of_them_failed_is_left_out(made: Any) -> None:
    rows, _ = made(controller="rf", mllm="ww", specialist="rr")
    assert (rows[REACHED].n, rows[REACHED].note) == (
        1,
        f"left out: 1 that one of them failed; {UNTESTED['failed']}",
    )


@pytest.mark.parametrize("there", ["mllm", "specialist"])
def test_without_either_part_there_is_no_row(made: Any, there: str) -> None:
    assert made(controller="rw", **{there: "wr"}) == ({}, "")


def test_a_task_without_such_a_question_has_no_row(tmp_path: Path, made_up_runs: Any) -> None:
    said = {
        "controller": {"Jigsaw": "r", "Counting": "r"},
        "mllm": {"Jigsaw": "w", "Counting": "r"},
        "specialist": {"Jigsaw": "r", "Counting": "r"},
    }
    made_up_runs.from_letters(tmp_path / "run", said)
    rows = tuple(SECTION.rows(compare(compare_paths([tmp_path / "run"]).solvers)))
    assert [(row.group, row.quantity, row.value) for row in rows if row.group] == [("Jigsaw", REACHED, 1.0)]
