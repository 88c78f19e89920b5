"""Calls that changed nothing: the worked example of docs/study.md, unchanged answers, costs that are not recorded."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.log.folder import RunFolder
from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections.unchanged import SECTION, spent
from hybrid.types import Attempt, Exchange, Kind, Prompt, Question, Reply, Step, Usage
from tests.hybrid.scoring.sections.rows import by_quantity

ALONE, TOOLS, CALLS = "wwwwwwrrrr", "rrrwrwrwwr", "1211002100"
Costing = Callable[[str, Question, Reply], Reply]


def costing(calls: str, usd: float | None = 0.001) -> Costing:
    """Of the controller so many calls by question; a call takes 200 tokens, 2 s and twice the price of an ask."""

    def with_cost(solver: str, question: Question, reply: Reply) -> Reply:
        count = int(calls[int(question.id.rsplit("_", 1)[1]) - 1]) if solver == "controller" else 0
        offered = 50 * (solver == "controller")
        price = None if usd is None else usd * (1 + 2 * count)
        usage = Usage(1 + count, count, 90 + offered + 200 * count, 10, cost_usd=price, seconds=1.0 + 2.0 * count)
        return replace(reply, usage=usage, steps=(Step("tool", "depth", "near"),) * count)

    return with_cost


def content_of(run: RunFolder) -> dict[str, Any]:
    """The manifest as it is given to be written."""
    return {name: value for name, value in run.manifest.items() if name not in ("format", "seal")}


@pytest.fixture
def made(tmp_path: Path, made_up_runs: Any) -> Any:
    """The rows over all and the conclusion of a controller and its MLLM alone that answer Jigsaw so."""

    def section(hybrid: str, alone: str, with_cost: Costing) -> tuple[Mapping[str, Result], str]:
        said = {"controller": {"Jigsaw": hybrid}, "mllm": {"Jigsaw": alone}}
        made_up_runs.from_letters(tmp_path / "run", said, costing=with_cost)
        found = compare(compare_paths([tmp_path / "run"]).solvers)
        rows = tuple(SECTION.rows(found))
        return by_quantity(rows), SECTION.lead(found, rows)

    return section


def test_the_worked_example(made: Any) -> None:
    rows, lead = made(TOOLS, ALONE, costing(CALLS))
    assert rows["same answer as alone"].ids == ("val_Jigsaw_4", "val_Jigsaw_7")
    values = {name: row.value for name, row in rows.items()}
    assert values == pytest.approx(
        {
            "same answer as alone": 2 / 6,
            "calls that could have been skipped": 3,
            "share of calls": 3 / 8,
            "tokens that could have been skipped": 700,
            "share of tokens": 1 / 3,
            "seconds that could have been skipped": 6,
            "share of seconds": 3 / 8,
            "USD that could have been skipped": 0.006,
            "share of USD": 3 / 8,
        }
    )
    assert {name: row.n for name, row in rows.items()} == dict.fromkeys(rows, 10) | {"same answer as alone": 6}
    share = rows["same answer as alone"]
    assert share.low is not None
    assert share.low <= share.value <= share.high
    assert lead == (
        "controller: 2 of the 6 questions with calls have the answer of mllm alone; skipping their calls saves 38 % of "
        "the calls, 38 % of the seconds, 33 % of the tokens and 38 % of the USD that tools cost."
    )


def test_the_answer_counts_and_not_whether_it_is_right(made: Any) -> None:
    """Wrong became unreadable: neither is right and the answer changed. Unreadable both times: no answer either way."""
    rows, _ = made("urau", "wrau", costing("1111"))
    assert rows["same answer as alone"].ids == ("val_Jigsaw_2", "val_Jigsaw_3", "val_Jigsaw_4")


def test_without_a_call_there_is_no_row(made: Any) -> None:
    assert made("rw", "rw", costing("00")) == ({}, "")


def test_no_answer_anywhere_is_no_change(made: Any) -> None:
    rows, _ = made("aaaa", "aaaa", costing("1100"))
    assert (rows["same answer as alone"].value, rows["same answer as alone"].n) == (1.0, 2)


def test_one_question_has_an_interval_of_its_share_and_none_of_its_cost(made: Any) -> None:
    rows, _ = made("r", "r", costing("1"))
    share, tokens = rows["same answer as alone"], rows["share of tokens"]
    assert (share.value, share.n, share.high) == (1.0, 1, 1.0)
    assert share.low == pytest.approx(0.2065, abs=1e-4)
    assert (tokens.value, tokens.low, tokens.high) == (1.0, None, None)


def test_an_unknown_price_is_no_saving_of_nothing(made: Any) -> None:
    rows, lead = made("rr", "rr", costing("10", usd=None))
    for name in ("USD that could have been skipped", "share of USD"):
        assert (rows[name].value, rows[name].low) == (None, None)
        assert rows[name].note == "USD of mllm and controller not recorded for 2 of 2 questions"
    assert rows["tokens that could have been skipped"].value == 250
    assert "USD" not in lead


def test_one_question_without_tokens_leaves_their_sum_unknown(made: Any) -> None:
    def silent(solver: str, question: Question, reply: Reply) -> Reply:
        told = costing("11")(solver, question, reply)
        lacks = (solver, question.id) == ("mllm", "val_Jigsaw_2")
        return replace(told, usage=replace(told.usage, input_tokens=0, output_tokens=0)) if lacks else told

    rows, _ = made("rr", "rr", silent)
    assert rows["tokens that could have been skipped"].value is None
    assert rows["tokens that could have been skipped"].note == "tokens of mllm not recorded for 1 of 2 questions"
    assert rows["seconds that could have been skipped"].value == 4.0


def test_the_asks_of_a_question_add_up_where_each_is_known() -> None:
    asks = [Usage(1, 0, 90, 10, cost_usd=0.5, seconds=2.0), Usage(1, 0, 40, 10, seconds=1.0)]
    replies = [Exchange(Prompt(("?",), Kind.CHOICE), Reply("A", usage=one)) for one in asks]
    assert spent(Attempt("q", tuple(replies), 3.0)) == {"seconds": 3.0, "tokens": 150, "USD": None}


def test_a_question_without_a_readable_trace_is_left_out(tmp_path: Path, made_up_runs: Any) -> None:
    said = {"controller": {"Jigsaw": "rr"}, "mllm": {"Jigsaw": "rr"}}
    run = made_up_runs.from_letters(tmp_path / "run", said, costing=costing("11"))
    name = "controller/attempts.jsonl"
    path = run.path / name
    first, second = path.read_text().splitlines()
    path.write_text(first + "\n" + second.replace('"data":{}', '"data":3') + "\n")
    # A file whose extent the manifest has is not read whole, so that a wrong line is met where it is used.
    files = {**run.manifest["files"], name: asdict(run.measure(name).extent)}
    run.write_manifest(content_of(run) | {"files": files})
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths([tmp_path / "run"]).solvers))))
    assert (rows["same answer as alone"].n, rows["calls that could have been skipped"].n) == (1, 1)
    assert "1 without a readable trace" in rows["same answer as alone"].note


def test_where_tools_cost_nothing_more_there_is_no_share(made: Any) -> None:
    def free(solver: str, question: Question, reply: Reply) -> Reply:
        return replace(costing("10")(solver, question, reply), usage=Usage(1, 0, 90, 10, seconds=1.0))

    rows, _ = made("rr", "rr", free)
    assert (rows["seconds that could have been skipped"].value, rows["share of seconds"].value) == (0.0, None)
    assert rows["share of seconds"].note == "no seconds more with tools than alone"


def test_answers_of_another_program_have_no_recorded_cost(tmp_path: Path, made_up_runs: Any) -> None:
    made_up_runs.from_letters(tmp_path / "run", {"controller": {"Jigsaw": "rr"}}, costing=costing("11"))
    alone = made_up_runs.from_letters(tmp_path / "alone", {"mllm": {"Jigsaw": "rw"}}, costing=costing("11"))
    identity = {**alone.manifest["identity"], "imported": {"name": "made:up"}}
    alone.write_manifest(content_of(alone) | {"identity": identity})
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths([tmp_path / "run", tmp_path / "alone"]).solvers))))
    assert (rows["same answer as alone"].value, rows["calls that could have been skipped"].value) == (0.5, 1.0)
    assert rows["seconds that could have been skipped"].value is None
    assert rows["seconds that could have been skipped"].note == "seconds of mllm not recorded for 2 of 2 questions"


def test_tasks_have_their_share_and_no_saving(tmp_path: Path, made_up_runs: Any) -> None:
    said = {"controller": {"Jigsaw": "rr", "Counting": "w"}, "mllm": {"Jigsaw": "rw", "Counting": "w"}}
    made_up_runs.from_letters(tmp_path / "run", said, costing=costing("01"))
    rows = tuple(SECTION.rows(compare(compare_paths([tmp_path / "run"]).solvers)))
    assert {(row.group, row.quantity, row.value, row.n) for row in rows if row.group} == {
        ("Jigsaw", "same answer as alone", 0.0, 1)
    }
