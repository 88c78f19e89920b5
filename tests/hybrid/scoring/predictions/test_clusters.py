"""Predictions have the clusters of their run, whatever file they are in."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hybrid.benchmarks.base import ScoreOptions
from hybrid.cli import cli
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.clusters import align_clusters
from hybrid.scoring.predicted import import_run, score_predictions
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from hybrid.stats import ends_of, interval

OPTIONS = ScoreOptions("strict", "wrong")
# 24 questions on 4 pictures; guesses agree within a picture and differ between pictures.
PICTURES, QUESTIONS = 4, 24
FORMATS = ["vlmevalkit s.xlsx", "vlmevalkit s.tsv", "lmms_eval logs", "every_eval_ever evaluations"]


def command(*words: object) -> None:
    cli.main([str(word) for word in words], standalone_mode=False)


@pytest.fixture(scope="module")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, Path]]:
    """Function that returns the table of questions and a run with this limit on them; each run is made once."""
    folder = tmp_path_factory.mktemp("shared")
    for place in range(PICTURES):
        Image.fromarray(np.full((8, 8, 3), 40 * place + 20, np.uint8)).save(folder / f"p{place}.png")
    rows = [
        {
            "id": f"q{n}",
            "image": f"p{n % PICTURES}.png",
            "question": f"Which is it, {n}?",
            "choices": ["one", "two", "three"],
            "answer": "AABC"[n % PICTURES],
        }
        for n in range(QUESTIONS)
    ]
    table = folder / "questions.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    mapping: dict[int | None, Path] = {}

    def run(limit: int | None = None) -> tuple[Path, Path]:
        if limit not in mapping:
            mapping[limit] = folder / f"run-{limit}"
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("HYBRID_HOME", str(folder / "home"))
                results = [] if limit is None else ["--limit", limit]
                command("run", table, "--solver", "chance", "--out", mapping[limit], *results)
        return table, mapping[limit]

    return run


def numbers(scored: Scored) -> dict[str, Any]:
    """Return, by metric, its value and its interval with the name of the method."""
    by_name = {metric.name: metric for metric in scored.metrics if metric.name != "undecided"}
    return {name: (metric.value, interval(metric)) for name, metric in by_name.items()}


def units(scored: Scored) -> dict[str, str]:
    return {score.id: score.unit for score in scored.scores}


@pytest.mark.parametrize("limit", [None, 6, 3])
@pytest.mark.parametrize("form", FORMATS)
def test_an_export_that_is_read_back_has_the_intervals_of_its_run(
    make_run: Any, form: str, limit: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, run = make_run(limit)
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    name, file = form.split()
    command("export", run / "chance", "--to", name, "-o", tmp_path / file)
    (scored,) = score_run(RunFolder(run), OPTIONS, keep=False)
    benchmark = load("hybrid.benchmarks", "questions")
    back = score_predictions(tmp_path / file, benchmark, None, OPTIONS, str(table))
    imported = import_run(tmp_path / file, benchmark, None, tmp_path / "imported", str(table))
    for result in (back, *score_run(imported, OPTIONS)):
        assert numbers(result) == numbers(scored)
        assert units(result) == units(scored)
    # Six questions show four pictures, two of them twice; three questions show three pictures.
    assert len(set(units(scored).values())) == {None: 4, 6: 4, 3: 3}[limit]


def without_clusters(sheet: Path) -> Path:
    """Return the sheet as another harness would have written it, without hybrid's own columns."""
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    with (bare := sheet.with_name("bare.tsv")).open("w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name not in ("cluster", "idx")], delimiter="\t")
        writer.writeheader()
        writer.writerows({name: row[name] for name in writer.fieldnames} for row in rows)
    return bare


@pytest.mark.parametrize("limit", [None, 6, 3])
def test_pictures_of_the_data_cluster_the_rows_of_another_harness(
    make_run: Any, limit: int | None, tmp_path: Path
) -> None:
    table, run = make_run(limit)
    command("export", run / "chance", "--to", "vlmevalkit", "-o", tmp_path / "s.tsv")
    (scored,) = score_run(RunFolder(run), OPTIONS, keep=False)
    benchmark = load("hybrid.benchmarks", "questions")
    back = score_predictions(without_clusters(tmp_path / "s.tsv"), benchmark, None, OPTIONS, str(table))
    assert numbers(back) == numbers(scored)
    assert units(back) == units(scored)
    assert back.origin is not None
    assert not any("pictures" in note for note in back.origin.notes)


def test_a_picture_that_is_not_there_costs_no_prediction_and_is_counted(make_run: Any, tmp_path: Path) -> None:
    table, run = make_run()
    command("export", run / "chance", "--to", "vlmevalkit", "-o", tmp_path / "s.tsv")
    (tmp_path / "questions.jsonl").write_text(table.read_text())
    for place in range(PICTURES - 1):
        (tmp_path / f"p{place}.png").write_bytes((table.parent / f"p{place}.png").read_bytes())
    benchmark = load("hybrid.benchmarks", "questions")
    sheet = without_clusters(tmp_path / "s.tsv")
    back = score_predictions(sheet, benchmark, None, OPTIONS, str(tmp_path / "questions.jsonl"))
    assert len(back.scores) == QUESTIONS
    assert len(set(units(back).values())) == 3 + QUESTIONS // PICTURES
    assert back.origin is not None
    assert any("pictures of 6 of 24 questions are not known" in note for note in back.origin.notes)


@pytest.mark.parametrize("order", [1, -1])
def test_solvers_of_a_comparison_have_the_clusters_that_one_of_them_knows(
    make_run: Any, order: int, tmp_path: Path
) -> None:
    """A run of three questions about three pictures gets the clusters of the full run, in which other questions share
    these pictures."""
    _, run = make_run()
    _, few = make_run(3)
    paths = [run, few][::order]
    first, second = compare_paths(paths).solvers
    assert {name: unit for name, unit in units(first).items() if name in units(second)} == {
        name: unit for name, unit in units(second).items() if name in units(first)
    }
    (row,) = [
        row
        for row in compare_paths(paths, only=["differences"]).results
        if row.quantity == "difference" and not row.group and row.metric == "accuracy_macro"
    ]
    # Both runs have the same answers to the three questions, so the difference, tested over three pictures, is 0.
    assert (row.value, row.p) == (0, 1)
    assert row.low is not None
    assert align_clusters((first, second)) == (first, second)


def test_metrics_follow_clusters_that_another_solver_knows(make_run: Any) -> None:
    _, run = make_run()
    (scored,) = score_run(RunFolder(run), OPTIONS, keep=False)
    _, few = make_run(3)
    (alone,) = score_run(RunFolder(few), OPTIONS, keep=False)
    expected_values, aligned = align_clusters((scored, alone))
    assert expected_values is scored
    assert units(aligned) == {name: units(scored)[name] for name in units(alone)}
    for metric in aligned.metrics:
        assert {cell.cluster for cell in metric.cells} == {*units(aligned).values()}
        assert metric.value == next(current.value for current in alone.metrics if current.name == metric.name)
        assert ends_of(interval(metric)) != (None, None)


def test_files_that_are_named_like_repetitions_are_repetitions(make_run: Any, tmp_path: Path) -> None:
    table, run = make_run()
    for name in ("guess.tsv", "guess@2.tsv"):
        command("export", run / "chance", "--to", "vlmevalkit", "-o", tmp_path / name)
    paths = [tmp_path / "guess.tsv", tmp_path / "guess@2.tsv"]
    report = compare_paths(paths, benchmark="questions", data=str(table))
    assert [len(report.comparison.repetitions(contestant)) for contestant in report.comparison.contestants] == [2]
    assert "(mean of 2 repetitions" in report.conclusion[0].text
