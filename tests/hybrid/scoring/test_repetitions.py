"""A repeated solver counts with the mean over its repetitions, and intervals are withheld if one side has failures."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hybrid.core.types import Question, Reply, Step, Usage
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.every_eval_ever import EXPORTER as EVERY_EVAL_EVER
from hybrid.exporting.vlmevalkit import EXPORTER as VLMEVALKIT
from hybrid.plugins.registry import load
from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.headline import head_of, headline_tables
from hybrid.scoring.predicted import import_run
from hybrid.scoring.predictions.mounted import join_predictions
from hybrid.scoring.reports import compare_paths, score_paths
from hybrid.scoring.result import UNTESTED, Result
from hybrid.scoring.sections import results

ALONE = ("rw" * 15, "rr" * 8 + "ww" * 7, "wr" * 15)
TOOLS = ("r" * 24 + "w" * 6, "r" * 15 + "w" * 15)
BLANK = "wr" * 15


def with_calls(solver: str, question: Question, reply: Reply) -> Reply:
    """Add a tool call to the reply: in the first repetition on every question, in the second on every other
    question."""
    place = int(question.id.rsplit("_", 1)[1])
    if solver == "controller" or (solver == "controller@2" and place % 2):
        data = {"images": ["img:1"], "args": {}, "data": {"best": 0}, "confidence": 0.5}
        return Reply(
            reply.text, reply.outcome, Usage(tool_calls=1), (Step("tool", "jigsaw", "It is A.", 0.1, None, data),)
        )
    return reply


@pytest.fixture
def comparison(synthetic_runs: Any, tmp_path: Path) -> Comparison:
    mapping = {f"mllm@{n}" if n > 1 else "mllm": current for n, current in enumerate(ALONE, 1)}
    mapping |= {f"controller@{n}" if n > 1 else "controller": tool for n, tool in enumerate(TOOLS, 1)}
    letters = {name: {"Jigsaw": value} for name, value in mapping.items()}
    run = synthetic_runs.from_letters(tmp_path / "run", letters, costing=with_calls)
    blank = synthetic_runs.from_letters(tmp_path / "blank", {"controller": {"Jigsaw": BLANK}}, "blank")
    return compare_paths([run.path, blank.path]).comparison


def worth(repetitions: tuple[str, ...]) -> list[float]:
    return [fmean(letter == "r" for letter in current) for current in zip(*repetitions, strict=True)]


def rows(comparison: Comparison, section: str, **fields: str) -> dict[str, Result]:
    (built,) = results(comparison, [section])
    payload = {"group": "", "metric": "accuracy_macro" if section in ("differences", "gain") else "", **fields}
    return {
        row.quantity: row for row in built.rows if all(getattr(row, name) == value for name, value in payload.items())
    }


def test_the_conclusion_is_drawn_from_the_means(comparison: Comparison) -> None:
    points = 100 * (fmean(worth(TOOLS)) - fmean(worth(ALONE)))
    first = conclusion(comparison)[0].text
    assert f"{points:.0f} points" in first
    assert " right" not in first
    for name, letters in (("controller", TOOLS), ("mllm", ALONE)):
        assert f"({name}, mean of {len(letters)} repetitions)" in first


def test_tables_and_leads_tell_means_from_single_runs(comparison: Comparison) -> None:
    note = f"Differences compare means over repetitions (mllm {len(ALONE)}, controller {len(TOOLS)})."
    assert [table.notes for table in headline_tables(comparison)] == [(note,)]
    (tool_only,) = results(comparison, ["tool_only"])
    # There is no count of questions, because what only some repetitions solve is not a number of questions.
    assert "% of the questions solved with tools are solved without too, " in tool_only.lead
    assert " only with tools (mean over repetitions), by luck " in tool_only.lead


def test_a_repetition_that_is_named_stands_for_itself(comparison: Comparison) -> None:
    first, second = comparison.named("mllm"), comparison.named("mllm@2")
    shared = comparison.overlap(first, second)
    assert [metric.value for metric in shared.accuracy("wrong")] == [0.5, pytest.approx(16 / 30)]


FAILED_TOOLS = "f" * 6 + "r" * 24


@pytest.mark.parametrize("allow_failed", [False, True])
def test_one_gate_for_every_section(allow_failed: bool, synthetic_runs: Any, tmp_path: Path) -> None:
    """If a fifth failed with tools, either all sections that compare solvers give intervals, or none does."""
    messages: Mapping[str, str] = {"controller": FAILED_TOOLS, "mllm": "rw" * 15, "specialist": "wr" * 10 + "w" * 10}
    letters = {name: {"Jigsaw": value, "Counting": value} for name, value in messages.items()}
    run = synthetic_runs.from_letters(tmp_path / "run", letters, costing=with_calls)
    blank = synthetic_runs.from_letters(tmp_path / "blank", {"controller": letters["mllm"]}, "blank")
    comparison = compare(compare_paths([run.path, blank.path]).solvers, ComparisonOptions(allow_failed=allow_failed))
    concerned = [
        row
        for result in results(comparison)
        for row in result.rows
        if "controller" in (row.a, row.b) and (row.b or result.name == "ceiling") and row.unit != "questions"
    ]
    sections = {"differences", "gain", "decomposition", "tool_only", "knowledge", "ceiling", "evidence", "unchanged"}
    sections |= {"noninferior", "agreement", "equivalence", "called", "selection"}
    with_interval = {row.section for row in concerned if row.low is not None or row.p is not None}
    assert with_interval == (sections | {"headroom"} if allow_failed else set())
    noted = {row.section for row in concerned if UNTESTED["failed"] in row.note}
    assert noted == (set() if allow_failed else sections)


def test_a_question_that_one_repetition_leaves_was_answered_nevertheless(synthetic_runs: Any, tmp_path: Path) -> None:
    """A question that one repetition leaves unanswered counts as answered: the first repetition of the MLLM alone
    answers everything, the second nothing."""
    answers = {"controller": "r" * 30 + "w" * 10, "mllm": "r" * 22 + "w" * 18, "mllm@2": "u" * 40}
    run = synthetic_runs.from_letters(tmp_path / "run", {name: {"Jigsaw": value} for name, value in answers.items()})
    text = {item.id: item.text for item in conclusion(compare_paths([run.path]).comparison)}
    # Compared with the first repetition, 30 - 22 questions are gained by better answers; compared with the second, 30
    # by answering.
    assert (
        "on the 40 questions that both answered at least once, without their unanswered repetitions, +20 points"
        in (text["gain.more"])
    )
    assert "), which makes +10 points (95% CI " in text["gain.more"]
    assert " of the whole; answering at all contributes +38 points" in text["gain.more"]
    assert "mllm leaves 20 unanswered, controller 0 (mean over repetitions)" in text["gain.more"]
    assert "unanswered questions count as wrong: mllm 40 of 80 (2 repetitions)" in text["limits"]


def test_answers_that_every_repetition_leaves_out_are_unanswered(synthetic_runs: Any, tmp_path: Path) -> None:
    silent = "r" * 10 + "w" * 10 + "u" * 20
    answers = {"controller": "r" * 10 + "w" * 10 + "r" * 20, "mllm": silent, "mllm@2": silent}
    run = synthetic_runs.from_letters(tmp_path / "run", {name: {"Jigsaw": value} for name, value in answers.items()})
    text = {item.id: item.text for item in conclusion(compare_paths([run.path]).comparison)}
    assert "repetition;" not in text["gain.answering"]
    assert "on the 20 questions that both answered no" not in text["gain.answering"]
    assert "answering at all contributes +50 points" in text["gain.answering"]


def test_limits_count_all_repetitions_once(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {"mllm": "rrwwu" * 8, "mllm@2": "rrwuf" * 8}
    run = synthetic_runs.from_letters(tmp_path / "run", {name: {"Jigsaw": value} for name, value in answers.items()})
    limits = conclusion(compare_paths([run.path]).comparison)[-1].text
    assert "failed and left out: mllm 8 of 80 (2 repetitions)" in limits
    assert "unanswered questions count as wrong: mllm 16 of 72 (2 repetitions)" in limits
    assert "mllm@2" not in limits


def test_repetitions_stay_together_if_another_run_has_some_of_their_names(synthetic_runs: Any, tmp_path: Path) -> None:
    """The names of namesakes get the origin, which no other repetition of theirs has."""
    repeated = {name: {"Jigsaw": word} for name, word in zip(("mllm", "mllm@2"), ALONE, strict=False)}
    first = synthetic_runs.from_letters(tmp_path / "first", repeated)
    second = synthetic_runs.from_letters(tmp_path / "second", repeated)
    by_solver = [run.path / name for run in (first, second) for name in repeated]
    for paths, sizes in (([first.path, second.path / "mllm"], [2, 1]), (by_solver, [2, 2])):
        comparison = compare_paths(paths).comparison
        assert [len(comparison.repetitions(solver)) for solver in comparison.contestants] == sizes


def test_predictions_of_one_name_are_repeated_within_their_folder(synthetic_runs: Any, tmp_path: Path) -> None:
    """Two folders have the same names: these are two models, each with two repetitions, and not four models."""
    repeated = {name: {"Jigsaw": word} for name, word in zip(("mllm", "mllm@2"), ALONE, strict=False)}
    run = synthetic_runs.from_letters(tmp_path / "run", repeated)
    files = [tmp_path / folder / f"{name}.tsv" for folder in ("x", "y") for name in ("gpt", "gpt@2")]
    for file, name in zip(files, [*repeated, *repeated], strict=True):
        VLMEVALKIT.export(ExportedRun.at(run.path / name), file, ExportOptions())
    report = compare_paths(files, benchmark="blink")
    found = [report.comparison.repetitions(solver) for solver in report.comparison.contestants]
    assert [[solver.solver for solver in solvers] for solvers in found] == [
        [f"{file.stem} ({file.as_posix()})" for file in part] for part in (files[:2], files[2:])
    ]
    apart = compare_paths([files[0], files[3]], benchmark="blink").comparison
    assert len(apart.contestants) == 1
    assert head_of(apart.solvers)[0] == "gpt"


def inspect_log(path: Path, model: str, solver: str, letters: str) -> Path:
    """Write a log as `hybrid export --to inspect` does, with its parts that are read back."""
    replies = [{"role": "assistant", "content": f"Answer: {letter}"} for letter in letters]
    samples = [
        {
            "id": f"val_Jigsaw_{n}",
            "epoch": 1,
            "target": "A",
            "choices": ["left", "right"],
            "metadata": {"task": "Jigsaw"},
        }
        | {"messages": [{"role": "user", "content": "Which?"}, reply], "output": {"choices": [{"message": reply}]}}
        for n, reply in enumerate(replies)
    ]
    spec = {"solver": solver, "model": model, "packages": {"hybrid-perception": "1"}}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"version": 2, "eval": spec, "samples": samples}), encoding="utf-8")
    return path


@pytest.mark.parametrize("folders", [("logs", "logs"), ("x", "y")])
@pytest.mark.parametrize(("names", "sizes"), [(("mllm", "mllm@2") * 2, [2, 2]), (("mllm", "", "", "mllm@2"), [1, 1])])
def test_logs_of_two_models_are_no_repetitions_of_one(
    folders: tuple[str, str], names: tuple[str, ...], sizes: list[int], tmp_path: Path
) -> None:
    letters = ("AB" * 10, "BA" * 10, "A" * 20, "AAAB" * 5)
    files = [
        inspect_log(tmp_path / folders[n % 2] / f"{n}.json", f"openai/{'ab'[n // 2]}", name, letters[n])
        for n, name in enumerate(names)
        if name
    ]
    comparison = compare_paths(files, benchmark="blink").comparison
    found = [comparison.repetitions(solver) for solver in comparison.contestants]
    assert list(map(len, found)) == sizes
    assert [{solver.model for solver in solvers} for solvers in found] == [{"openai/a"}, {"openai/b"}]


def test_exports_whose_names_say_nothing_have_the_solvers_of_their_run(synthetic_runs: Any, tmp_path: Path) -> None:
    """Every Eval Ever names files by UUIDs; read back, two solvers with two repetitions are no four models."""
    names = ("mllm", "mllm@2", "text_only", "text_only@2")
    words = (*ALONE[:2], *TOOLS)
    of_letters = {name: {"Jigsaw": word} for name, word in zip(names, words, strict=True)}
    run = synthetic_runs.from_letters(tmp_path / "run", of_letters)
    export = EVERY_EVAL_EVER.export(ExportedRun.at(run.path), tmp_path / "shared", ExportOptions())
    files = [path for path in export.paths if path.suffix == ".jsonl"]
    back = compare_paths(files, benchmark="blink", pairs=["mllm:text_only"])
    here = compare_paths([run.path], pairs=["mllm:text_only"])
    assert {solver.solver for solver in back.comparison.contestants} == {"mllm", "text_only"}
    found = [rows(report.comparison, "differences", a="mllm", b="text_only")["difference"] for report in (back, here)]
    assert (found[0].value, found[0].low, found[0].p) == (found[1].value, found[1].low, found[1].p)
    # The file has the model as a developer and a name.
    assert head_of(back.solvers)[0].rpartition("/")[2] == head_of(here.solvers)[0].rpartition(":")[2]


def test_repetitions_imported_into_separate_folders_stay_one_solver(synthetic_runs: Any, tmp_path: Path) -> None:
    of_letters = {name: {"Jigsaw": word} for name, word in zip(("mllm", "mllm@2"), ALONE, strict=False)}
    run = synthetic_runs.from_letters(tmp_path / "run", of_letters)
    export = EVERY_EVAL_EVER.export(ExportedRun.at(run.path), tmp_path / "shared", ExportOptions())
    files = [path for path in export.paths if path.suffix == ".jsonl"]
    folders = [tmp_path / f"imported_{place}" for place in range(len(files))]
    for file, folder in zip(files, folders, strict=True):
        score_paths([file], benchmark="blink", out=folder)
    comparison = compare_paths(folders).comparison
    assert sorted(solver.recorded for solver in comparison.solvers) == ["mllm", "mllm@2"]
    assert [len(comparison.repetitions(solver)) for solver in comparison.contestants] == [2]


@pytest.mark.parametrize("name", ["../outside", "..", "/outside"])
def test_a_file_cannot_name_a_folder_outside_of_the_import(
    name: str, synthetic_runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic_runs.from_letters(tmp_path / "run", {"mllm": {"Jigsaw": ALONE[0]}})
    VLMEVALKIT.export(ExportedRun.at(run.path), file := tmp_path / "gpt.tsv", ExportOptions())
    named = replace(join_predictions(file, load("hybrid.benchmarks", "blink"), None, ()), solver=name)
    monkeypatch.setattr("hybrid.scoring.predicted.join_predictions", lambda *_: named)
    assert import_run(file, load("hybrid.benchmarks", "blink"), None, tmp_path / "imported").solvers() == ("gpt",)


def test_a_model_with_tools_that_is_read_back_is_not_said_to_have_none(synthetic_runs: Any, tmp_path: Path) -> None:
    of_letters = {name: {"Jigsaw": word} for name, word in (("mllm", ALONE[0]), ("controller", TOOLS[0]))}
    run = synthetic_runs.from_letters(tmp_path / "run", of_letters)
    files = [tmp_path / f"{name}.tsv" for name in of_letters]
    for name, file in zip(of_letters, files, strict=True):
        VLMEVALKIT.export(ExportedRun.at(run.path / name), file, ExportOptions())
    read = conclusion(compare_paths(files, benchmark="blink").comparison)[0].text
    assert read.startswith("Of 2 solvers, read without their tool calls, controller has the highest accuracy")
    files[1] = files[1].rename(tmp_path / "other.tsv")
    other = conclusion(compare_paths(files, benchmark="blink").comparison)[0].text
    assert other.startswith("Of 2 solvers, none of them a model with tools, other has the highest accuracy")
