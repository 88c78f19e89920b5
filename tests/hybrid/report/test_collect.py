"""The payload of a report, collected from runs on disk: every count is recomputed; data may be damaged, missing or
imported.
"""

import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.card import MetricCard
from hybrid.core.errors import DataError
from hybrid.log.folder import RunFolder
from hybrid.log.manifest import read_manifest
from hybrid.plugins.registry import load
from hybrid.report.charts import charts_of
from hybrid.report.collect import ReportOptions, collect_paths
from hybrid.report.columns import state
from hybrid.report.payload import BenchmarkPages, OverviewSection, SolverEntry
from hybrid.scoring.predicted import import_run
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, ChartKind, Result, Section, SectionResult
from tests.tables import cases

SOLVERS = ("controller", "mllm", "specialist")
COUNT = 42
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def large_folder(large_runs: Callable[[int], Path]) -> Path:
    """A folder with a run of three solvers on three questions of each of 14 tasks, and its home."""
    return large_runs(COUNT)


@pytest.fixture
def run(large_run: Callable[[int], Path]) -> Path:
    """A copy of the run in `large_folder`, which a test may damage."""
    return large_run(COUNT)


@pytest.fixture(scope="module")
def pages(large_folder: Path) -> BenchmarkPages:
    """Return the pages of the undamaged run in `large_folder`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(large_folder / "home"))
        return only(collect_paths([large_folder / "run"]))


def only(pages: Any) -> BenchmarkPages:
    (benchmark,) = pages.benchmarks
    assert isinstance(benchmark, BenchmarkPages)
    return benchmark


def section(pages: BenchmarkPages, name: str) -> OverviewSection:
    (value,) = [item for item in pages.overview.sections if item.id == name]
    return value


def charted(pages: BenchmarkPages, name: str) -> list[Result]:
    return [row for chart in section(pages, name).charts for row in chart.rows]


def lines(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text().splitlines()]


# Recompute every count only from the files of the run.


def read_scores(run: Path) -> dict[str, dict[str, dict[str, Any]]]:
    return {name: {line["id"]: line for line in lines(run / name / "scores.jsonl")} for name in SOLVERS}


def by_task(scores: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    result = defaultdict(list)
    for score in scores.values():
        result[score["task"]].append(score["correct"])
    return {task: sum(values) / len(values) for task, values in result.items()}


@pytest.mark.system
def test_the_first_screen_shows_the_rows_of_its_sections(pages: BenchmarkPages) -> None:
    steps, values, tasks = pages.overview.front
    assert steps == section(pages, "decomposition").charts[0]
    assert list(values.rows) == [row for row in charted(pages, "metrics") if row.metric == "accuracy_macro"]
    assert values.title == f"accuracy_macro over all {values.rows[0].n} questions, answered or not, 95 % intervals"
    assert tasks.rows == section(pages, "differences").charts[1].rows
    # There is one reference line of each kind: the guess, people, the best printed value.
    marks = section(pages, "metrics").charts[0].marks
    best = max(mark.value for mark in marks if mark.kind == "published")
    assert [(mark.kind, mark.label) for mark in values.marks][:2] == [("chance", "uniform guess"), ("human", "Human")]
    assert [mark.value for mark in values.marks if mark.kind == "published"] == [best]
    assert 1 <= len(pages.overview.conclusion) <= 5
    assert [row[0] for row in pages.overview.headline[0].rows] == list(SOLVERS)


def test_one_solver_has_values_by_task(run: Path) -> None:
    values, tasks = only(collect_paths([run / "mllm"])).overview.front
    assert [row.a for row in values.rows] == ["mllm"]
    assert (tasks.kind, len(tasks.rows), {row.a for row in tasks.rows}) == ("bars", 14, {"mllm"})


def test_the_counts_of_help_and_harm_hold_every_question_once(large_folder: Path, pages: BenchmarkPages) -> None:
    scores = read_scores(large_folder / "run")
    words = {1.0: "right", 0.0: "wrong"}
    for a, b in pages.overview.pairs:
        mine = defaultdict(set)
        for identity, of_a in scores[a].items():
            mine[f"{words[of_a['correct']]} -> {words[scores[b][identity]['correct']]}"].add(identity)
        counts = [row for row in charted(pages, "helped") if (row.a, row.b) == (a, b)]
        assert {row.quantity: set(row.ids) for row in counts} == mine
        assert sum(row.value or 0 for row in counts) == COUNT


def test_cost_and_outcomes_are_those_of_the_attempts(large_folder: Path, pages: BenchmarkPages) -> None:
    costs = charted(pages, "cost")
    assert {(row.a, row.quantity) for row in costs} == {(n, q) for n in SOLVERS for q in ("USD per question", "value")}
    for row in costs:
        if row.quantity == "value":
            shares = by_task(read_scores(large_folder / "run")[row.a]).values()
            assert row.value == pytest.approx(math.fsum(shares) / 14)
            continue
        usage = [
            e["reply"]["usage"]
            for line in lines(large_folder / "run" / row.a / "attempts.jsonl")
            for e in line["exchanges"]
        ]
        assert row.value == pytest.approx(sum(item["cost_usd"] or 0 for item in usage) / COUNT)
    outcomes = [(row.a, row.quantity, row.value) for row in charted(pages, "outcomes")]
    assert outcomes == [(name, "answered", COUNT) for name in SOLVERS]
    calls = Counter(
        (name, step["name"])
        for name in SOLVERS
        for attempt in lines(large_folder / "run" / name / "attempts.jsonl")
        for steps in attempt["steps"]
        for step in steps
        if step["kind"] == "tool"
    )
    assert {(row.a, row.metric): row.value for row in charted(pages, "tool-use")} == calls


def test_what_was_run_is_told(large_folder: Path, pages: BenchmarkPages) -> None:
    facts = {fact.name: fact.value for fact in pages.overview.facts}
    assert facts["run"] == (large_folder / "run").as_posix()
    assert facts["model"] == "made-up:model (temperature 0.0)"
    assert facts["data"].startswith("folder (sha256 555")
    assert facts["tools"] == "depth classical:cues-2"
    assert facts["asked"] == "2026-09-21 14:13 to 2026-09-21 14:14 UTC"
    assert facts["questions"] == str(COUNT)


@pytest.mark.parametrize("kind", [None, "intervals", "bars", "counts", "stack", "scatter", "waterfall"])
def test_without_a_number_there_is_no_chart(large_folder: Path, kind: ChartKind | None) -> None:
    section = Section("s", "S?", (MetricCard("x", "", "", ""),), lambda _: (), chart=kind)
    result = SectionResult(section, (Result("s", "x", FRACTION, None, "mllm"),))
    assert charts_of(compare_paths([large_folder / "run" / "mllm"]).comparison, result) == ()


# Tests of the list of questions and of their pages.


@pytest.mark.parametrize(*cases(__file__, "test_only_answers_are_right_or_wrong"))
def test_only_answers_are_right_or_wrong(outcome: str, correct: float | None, expected: str) -> None:
    assert state(SolverEntry("mllm", correct, outcome, "A", "", "", None, ())) == expected


# Damage.


@pytest.mark.system
def test_the_command_of_a_question_runs_where_the_page_says(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "BLINK").mkdir(parents=True)
    manifest = read_manifest(run / "manifest.json")

    def first_page(working: Path, path: Path, data: str) -> tuple[str, str, str]:
        monkeypatch.chdir(working)
        RunFolder(run).write_manifest({**manifest, "options": {**manifest.get("options", {}), "data": data}})
        page = next(iter(only(collect_paths([path])).questions))
        return page.again.partition(" --solver")[0], page.again.rpartition("--out ")[2], page.again_where

    outside = "hybrid run --config run", "run-again --debug"
    assert first_page(elsewhere, run, "sample") == (*outside, "in the folder that holds run")
    text = "in the folder that holds run; add --data DIR for the folder BLINK"
    assert first_page(elsewhere, run, "BLINK") == (*outside, text)
    relative = Path(os.path.relpath(run, elsewhere))
    assert first_page(elsewhere, relative, "sample") == (*outside, "in the folder that holds run")
    assert first_page(run.parent, run, "BLINK") == (*outside, "")
    assert first_page(run.parent, Path("run"), "sample") == (*outside, "")


@pytest.mark.system
def test_a_step_names_no_path_of_the_machine(run: Path) -> None:
    path = run / "mllm" / "attempts.jsonl"
    line, *rest = map(json.loads, path.read_text().splitlines())
    step = {"kind": "model", "name": "replay:/mnt/x/alpha", "text": "", "seconds": 0.0, "fault": None, "data": {}}
    line["steps"] = [[{**step, "images": []}]]
    path.write_text("".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in (line, *rest)))
    pages = {page.id: page for page in only(collect_paths([run])).questions}
    (entry,) = pages[line["id"]].solvers[1].asks[0].steps
    assert entry.name == "replay:alpha"


def test_a_damaged_answer_is_a_warning_and_a_failed_question(run: Path) -> None:
    path = run / "mllm" / "attempts.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((b'{"id": 1}\n', *rest)))
    identity = json.loads(first)["id"]
    pages = only(collect_paths([run]))
    assert any("mllm/attempts.jsonl, line 1" in line for line in pages.overview.warnings)
    assert any(line.startswith("mllm: 1 of 42 questions failed") for line in pages.overview.warnings)
    assert [(card.name, card.n, card.failed) for card in pages.overview.solvers] == [
        (name, COUNT, int(name == "mllm")) for name in SOLVERS
    ]
    mine = {page.id: page.solvers[1] for page in pages.questions}
    assert (mine[identity].outcome, mine[identity].correct) == ("outage", None)
    assert {name for name, entry in mine.items() if entry.outcome == "outage"} == {identity}


# Tests of several runs, and of answers that another program recorded.


def test_an_imported_run_has_attempts_and_no_calls(run: Path, tmp_path: Path) -> None:
    task = tmp_path / "told" / "Jigsaw.json"
    task.parent.mkdir()
    rows = [
        {
            "idx": f"val_Jigsaw_{n}",
            "answer": "(A)",
            "prediction": "(A)",
            "full_prediction": f"The first. <b>{n}</b> (A)",
        }
        for n in range(1, 4)
    ]
    task.write_text(json.dumps({"val": rows}))
    folder = import_run(task, load("hybrid.benchmarks", "blink"), "text", tmp_path / "imported")
    pages = only(collect_paths([folder.path, tmp_path / "told"], benchmark="blink", field="text"))
    assert [card.role for card in pages.overview.solvers] == ["mllm", "mllm"]
    first, direct = next(iter(pages.questions)).solvers
    assert (first.correct, first.answer, first.why, first.wall_s) == (1, "A", "", None)
    assert first.asks[0].reply == "The first. <b>1</b> (A)"
    assert first.asks[0].prompt == ()
    # Predictions that are scored in place, without an import, keep no reply.
    assert (direct.correct, direct.answer, direct.asks) == (1, "A", ())
    assert not [item for item in pages.overview.sections if item.id == "cost"]


@pytest.mark.slow
def test_recorded_answers_of_all_questions_make_a_report(shared_data: Path) -> None:
    paths = [shared_data / "blink_outputs" / name for name in ("GPT4o", "GPT4V")]
    if not all(path.is_dir() for path in paths):
        pytest.skip("the recorded answers are not there")
    pages = only(collect_paths(paths, benchmark="blink"))
    assert pages.n == 1901
    assert {card.n for card in pages.overview.solvers} == {1901}
    assert section(pages, "published").command.endswith("--published")


# Tests of the error sheet and its tags.


def test_tags_are_counted_by_task_and_solver(run: Path, tmp_path: Path) -> None:
    ids = [line["id"] for line in lines(run / "questions.jsonl")]
    values = [
        (0, "mllm", "misread"),
        (0, "controller", "misread"),
        (14, "controller", "tool"),
        (1, "controller", "tool"),
    ]
    row = {"benchmark": "blink", "note": ""}
    tags = [{**row, "question": ids[place], "solver": solver, "tag": tag} for place, solver, tag in values]
    file = tmp_path / "tags.json"
    file.write_text(json.dumps({"format": 1, "tags": [*tags, {**tags[0], "tag": "", "note": "odd"}]}))
    pages = collect_paths([run], ReportOptions(tags=file))
    assert len(pages.tags) == 5
    text = section(only(pages), "error-tags")
    assert f"--tags {file} --json" in text.command
    tasks, solvers = text.tables
    first, second = (item["task"] for item in lines(run / "questions.jsonl")[:2])
    heads = list(tasks.names)
    cells = {cells[0]: cells for cells in tasks.rows}
    assert cells["misread"][heads.index(first)] == "2 (67%)"
    assert cells["tool"][heads.index(first)] == "1 (33%)"
    assert cells["tool"][heads.index(second)] == "1 (100%)"
    assert cells["tool"][-1] == "2 (50%)"
    assert cells["tagged answers"][-1] == "4"
    assert solvers.rows[-1] == ("tagged answers", "3", "1", "4")
    assert ("(a note alone)", "0", "1 (100%)", "1 (25%)") in solvers.rows


@pytest.mark.system
def test_tags_of_other_questions_are_named(run: Path, tmp_path: Path) -> None:
    row = {"benchmark": "blink", "question": "val_Counting_1", "solver": "mllm", "tag": "t", "note": ""}
    for changed, text in (
        ({"question": "val_Counting_99"}, r"does not have the questions 'val_Counting_99' \(row 2\)"),
        ({"solver": "nobody"}, "row 2: the report of blink has no solver 'nobody'; it has: controller, mllm"),
        ({"benchmark": "mm_sap"}, "row 2: the report has no benchmark 'mm_sap'; it has: blink"),
    ):
        file = tmp_path / "tags.json"
        file.write_text(json.dumps({"format": 1, "tags": [row, {**row, **changed}]}))
        with pytest.raises(DataError, match=text):
            collect_paths([run], ReportOptions(tags=file))
