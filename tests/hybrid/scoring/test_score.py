"""Scoring: verdicts from disk, every failure counted, and predictions from other programs."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.config import RunConfig, ServiceOptions
from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import Cell, Metric, Question
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run
from hybrid.scoring.predicted import import_run, score_predictions
from hybrid.scoring.runs import score_run, write_submission
from hybrid.scoring.score import Scored, rounded
from hybrid.scoring.tally import wall_seconds

OPTIONS = ScoreOptions()


async def ran(
    tmp_path: Path, fakes: Any, failing: Mapping[str, Exception] | None = None, **changes: Any
) -> ResolvedRun:
    """Run a model on four puzzles and two relations. It answers "(A)", except one reply that declines and one that is
    not recorded."""
    data = tmp_path / "blink"
    if not data.exists():
        fakes.blink_folder(data, jigsaws=4, spatials=2)
    replies = fakes.blink_replies(4, 2)
    replies["val_Jigsaw_3"] = "I am sorry, I cannot tell."
    del replies["val_Jigsaw_4"]
    model = fakes.recordings(tmp_path / "model", replies)
    options = {"data": str(data), "service": ServiceOptions("classical"), "out": tmp_path / "run", **changes}
    plan = prepare(RunConfig("blink", ("mllm", "specialist"), model=f"replay:{model}", **options))
    watched = fakes.WatchedModel(plan.resources.model, dict(failing or {}))
    plan = replace(plan, resources=replace(plan.resources, model=watched))
    await ask_run(plan, lambda *_: None)
    return plan


def by_name(scored: tuple[Scored, ...]) -> dict[str, Scored]:
    return {item.solver: item for item in scored}


def metrics(scored: Scored) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in scored.metrics}


async def test_the_json_has_the_shape_that_was_promised(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    report: dict[str, Any] = dict(by_name(score_run(plan.folder, OPTIONS))["mllm"].as_json())
    assert report["benchmark"] == "blink"
    assert (report["n"], report["failed"]) == (6, 1)
    assert report["outcomes"] == {"answered": 4, "unparsed": 1, "not_recorded": 1}
    assert report["metrics"]["accuracy_micro"] == 0.4
    assert report["metrics"]["with_failed"]["accuracy_micro"] == pytest.approx(1 / 3)
    assert report["tasks"] == {
        "Jigsaw": {"n": 4, "accuracy": pytest.approx(1 / 3), "failed": 1},
        "Spatial_Relation": {"n": 2, "accuracy": 0.5},
    }
    assert report["unanswered"] == "wrong"
    low, high, method = report["intervals"]["accuracy_micro"]
    assert low < 0.4 < high
    assert isinstance(method, str)
    assert json.loads(json.dumps(report)) == report


async def test_questions_not_asked_yet_are_no_part_of_any_number(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes, limit=2)
    data = plan.folder.path.parent / "blink"
    more = prepare(replace(plan.config, solvers=("specialist",), limit=None, data=str(data)))
    await ask_run(more, lambda *_: None)
    scored = by_name(score_run(more.folder, OPTIONS))
    assert (scored["mllm"].open, len(scored["mllm"].scores)) == (4, 2)
    assert (scored["specialist"].open, len(scored["specialist"].scores)) == (0, 6)
    assert scored["mllm"].as_json()["open"] == 4


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 20)), max_size=8))
def test_wall_time_is_the_number_of_seconds_with_a_question_under_way(spans: list[tuple[int, int]]) -> None:
    busy = {second for start, seconds in spans for second in range(start, start + seconds)}
    assert wall_seconds([(float(start), float(seconds)) for start, seconds in spans]) == pytest.approx(len(busy))


async def test_an_unknown_solver_is_a_wrong_option(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    with pytest.raises(UsageError, match="has no attempts of 'arbiter'; it has: mllm, specialist"):
        score_run(plan.folder, OPTIONS, ("arbiter",))


async def test_hidden_answers_are_submitted_and_not_scored(tmp_path: Path, fakes: Any) -> None:
    data = tmp_path / "blink"
    fakes.write_task(data, "Jigsaw", [fakes.jigsaw_row(n, "hidden", "test") for n in (1, 2)], "test")
    model = fakes.recordings(tmp_path / "model", {"test_Jigsaw_1": "Answer: (B)", "test_Jigsaw_2": "No idea."})
    config = RunConfig(
        "blink", ("mllm",), model=f"replay:{model}", data=str(data), split="test", service=ServiceOptions("classical")
    )
    plan = prepare(replace(config, out=tmp_path / "run"))
    assert await ask_run(plan, lambda *_: None) == ()
    text = (
        r"split 'test' of blink are hidden: it can be submitted, not scored "
        r"\(`hybrid score RUN` writes the submission file\)$"
    )
    with pytest.raises(UsageError, match=text):
        score_run(plan.folder, OPTIONS)
    path = write_submission(plan.folder, "mllm")
    assert path == plan.folder.path / "mllm" / "submission.json"
    record = json.loads(path.read_text())
    assert record == {"test_Jigsaw_1": "(B)", "test_Jigsaw_2": "(Z)"}


def saved(path: Path, rows: list[tuple[int, str, str, str]], task: str = "Jigsaw") -> Path:
    """Write rows of (number, gold, full text, stored answer) in the format of BLINK's saved outputs."""
    path.mkdir(parents=True, exist_ok=True)
    content = [
        {"idx": f"val_{task.replace(' ', '_')}_{n}", "answer": gold, "full_prediction": text, "prediction": stored}
        for n, gold, text, stored in rows
    ]
    (path / f"{task}.json").write_text(json.dumps({"val": content, "test": []}))
    return path


ROWS = [
    (1, "(A)", "The second image. (A)", "(A)"),
    (2, "(B)", "It is (B)", "(B) the third image"),
    (3, "(A)", "I cannot say.", "(Z)"),
    (4, "(A)", "Answer: (B)", "(A)"),
]


def test_agreement_and_what_is_undecided_are_shares_of_the_rows(tmp_path: Path) -> None:
    predictions = score_predictions(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, "text", OPTIONS)

    def cells(*value: float) -> tuple[Cell, ...]:
        return tuple(Cell("", score.unit, item, 1.0) for score, item in zip(predictions.scores, value, strict=True))

    assert predictions.metrics[-2:] == (
        Metric("agreement", 0.75, 4, "ratio", cells(1, 1, 1, 0)),
        Metric("undecided", 0.25, 4, "ratio", cells(0, 0, 1, 0)),
    )
    assert {metric.name for metric in predictions.counted["guess"].metrics} >= {"agreement", "undecided"}


def test_a_value_that_is_not_defined_is_null_and_digits_are_twelve(tmp_path: Path) -> None:
    predictions = score_predictions(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, "stored", OPTIONS)
    by_value = {
        rule: replace(value, metrics=(Metric("m", None, 0, "ratio", ()),))
        for rule, value in predictions.counted.items()
    }
    report: Any = replace(predictions, counted=by_value).as_json()
    assert (report["metrics"], report["intervals"]) == ({"m": None}, {"m": None})
    assert (rounded(1 / 3), rounded(2 / 3), rounded(None)) == (0.333333333333, 0.666666666667, None)


def test_predictions_are_joined_with_the_data(tmp_path: Path, fakes: Any) -> None:
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=3, spatials=0)
    path = saved(tmp_path / "GPT4o", [row for row in ROWS if row[0] != 4])
    scored = score_predictions(path, BENCHMARK, "stored", OPTIONS, str(data))
    assert [score.groups["images"] for score in scored.scores] == ["3", "3", "3"]
    folder = import_run(path, BENCHMARK, "stored", tmp_path / "run", str(data))
    for attempt, question in zip(folder.attempts("GPT4o"), folder.questions(), strict=True):
        assert isinstance(question, Question)
        assert question.text
        assert attempt.exchanges[0].prompt.parts == (question.text,)
    wrong = saved(tmp_path / "other", [(1, "(B)", "", "(B)")])
    with pytest.raises(DataError, match=r"val_Jigsaw_1: .* says that the answer is '\(B\)', the data say '\(A\)'"):
        score_predictions(wrong, BENCHMARK, "stored", OPTIONS, str(data))
    strangers = saved(tmp_path / "strangers", [(99, "(B)", "", "(B)")])
    with pytest.raises(DataError, match="none of the 1 ids"):
        score_predictions(strangers, BENCHMARK, "stored", OPTIONS, str(data))


def test_what_is_no_prediction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="file or folder not found"):
        score_predictions(tmp_path / "nowhere", BENCHMARK, "stored", OPTIONS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="is neither a run nor a layout of predictions that blink knows"):
        score_predictions(tmp_path / "empty", BENCHMARK, "stored", OPTIONS)
