"""`hybrid score` reads exports to lmms_eval and vlmevalkit with the same numbers, or the export is refused."""

import csv
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions
from hybrid.cli import cli
from hybrid.core.errors import UsageError
from hybrid.core.types import Outcome, Score
from hybrid.exporting import vlmevalkit
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.every_eval_ever import EXPORTER as EVERY_EVAL_EVER
from hybrid.exporting.lmms_eval import EXPORTER as LMMS_EVAL
from hybrid.exporting.vlmevalkit import EXPORTER as VLMEVALKIT
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load, names
from hybrid.scoring.pairing import Data
from hybrid.scoring.predicted import score_predictions
from hybrid.scoring.predictions import vlmevalkit as reader
from hybrid.scoring.score import Scored

CHANCE = "chance"
GENERATED = [name for name in names("hybrid.benchmarks") if load("hybrid.benchmarks", name).card.sample_tasks]
HELD = ("blink", "hvsbench", "mvp_bench")
OPTIONS = ScoreOptions("strict", "wrong")
DATA = Data("blink", "val", {}, {})


@pytest.fixture(scope="module")
def make_run(
    folders: Callable[[str, int], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, Path]]:
    """Return, for a benchmark, its generated data and a run of the solver that guesses; both are made once."""
    results: dict[str, tuple[Path, Path]] = {}

    def make(name: str) -> tuple[Path, Path]:
        if name not in results:
            folder = tmp_path_factory.mktemp(name)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("HYBRID_HOME", str(folder / "home"))
                data = folders(name, 2)
                words = ["run", name, "--data", data, "--solver", CHANCE, "--allow", "partial", "--out", folder / "run"]
                cli.main(list(map(str, words)), standalone_mode=False)
            results[name] = (data, folder / "run")
        return results[name]

    return make


def numbers(scored: Scored) -> tuple[dict[str, Any], dict[str, float | None]]:
    """Return the metrics and every verdict, without `undecided`, which only predictions have."""
    values = {name: value for name, value in scored.counted["wrong"].values().items() if name != "undecided"}
    return values, {score.id: score.correct for score in scored.counted["wrong"].scores}


def read_back(path: Path, name: str, data: Path) -> Scored:
    return score_predictions(path, load("hybrid.benchmarks", name), None, OPTIONS, str(data))


@pytest.mark.system
@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize(
    ("exporter", "out"),
    [(LMMS_EVAL, "logs"), (VLMEVALKIT, "s.xlsx"), (VLMEVALKIT, "s.tsv"), (EVERY_EVAL_EVER, "shared")],
    ids=["lmms", "xlsx", "tsv", "every_eval_ever"],
)
def test_the_same_numbers_come_back(make_run: Any, name: str, exporter: Any, out: str, tmp_path: Path) -> None:
    data, folder = make_run(name)
    run = ExportedRun.at(folder / CHANCE)
    export = exporter.export(run, tmp_path / out, ExportOptions(allow=("generated",)))
    assert not export.notes
    assert all(path.is_file() for path in export.paths)
    (scored,) = run.scored
    back = read_back(tmp_path / out, name, data)
    assert numbers(back) == numbers(scored)
    assert back.origin is not None
    assert not back.origin.extra
    assert any("by the benchmark's ids" in note for note in back.origin.notes)


@pytest.mark.parametrize("exporter", [LMMS_EVAL, VLMEVALKIT], ids=["lmms", "sheet"])
def test_a_benchmark_that_asks_several_times_is_refused_with_the_reason(
    make_run: Any, exporter: Any, tmp_path: Path
) -> None:
    _, folder = make_run("actiview")
    with pytest.raises(
        UsageError, match=r"cannot represent this run of actiview: it keeps one reply .* parquet and inspect"
    ):
        exporter.export(ExportedRun.at(folder), tmp_path / "out.tsv", ExportOptions())
    assert not list(tmp_path.iterdir())


@pytest.mark.system
def test_every_benchmark_is_held_or_refused(make_run: Any, tmp_path: Path) -> None:
    """An export that is read back has the numbers of the run, or the benchmark's run is refused."""
    for name in sorted(set(GENERATED) - {*HELD, "actiview"}):
        data, folder = make_run(name)
        run = ExportedRun.at(folder)
        try:
            LMMS_EVAL.export(run, tmp_path / name, ExportOptions())
        except UsageError as error:
            assert f"run of {name}" in str(error)  # noqa: PT017 - either end is right
        else:
            assert numbers(read_back(tmp_path / name, name, data)) == numbers(run.scored[0])


def test_a_failed_question_is_left_out_and_said(synthetic_runs: Any, tmp_path: Path) -> None:
    run = synthetic_runs.write(tmp_path, "blink", size=5, failed=2)
    export = VLMEVALKIT.export(ExportedRun.at(run.real / "controller"), tmp_path / "s.tsv", ExportOptions())
    parsed = reader.read(tmp_path / "s.tsv")
    assert parsed is not None
    assert len(parsed.rows) == 13
    assert export.notes[0].startswith("left out: 2 questions without an answer: ")


def test_several_solvers_want_a_name(synthetic_runs: Any, tmp_path: Path) -> None:
    run = synthetic_runs.write(tmp_path, "blink", size=2)
    with pytest.raises(
        UsageError, match="VLMEvalKit contains a single solver: give RUN/SOLVER, one of controller, mllm, specialist"
    ):
        VLMEVALKIT.export(ExportedRun.at(run.real), tmp_path / "s.tsv", ExportOptions())
    with pytest.raises(UsageError, match=r"ends in \.xlsx or \.tsv"):
        VLMEVALKIT.export(ExportedRun.at(run.real / "mllm"), tmp_path / "s.csv", ExportOptions())


def test_a_rotated_run_is_refused(synthetic_runs: Any, tmp_path: Path) -> None:
    run = synthetic_runs.write(tmp_path, "blink", size=2)
    folder = RunFolder(run.real)
    folder.write_manifest({**folder.manifest, "identity": {**folder.manifest["identity"], "rotate": True}})
    with pytest.raises(UsageError, match="cannot represent a run with --rotate"):
        LMMS_EVAL.export(ExportedRun.at(run.real / "mllm"), tmp_path / "logs", ExportOptions())


def rows_of(replies: list[str]) -> tuple[Any, ...]:
    """Return rows for a result sheet, one per reply; their questions are made up and belong to no benchmark."""
    return tuple(
        SimpleNamespace(
            question=SimpleNamespace(id=f"q{place}", unit=f"q{place}", task="t", text="=1+1?", choices=("=A1", "3")),
            gold="A",
            text=reply,
            score=Score(f"q{place}", "t", 1.0, Outcome.ANSWERED),
        )
        for place, reply in enumerate(replies)
    )


REPLIES = st.lists(
    st.one_of(
        st.sampled_from(["=1+1", "007", "3.0", "-", " A ", "a\r\nb", "_x000D_", "a\x0bb", "TRUE", '"', "\ttab", "nan"]),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.system
@settings(max_examples=60)
@given(REPLIES, st.sampled_from(["s.xlsx", "s.tsv"]))
def test_a_sheet_holds_every_reply_as_it_was_or_is_refused(tmp_path: Path, replies: list[str], name: str) -> None:
    rows = rows_of(replies)
    try:
        vlmevalkit.write_sheet(tmp_path / name, rows, DATA)
    except UsageError as error:
        assert name == "s.xlsx"
        assert "name a .tsv" in str(error)  # noqa: PT017
        assert not (tmp_path / name).exists()
    else:
        parsed = reader.read(tmp_path / name)
        assert parsed is not None
        assert [row.reply for row in parsed.rows] == replies
        assert [(row.text, row.choices) for row in parsed.rows] == [("=1+1?", ("=A1", "3"))] * len(replies)


@pytest.mark.parametrize("reply", ["a\x0bb", "x" * 40_000])
def test_what_a_workbook_would_lose_is_an_error(tmp_path: Path, reply: str) -> None:
    with pytest.raises(UsageError, match=r"name a \.tsv"):
        vlmevalkit.write_sheet(tmp_path / "s.xlsx", rows_of([reply]), DATA)
    vlmevalkit.write_sheet(tmp_path / "s.tsv", rows_of([reply]), DATA)


FORMULAS = ("=1+1", "+B", "-B", "@B", " =B", "\uff1d1", "\ufe66B", "\n=B", "\u3000=B", "\u200b=B", "\xa0\uff1dB")


@pytest.mark.parametrize("reply", [*FORMULAS, "'=B", "B", "\u3000B"])
def test_no_cell_of_a_table_is_a_formula_and_every_reply_comes_back(tmp_path: Path, reply: str) -> None:
    path = tmp_path / "s.tsv"
    vlmevalkit.write_sheet(path, rows_of([reply]), DATA)
    with path.open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file, delimiter="\t")
    assert row["prediction"].startswith("'") == (reply not in ("B", "\u3000B"))
    parsed = reader.read(path)
    assert parsed is not None
    assert [item.reply for item in parsed.rows] == [reply]
