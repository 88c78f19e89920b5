"""HVSBench as a whole: questions from files, the dialogue, verdicts, leaks, bad input."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from hybrid.benchmarks.base import ScoreOptions, Source
from hybrid.benchmarks.hvsbench import BENCHMARK, CHANCE_COUNT
from hybrid.benchmarks.hvsbench.sample import TASKS, write
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import Exchange, Outcome, Prompt, Question, Reply, Score
from hybrid.running.data import mount, questions

PER_TASK = 2
CHANCE = ScoreOptions(unanswered="guess")
WRONG = ScoreOptions(unanswered="wrong")


def source(folder: Path, *tasks: str, **selected: str) -> Source:
    store = ImageStore(folder / "store")
    return mount(BENCHMARK, str(folder), split=None, tasks=tasks, settings=selected, store=store).source


@pytest.fixture(scope="module")
def questions_by_type(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Question]:
    """Return the first question of every type."""
    folder = tmp_path_factory.mktemp("hvsbench")
    write(folder, tuple(TASKS), PER_TASK, 0)
    results: dict[str, Question] = {}
    for question in questions(BENCHMARK, source(folder), None):
        assert isinstance(question, Question)
        results.setdefault(question.task, question)
    return results


def verdict(
    question: Question, text: str, outcome: Outcome = Outcome.ANSWERED, options: ScoreOptions = CHANCE
) -> Score:
    exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(text, outcome))
    return BENCHMARK.score(question, (exchange,), options)


CHANCES = {"Q1": 1 / 4, "Q2": CHANCE_COUNT, "Q4": 1 / 2, "Q6": 1 / 3, "Q8": 1 / 2, "Q10": 1 / 4}


@pytest.mark.parametrize(("task", "chance"), CHANCES.items())
def test_an_abstention_is_worth_chance_or_nothing(
    questions_by_type: Mapping[str, Question], task: str, chance: float
) -> None:
    assert verdict(questions_by_type[task], "", Outcome.ABSTAINED).correct == pytest.approx(chance)
    assert verdict(questions_by_type[task], "", Outcome.ABSTAINED, WRONG).correct == 0.0
    for text, outcome in (("", Outcome.BUDGET), ("", Outcome.TOOL_FAULT), ("I cannot say", Outcome.ANSWERED)):
        assert verdict(questions_by_type[task], text, outcome).correct == pytest.approx(chance)
        assert verdict(questions_by_type[task], text, outcome, WRONG).correct == 0.0
    assert verdict(questions_by_type[task], "", Outcome.OUTAGE).correct == 0.0


def test_stored_answers_are_scored_like_replies(questions_by_type: Mapping[str, Question]) -> None:
    assert BENCHMARK.score_stored(questions_by_type["Q1"], str(questions_by_type["Q1"].target)).correct == 1.0
    assert BENCHMARK.score_stored(questions_by_type["Q2"], "many").correct == 0.0


def test_there_is_no_server_and_no_published_prediction(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no submission server"):
        BENCHMARK.submission({})
    assert BENCHMARK.predictions(tmp_path) is None
