"""The section on non-inferiority: which solvers it sets against which, and the verdict by the margin."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.benchmarks.base import Abstain, Benchmark
from hybrid.errors import UsageError
from hybrid.log.folder import RunFolder
from hybrid.registry import load
from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.pairing import Data
from hybrid.scoring.result import Result
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.scoring.sections import differences
from hybrid.scoring.sections.noninferior import SECTION
from hybrid.types import Kind, Outcome, Question, Score, StoredImage

VAL = Data("blink", "val", {"kind": "folder", "sha256": "a" * 64}, {})
RULES: Mapping[Abstain, float] = {"chance": 0.5, "wrong": 0.0}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    folder.write_manifest({"identity": {"benchmark": "blink", "split": "val"}, "solvers": {}})
    return folder


def solver(run: RunFolder, name: str, said: str, **changes: object) -> Scored:
    """A solver of that word: `r` right, `w` wrong, `u` unreadable, `f` failed; a third of the questions each task."""
    tasks = ("Jigsaw", "Relative_Depth", "Counting")
    outcomes = {"u": Outcome.UNPARSED, "f": Outcome.OUTAGE}
    questions, counted = {}, {}
    for rule, chance in RULES.items():
        scores = []
        for place, letter in enumerate(said):
            identity, task = f"q{place}", tasks[place % 3]
            image = StoredImage(f"{place:064x}", 4, 4, "image/png")
            questions[identity] = Question(identity, task, (image,), "Which?", Kind.CHOICE, ("x", "y"), "(A)")
            worth = {"r": 1.0, "u": chance}.get(letter, 0.0)
            answer = "A" if letter in "rw" else None
            scores.append(Score(identity, task, worth, outcomes.get(letter, Outcome.ANSWERED), answer))
        benchmark: Benchmark = load("hybrid.benchmarks", "blink")
        counted[rule] = Counted(tuple(scores), metrics_of(benchmark, questions, scores))
    made = Scored("blink", name, counted, "wrong", questions, VAL, recorded=name, folder=run, model="openai:m")
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


P = "one-sided p of a loss of the margin or more"


def rows_of(*solvers: Scored, options: ComparisonOptions | None = None) -> list[Result]:
    return list(SECTION.rows(compare(solvers, options)))


def verdicts(rows: list[Result]) -> list[tuple[str, str, str]]:
    return [(row.b, row.a, row.note.split(";")[0]) for row in rows if row.quantity == "difference"]


def test_difference_and_interval_are_those_of_the_paired_difference(run: RunFolder) -> None:
    solvers = [solver(run, "mllm", "rwrrwwrwrr" * 6), solver(run, "controller", "rrrwrwrwrr" * 6)]
    paired = next(row for row in differences.SECTION.rows(compare(solvers)) if row.quantity == "difference")
    row, margin, p = rows_of(*solvers)
    assert (row.a, row.b, row.metric, row.n) == (paired.a, paired.b, paired.metric, paired.n)
    assert (row.value, row.low, row.high) == (paired.value, paired.low, paired.high)
    assert (margin.quantity, margin.value) == ("margin", 0.05)
    assert (p.quantity, p.unit, isinstance(p.value, float)) == (P, "probability", True)


def test_the_margin_decides(run: RunFolder) -> None:
    solvers = (solver(run, "mllm", "rrrrrrrw" * 30), solver(run, "controller", "rrrrrrrw" * 29 + "wwwrrrrw"))
    narrow, wide = (rows_of(*solvers, options=ComparisonOptions(margin=margin)) for margin in (0.01, 0.1))
    assert [verdicts(rows)[0][2] for rows in (narrow, wide)] == ["undecided", "not inferior"]
    assert wide[1].value == 0.1
    with pytest.raises(UsageError, match="--margin 0"):
        rows_of(*solvers, options=ComparisonOptions(margin=0.0))
