"""Facts of attempts are read once for all sections, and cost and time are read even if the steps are unreadable."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import DataError
from hybrid.core.types import Attempt
from hybrid.log import attempts, questions
from hybrid.scoring.attempt_facts import asks_of, facts_of
from hybrid.scoring.compare import compare
from hybrid.scoring.records import QuestionTable
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import results
from tests.hybrid.scoring.sections.test_unchanged import content_of


def test_all_sections_and_the_table_read_an_attempt_once(
    tmp_path: Path, synthetic_runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = synthetic_runs.write(tmp_path, size=6)
    compare_paths([folders.real])
    reads = Counter[bytes]()

    def count_reads(read: Any) -> Any:
        def count_read(line: bytes) -> Attempt:
            reads[line] += 1
            attempt: Attempt = read(line)
            return attempt

        return count_read

    for name in ("read_attempt", "without_steps"):
        monkeypatch.setattr(attempts, name, count_reads(getattr(attempts, name)))
    solvers = compare_paths([folders.real]).solvers
    assert len(results(compare(solvers))) > 10
    assert len(QuestionTable(solvers)) == 3 * 18
    assert set(reads.values()) == {1}
    assert len(reads) == 3 * 18


def test_all_sections_read_a_question_once_for_all_solvers(
    tmp_path: Path, synthetic_runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = synthetic_runs.write(tmp_path, size=6)
    reads = Counter[bytes]()
    read = questions.read_question

    def count_read(line: bytes) -> questions.AnyQuestion:
        reads[line] += 1
        return read(line)

    monkeypatch.setattr(questions, "read_question", count_read)
    for _ in range(2):
        # The first comparison scores the replies, and the second one reads the saved scores.
        report = compare_paths([runs.real])
        assert len(results(compare(report.solvers))) > 10
        assert len(QuestionTable(report.solvers)) == 3 * 18
        assert Counter(reads.values()) == {1: 18}
        reads.clear()


def test_cost_is_known_without_readable_steps(tmp_path: Path, synthetic_runs: Any) -> None:
    run = synthetic_runs.from_letters(tmp_path / "run", {"controller": {"Jigsaw": "r"}}, costing=synthetic_runs.calling)
    path = run.path / "controller" / "attempts.jsonl"
    recorded = run.recorded("controller")
    expected = asks_of(recorded, "val_Jigsaw_1")
    path.write_text(path.read_text().replace('"kind":"tool"', '"kind":"toil"'))
    # The extent of the changed file is in the manifest, so its line is only parsed on access.
    extent = vars(run.measure("controller/attempts.jsonl").extent)
    run.write_manifest(content_of(run) | {"files": {**run.manifest["files"], "controller/attempts.jsonl": extent}})
    damaged = run.recorded("controller")
    with pytest.raises(DataError):
        facts_of(damaged, "val_Jigsaw_1")
    assert asks_of(damaged, "val_Jigsaw_1") == expected
