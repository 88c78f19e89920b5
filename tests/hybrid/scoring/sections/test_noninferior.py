"""The section on non-inferiority: which solvers it compares, and the verdict by the margin."""

from pathlib import Path

import pytest

from hybrid.core.errors import UsageError
from hybrid.log.folder import RunFolder
from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.result import Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.noninferior import SECTION
from tests.hybrid.scoring.solvers import solver as solver_of


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    folder.write_manifest({"identity": {"benchmark": "blink", "split": "val"}, "solvers": {}})
    return folder


def score_letters(run: RunFolder, name: str, message: str) -> Scored:
    """Return a solver with these letters; each of the three tasks has every third letter."""
    tasks = ("Jigsaw", "Relative_Depth", "Counting")
    letters = {task: message[place::3] for place, task in enumerate(tasks)}
    return solver_of(name, letters, unanswered="wrong", folder=run, model="openai:m")


def rows_of(*solvers: Scored, options: ComparisonOptions | None = None) -> list[Result]:
    return list(SECTION.rows(compare(solvers, options)))


def verdicts(rows: list[Result]) -> list[tuple[str, str, str]]:
    return [(row.b, row.a, row.note.split(";")[0]) for row in rows if row.quantity == "difference"]


def test_the_margin_decides(run: RunFolder) -> None:
    pair = (score_letters(run, "mllm", "rrrrrrrw" * 30), score_letters(run, "controller", "rrrrrrrw" * 29 + "wwwrrrrw"))
    narrow, wide = (rows_of(*pair, options=ComparisonOptions(margin=margin)) for margin in (0.01, 0.1))
    assert [verdicts(rows)[0][2] for rows in (narrow, wide)] == ["undecided", "not inferior"]
    assert wide[1].value == 0.1
    with pytest.raises(UsageError, match="--margin 0"):
        rows_of(*pair, options=ComparisonOptions(margin=0.0))


def test_no_verdict_is_claimed_where_the_rule_for_unanswered_questions_decides(run: RunFolder) -> None:
    alone, tools = score_letters(run, "mllm", "ra" * 90), score_letters(run, "controller", "rw" * 60 + "r" * 60)
    comparison = compare([alone, tools])
    lead = SECTION.lead(comparison, list(SECTION.rows(comparison)))
    reason = "the difference is +17 points, depending on how unanswered questions count"
    assert lead == f"No verdict on controller and mllm is claimed: {reason}."
    clear_case = compare([score_letters(run, "mllm", "rw" * 90), tools])
    assert SECTION.lead(clear_case, list(SECTION.rows(clear_case))) == ""
