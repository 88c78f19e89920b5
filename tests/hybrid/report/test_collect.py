"""From runs on disk to the payload: every count by code of its own; damaged, absent and recorded elsewhere."""

import json
import math
import shlex
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench._large_run import write_run
from hybrid.benchmarks.base import ScoreOptions
from hybrid.cli import cli
from hybrid.errors import DataError, UsageError
from hybrid.images import home
from hybrid.log.folder import RunFolder
from hybrid.registry import load
from hybrid.report.collect import ReportOptions, collect_paths, collect_run
from hybrid.report.error_sheet import error_sheet
from hybrid.report.payload import (
    Bars,
    BenchmarkPages,
    Chart,
    Forest,
    Matrix,
    OverviewSection,
    QuestionPage,
    Scatter,
    Stack,
)
from hybrid.scoring.score import import_run, score_run

SOLVERS = ("controller", "mllm", "specialist")
COUNT = 42
Lines = list[dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three solvers, 14 tasks, three questions of each."""
    return write_run(tmp_path / "run", COUNT).path


def only(pages: Any) -> BenchmarkPages:
    (found,) = pages.benchmarks
    assert isinstance(found, BenchmarkPages)
    return found


def section(pages: BenchmarkPages, name: str) -> OverviewSection:
    (found,) = [one for one in pages.overview.sections if one.id == name]
    return found


def charts(pages: BenchmarkPages, name: str, kind: type[Chart]) -> list[Any]:
    return [chart for chart in section(pages, name).charts if isinstance(chart, kind)]


def lines(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_pages(pages: BenchmarkPages) -> dict[str, QuestionPage]:
    return {page.id: page for page in pages.questions}


# Every count again, from the files of the run alone.


def read_scores(run: Path) -> dict[str, dict[str, dict[str, Any]]]:
    return {name: {one["id"]: one for one in lines(run / name / "scores.jsonl")} for name in SOLVERS}


def by_task(scores: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    found = defaultdict(list)
    for one in scores.values():
        found[one["task"]].append(one["correct"])
    return {task: sum(values) / len(values) for task, values in found.items()}


def test_every_count_of_the_overview_is_that_of_the_scores(run: Path) -> None:
    pages = only(collect_paths([run]))
    scores = read_scores(run)
    assert [(card.name, card.role, card.n, card.failed, card.open) for card in pages.overview.solvers] == [
        ("controller", "hybrid", COUNT, 0, 0),
        ("mllm", "mllm", COUNT, 0, 0),
        ("specialist", "specialist", COUNT, 0, 0),
    ]
    bars = [*charts(pages, "metrics", Bars), *charts(pages, "tasks", Bars)]
    told = {(row.task, row.solver): (row.value, row.n) for chart in bars for row in chart.rows}
    for name, of_solver in scores.items():
        means = by_task(of_solver)
        assert told.pop(("accuracy_macro", name)) == (pytest.approx(sum(means.values()) / len(means)), COUNT)
        for task, mean in means.items():
            assert told.pop((task, name)) == (pytest.approx(mean), 3)
    assert not told

    headline, tasks = charts(pages, "differences", Forest)
    for row in (*headline.rows, *tasks.rows):
        a, b = (by_task(scores[name]) for name in (row.a, row.b))
        mine = b[row.group] - a[row.group] if row.group in a else (sum(b.values()) - sum(a.values())) / len(a)
        assert row.value == pytest.approx(mine)
    assert {(row.a, row.b) for row in headline.rows} == set(pages.overview.pairs)
    assert len(headline.rows) == 3
    # By task the hybrid solver is read against its parts.
    assert {frozenset((row.a, row.b)) for row in tasks.rows} == {
        frozenset(("controller", "mllm")),
        frozenset(("controller", "specialist")),
    }


def test_the_matrix_of_help_and_harm_holds_every_question_once(run: Path) -> None:
    pages = only(collect_paths([run]))
    scores = read_scores(run)
    (matrix,) = charts(pages, "helped", Matrix)
    words = {1.0: "right", 0.0: "wrong"}
    for a, b in pages.overview.pairs:
        mine = defaultdict(set)
        for identity, of_a in scores[a].items():
            mine[f"{words[of_a['correct']]} -> {words[scores[b][identity]['correct']]}"].add(identity)
        cells = [cell for cell in matrix.cells if cell.row == f"{a} -> {b}"]
        assert {cell.column: set(cell.ids) for cell in cells} == mine
        assert sum(cell.n for cell in cells) == COUNT


def test_cost_and_outcomes_are_those_of_the_attempts(run: Path) -> None:
    pages = only(collect_paths([run]))
    (scatter,) = charts(pages, "cost", Scatter)
    assert (scatter.x_label, scatter.y_label) == ("USD per question", "accuracy_macro")
    for dot in scatter.dots:
        usage = [e["reply"]["usage"] for one in lines(run / dot.solver / "attempts.jsonl") for e in one["exchanges"]]
        assert dot.x == pytest.approx(sum(one["cost_usd"] or 0 for one in usage) / COUNT)
        assert dot.y == pytest.approx(math.fsum(by_task(read_scores(run)[dot.solver]).values()) / 14)
    (stack,) = charts(pages, "outcomes", Stack)
    assert [(part.solver, part.part, part.n) for part in stack.parts] == [(name, "answered", COUNT) for name in SOLVERS]
    calls = Counter(
        (name, step["name"])
        for name in SOLVERS
        for attempt in lines(run / name / "attempts.jsonl")
        for steps in attempt["steps"]
        for step in steps
        if step["kind"] == "tool"
    )
    (used,) = charts(pages, "tool-use", Stack)
    assert {(part.solver, part.part): part.n for part in used.parts} == calls


def test_the_commands_print_the_same_numbers(run: Path) -> None:
    pages = only(collect_paths([run], by="images", margin=0.1))
    (headline, _) = charts(pages, "differences", Forest)
    tables = section(pages, "differences").command
    assert tables == f"hybrid compare {run} --by images --margin 0.1 --only differences"
    numbers = tables.replace("--only differences", "--json")
    printed = json.loads(CliRunner().invoke(cli, shlex.split(numbers)[1:]).stdout)["results"]
    wanted = ("difference", "accuracy_macro", None)
    pairs = {
        (row["a"], row["b"]): row for row in printed if (row["quantity"], row.get("metric"), row.get("group")) == wanted
    }
    assert len(headline.rows) == len(pairs) == 3
    for row in headline.rows:
        own = pairs[row.a, row.b]
        assert (row.value, row.low, row.high) == (own["value"], own["low"], own["high"])
    for each in pages.overview.sections:
        ended = CliRunner().invoke(cli, shlex.split(each.command)[1:])
        assert ended.exit_code == 0, each.command
        assert each.title in ended.stdout


def test_what_was_run_is_told(run: Path) -> None:
    facts = {fact.name: fact.value for fact in only(collect_paths([run])).overview.facts}
    assert facts["run"] == run.as_posix()
    assert facts["model"] == "made-up:model (temperature 0.0)"
    assert facts["data"].startswith("folder (sha256 555")
    assert facts["tools"] == "depth classical:cues-2"
    assert facts["asked"] == "2026-09-21 14:13 to 2026-09-21 14:14 UTC"
    assert facts["questions"] == str(COUNT)


# The list and the pages.


def test_rows_and_pages_are_in_the_order_of_the_data_and_say_the_same(run: Path) -> None:
    asked = [one["id"] for one in lines(run / "questions.jsonl")]
    before, after = only(collect_paths([run])), only(collect_paths([run]))
    rows = tuple(before.rows)
    pages = tuple(after.questions)
    assert [row.id for row in rows] == [page.id for page in pages] == asked
    # A row that is made with its page is the row that is made before it.
    assert rows == tuple(after.rows)
    assert before.rows[1:3] == rows[1:3]
    for row, page in zip(rows, pages, strict=True):
        for verdict, entry in zip(row.verdicts, page.solvers, strict=True):
            assert (verdict.correct, verdict.outcome, verdict.answer) == (entry.correct, entry.outcome, entry.answer)
            assert verdict.tools == tuple(
                {step.name for ask in entry.asks for step in ask.steps if step.kind == "tool"}
            )
    assert {verdict.tools for row in rows for verdict in row.verdicts} == {(), ("depth",)}


def test_a_page_holds_what_became_of_the_question(run: Path) -> None:
    page = next(iter(only(collect_paths([run])).questions))
    assert page.target == "(A) the left object"
    assert page.choices == ("the left object", "the right object")
    (picture,) = page.pictures
    assert (picture.name, picture.width, picture.height) == ("img:1", 96, 72)
    assert picture.file is not None
    folder, name = picture.file.removeprefix("images/").split("/")
    assert (home() / "images" / folder / name.removesuffix(".png")).is_file()
    controller = page.solvers[0]
    (ask,) = controller.asks
    assert ask.prompt == ()
    assert [step.kind for step in ask.steps] in (["model", "tool", "model"], ["model"])
    specialist = page.solvers[2]
    (tool, rule) = specialist.asks[0].steps
    assert rule.kind == "rule"
    (overlay,) = tool.pictures
    assert (overlay.name, overlay.over) == ("img:1.1", "img:1")
    assert overlay.caption == "drawn over img:1, by depth, 96 x 72 pixels"
    assert isinstance(tool.data, Mapping)
    assert tool.data["confidence"] == 0.82
    assert (specialist.rule, specialist.wall_s) == (read_scores(run)["specialist"][page.id]["rule"], 2.5)


def test_absent_images_are_named_and_not_linked(run: Path) -> None:
    shutil.rmtree(home() / "images")
    for page in only(collect_paths([run])).questions:
        (picture,) = page.pictures
        assert picture.file is None
        assert picture.caption.endswith("the image store does not have it")


# Damage.


def test_an_answer_that_changes_under_a_reader_costs_one_conversation(run: Path) -> None:
    pages = only(collect_paths([run]))
    path = run / "controller" / "attempts.jsonl"
    changed = json.loads(path.read_bytes().splitlines()[0])["id"]
    content = path.read_bytes()
    # In place: the file that is open shows it.
    with path.open("r+b") as file:
        file.write(content.replace(b'"exchanges":[', b'"exchanges":{', 1))
    (found,) = [page for page in pages.pages if page.id == changed]
    why = {entry.solver: entry.why for entry in found.solvers}
    assert "its answer cannot be read again: " in why.pop("controller")
    assert set(why.values()) == {""}


def test_a_damaged_answer_is_a_warning_and_a_failed_question(run: Path) -> None:
    path = run / "mllm" / "attempts.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((b'{"id": 1}\n', *rest)))
    identity = json.loads(first)["id"]
    pages = only(collect_paths([run]))
    assert any("mllm/attempts.jsonl, line 1" in line for line in pages.overview.warnings)
    assert any(line.startswith("mllm: 1 of 42 questions failed") for line in pages.overview.warnings)
    (row,) = [row for row in pages.rows if row.id == identity]
    assert (row.verdicts[1].outcome, row.verdicts[1].correct) == ("outage", None)
    assert {row.id for row in pages.rows if row.verdicts[1].outcome == "outage"} == {identity}


def test_what_is_not_asked_yet_is_open_and_nothing_is_written(run: Path) -> None:
    path = run / "controller" / "attempts.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:10]))
    manifest = RunFolder(run).manifest
    del manifest["files"]["controller/attempts.jsonl"]
    RunFolder(run).write_manifest(manifest)
    before = {file: file.stat().st_mtime_ns for file in run.rglob("*")}
    made = collect_run(RunFolder(run))
    pages = only(made)
    outcomes = [row.verdicts[0].outcome for row in pages.rows]
    assert outcomes == ["answered"] * 10 + ["open"] * (COUNT - 10)
    assert made.live
    assert pages.overview.solvers[0].open == COUNT - 10
    assert {file: file.stat().st_mtime_ns for file in run.rglob("*")} == before


def test_a_run_without_an_answer_has_a_list_of_its_questions(run: Path) -> None:
    for name in SOLVERS:
        shutil.rmtree(run / name)
    RunFolder(run).write_manifest({**RunFolder(run).manifest, "files": {}})
    pages = only(collect_run(RunFolder(run)))
    assert pages.overview.warnings[0] == f"No answer is there yet; {COUNT} questions are to be asked."
    assert (len(pages.rows), len(read_pages(pages))) == (COUNT, COUNT)
    assert pages.rows[0].verdicts == ()


# Several runs, and answers that another program recorded.


def test_each_benchmark_is_a_tab_with_its_own_paths(run: Path, tmp_path: Path, made_up_runs: Any) -> None:
    other = made_up_runs.write(tmp_path / "mvp", "mvp_bench", size=12)
    pages = collect_paths([run, other.real, other.blank])
    blink, mvp = pages.benchmarks
    assert (blink.key, mvp.key) == ("blink", "mvp_bench")
    assert [card.name for card in mvp.overview.solvers][-1].endswith("[blank]")
    assert section(blink, "metrics").command == f"hybrid compare {run} --only metrics"
    assert section(mvp, "metrics").command == f"hybrid compare {other.real} {other.blank} --only metrics"
    names = [fact.name for fact in mvp.overview.facts]
    # What both runs have is told once, what differs for each.
    assert "model" in names
    assert {f"tool output ({path})" for path in (other.real, other.blank)} <= set(names)
    assert len(tuple(mvp.questions)) == len(mvp.rows)


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
    # Predictions that were scored as they lie on disk keep no reply.
    assert (direct.correct, direct.answer, direct.asks) == (1, "A", ())
    assert not [one for one in pages.overview.sections if one.id == "cost"]


@pytest.mark.slow
def test_recorded_answers_of_all_questions_make_a_report(shared_data: Path) -> None:
    paths = [shared_data / "blink_outputs" / name for name in ("GPT4o", "GPT4V")]
    if not all(path.is_dir() for path in paths):
        pytest.skip("the recorded answers are not there")
    pages = only(collect_paths(paths, benchmark="blink"))
    assert len(pages.rows) == 1901
    assert {card.n for card in pages.overview.solvers} == {1901}
    assert section(pages, "published").command.endswith("--published")


def test_nothing_to_report_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="is not a run"):
        collect_paths([tmp_path / "empty"])


# The error sheet and its tags.


def test_the_error_sheet_has_errors_of_the_hybrid_solver_from_every_task(run: Path) -> None:
    pages = only(collect_paths([run], ReportOptions(sample_errors=1)))
    wrong = {one["id"]: one["task"] for one in read_scores(run)["controller"].values() if one["correct"] < 1}
    sampled = [row for row in pages.rows if row.sampled]
    assert Counter(row.task for row in sampled) == dict.fromkeys(wrong.values(), 1)
    assert {row.id for row in sampled} <= set(wrong)
    scored = score_run(RunFolder(run), ScoreOptions())
    assert {row.id for row in sampled} == error_sheet(scored, 1)
    assert error_sheet(scored, 99) == set(wrong)
    assert error_sheet(scored, 0) == frozenset()
    assert len({error_sheet(scored, 1, seed) for seed in range(4)}) > 1
    # Without a hybrid solver the first one's errors are looked at.
    alone = {one["id"] for one in read_scores(run)["mllm"].values() if one["correct"] < 1}
    assert error_sheet(scored[1:], 99) == alone


def test_tags_are_counted_by_task_and_solver(run: Path, tmp_path: Path) -> None:
    ids = [one["id"] for one in lines(run / "questions.jsonl")]
    given = [
        (0, "mllm", "misread"),
        (0, "controller", "misread"),
        (14, "controller", "tool"),
        (1, "controller", "tool"),
    ]
    row = {"benchmark": "blink", "note": ""}
    tags = [{**row, "question": ids[place], "solver": solver, "tag": tag} for place, solver, tag in given]
    file = tmp_path / "tags.json"
    file.write_text(json.dumps({"format": 1, "tags": [*tags, {**tags[0], "tag": "", "note": "odd"}]}))
    pages = collect_paths([run], ReportOptions(tags=file))
    assert len(pages.tags) == 5
    told = section(only(pages), "error-tags")
    assert f"--tags {file} --json" in told.command
    tasks, solvers = told.tables
    first, second = (only(pages).rows[place].task for place in (0, 1))
    heads = list(tasks.names)
    cells = {cells[0]: cells for cells in tasks.rows}
    assert cells["misread"][heads.index(first)] == "2 (67%)"
    assert cells["tool"][heads.index(first)] == "1 (33%)"
    assert cells["tool"][heads.index(second)] == "1 (100%)"
    assert cells["tool"][-1] == "2 (50%)"
    assert cells["tagged answers"][-1] == "4"
    assert solvers.rows[-1] == ("tagged answers", "3", "1", "4")
    assert ("(a note alone)", "0", "1 (100%)", "1 (25%)") in solvers.rows


def test_tags_of_other_questions_are_named(run: Path, tmp_path: Path) -> None:
    row = {"benchmark": "blink", "question": "val_Counting_1", "solver": "mllm", "tag": "t", "note": ""}
    for changed, told in (
        ({"question": "val_Counting_99"}, r"does not have the questions 'val_Counting_99' \(row 2\)"),
        ({"solver": "nobody"}, "row 2: the report of blink has no solver 'nobody'; it has: controller, mllm"),
        ({"benchmark": "mm_sap"}, "row 2: the report has no benchmark 'mm_sap'; it has: blink"),
    ):
        file = tmp_path / "tags.json"
        file.write_text(json.dumps({"format": 1, "tags": [row, {**row, **changed}]}))
        with pytest.raises(DataError, match=told):
            collect_paths([run], ReportOptions(tags=file))


def test_the_payload_is_a_value(run: Path) -> None:
    pages = collect_paths([run], ReportOptions(title="Ours"))
    assert pages.title == "Ours"
    assert pages.made_by.startswith(f"hybrid report {run} (hybrid ")
    assert replace(pages, live=True).live
