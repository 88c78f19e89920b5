"""The section on calls that changed nothing, with unreadable traces and with costs that were not recorded."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.types import Attempt, Question, Reply, Step, Usage
from hybrid.log import attempts
from hybrid.log.folder import RunFolder
from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections import price
from hybrid.scoring.sections.unchanged import SECTION
from tests.hybrid.scoring.sections.rows import by_quantity

Costing = Callable[[str, Question, Reply], Reply]


def costing(calls: str, usd: float | None = 0.001) -> Costing:
    """Return the costing of a controller with these numbers of calls by question.

    A call takes 200 tokens, 2 s and twice the price of an answer without a call.
    """

    def with_cost(solver: str, question: Question, reply: Reply) -> Reply:
        count = int(calls[int(question.id.rsplit("_", 1)[1]) - 1]) if solver == "controller" else 0
        offers = 50 * (solver == "controller")
        price = None if usd is None else usd * (1 + 2 * count)
        usage = Usage(1 + count, count, 90 + offers + 200 * count, 10, cost_usd=price, seconds=1.0 + 2.0 * count)
        return replace(reply, usage=usage, steps=(Step("tool", "depth", "near"),) * count)

    return with_cost


def content_of(run: RunFolder) -> dict[str, Any]:
    """Return the manifest without its format and seal, to be written again."""
    return {name: value for name, value in run.manifest.items() if name not in ("format", "seal")}


@pytest.fixture
def section_of(tmp_path: Path, synthetic_runs: Any) -> Any:
    """Return the rows over all tasks and the conclusion for these answers to Jigsaw, with tools and alone."""

    def section(hybrid: str, alone: str, with_cost: Costing) -> tuple[Mapping[str, Result], str]:
        messages = {"controller": {"Jigsaw": hybrid}, "mllm": {"Jigsaw": alone}}
        synthetic_runs.from_letters(tmp_path / "run", messages, costing=with_cost)
        comparison = compare(compare_paths([tmp_path / "run"]).solvers)
        rows = tuple(SECTION.rows(comparison))
        return by_quantity(rows), SECTION.lead(comparison, rows)

    return section


def test_without_a_call_there_is_no_row(section_of: Any) -> None:
    assert section_of("rw", "rw", costing("00")) == ({}, "")


def test_two_missing_answers_are_not_the_same_answer(section_of: Any) -> None:
    rows, lead = section_of("ruuw", "ruur", costing("1111"))
    assert rows["same answer as alone"].value == 0.75
    silent = "2 of them without an answer either way"
    assert silent in rows["same answer as alone"].note
    assert lead.startswith(
        f"controller: 3 of the 4 questions with calls have the same answer as mllm alone, {silent}; "
    )


def test_equal_answers_alone_need_no_word_about_missing_ones(section_of: Any) -> None:
    assert "without an answer" not in section_of("rr", "rw", costing("11"))[1]


def test_a_question_without_a_readable_trace_is_left_out(tmp_path: Path, synthetic_runs: Any) -> None:
    messages = {"controller": {"Jigsaw": "rr"}, "mllm": {"Jigsaw": "rr"}}
    run = synthetic_runs.from_letters(tmp_path / "run", messages, costing=costing("11"))
    name = "controller/attempts.jsonl"
    path = run.path / name
    first, second = path.read_text().splitlines()
    path.write_text(first + "\n" + second.replace('"data":{}', '"data":3') + "\n")
    # A file whose extent is in the manifest is not read completely, so an invalid line is reported when it is used.
    files = {**run.manifest["files"], name: asdict(run.measure(name).extent)}
    run.write_manifest(content_of(run) | {"files": files})
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths([tmp_path / "run"]).solvers))))
    assert (rows["same answer as alone"].n, rows["calls that could have been skipped"].n) == (1, 1)
    assert "1 without a readable trace" in rows["same answer as alone"].note


def test_answers_of_another_program_have_no_recorded_cost(tmp_path: Path, synthetic_runs: Any) -> None:
    synthetic_runs.from_letters(tmp_path / "run", {"controller": {"Jigsaw": "rr"}}, costing=costing("11"))
    alone = synthetic_runs.from_letters(tmp_path / "alone", {"mllm": {"Jigsaw": "rw"}}, costing=costing("11"))
    identity = {**alone.manifest["identity"], "imported": {"name": "made:up"}}
    alone.write_manifest(content_of(alone) | {"identity": identity})
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths([tmp_path / "run", tmp_path / "alone"]).solvers))))
    assert (rows["same answer as alone"].value, rows["calls that could have been skipped"].value) == (0.5, 1.0)
    assert rows["seconds that could have been skipped"].value is None
    assert rows["seconds that could have been skipped"].note == "seconds of mllm not recorded for 2 of 2 questions"


def test_the_cost_of_a_question_is_read_once_for_all_sections(
    tmp_path: Path, synthetic_runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = {"controller": {"Jigsaw": "rr"}, "mllm": {"Jigsaw": "rw"}}
    synthetic_runs.from_letters(tmp_path / "run", messages, costing=costing("11"))
    comparison = compare(compare_paths([tmp_path / "run"]).solvers)
    expected = tuple(price.SECTION.rows(comparison))
    assert expected
    reads: list[bytes] = []
    read_attempt = attempts.read_attempt

    def read_and_count(line: bytes) -> Attempt:
        reads.append(line)
        return read_attempt(line)

    monkeypatch.setattr(attempts, "read_attempt", read_and_count)
    fresh = compare(compare_paths([tmp_path / "run"]).solvers)
    reads.clear()
    assert tuple(price.SECTION.rows(fresh)) == expected
    assert len(reads) == 4
    tuple(SECTION.rows(fresh))
    # Verdicts on tool output need whole attempts of the controller; the costs of both solvers are not read again.
    assert len(reads) == 6
