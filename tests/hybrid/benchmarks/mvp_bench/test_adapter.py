"""MVP-Bench as a benchmark: questions, settings, dialogue, verdicts, and errors about data that it cannot use."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions, Source, UnansweredRule
from hybrid.benchmarks.mvp_bench import BENCHMARK
from hybrid.benchmarks.mvp_bench.images import half_box
from hybrid.benchmarks.mvp_bench.sample import TASKS, write
from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Exchange, Kind, Outcome, Prompt, Question, Reply, StoredImage
from hybrid.running.data import mount, questions
from tests.tables import cases, stored

OFFICIAL = ScoreOptions(parse="official")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mvp")
    write(folder, tuple(TASKS), 4, 3)
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    return ImageStore(tmp_path_factory.mktemp("store"))


def source(folder: Path, store: ImageStore, **settings: str) -> Source:
    return mount(BENCHMARK, str(folder), split=None, tasks=(), settings=settings, store=store).source


def read(folder: Path, store: ImageStore, **settings: str) -> tuple[Question, ...]:
    result = questions(BENCHMARK, source(folder, store, **settings), None)
    assert all(isinstance(question, Question) for question in result)
    return tuple(question for question in result if isinstance(question, Question))


def copy(folder: Path, to: Path, change: Callable[[dict[str, Any]], None], name: str = "all_questions.json") -> Path:
    """Copy the data to `to` and apply `change` to every row of one file; return `to`."""
    for path in folder.rglob("*"):
        if path.is_file():
            target = to / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    rows = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    for row in rows:
        change(row)
    (to / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return to


@given(st.integers(2, 5000), st.integers(1, 5000))
def test_halves_are_equally_wide_and_do_not_meet(width: int, height: int) -> None:
    pair = StoredImage("0" * 64, width, height, "image/png")
    left_half, right = half_box(pair, 0), half_box(pair, 1)
    assert left_half.x1 - left_half.x0 == right.x1 - right.x0 == width // 2
    assert (left_half.x0, right.x1) == (0, width)
    assert right.x0 - left_half.x1 == width % 2
    assert {left_half.y0, right.y0, left_half.y1, right.y1} == {0, height}


def verdicts(
    question: Question, reply: Reply, unanswered: UnansweredRule = "wrong"
) -> list[tuple[float | None, Outcome]]:
    exchange = Exchange(Prompt((question.text,), question.kind, question.choices), reply)
    values = (ScoreOptions(unanswered=unanswered), replace(OFFICIAL, unanswered=unanswered))
    scores = [BENCHMARK.score(question, (exchange,), options) for options in values]
    return [(score.correct, score.outcome) for score in scores]


def test_empty_replies_and_failures_are_never_right(sample: Path, store: ImageStore) -> None:
    for question in read(sample, store):
        for text in ("", "  \n", "()", "."):
            assert verdicts(question, Reply(text)) == [(0.0, Outcome.UNPARSED)] * 2
            assert BENCHMARK.score_stored(question, text).correct == 0
        for outcome in (Outcome.BUDGET, Outcome.NOT_RECORDED, Outcome.TOOL_FAULT):
            assert verdicts(question, Reply("", outcome)) == [(0.0, outcome)] * 2
        chance = 0.5 if question.kind is Kind.YES_NO else 0.2
        assert verdicts(question, Reply("", Outcome.ABSTAINED)) == [(0.0, Outcome.ABSTAINED)] * 2
        for text, outcome in (("", Outcome.ABSTAINED), ("", Outcome.BUDGET), ("Hm.", Outcome.ANSWERED)):
            expected = Outcome.UNPARSED if outcome is Outcome.ANSWERED else outcome
            assert verdicts(question, Reply(text, outcome), "guess") == [(chance, expected)] * 2
        assert BENCHMARK.score_stored(question, "Hm.", ScoreOptions(unanswered="guess")).correct == chance
        assert verdicts(question, Reply("", Outcome.OUTAGE), "guess") == [(0.0, Outcome.OUTAGE)] * 2


def test_the_official_rules_differ_between_the_single_run_and_the_rotations(sample: Path, store: ImageStore) -> None:
    by_id = {question.id: question for question in read(sample, store, mcq="both") if question.kind is Kind.CHOICE}
    rotated = next(question for question in by_id.values() if question.id.endswith("#circ1"))
    for question, official in ((by_id[rotated.base], 1.0), (rotated, 0.0)):
        reply = Reply(f"({question.target})")
        assert [correct for correct, _ in verdicts(question, reply)] == [1.0, official]


@given(text=st.text())
def test_no_text_makes_the_scorer_raise_or_leave_the_offer(text: str) -> None:
    yes_no = Question("1", "yes_no", (), "Is it?", Kind.YES_NO, target="yes")
    choice = Question("2#circ1", "cross", (), "Which?", Kind.CHOICE, ("cat", "dog"), "A")
    for question, offers in ((yes_no, {"yes", "no"}), (choice, {"A", "B"})):
        exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(text))
        for options in (ScoreOptions(), OFFICIAL):
            score = BENCHMARK.score(question, (exchange,), options)
            assert score.answer in {None, *offers}
            assert score.correct == float(score.answer == question.target)


FILE_FAULTS = stored(__file__, "FILE_FAULTS")


@pytest.mark.parametrize(("change", "message"), FILE_FAULTS)
def test_faults_of_the_file_are_named(
    sample: Path, store: ImageStore, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    broken = copy(sample, tmp_path, lambda row: row.update(change if row["question_id"] == 0 else {}))
    result = questions(BENCHMARK, source(broken, store), None)
    (fault,) = {question.error for question in result if isinstance(question, BrokenQuestion)}
    assert re.search(r"all_questions.json, line [12](, |:)", fault)
    assert message in fault
    assert len({question.id for question in result if isinstance(question, Question)}) == len(read(sample, store)) - 1


@pytest.mark.parametrize("index", ["0/5", "2/5", "1-5", "1/0"])
def test_a_rotation_must_be_numbered_as_its_id_says(
    sample: Path, store: ImageStore, tmp_path: Path, index: str
) -> None:
    first = json.loads((sample / "mcq_questions.json").read_text().splitlines()[0])["question_id"]

    def change(row: dict[str, Any]) -> None:
        row["index"] = index if row["question_id"] == first else row["index"]

    broken = copy(sample, tmp_path, change, "mcq_questions.json")
    (fault,) = (
        question
        for question in questions(BENCHMARK, source(broken, store), None)
        if isinstance(question, BrokenQuestion)
    )
    assert fault.task == "cross"
    assert "mcq_questions.json, line 1, field index" in fault.error


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_cannot_be_used_costs_itself_alone"))
def test_a_row_that_cannot_be_used_costs_itself_alone(
    sample: Path, store: ImageStore, tmp_path: Path, task: str, change: dict[str, object], message: str
) -> None:
    good = read(sample, store, mcq="vanilla")
    number = int(next(question.id for question in good if question.task == task))
    broken = copy(sample, tmp_path, lambda row: row.update(change if row["question_id"] == number else {}))
    result = questions(BENCHMARK, source(broken, store, mcq="vanilla"), None)
    (bad,) = (question for question in result if isinstance(question, BrokenQuestion))
    assert (bad.id, bad.task) == (str(number), task)
    assert message in bad.error
    assert f"all_questions.json, line {number + 1}" in bad.error
    assert len(result) == len(good)


def test_a_missing_image_costs_its_questions_and_a_missing_folder_is_explained(
    sample: Path, store: ImageStore, tmp_path: Path
) -> None:
    broken = copy(sample, tmp_path, lambda _: None)
    image = broken / "Images" / "Single_Images" / "1000_s.jpg"
    image.unlink()
    result = questions(BENCHMARK, source(broken, store), None)
    bad = [question for question in result if isinstance(question, BrokenQuestion)]
    rows = [json.loads(line) for line in (sample / "all_questions.json").read_text().splitlines()]
    assert {q.id for q in bad} == {str(row["question_id"]) for row in rows if row["image"].endswith("1000_s.jpg")}
    assert all("Single_Images/1000_s.jpg is not under" in question.error for question in bad)
    image.write_bytes(b"no picture")
    result = questions(BENCHMARK, source(broken, store), None)
    assert all("not an image" in question.error for question in result if isinstance(question, BrokenQuestion))
    for path in (broken / "Images" / "Cross_Images").iterdir():
        path.unlink()
    (broken / "Images" / "Cross_Images").rmdir()
    with pytest.raises(DataError, match=r"no folder Images/Cross_Images.*only available on request"):
        questions(BENCHMARK, source(broken, store), None)


def test_nothing_is_submitted() -> None:
    with pytest.raises(UsageError, match="no submission server"):
        BENCHMARK.submission({})
