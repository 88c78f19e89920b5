"""The section on regions of calls, recomputed from the files of a run by sums in plain Python."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench._review_worlds import DrawnSolver, annotated_questions, box_around, comparison_of, random_box, sentences_of
from hybrid.core.types import AnnotatedPlace, Box, Question, StoredImage
from hybrid.scoring.regions import Look, LookedRegion, Target
from hybrid.scoring.result import Result
from hybrid.scoring.sections import places, results
from hybrid.scoring.study_tables import study_tables
from tests.hybrid.scoring.sections.rows import by_quantity

Request = list[Question]


def draw_solvers(seed: int) -> tuple[Request, dict[str, DrawnSolver]]:
    """Draw questions, some without a call and some about a shared picture, with the answers of the controller and the
    MLLM alone."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(8, 17))
    request = annotated_questions(rng, size, int(rng.integers(0, 2)) * size // 2)
    boxes = []
    for question in request:
        target = question.evidence[0].place
        assert isinstance(target, Box)
        hits = rng.random(rng.integers(0, 4)) < 0.5
        boxes.append([box_around(target, margin(rng)) if hit else random_box(rng, 50, 700) for hit in hits])
    has_call, right, alone = np.array([bool(of) for of in boxes]), rng.random(size) < 0.6, rng.random(size) < 0.5
    return request, {"controller": DrawnSolver(right, has_call, boxes=boxes), "mllm": DrawnSolver(alone)}


def margin(rng: np.random.Generator) -> int:
    return int(rng.integers(0, 60))


def recounted(run: Path) -> dict[str, float]:
    """Return the shares of one run, from `questions.jsonl`, `attempts.jsonl` and the answers."""
    lines = [json.loads(line) for line in (run / "questions.jsonl").read_text().splitlines()]
    answers = {solver: _attempts(run, solver) for solver in ("controller", "mllm")}
    looks = [(line, [step["data"]["args"]["box"] for step in _steps(answers["controller"], line)]) for line in lines]
    looks = [(line, [box for box in boxes if _area(box) <= 400_000]) for line, boxes in looks]
    looked = [(line, boxes) for line, boxes in looks if boxes]
    all_boxes = [(line["cluster"] or line["id"], box) for line, boxes in looked for box in boxes]
    calls = len(all_boxes)
    at_place = sum(_covers(box, line) for line, boxes in looked for box in boxes)
    chance = 0.0
    for line, boxes in looked:
        # There are at most 50 other places here; the selection from more is tested by hand below.
        others = [box for unit, box in all_boxes if unit != (line["cluster"] or line["id"])]
        assert len(others) <= 50
        chance += len(boxes) * sum(_covers(box, line) for box in others) / len(others)
    hit_by_id = {line["id"]: any(_covers(box, line) for box in boxes) for line, boxes in looked}
    right = {solver: {name: _is_right(attempt) for name, attempt in of.items()} for solver, of in answers.items()}
    shares = {"questions with a region": len(looked) / len(lines), "calls with a region": calls}
    shares |= {"calls at the place": at_place / calls, "calls at the place by chance": chance / calls}
    shares |= {
        "above chance": (at_place - chance) / calls,
        "questions at the place": sum(hit_by_id.values()) / len(hit_by_id),
    }
    means = {}
    for words, value in (("at the place", True), ("elsewhere", False)):
        names = [name for name, is_there in hit_by_id.items() if is_there is value]
        if names:
            means[value] = sum(right["controller"][name] for name in names) / len(names)
            shares[f"right {words}"] = means[value]
            shares[f"gain {words}"] = means[value] - sum(right["mllm"][name] for name in names) / len(names)
    return shares | ({"difference at the place": means[True] - means[False]} if len(means) == 2 else {})


def _attempts(run: Path, solver: str) -> dict[str, Any]:
    lines = (run / solver / "attempts.jsonl").read_text().splitlines()
    return {attempt["id"]: attempt for attempt in map(json.loads, lines)}


def _steps(attempts: dict[str, Any], line: Any) -> list[Any]:
    # The steps of the only exchange.
    steps: list[Any] = attempts[line["id"]]["steps"][0]
    return steps


def _is_right(attempt: Any) -> bool:
    return bool(attempt["exchanges"][0]["reply"]["text"] == "Answer: (A)")


def _area(box: Any) -> float:
    return float((box["x1"] - box["x0"]) * (box["y1"] - box["y0"]))


def _covers(box: Any, line: Any) -> bool:
    """Return whether the region contains the centre and at least half of the pixels of the annotated box."""
    target = line["evidence"][0]["place"]
    pixels = {axis: range(int(target[f"{axis}0"]), int(target[f"{axis}1"])) for axis in "xy"}
    inside = [sum(box[f"{axis}0"] <= pixel < box[f"{axis}1"] for pixel in pixels[axis]) for axis in "xy"]
    middle = [(target[f"{axis}0"] + target[f"{axis}1"]) / 2 for axis in "xy"]
    is_centred = all(box[f"{axis}0"] <= at <= box[f"{axis}1"] for axis, at in zip("xy", middle, strict=True))
    return is_centred and 2 * inside[0] * inside[1] >= _area(target)


@pytest.mark.parametrize("seed", range(4))
def test_the_shares_are_those_of_the_files(tmp_path: Path, seed: int) -> None:
    request, solvers = draw_solvers(seed)
    comparison = comparison_of(tmp_path, request, real=solvers)
    rows = by_quantity(places.rows(comparison))
    assert {name: row.value for name, row in rows.items()} == pytest.approx(recounted(tmp_path / "real"), abs=1e-12)


CORNER, MIDDLE = Box(0, 0, 100, 100), Box(450, 350, 550, 450)


def test_the_chance_of_two_tasks_takes_calls_of_both(tmp_path: Path) -> None:
    """The chance of two tasks is sampled from calls of both: of 80 questions, 40 have their annotated place in the
    corner and 40 in the middle, and all calls hit their own place.

    Of the 79 other questions, 39 have the same place. Fifty evenly spaced ones contain 24 to 26 of these; the first
    fifty would contain 39 or 40 of the first task.
    """
    request = [
        replace(question, evidence=(AnnotatedPlace(CORNER if place < 40 else MIDDLE),))
        for place, question in enumerate(annotated_questions(np.random.default_rng(0), 80))
    ]
    boxes = [[CORNER]] * 40 + [[MIDDLE]] * 40
    solvers = {"controller": DrawnSolver(np.ones(80, bool), np.ones(80, bool), boxes=boxes)}
    comparison = comparison_of(tmp_path, request, real=solvers)
    (group,) = comparison.groups
    chances = {name: of.by_chance for name, of in places.seen_by(group.hybrid).items()}
    assert all(24 / 50 <= chance <= 26 / 50 for chance in chances.values()), chances
    rows = by_quantity(places.rows(comparison))
    assert rows[places.AT_PLACE].value == 1.0
    assert rows[places.BY_CHANCE].value == pytest.approx(39 / 79, abs=0.02)


def test_the_chance_of_two_pictures_counts_looks_at_the_same_one(tmp_path: Path) -> None:
    """The chance of covering a place counts only calls on the same picture: all calls look at the corner of picture 1,
    and of 4 questions, two have their place there and two in picture 2."""
    second = StoredImage("f" * 64, 1000, 800, "image/png")
    request = [
        replace(question, images=(*question.images, second), evidence=(AnnotatedPlace(CORNER, 1 + place // 2),))
        for place, question in enumerate(annotated_questions(np.random.default_rng(0), 4))
    ]
    solvers = {"controller": DrawnSolver(np.ones(4, bool), np.ones(4, bool), boxes=[[CORNER]] * 4)}
    comparison = comparison_of(tmp_path, request, real=solvers)
    (group,) = comparison.groups
    seen = places.seen_by(group.hybrid)
    assert [(seen[question.id].at_place, seen[question.id].by_chance) for question in request] == [
        *[(1, 1.0)] * 2,
        *[(0, 0.0)] * 2,
    ]
    rows = by_quantity(places.rows(comparison))
    assert [rows[name].value for name in (places.AT_PLACE, places.BY_CHANCE, places.ABOVE)] == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("size", [51, 60, 99, 100, 101, 4000])
def test_the_calls_that_are_compared_are_spread_over_all(size: int) -> None:
    own_calls = [3, 4, size // 2]
    others = places._spread(size, own_calls)
    assert (len(set(others)), others[0], others[-1]) == (min(50, size - 3), 0, size - 1)
    assert not set(own_calls) & set(others)
    steps = np.diff(others)
    assert steps.max() <= size / 49 + 3
    assert places._spread(3, [0, 1, 2]) == []
    assert places._spread(4, [1]) == [0, 2, 3]
    assert places._spread(4, []) == [0, 1, 2, 3]


def test_each_question_is_compared_with_fifty_calls_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    image = StoredImage("e" * 64, 1000, 800, "image/png")
    look, target = Look("crop", (LookedRegion(image, MIDDLE, (0,)),)), Target(image, CORNER, 5.0)
    names, read = [f"q{number}" for number in range(400)], []

    class Counted(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            read.append(name)
            return name

    compared = []
    monkeypatch.setattr(places, "_would_cover", lambda *pair: compared.append(pair))
    looks, targets = {name: [look] for name in names}, {name: [target] for name in names}
    places._by_chance(looks, targets, Counted())
    assert len(compared) == 400 * 50
    # The unit of a question is read a fixed number of times, not once for every other question.
    assert len(read) == 2 * 400


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of 100 questions: on 60 the calls look at the annotated place, and only these calls help."""
    rng = np.random.default_rng(5)
    request = annotated_questions(rng, 100)
    is_at_place = np.arange(100) < 60
    boxes = []
    for question, hit in zip(request, is_at_place, strict=True):
        target = question.evidence[0].place
        assert isinstance(target, Box)
        boxes.append([box_around(target) if hit else Box(*(5, 5, 30, 30))])
    right = np.where(is_at_place, np.arange(100) % 10 > 0, np.arange(100) % 2 == 0)
    alone = np.arange(100) % 2 == 0
    solvers = {"controller": DrawnSolver(right, np.ones(100, bool), boxes=boxes), "mllm": DrawnSolver(alone)}
    folder = tmp_path_factory.mktemp("found")
    comparison = comparison_of(folder, request, real=solvers)
    return {"comparison": comparison, "rows": by_quantity(places.rows(comparison))}


def test_the_rows_have_intervals_around_them(study: dict[str, Any]) -> None:
    rows: dict[str, Result] = study["rows"]
    assert rows["calls at the place"].value == 0.6
    assert rows["right at the place"].value == 0.9
    assert (rows["right at the place"].n, rows["right elsewhere"].n) == (60, 40)
    assert rows["right elsewhere"].value == 0.5
    assert rows["gain at the place"].value == pytest.approx(0.4)
    assert len(rows["gain at the place"].ids) == 60
    for name, row in rows.items():
        if name not in ("calls with a region",):
            assert row.low is not None, name
            assert row.high is not None
            assert row.low <= (row.value or 0.0) <= row.high
    difference = rows["difference at the place"]
    assert difference.holds
    # The interval of two independent shares by the textbook formula is about equal.
    error = math.sqrt(0.9 * 0.1 / 60 + 0.5 * 0.5 / 40)
    assert difference.low == pytest.approx(0.4 - 1.99 * error, abs=0.02)


def test_what_is_said_of_it(study: dict[str, Any]) -> None:
    text = sentences_of(study["comparison"])["places.found"]
    assert text.startswith("60% of its 100 tool calls with a region look at the annotated place, and ")
    assert (
        "; it is right on 90% of the questions where they cover it and on 50% of the others (+40 points, 95% CI "
        in text
    )
    lead = places.lead(study["comparison"], list(study["rows"].values()))
    assert "It is right on 90 % of 60 questions where its calls cover the place, and on 50 % of 40" in lead


def test_the_study_has_a_table_of_it(study: dict[str, Any]) -> None:
    tables = {table.title: table for table in study_tables(results(study["comparison"]))}
    lines = {line[0]: line[1:] for line in tables["where tool calls look"].rows}
    assert lines["calls at the place"][0] == "0.600"
    assert lines["right at the place"][2] == "60"


def test_looks_that_miss_are_said_to_be_no_better_than_chance(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    request = annotated_questions(rng, 40)
    boxes = [[random_box(rng, 100, 200)] for _ in request]
    right = np.arange(40) % 2 == 0
    solvers = {"controller": DrawnSolver(right, np.ones(40, bool), boxes=boxes), "mllm": DrawnSolver(right)}
    text = sentences_of(comparison_of(tmp_path, request, real=solvers))["places.missed"]
    assert text.startswith(
        "Its tool calls do not look at the annotated place significantly more often than by chance ("
    )


def test_runs_without_annotation_have_no_rows(tmp_path: Path) -> None:
    from bench._sentence_worlds import questions

    solvers = {"controller": DrawnSolver(np.ones(6, bool), np.ones(6, bool), boxes=[[Box(0, 0, 2, 2)]] * 6)}
    assert places.rows(comparison_of(tmp_path, questions(6), real=solvers)) == []


def test_questions_of_one_picture_have_no_chance_and_no_interval(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    request = annotated_questions(rng, 6, 1)
    assert len({question.cluster for question in request}) == 1
    boxes = [[random_box(rng, 100, 200)] for _ in request]
    solvers = {"controller": DrawnSolver(np.ones(6, bool), np.ones(6, bool), boxes=boxes)}
    rows = by_quantity(places.rows(comparison_of(tmp_path, request, real=solvers)))
    assert places.BY_CHANCE not in rows
    assert rows[places.AT_PLACE].low is None


def test_every_quantity_is_defined() -> None:
    names = [card.name for card in places.SECTION.quantities]
    assert all(a != b for a, b in pairwise(names))
    assert {places.CALLS, places.AT_PLACE, places.ABOVE, places.DIFFERENCE, places.GAIN_AT} <= set(names)
