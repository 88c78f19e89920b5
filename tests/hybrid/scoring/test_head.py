"""The first line of a comparison and of a report names the solvers and the questions."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.cli._output import paint_head
from hybrid.exporting.base import ExportedRun
from hybrid.log.folder import RunFolder
from hybrid.report.collect import collect_paths
from hybrid.report.site import write_site
from hybrid.scoring.ablation import AblationReport
from hybrid.scoring.compare import compare
from hybrid.scoring.headline import (
    _count,
    _days,
    _parts,
    _shared_note,
    flag_captions,
    head_of,
    head_of_run,
    headline_tables,
)
from hybrid.scoring.reports import ComparisonReport, compare_paths, score_paths
from hybrid.scoring.result import FRACTION, Result
from tests.hybrid.scoring.solvers import GENERATED, VAL, on_mvp, solver
from tests.hybrid.scoring.test_ablation import report as ablation_report


@pytest.fixture
def runs(synthetic_runs: Any, tmp_path: Path) -> Path:
    run = synthetic_runs.write(tmp_path, "blink", size=4)
    return Path(run.real)


def rewrite(run: Path, **identity: Any) -> None:
    folder = RunFolder(run)
    manifest = folder.manifest
    manifest["commands"] = [{"at": "2026-11-23T14:05:09Z", "command": "hybrid run blink"}]
    folder.write_manifest({**manifest, "identity": {**manifest["identity"], **identity}})


def test_it_names_model_benchmark_split_number_and_day(runs: Path) -> None:
    rewrite(runs, model={"model": "openai:gpt-4o"}, data={"kind": "folder", "sha256": "0"})
    report = compare_paths([runs])
    head = head_of(report.solvers)
    n = len(report.solvers[0].scores)
    assert head == ("openai:gpt-4o", "BLINK val", f"{n} questions", "2026-11-23")
    assert report.render("narrow").splitlines()[0] == " | ".join(head)
    assert report.render("markdown").splitlines()[0] == " | ".join(head)
    assert report.render("latex").startswith("% openai:gpt-4o | ")
    assert report.as_json()["head"] == list(head)
    assert not report.render("csv").startswith("openai")
    assert str(score_paths([runs])).splitlines()[0] == " | ".join(head)
    assert ExportedRun.at(runs).facts["head"] == list(head)
    assert head_of_run(RunFolder(runs), n) == head


def test_generated_questions_take_the_place_of_the_split_and_are_coloured(runs: Path) -> None:
    rewrite(runs, model={"model": "openai:gpt-4o"}, data={"kind": "sample", "seed": 0})
    report = compare_paths([runs])
    assert head_of(report.solvers)[1:3] == ("BLINK", "generated questions")
    painted = paint_head(report.render("narrow"), "narrow")
    assert "\x1b[33m\x1b[1mgenerated questions\x1b[0m" in painted.splitlines()[0]
    assert paint_head(report.render("markdown"), "markdown") == report.render("markdown")
    assert head_of_run(RunFolder(runs), 4)[2] == "generated questions"


def test_a_report_begins_with_it_and_is_titled_by_it(runs: Path, tmp_path: Path) -> None:
    rewrite(runs, model={"model": "openai:gpt-4o"}, data={"kind": "sample", "seed": 0})
    write_site(collect_paths([runs]), tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text()
    title = page.partition("<title>")[2].partition("</title>")[0]
    assert title.startswith("BLINK: openai:gpt-4o | BLINK | generated questions | ")
    assert title.endswith(" | 2026-11-23")
    assert '<span class="generated">generated questions</span>' in page


def test_models_are_counted_where_they_are_many(runs: Path, synthetic_runs: Any, tmp_path: Path) -> None:
    solvers = [solver for solver in compare_paths([runs]).solvers if solver.solver == "mllm"] * 5
    variants = [replace(item, model=f"m{place}") for place, item in enumerate(solvers)]
    assert head_of(variants)[0] == "m0, m1, m2, and 2 more models"


def test_generated_questions_beside_a_split_are_a_part(synthetic_runs: Any, tmp_path: Path) -> None:
    synthetic_runs.from_letters(tmp_path / "real", {"mllm": {"Jigsaw": "rrw"}})
    synthetic_runs.from_letters(tmp_path / "made", {"mllm": {"Counting": "rw"}})
    rewrite(tmp_path / "real", data={"kind": "folder", "sha256": "0"})
    rewrite(tmp_path / "made", data={"kind": "sample", "seed": 0})
    real, generated = (compare_paths([tmp_path / name]).solvers for name in ("real", "made"))
    head = head_of([*real, *generated])
    assert head[1:4] == ("BLINK val", "and generated questions", "5 questions, 0 of them put to every solver")
    line = " | ".join(head)
    assert "\x1b[33m\x1b[1mgenerated questions\x1b[0m" in paint_head(f"{line}\n\nrest", "text")
    assert head_of(generated)[1:3] == ("BLINK", "generated questions")


def test_two_splits_are_both_named_and_the_only_one_is_not(runs: Path) -> None:
    first, *_ = compare_paths([runs]).solvers
    other = replace(first, data=replace(first.data, split="train"))
    assert head_of([first, other])[1] == "BLINK train, val"
    only = replace(first, data=replace(first.data, split="all"))
    assert head_of([only])[1] == "BLINK"


def test_a_limit_of_one_of_two_runs_shows_in_the_number_of_questions(synthetic_runs: Any, tmp_path: Path) -> None:
    synthetic_runs.from_letters(tmp_path / "all", {"mllm": {"Jigsaw": "rrwwr"}})
    synthetic_runs.from_letters(tmp_path / "limited", {"mllm": {"Jigsaw": "rw"}})
    solvers = [solver for name in ("all", "limited") for solver in compare_paths([tmp_path / name]).solvers]
    assert head_of(solvers)[2] == "5 questions, 2 of them put to every solver"
    assert head_of(solvers[1:])[2] == "2 questions"


def test_questions_that_failed_were_asked(synthetic_runs: Any, tmp_path: Path) -> None:
    synthetic_runs.from_letters(tmp_path / "run", {"mllm": {"Jigsaw": "rrf"}, "controller": {"Jigsaw": "rrr"}})
    assert head_of(compare_paths([tmp_path / "run"]).solvers)[2] == "3 questions"


def test_namesake_files_of_two_folders_are_not_one_model(
    synthetic_runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in "xy":
        synthetic_runs.from_letters(tmp_path / folder, {"out": {"Jigsaw": "rrw"}, "out@2": {"Jigsaw": "rww"}})
        rewrite(tmp_path / folder, model=None, imported={"name": "out"})
    both = compare_paths([Path("x"), Path("y")]).solvers
    named = [replace(each, model=each.recorded) for each in both]
    assert head_of(named)[0] == "out (x), out (y)"
    assert head_of(named[:2])[0] == "out"
    # A name that the data state is of one model, wherever it was asked.
    assert head_of([replace(each, model="gpt") for each in both])[0] == "gpt"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"1": "cups.csv"}, ": cups.csv"),
        # Copies of one file are one file, wherever they lie.
        ({"1": "a/cups.csv", "1 ": "b/cups.csv"}, ": cups.csv"),
        ({"1": "a/cups.csv", "2": "b/mugs.csv"}, ": cups.csv, mugs.csv"),
        ({"1": "x/a/cups.csv", "2": "x/b/cups.csv"}, ": a/cups.csv, b/cups.csv"),
        ({"11111111f": "a/cups.csv", "22222222f": "x/a/cups.csv"}, ": cups.csv (11111111), cups.csv (22222222)"),
        ({str(n): f"{n}.csv" for n in range(5)}, ": 0.csv, 1.csv, 2.csv, and 2 more files"),
        ({"1": "."}, ""),
    ],
)
def test_own_files_of_questions_are_named(given: dict[str, str], words: str) -> None:
    def folder(sha256: str, options: dict[str, str], kind: str = "file") -> Any:
        identity = {"benchmark": "questions", "split": "all", "data": {"kind": kind, "sha256": sha256.strip()}}
        return SimpleNamespace(manifest={"identity": identity, "options": options, "commands": []})

    runs = [folder(sha256, {"benchmark": path}) for sha256, path in given.items()]
    count = _count(1, 1)
    assert _parts([], "questions", {"all"}, count, runs)[1] == f"Questions of a file{words}"
    assert _parts([], "questions", {"all"}, count, [*runs, folder("9", {"benchmark": "blink"}, "folder")])[1].endswith(
        words or "a file"
    )
    with_data = folder("1", {"benchmark": "questions", "data": "here/mine.csv"})
    assert _parts([], "questions", {"all"}, count, [with_data])[1] == "Questions of a file: mine.csv"


PAINTED = "\x1b[33m\x1b[1mgenerated questions\x1b[0m"


def test_every_head_of_several_is_coloured_and_nothing_else(runs: Path, synthetic_runs: Any, tmp_path: Path) -> None:
    second = synthetic_runs.from_letters(tmp_path / "second", {"mllm": {"Jigsaw": "rw"}}).path
    for run in (runs, second):
        rewrite(run, data={"kind": "sample", "seed": 0})
    text = paint_head(score_paths([runs, second]).render("narrow"), "narrow")
    assert text.count(PAINTED) == 2
    assert text.count("generated questions") > 2, "the limits name them too"
    # A long name of a model wraps the head in the middle of the words.
    assert "\x1b[33m\x1b[1mgenerated\nquestions\x1b[0m |" in paint_head(
        "model | BLINK | generated\nquestions | 3", "text"
    )


def test_scores_and_ablations_have_it_as_json(runs: Path, synthetic_runs: Any, tmp_path: Path) -> None:
    rewrite(runs, data={"kind": "sample", "seed": 0})
    second = synthetic_runs.from_letters(tmp_path / "second", {"mllm": {"Jigsaw": "rw"}}).path
    head = list(head_of(compare_paths([runs]).solvers))
    assert head[2] == "generated questions"
    assert score_paths([runs]).as_json()["head"] == head
    alone: Any = score_paths([runs / "mllm"]).as_json()
    assert alone["head"][2] == "generated questions"
    by_path: Any = score_paths([runs, second]).as_json()["paths"]
    assert by_path[str(runs)]["head"] == head
    assert by_path[str(second)]["head"][2] == "2 questions"
    ablated = ablation_report()
    assert ablated.as_json()["head"] == list(head_of([run.scored for run in ablated.runs]))


@pytest.mark.system
def test_a_compiled_table_says_that_questions_are_generated(runs: Path) -> None:
    assert "(generated questions)" not in compare_paths([runs]).render("latex")
    rewrite(runs, data={"kind": "sample", "seed": 0})
    for options in ({}, {"all": True}):
        report = compare_paths([runs], **options)  # type: ignore[arg-type]
        captions = [line for line in report.render("latex").splitlines() if line.startswith(r"\caption")]
        assert captions
        assert all(line.endswith(" (generated questions)}") for line in captions)
    ablated = ablation_report()
    flagged_runs = [
        replace(run, scored=replace(run.scored, data=compare_paths([runs]).solvers[0].data)) for run in ablated.runs
    ]
    text = AblationReport(ablated.folder, ablated.solver, tuple(flagged_runs)).render("latex")
    assert text.count(" (generated questions)}") == text.count(r"\caption")


def test_pages_of_a_notebook_begin_with_it_even_without_an_answer(synthetic_runs: Any, tmp_path: Path) -> None:
    run = synthetic_runs.from_letters(tmp_path / "run", {"mllm": {"Jigsaw": "ff"}}).path
    rewrite(run, data={"kind": "sample", "seed": 0})
    comparison: ComparisonReport = compare_paths([run])
    for report in (comparison, score_paths([run])):
        first, *_ = report.html_parts()
        assert ">generated questions</b> | 2 questions | " in first
        assert report.render("narrow").splitlines()[0].split(" | ")[1:4] == [
            "BLINK",
            "generated questions",
            "2 questions",
        ]
    ablated = ablation_report()
    assert " | ".join(head_of([run.scored for run in ablated.runs])) in next(ablated.html_parts())


def test_the_dates_of_runs_are_those_of_their_last_commands_from_first_to_last() -> None:
    def folder(*days: int) -> Any:
        return SimpleNamespace(manifest={"commands": [{"at": f"2026-11-{day}T10:00:00+00:00"} for day in days]})

    assert _days([folder(10, 27), folder(25), folder(28), folder()]) == "2026-11-25 to 2026-11-28"
    assert _days([folder(10, 27), folder(27)]) == "2026-11-27"
    assert _days([folder()]) == ""


def test_models_and_questions_are_counted_in_words() -> None:
    assert (_count(1, 1), _count(2, 2)) == ("1 question", "2 questions")
    assert _count(1200, 1) == "1,200 questions, 1 of them put to every solver"
    firsts = [_parts(models, "blink", {"val"}, "1 question", [])[0] for models in ([], [*"abc"], [*"abcd"])]
    assert firsts == ["no model", "a, b, c", "a, b, c, and 1 more models"]


def test_one_solver_of_generated_questions_marks_every_caption() -> None:
    solvers = [solver("a", {"Jigsaw": "r"}, data=data) for data in (VAL, GENERATED)]
    latex = "\\caption{Values}\n\\caption{Tasks}\n"
    assert flag_captions(latex, solvers).count("(generated questions)}") == 2
    assert flag_captions(latex, solvers[:1]) == latex


def test_a_difference_over_fewer_questions_than_either_value_has_a_note() -> None:
    def row(quantity: str, n: int, b: str = "") -> Result:
        return Result("differences", quantity, FRACTION, 0.5, a="alone", b=b, n=n)

    difference, alone, tools = row("difference", 38, "tools"), row("value", 38), row("value", 40)
    assert _shared_note([difference], {"alone": alone, "tools": tools})[0].endswith("(tools: 38).")
    assert _shared_note([difference], {"alone": tools, "tools": alone})[0].endswith("(tools: 38).")
    assert _shared_note([difference], {"alone": alone, "tools": alone}) == []
    assert _shared_note([difference], {}) == []


def test_a_solver_that_failed_everything_has_a_row_without_a_value() -> None:
    comparison = compare([solver("a", {"Jigsaw": "rw" * 4}), solver("b", {"Jigsaw": "f" * 8})])
    assert headline_tables(comparison)[0].rows[1][:3] == ("b", "-", "-")


def test_a_solver_without_a_value_of_the_headline_metric_has_a_row_too() -> None:
    words = {"a": "rrrr" * 3, "b": "frrr" * 3}
    comparison = compare([on_mvp(name, word, rotations=True) for name, word in words.items()])
    assert [row[:2] for row in headline_tables(comparison)[0].rows] == [("a", "1.000"), ("b", "-")]
