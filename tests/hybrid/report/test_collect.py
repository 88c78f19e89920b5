"""From runs on disk to the payload: every count by code of its own; damaged, absent and recorded elsewhere."""

import json
import math
import shlex
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hybrid.benchmarks.base import ScoreOptions
from hybrid.cli import cli
from hybrid.errors import DataError, UsageError
from hybrid.images import home
from hybrid.log.folder import RunFolder
from hybrid.registry import load
from hybrid.report.collect import ReportOptions, collect_paths, collect_run
from hybrid.report.columns import QuestionList, state
from hybrid.report.error_sheet import error_sheet
from hybrid.report.payload import BenchmarkPages, OverviewSection, QuestionPage, SolverEntry
from hybrid.scoring.predicted import import_run
from hybrid.scoring.result import Result
from hybrid.scoring.runs import score_run

SOLVERS = ("controller", "mllm", "specialist")
COUNT = 42
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def written(large_runs: Callable[[int], Path]) -> Path:
    """A folder with a run, of three solvers on three questions of each of 14 tasks, and the home of it."""
    return large_runs(COUNT)


@pytest.fixture
def run(large_run: Callable[[int], Path]) -> Path:
    """A copy of it that a test may damage."""
    return large_run(COUNT)


@pytest.fixture(scope="module")
def pages(written: Path) -> BenchmarkPages:
    """The pages of the run as it was written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(written / "home"))
        return only(collect_paths([written / "run"]))


def only(pages: Any) -> BenchmarkPages:
    (found,) = pages.benchmarks
    assert isinstance(found, BenchmarkPages)
    return found


def section(pages: BenchmarkPages, name: str) -> OverviewSection:
    (found,) = [one for one in pages.overview.sections if one.id == name]
    return found


def charted(pages: BenchmarkPages, name: str) -> list[Result]:
    return [row for chart in section(pages, name).charts for row in chart.rows]


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


def test_every_count_of_the_overview_is_that_of_the_scores(written: Path, pages: BenchmarkPages) -> None:
    scores = read_scores(written / "run")
    assert [(card.name, card.role, card.n, card.failed, card.open) for card in pages.overview.solvers] == [
        ("controller", "hybrid", COUNT, 0, 0),
        ("mllm", "mllm", COUNT, 0, 0),
        ("specialist", "specialist", COUNT, 0, 0),
    ]
    values = [*charted(pages, "metrics"), *charted(pages, "tasks")]
    told = {(row.group or row.metric, row.a): (row.value, row.n) for row in values}
    for name, of_solver in scores.items():
        means = by_task(of_solver)
        assert told.pop(("accuracy_macro", name)) == (pytest.approx(sum(means.values()) / len(means)), COUNT)
        for task, mean in means.items():
            assert told.pop((task, name)) == (pytest.approx(mean), 3)
    assert not told

    headline, tasks = section(pages, "differences").charts
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


def test_the_first_screen_shows_the_rows_of_its_sections(pages: BenchmarkPages) -> None:
    steps, values, tasks = pages.overview.front
    assert steps == section(pages, "decomposition").charts[0]
    assert list(values.rows) == [row for row in charted(pages, "metrics") if row.metric == "accuracy_macro"]
    assert tasks.rows == section(pages, "differences").charts[1].rows
    # Of the reference lines one of each kind: the guess, people, the best that a paper printed.
    known = section(pages, "metrics").charts[0].marks
    best = max(mark.value for mark in known if mark.kind == "published")
    assert [(mark.kind, mark.label) for mark in values.marks][:2] == [("chance", "uniform guess"), ("human", "Human")]
    assert [mark.value for mark in values.marks if mark.kind == "published"] == [best]
    assert 1 <= len(pages.overview.conclusion) <= 5
    assert [row[0] for row in pages.overview.headline[0].rows] == list(SOLVERS)


def test_one_solver_has_values_by_task(run: Path) -> None:
    values, tasks = only(collect_paths([run / "mllm"])).overview.front
    assert [row.a for row in values.rows] == ["mllm"]
    assert (tasks.kind, len(tasks.rows), {row.a for row in tasks.rows}) == ("bars", 14, {"mllm"})


def test_the_counts_of_help_and_harm_hold_every_question_once(written: Path, pages: BenchmarkPages) -> None:
    scores = read_scores(written / "run")
    words = {1.0: "right", 0.0: "wrong"}
    for a, b in pages.overview.pairs:
        mine = defaultdict(set)
        for identity, of_a in scores[a].items():
            mine[f"{words[of_a['correct']]} -> {words[scores[b][identity]['correct']]}"].add(identity)
        counts = [row for row in charted(pages, "helped") if (row.a, row.b) == (a, b)]
        assert {row.quantity: set(row.ids) for row in counts} == mine
        assert sum(row.value or 0 for row in counts) == COUNT


def test_cost_and_outcomes_are_those_of_the_attempts(written: Path, pages: BenchmarkPages) -> None:
    costs = charted(pages, "cost")
    assert {(row.a, row.quantity) for row in costs} == {(n, q) for n in SOLVERS for q in ("USD per question", "value")}
    for row in costs:
        if row.quantity == "value":
            assert row.value == pytest.approx(math.fsum(by_task(read_scores(written / "run")[row.a]).values()) / 14)
            continue
        usage = [
            e["reply"]["usage"] for one in lines(written / "run" / row.a / "attempts.jsonl") for e in one["exchanges"]
        ]
        assert row.value == pytest.approx(sum(one["cost_usd"] or 0 for one in usage) / COUNT)
    outcomes = [(row.a, row.quantity, row.value) for row in charted(pages, "outcomes")]
    assert outcomes == [(name, "answered", COUNT) for name in SOLVERS]
    calls = Counter(
        (name, step["name"])
        for name in SOLVERS
        for attempt in lines(written / "run" / name / "attempts.jsonl")
        for steps in attempt["steps"]
        for step in steps
        if step["kind"] == "tool"
    )
    assert {(row.a, row.metric): row.value for row in charted(pages, "tool-use")} == calls


def test_the_commands_print_the_same_numbers(run: Path) -> None:
    pages = only(collect_paths([run], by="images", margin=0.1))
    (headline, _) = section(pages, "differences").charts
    command = section(pages, "differences").command
    assert command == f"hybrid compare {run} --by images --margin 0.1 --all"
    printed = json.loads(CliRunner().invoke(cli, [*shlex.split(command.removesuffix(" --all"))[1:], "--json"]).stdout)[
        "results"
    ]
    wanted = ("difference", "accuracy_macro", None)
    pairs = {
        (row["a"], row["b"]): row for row in printed if (row["quantity"], row.get("metric"), row.get("group")) == wanted
    }
    assert len(headline.rows) == len(pairs) == 3
    for row in headline.rows:
        own = pairs[row.a, row.b]
        assert (row.value, row.low, row.high) == (own["value"], own["low"], own["high"])
    commands = {each.command for each in pages.overview.sections}
    said = {words: CliRunner().invoke(cli, shlex.split(words)[1:]) for words in commands}
    assert all(ended.exit_code == 0 for ended in said.values()), said
    assert all(each.title in said[each.command].stdout for each in pages.overview.sections)


def test_what_was_run_is_told(written: Path, pages: BenchmarkPages) -> None:
    facts = {fact.name: fact.value for fact in pages.overview.facts}
    assert facts["run"] == (written / "run").as_posix()
    assert facts["model"] == "made-up:model (temperature 0.0)"
    assert facts["data"].startswith("folder (sha256 555")
    assert facts["tools"] == "depth classical:cues-2"
    assert facts["asked"] == "2026-09-21 14:13 to 2026-09-21 14:14 UTC"
    assert facts["questions"] == str(COUNT)


# The list and the pages.


def listed(pages: BenchmarkPages, by: str = "task") -> dict[str, Any]:
    """The list of the questions as the pages read it."""
    made = QuestionList(len(pages.overview.solvers), by)
    for page in pages.questions:
        made.add(page)
    values = made.values(())
    cells = values["cells"] | {
        f"{solver}/{name}": column
        for solver, columns in zip(SOLVERS, values["solvers"], strict=True)
        for name, column in columns.items()
    }
    read = {name: [column["values"][code] for code in column["codes"]] for name, column in cells.items()}
    return {"id": made.ids, **read}


def test_the_list_is_in_the_order_of_the_data_and_says_what_the_pages_say(run: Path) -> None:
    asked = [one["id"] for one in lines(run / "questions.jsonl")]
    columns = listed(only(collect_paths([run])))
    pages = only(collect_paths([run]))
    assert pages.n == COUNT
    read = tuple(pages.questions)
    assert columns["id"] == [page.id for page in read] == asked
    assert columns["task"] == [page.task for page in read]
    for place, name in enumerate(SOLVERS):
        entries = [page.solvers[place] for page in read]
        assert columns[f"{name}/verdict"] == ["right" if entry.correct else "wrong" for entry in entries]
        assert columns[f"{name}/answer"] == [entry.answer for entry in entries]
        assert columns[f"{name}/outcome"] == [entry.outcome for entry in entries]
        called = [
            tuple(dict.fromkeys(step.name for ask in entry.asks for step in ask.steps if step.kind == "tool"))
            for entry in entries
        ]
        assert columns[f"{name}/tool"] == called
    assert {called for name in SOLVERS for called in columns[f"{name}/tool"]} == {(), ("depth",)}


def test_the_group_of_by_is_a_column_of_the_list(run: Path) -> None:
    pages = only(collect_paths([run], by="images"))
    *_, groups = pages.overview.front
    columns = listed(pages, pages.overview.by)
    # A dot of the first screen opens the questions of its group.
    assert {row.group for row in groups.rows} == set(columns["images"])


@pytest.mark.parametrize(
    ("outcome", "correct", "expected"),
    [
        ("", None, "absent"),
        ("open", None, "open"),
        ("outage", None, "failed"),
        ("not_recorded", None, "failed"),
        ("abstained", 0.25, "none"),
        ("unparsed", 1.0, "none"),
        ("answered", None, "unscored"),
        ("answered", 1.0, "right"),
        ("answered", 0.5, "partly"),
        ("answered", 0.0, "wrong"),
    ],
)
def test_only_answers_are_right_or_wrong(outcome: str, correct: float | None, expected: str) -> None:
    assert state(SolverEntry("mllm", correct, outcome, "A", "", "", None, ())) == expected


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
    changed = next(row["id"] for row in lines(path) if "exchanges" in row)
    path.write_bytes(path.read_bytes().replace(b'"exchanges":[', b'"exchanges":{', 1))
    why = {entry.solver: entry.why for entry in read_pages(pages)[changed].solvers}
    assert why.pop("controller") == "its answer is no longer on disk"
    assert set(why.values()) == {""}


def test_a_damaged_answer_is_a_warning_and_a_failed_question(run: Path) -> None:
    path = run / "mllm" / "attempts.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((b'{"id": 1}\n', *rest)))
    identity = json.loads(first)["id"]
    pages = only(collect_paths([run]))
    assert any("mllm/attempts.jsonl, line 1" in line for line in pages.overview.warnings)
    assert any(line.startswith("mllm: 1 of 42 questions failed") for line in pages.overview.warnings)
    mine = {page.id: page.solvers[1] for page in pages.questions}
    assert (mine[identity].outcome, mine[identity].correct) == ("outage", None)
    assert {name for name, entry in mine.items() if entry.outcome == "outage"} == {identity}


def test_what_is_not_asked_yet_is_open_and_nothing_is_written(run: Path) -> None:
    path = run / "controller" / "attempts.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:10]))
    manifest = RunFolder(run).manifest
    del manifest["files"]["controller/attempts.jsonl"]
    RunFolder(run).write_manifest(manifest)
    before = {file: file.stat().st_mtime_ns for file in run.rglob("*")}
    made = collect_run(RunFolder(run))
    pages = only(made)
    outcomes = [page.solvers[0].outcome for page in pages.questions]
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
    read = read_pages(pages)
    assert (pages.n, len(read)) == (COUNT, COUNT)
    assert {page.solvers for page in read.values()} == {()}


# Several runs, and answers that another program recorded.


def test_each_benchmark_is_a_tab_with_its_own_paths(run: Path, tmp_path: Path, made_up_runs: Any) -> None:
    other = made_up_runs.write(tmp_path / "mvp", "mvp_bench", size=4)
    pages = collect_paths([run, other.real, other.blank])
    blink, mvp = pages.benchmarks
    assert (blink.key, mvp.key) == ("blink", "mvp_bench")
    assert [card.name for card in mvp.overview.solvers][-1].endswith("[blank]")
    assert section(blink, "metrics").command == f"hybrid compare {run} --all"
    assert section(mvp, "metrics").command == f"hybrid compare {other.real} {other.blank} --all"
    names = [fact.name for fact in mvp.overview.facts]
    # What both runs have is told once, what differs for each.
    assert "model" in names
    assert {f"tool output ({path})" for path in (other.real, other.blank)} <= set(names)
    assert len(tuple(mvp.questions)) == mvp.n


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
    assert pages.n == 1901
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
    sampled = [page for page in pages.questions if page.sampled]
    assert Counter(page.task for page in sampled) == dict.fromkeys(wrong.values(), 1)
    assert {page.id for page in sampled} <= set(wrong)
    scored = score_run(RunFolder(run), ScoreOptions())
    assert {page.id for page in sampled} == error_sheet(scored, 1)
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
    first, second = (one["task"] for one in lines(run / "questions.jsonl")[:2])
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
