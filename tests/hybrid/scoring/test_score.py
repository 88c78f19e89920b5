"""Loop 2: verdicts from disk, every failure counted, and predictions that somebody else saved."""

import hashlib
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
from hybrid.errors import DataError, Outage, UsageError
from hybrid.log.codec import codec
from hybrid.log.folder import RunFolder
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import execute
from hybrid.scoring.pairing import Data
from hybrid.scoring.predicted import import_run, score_predictions
from hybrid.scoring.predictions.base import Origin
from hybrid.scoring.runs import score_run, write_submission
from hybrid.scoring.score import Scored, group_of, nested, rounded, with_judged
from hybrid.scoring.tally import wall_seconds
from hybrid.types import Cell, Metric, Outcome, Prompt, Question

OPTIONS = ScoreOptions()


async def ran(
    tmp_path: Path, fakes: Any, failing: Mapping[str, Exception] | None = None, **changes: Any
) -> ResolvedRun:
    """Four puzzles and two relations answered "(A)", but for one that declines and one that is not recorded."""
    data = tmp_path / "blink"
    if not data.exists():
        fakes.blink_folder(data, jigsaws=4, spatials=2)
    replies = fakes.blink_replies(4, 2)
    replies["val_Jigsaw_3"] = "I am sorry, I cannot tell."
    del replies["val_Jigsaw_4"]
    model = fakes.recordings(tmp_path / "model", replies)
    options = {"data": str(data), "service": ServiceOptions("classical"), "out": tmp_path / "run", **changes}
    plan = prepare(RunConfig("blink", ("mllm", "specialist"), f"replay:{model}", **options))
    watched = fakes.WatchedModel(plan.resources.model, dict(failing or {}))
    plan = replace(plan, resources=replace(plan.resources, model=watched))
    await execute(plan, lambda *_: None)
    return plan


def by_name(scored: tuple[Scored, ...]) -> dict[str, Scored]:
    return {one.solver: one for one in scored}


def metrics(scored: Scored) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in scored.metrics}


async def test_every_question_has_a_verdict_and_its_outcome(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    scored = by_name(score_run(plan.folder, OPTIONS))["mllm"]
    verdicts = {score.id: (score.correct, score.outcome, score.answer) for score in scored.scores}
    assert verdicts == {
        "val_Jigsaw_1": (1.0, Outcome.ANSWERED, "A"),
        "val_Jigsaw_2": (0.0, Outcome.ANSWERED, "A"),
        "val_Jigsaw_3": (0.0, Outcome.UNPARSED, None),
        "val_Jigsaw_4": (0.0, Outcome.NOT_RECORDED, None),
        "val_Spatial_Relation_1": (1.0, Outcome.ANSWERED, "A"),
        "val_Spatial_Relation_2": (0.0, Outcome.ANSWERED, "A"),
    }
    assert metrics(scored) == {
        "accuracy_macro": pytest.approx((1 / 3 + 1 / 2) / 2),
        "accuracy_micro": pytest.approx(2 / 5),
        "with_failed.accuracy_macro": pytest.approx((1 / 4 + 1 / 2) / 2),
        "with_failed.accuracy_micro": pytest.approx(2 / 6),
    }
    guessed = {metric.name: metric.value for metric in scored.counted["chance"].metrics}
    assert guessed == {
        "accuracy_macro": pytest.approx((1.5 / 3 + 1 / 2) / 2),
        "accuracy_micro": pytest.approx(2.5 / 5),
        "with_failed.accuracy_macro": pytest.approx((1.5 / 4 + 1 / 2) / 2),
        "with_failed.accuracy_micro": pytest.approx(2.5 / 6),
    }


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
    assert report["abstain"] == "wrong"
    low, high, method = report["intervals"]["accuracy_micro"]
    assert low < 0.4 < high
    assert isinstance(method, str)
    assert json.loads(json.dumps(report)) == report


async def test_an_abstention_is_worth_chance_or_nothing(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    guessed = by_name(score_run(plan.folder, ScoreOptions(abstain="chance")))["specialist"]
    assert [score.correct for score in guessed.scores] == [1.0] * 4 + [0.5] * 2
    assert {score.outcome for score in guessed.scores[4:]} == {Outcome.ABSTAINED}
    wrong = by_name(score_run(plan.folder, OPTIONS))["specialist"]
    assert [score.correct for score in wrong.scores] == [1.0] * 4 + [0.0] * 2
    # Each holds the other's verdicts too: both rules are in every table.
    assert wrong.counted == guessed.counted


async def test_an_unread_reply_is_worth_what_an_abstention_is(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    mllm = by_name(score_run(plan.folder, OPTIONS))["mllm"]
    worth = {rule: {score.id: score.correct for score in mllm.counted[rule].scores} for rule in ("chance", "wrong")}
    assert (worth["chance"]["val_Jigsaw_3"], worth["wrong"]["val_Jigsaw_3"]) == (0.5, 0.0)
    changed = {name for name in worth["wrong"] if worth["wrong"][name] != worth["chance"][name]}
    assert changed == {"val_Jigsaw_3"}


async def test_metrics_follow_the_rule_that_was_asked_for(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    for rule, micro in (("wrong", 0.4), ("chance", 0.5)):
        report: Any = by_name(score_run(plan.folder, ScoreOptions(abstain=rule)))["mllm"].as_json()
        assert (report["abstain"], report["metrics"]["accuracy_micro"]) == (rule, micro)


async def test_scoring_again_writes_the_same_bytes(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    path = plan.folder.path / "mllm" / "scores.jsonl"
    score_run(plan.folder, OPTIONS)
    before = path.read_bytes()
    score_run(plan.folder, OPTIONS)
    assert path.read_bytes() == before
    assert [row["id"] for row in fakes.lines(path)] == sorted(row["id"] for row in fakes.lines(path))


async def test_an_outage_counts_as_failed_until_it_is_asked_again(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes, {"val_Jigsaw_1": Outage("away")})
    scored = by_name(score_run(plan.folder, OPTIONS, ("mllm",)))["mllm"]
    assert {score.id for score in scored.scores if score.outcome is Outcome.OUTAGE} == {"val_Jigsaw_1"}
    assert len(scored.scores) == 6
    plan = await ran(tmp_path, fakes)
    scored = by_name(score_run(plan.folder, OPTIONS, ("mllm",)))["mllm"]
    assert Outcome.OUTAGE not in {score.outcome for score in scored.scores}


async def test_a_half_written_error_does_not_stop_the_scoring(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes, {"val_Jigsaw_1": Outage("away")})
    with (plan.folder.path / "mllm" / "attempts.jsonl").open("ab") as file:
        file.write(b'{"id": "val_Ji')
    scored = by_name(score_run(plan.folder, OPTIONS, ("mllm",)))["mllm"]
    assert sum(score.outcome is Outcome.OUTAGE for score in scored.scores) == 1


async def test_questions_not_asked_yet_are_no_part_of_any_number(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes, limit=2)
    data = plan.folder.path.parent / "blink"
    more = prepare(replace(plan.config, solvers=("specialist",), limit=None, data=str(data)))
    await execute(more, lambda *_: None)
    scored = by_name(score_run(more.folder, OPTIONS))
    assert (scored["mllm"].open, len(scored["mllm"].scores)) == (4, 2)
    assert (scored["specialist"].open, len(scored["specialist"].scores)) == (0, 6)
    assert scored["mllm"].as_json()["open"] == 4


async def test_a_broken_row_is_failed_for_everybody(tmp_path: Path, fakes: Any) -> None:
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=4, spatials=2)
    rows = [fakes.jigsaw_row(n, "(A)" if n % 2 else "(B)") for n in range(1, 5)]
    fakes.write_task(data, "Jigsaw", [{**rows[0], "image_1": b"broken"}, *rows[1:]])
    plan = await ran(tmp_path, fakes)
    for scored in score_run(plan.folder, OPTIONS):
        assert {score.id for score in scored.scores if score.outcome is Outcome.BROKEN} == {"val_Jigsaw_1"}


async def test_usage_is_added_up(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    scored = by_name(score_run(plan.folder, OPTIONS))
    mllm, specialist = scored["mllm"].usage, scored["specialist"].usage
    assert mllm is not None
    assert specialist is not None
    assert mllm.model_calls == 5
    assert (specialist.model_calls, specialist.tool_calls) == (0, 4)


async def test_the_wall_time_of_a_run_is_that_of_its_questions(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    scored = by_name(score_run(plan.folder, OPTIONS))["specialist"]
    attempts = plan.folder.attempts("specialist")
    assert scored.wall_s is not None
    assert 0 < scored.wall_s <= sum(attempt.seconds for attempt in attempts) + 1e-6


@pytest.mark.parametrize(
    ("spans", "wall"),
    [
        ([(10.0, 5.0)], 5.0),
        ([(10.0, 5.0), (11.0, 1.0), (12.0, 6.0)], 8.0),
        # An hour's pause between two commands is not counted.
        ([(10.0, 5.0), (3610.0, 2.0)], 7.0),
        ([(12.0, 1.0), (10.0, 1.0)], 2.0),
        ([(10.0, 1.0), (None, 1.0)], None),
        ([], 0.0),
    ],
)
def test_questions_side_by_side_count_once(spans: list[tuple[float | None, float]], wall: float | None) -> None:
    assert wall_seconds(spans) == (None if wall is None else pytest.approx(wall))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 20)), max_size=8))
def test_wall_time_is_the_number_of_seconds_with_a_question_under_way(spans: list[tuple[int, int]]) -> None:
    busy = {second for start, seconds in spans for second in range(start, start + seconds)}
    assert wall_seconds([(float(start), float(seconds)) for start, seconds in spans]) == pytest.approx(len(busy))


def test_predictions_cost_nothing_that_anybody_recorded(tmp_path: Path) -> None:
    path = saved(tmp_path / "GPT4o", ROWS)
    direct = score_predictions(path, BENCHMARK, "stored", OPTIONS)
    (imported,) = score_run(import_run(path, BENCHMARK, "stored", tmp_path / "run"), OPTIONS)
    assert [(one.usage, one.wall_s) for one in (direct, imported)] == [(None, None)] * 2


async def test_an_unknown_solver_is_a_wrong_option(tmp_path: Path, fakes: Any) -> None:
    plan = await ran(tmp_path, fakes)
    with pytest.raises(UsageError, match="has no attempts of 'arbiter'; it has: mllm, specialist"):
        score_run(plan.folder, OPTIONS, ("arbiter",))


async def test_hidden_answers_are_submitted_and_not_scored(tmp_path: Path, fakes: Any) -> None:
    data = tmp_path / "blink"
    fakes.write_task(data, "Jigsaw", [fakes.jigsaw_row(n, "hidden", "test") for n in (1, 2)], "test")
    model = fakes.recordings(tmp_path / "model", {"test_Jigsaw_1": "Answer: (B)", "test_Jigsaw_2": "No idea."})
    config = RunConfig(
        "blink", ("mllm",), f"replay:{model}", data=str(data), split="test", service=ServiceOptions("classical")
    )
    plan = prepare(replace(config, out=tmp_path / "run"))
    assert await execute(plan, lambda *_: None) == ()
    said = r"blink test are hidden: it can be submitted, not scored \(`hybrid score RUN` writes the submission file\)$"
    with pytest.raises(UsageError, match=said):
        score_run(plan.folder, OPTIONS)
    path = write_submission(plan.folder, "mllm")
    assert path == plan.folder.path / "mllm" / "submission.json"
    written = json.loads(path.read_text())
    assert written == {"test_Jigsaw_1": "(B)", "test_Jigsaw_2": "(Z)"}


def saved(path: Path, rows: list[tuple[int, str, str, str]], task: str = "Jigsaw") -> Path:
    """BLINK's saved outputs of (number, gold, full text, stored answer)."""
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


def test_stored_answers_are_compared_as_they_stand(tmp_path: Path) -> None:
    scored = score_predictions(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, "stored", OPTIONS)
    assert [score.correct for score in scored.scores] == [1.0, 0.0, 0.0, 1.0]
    assert (scored.solver, metrics(scored)["accuracy_micro"]) == ("GPT4o", 0.5)
    # "(Z)" is no answer: a guess between two options. "(B) the third image" is an answer, and not the stored string.
    assert [score.correct for score in scored.counted["chance"].scores] == [1.0, 0.0, 0.5, 1.0]


def test_full_texts_are_parsed_and_compared_with_what_was_stored(tmp_path: Path) -> None:
    scored = score_predictions(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, "text", OPTIONS)
    assert [score.answer for score in scored.scores] == ["A", "B", None, "B"]
    assert [score.correct for score in scored.scores] == [1.0, 1.0, 0.0, 0.0]
    assert metrics(scored)["agreement"] == 0.75
    assert metrics(scored)["undecided"] == 0.25


def test_agreement_and_what_is_undecided_are_shares_of_the_rows(tmp_path: Path) -> None:
    found = score_predictions(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, "text", OPTIONS)

    def cells(*worth: float) -> tuple[Cell, ...]:
        return tuple(Cell("", score.unit, one, 1.0) for score, one in zip(found.scores, worth, strict=True))

    assert found.metrics[-2:] == (
        Metric("agreement", 0.75, 4, "ratio", cells(1, 1, 1, 0)),
        Metric("undecided", 0.25, 4, "ratio", cells(0, 0, 1, 0)),
    )
    assert {metric.name for metric in found.counted["chance"].metrics} >= {"agreement", "undecided"}


def test_predictions_say_whose_they_are_and_where_they_came_from(tmp_path: Path) -> None:
    path = saved(tmp_path / "GPT4o", ROWS)
    found = score_predictions(path, BENCHMARK, None, OPTIONS)
    assert (found.benchmark, found.solver, found.abstain) == ("blink", "GPT4o", "wrong")
    assert found.data == Data("blink", "val", {}, {})
    assert list(found.questions) == [score.id for score in found.scores]
    assert found.origin is not None
    assert found.origin.format.startswith("blink")
    # Without a field what was stored counts, where something was.
    assert [score.correct for score in found.scores] == [1.0, 0.0, 0.0, 1.0]
    assert (found.recorded, found.model, found.reasons, found.folder) == ("GPT4o", "GPT4o", {}, None)


def test_where_nothing_is_answered_no_number_has_an_interval(tmp_path: Path) -> None:
    path = saved(tmp_path / "GPT4o", [(n, gold, text, "(Z)") for n, gold, text, _ in ROWS])
    report: Any = score_predictions(path, BENCHMARK, "stored", OPTIONS).as_json()
    assert report["outcomes"] == {"unparsed": 4}
    assert set(report["intervals"]) == set(metrics(score_predictions(path, BENCHMARK, "stored", OPTIONS)))
    assert set(report["intervals"].values()) == {None}


def test_further_files_of_a_model_are_scored_with_the_first(tmp_path: Path) -> None:
    first = saved(tmp_path / "one", ROWS) / "Jigsaw.json"
    second = saved(tmp_path / "two", ROWS[:2], "Spatial_Relation") / "Spatial_Relation.json"
    found = score_predictions(first, BENCHMARK, "stored", OPTIONS, more=[second])
    assert [(score.task, score.correct) for score in found.scores[3:]] == [
        ("Jigsaw", 1.0),
        ("Spatial_Relation", 1.0),
        ("Spatial_Relation", 0.0),
    ]
    folder = import_run(first, BENCHMARK, "stored", tmp_path / "run", more=[second])
    assert len(list(folder.attempts("Jigsaw"))) == 6


def test_a_value_that_is_not_defined_is_null_and_digits_are_twelve(tmp_path: Path) -> None:
    found = score_predictions(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, "stored", OPTIONS)
    counted = {rule: replace(one, metrics=(Metric("m", None, 0, "ratio", ()),)) for rule, one in found.counted.items()}
    report: Any = replace(found, counted=counted).as_json()
    assert (report["metrics"], report["intervals"]) == ({"m": None}, {"m": None})
    assert (rounded(1 / 3), rounded(2 / 3), rounded(None)) == (0.333333333333, 0.666666666667, None)


def test_a_judges_scores_stand_beside_the_plain_ones(tmp_path: Path) -> None:
    plain = score_predictions(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, "stored", OPTIONS)
    judged = {rule: replace(one, metrics=()) for rule, one in plain.counted.items()}
    both = with_judged([plain, replace(plain, solver="other", judged=judged)])
    assert [one.solver for one in both] == ["GPT4o", "other", "other + judge"]
    assert [one.counted for one in both] == [plain.counted, plain.counted, judged]
    assert [one.judged for one in both] == [{}, judged, {}]


def test_the_json_says_what_limits_it_and_where_it_came_from(tmp_path: Path) -> None:
    found = score_predictions(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, "stored", OPTIONS)
    report: Any = replace(found, labels=("imported",)).as_json("granularity")
    assert report["labels"] == ["imported"]
    assert report["predictions"] == codec(Origin).dump_python(found.origin, mode="json")
    (group,) = {score.groups["granularity"] for score in found.scores}
    assert report["tasks"] == {group: {"n": 4, "accuracy": 0.5}}
    plain: Any = replace(found, origin=None).as_json()
    assert "predictions" not in plain
    assert "labels" not in plain
    assert list(plain["tasks"]) == ["Jigsaw"]
    assert group_of(found.scores[0], None) == "Jigsaw"
    assert group_of(found.scores[0], "no such group") == "-"


def test_an_import_keeps_where_it_came_from_and_what_was_said(tmp_path: Path) -> None:
    folder = import_run(saved(tmp_path / "GPT4o", ROWS), BENCHMARK, None, tmp_path / "run")
    assert folder.manifest["identity"]["imported"] == {"name": "GPT4o", "field": "stored"}
    assert folder.manifest["identity"]["split"] == "val"
    assert folder.manifest["solvers"] == {"GPT4o": {}}
    assert set(folder.manifest["files"]) == {"questions.jsonl", "GPT4o/attempts.jsonl"}
    for name, extent in folder.manifest["files"].items():
        assert extent["sha256"] == hashlib.sha256((folder.path / name).read_bytes()).hexdigest()
    (scored,) = score_run(folder, OPTIONS)
    assert (scored.model, scored.recorded) == ("GPT4o", "GPT4o")
    origin = score_predictions(tmp_path / "GPT4o", BENCHMARK, None, OPTIONS).origin
    assert codec(Origin).validate_python(folder.manifest["predictions"]) == origin
    for attempt, question in zip(folder.attempts("GPT4o"), folder.questions(), strict=True):
        assert isinstance(question, Question)
        (exchange,) = attempt.exchanges
        assert exchange.prompt == Prompt((), question.kind, question.choices, route=question.route)
        assert attempt.seconds == 0.0
    texts = import_run(tmp_path / "GPT4o", BENCHMARK, "text", tmp_path / "texts")
    assert [one.exchanges[-1].reply.text for one in texts.attempts("GPT4o")] == [row[2] for row in ROWS]


def test_a_name_with_dots_is_whole(tmp_path: Path) -> None:
    folder = saved(tmp_path / "llava-v1.6-34b", ROWS)
    assert score_predictions(folder, BENCHMARK, "stored", OPTIONS).solver == "llava-v1.6-34b"
    one = score_predictions(folder / "Jigsaw.json", BENCHMARK, "stored", OPTIONS)
    assert one.solver == "Jigsaw"


@pytest.mark.parametrize("field", ["stored", "text"])
def test_an_import_is_scored_like_what_it_came_from(tmp_path: Path, field: Any) -> None:
    path = saved(tmp_path / "GPT4o", ROWS)
    direct = score_predictions(path, BENCHMARK, field, OPTIONS)
    folder = import_run(path, BENCHMARK, field, tmp_path / "run")
    (imported,) = score_run(RunFolder.existing(folder.path), OPTIONS)
    assert [(s.id, s.correct, s.answer) for s in imported.scores] == [
        (s.id, s.correct, s.answer) for s in direct.scores
    ]
    assert imported.labels == (f"imported ({field})",)
    with pytest.raises(UsageError, match="the folder is not empty"):
        import_run(path, BENCHMARK, field, tmp_path / "run")


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
    with pytest.raises(DataError, match=r"val_Jigsaw_1: .* says the answer is '\(B\)', the data '\(A\)'"):
        score_predictions(wrong, BENCHMARK, "stored", OPTIONS, str(data))
    strangers = saved(tmp_path / "strangers", [(99, "(B)", "", "(B)")])
    with pytest.raises(DataError, match="none of the 1 ids"):
        score_predictions(strangers, BENCHMARK, "stored", OPTIONS, str(data))


def test_what_is_no_prediction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file or folder"):
        score_predictions(tmp_path / "nowhere", BENCHMARK, "stored", OPTIONS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="is neither a run nor a layout of predictions that blink knows"):
        score_predictions(tmp_path / "empty", BENCHMARK, "stored", OPTIONS)


def test_dotted_names_are_nested() -> None:
    assert nested({"a": 1.0, "q.low": 2.0, "q.high": 3.0}) == {"a": 1.0, "q": {"low": 2.0, "high": 3.0}}
