"""HVSBench as a whole: questions out of files, the dialogue, verdicts, leaks, bad input."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions, Source
from hybrid.benchmarks.hvsbench import BENCHMARK, CHANCE_COUNT
from hybrid.benchmarks.hvsbench.sample import TASKS, write
from hybrid.errors import DataError, UsageError
from hybrid.images import ImageStore
from hybrid.running.data import mount, questions
from hybrid.types import Exchange, Json, Kind, Outcome, Prompt, Question, Reply, Score

PER_TASK = 2
CHANCE = ScoreOptions(abstain="chance")
WRONG = ScoreOptions(abstain="wrong")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hvsbench")
    write(folder, tuple(TASKS), PER_TASK, 0)
    return folder


def source(folder: Path, *tasks: str, **chosen: str) -> Source:
    store = ImageStore(folder / "store")
    return mount(BENCHMARK, str(folder), split=None, tasks=tasks, settings=chosen, store=store).source


@pytest.fixture(scope="module")
def asked(sample: Path) -> dict[str, Question]:
    """The first question of every type."""
    found: dict[str, Question] = {}
    for question in questions(BENCHMARK, source(sample), None):
        assert isinstance(question, Question)
        found.setdefault(question.task, question)
    return found


def verdict(
    question: Question, text: str, outcome: Outcome = Outcome.ANSWERED, options: ScoreOptions = CHANCE
) -> Score:
    exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(text, outcome))
    return BENCHMARK.score(question, (exchange,), options)


@pytest.mark.parametrize("task", TASKS)
def test_an_empty_reply_is_never_correct(asked: Mapping[str, Question], task: str) -> None:
    for outcome in Outcome:
        score = verdict(asked[task], " \n", outcome, WRONG)
        assert not score.correct
        assert score.answer is None
        assert score.rule == "none"
        assert score.outcome is (Outcome.UNPARSED if outcome is Outcome.ANSWERED else outcome)


CHANCES = {"Q1": 1 / 4, "Q2": CHANCE_COUNT, "Q4": 1 / 2, "Q6": 1 / 3, "Q8": 1 / 2, "Q10": 1 / 4}


@pytest.mark.parametrize(("task", "chance"), CHANCES.items())
def test_an_abstention_is_worth_chance_or_nothing(asked: Mapping[str, Question], task: str, chance: float) -> None:
    assert verdict(asked[task], "", Outcome.ABSTAINED).correct == pytest.approx(chance)
    assert verdict(asked[task], "", Outcome.ABSTAINED, WRONG).correct == 0.0
    for text, outcome in (("", Outcome.BUDGET), ("", Outcome.TOOL_FAULT), ("I cannot say", Outcome.ANSWERED)):
        assert verdict(asked[task], text, outcome).correct == pytest.approx(chance)
        assert verdict(asked[task], text, outcome, WRONG).correct == 0.0
    assert verdict(asked[task], "", Outcome.OUTAGE).correct == 0.0


@settings(max_examples=40)
@given(text=st.text(max_size=120), task=st.sampled_from(tuple(TASKS)))
def test_any_reply_is_scored(text: str, task: str) -> None:
    question = QUESTIONS[task]
    score = verdict(question, text)
    assert score.correct is None or 0 <= score.correct <= 1
    assert (score.answer is None) == (score.outcome is Outcome.UNPARSED)
    assert all(abs(value) <= 1.5 for name, value in score.values.items() if name.startswith("m_"))


TARGET: Json = {
    "paths": [{"x": [0.5, 0.1, 0.9], "y": [0.5, 0.2, 0.7], "t_ms": [9, 9, 9]}],
    "other": None,
    "screen": [512, 320],
    "crop": 6,
    "crop_truth": False,
}


def of_type(task: str) -> Question:
    kinds = {"Q2": Kind.INTEGER, "Q3": Kind.ORDER, "Q9": Kind.SCANPATH, "Q12": Kind.SCANPATH}
    kind = kinds.get(task, Kind.CHOICE)
    targets: dict[Kind, Json] = {Kind.INTEGER: 3, Kind.ORDER: "BA", Kind.SCANPATH: TARGET, Kind.CHOICE: "A"}
    choices = ("the dog", "the cat") if kind in (Kind.CHOICE, Kind.ORDER) else ()
    return Question(f"{task}_1", task, (), "Which?", kind, choices, targets[kind], task)


QUESTIONS = {task: of_type(task) for task in TASKS}


def test_stored_answers_are_scored_like_replies(asked: Mapping[str, Question]) -> None:
    assert BENCHMARK.score_stored(asked["Q1"], str(asked["Q1"].target)).correct == 1.0
    assert BENCHMARK.score_stored(asked["Q2"], "many").correct == 0.0


def test_there_is_no_server_and_no_published_prediction(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no server"):
        BENCHMARK.submission({})
    assert BENCHMARK.predictions(tmp_path) is None


def test_unknown_settings_splits_and_tasks(sample: Path) -> None:
    store = ImageStore(sample / "store")
    with pytest.raises(UsageError, match="no setting 'speed'"):
        source(sample, speed="1")
    with pytest.raises(UsageError, match="no split 'val'"):
        mount(BENCHMARK, str(sample), split="val", tasks=(), settings={}, store=store)
    with pytest.raises(UsageError, match="no task 'Q14'"):
        source(sample, "Q14")


def test_a_folder_without_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected data/test-\*.parquet"):
        source(tmp_path)
