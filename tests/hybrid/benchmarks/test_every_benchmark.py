"""Every published benchmark makes equal files from equal seeds, names the file in errors, and accepts only offered
answers.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks._shared.samples import check_item
from hybrid.benchmarks.base import ScoreOptions
from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import LETTERS, Exchange, Kind, Outcome, Prompt, Question, Reply
from hybrid.plugins.registry import load
from hybrid.running.data import mount
from tests.hybrid.benchmarks.mounted import read_questions as questions_of
from tests.tables import cases

TASKS: dict[str, tuple[str, ...]] = {name: tuple(tasks) for name, tasks in cases(__file__, "TASKS")[1]}
every_benchmark = pytest.mark.parametrize("name", TASKS)


def generate_files(name: str, folder: Path, per_task: int = 1, seed: int = 7) -> dict[Path, bytes]:
    """Return the files of generated questions, each with its content."""
    load("hybrid.benchmarks", name).generate(folder, TASKS[name], per_task, seed)
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}


@every_benchmark
def test_generated_files_are_equal_byte_for_byte_and_another_seeds_are_not(name: str, tmp_path: Path) -> None:
    first, second, other = (generate_files(name, tmp_path / str(n), seed=seed) for n, seed in enumerate((7, 7, 8)))
    assert first == second
    assert first != other


@every_benchmark
@pytest.mark.parametrize(("task", "per_task", "seed"), [("another", 1, 0), (None, 0, 0), (None, 1, -1)])
def test_what_cannot_be_generated_writes_nothing(
    name: str, tmp_path: Path, task: str | None, per_task: int, seed: int
) -> None:
    text = "task 'another' cannot be generated; available: " if task else "must be at least 1"
    with pytest.raises(UsageError, match=text):
        load("hybrid.benchmarks", name).generate(tmp_path, (task or TASKS[name][0],), per_task, seed)
    assert list(tmp_path.iterdir()) == []


def test_a_negative_index_of_an_item_is_refused() -> None:
    with pytest.raises(UsageError, match="negative"):
        check_item("a", ("a",), -1, 0)


@every_benchmark
def test_unknown_settings_splits_and_tasks_are_refused(name: str, tmp_path: Path) -> None:
    benchmark = load("hybrid.benchmarks", name)
    generate_files(name, tmp_path)
    for setting in benchmark.card.settings:
        with pytest.raises(UsageError, match=f"--setting {setting.name}=nonsense: the allowed values are: "):
            benchmark.card.resolve_settings({setting.name: "nonsense"})
    for wrong in ({"split": "another"}, {"tasks": ("another",)}, {"settings": {"another": "on"}}):
        mapping: dict[str, Any] = {"split": None, "tasks": (), "settings": {}, **wrong}
        with pytest.raises(UsageError, match=f"{name} has no (split|task|setting) 'another'"):
            mount(benchmark, str(tmp_path), store=ImageStore(tmp_path / "store"), **mapping)


@every_benchmark
def test_a_folder_without_data_says_what_was_expected(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected"):
        questions_of(load("hybrid.benchmarks", name), tmp_path, tmp_path)


@cache
def read_questions(name: str, folder: Path) -> tuple[Question, ...]:
    """Return generated questions of a benchmark, made once. ActiView's questions have one prompt here; its dialogues
    have their own tests."""
    generate_files(name, folder / name)
    payload = {"mode": "full"} if name == "actiview" else {}
    result = questions_of(load("hybrid.benchmarks", name), folder / name, folder, **payload)
    return tuple(question for question in result if isinstance(question, Question))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benchmarks")


REPLIES = st.text(max_size=60) | st.text("ABCDE(). \n\u00a0xyesno", max_size=30)
OFFERED: dict[Kind, Callable[[Question], set[str]]] = {
    Kind.CHOICE: lambda question: set(LETTERS[: len(question.choices)]),
    Kind.YES_NO: lambda question: {"yes", "no"},
}


@every_benchmark
@settings(max_examples=25)
@given(text=REPLIES, data=st.data(), parse=st.sampled_from(["strict", "official"]))
def test_any_reply_is_scored_and_no_answer_is_one_that_was_not_offered(
    name: str, folder: Path, text: str, data: Any, parse: Any
) -> None:
    question = data.draw(st.sampled_from(read_questions(name, folder)))
    exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(text))
    score = load("hybrid.benchmarks", name).score(question, (exchange,), ScoreOptions(parse))
    assert score.correct is None or 0 <= score.correct <= 1
    assert (score.answer is None) == (score.outcome is Outcome.UNPARSED) == (score.rule == "none")
    if question.kind in OFFERED and parse == "strict":
        assert score.answer is None or score.answer in OFFERED[question.kind](question)
    if not text.strip(" \n().,"):
        assert (score.answer, score.correct or 0.0) == (None, 0.0)


@every_benchmark
def test_without_a_reply_an_ask_keeps_its_outcome_and_is_not_correct(name: str, folder: Path) -> None:
    for question in read_questions(name, folder):
        for outcome in Outcome:
            exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(" \n", outcome))
            score = load("hybrid.benchmarks", name).score(question, (exchange,), ScoreOptions(unanswered="wrong"))
            assert (score.correct or 0.0, score.answer) == (0.0, None)
            assert score.outcome is (Outcome.UNPARSED if outcome is Outcome.ANSWERED else outcome)
