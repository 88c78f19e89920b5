"""`my_benchmark` reads its data, scores replies and adds them up: `pytest test_my_benchmark.py`."""

import json
from pathlib import Path

import pytest

import hybrid
from hybrid.benchmark import AS_PAPERS, Benchmark, BrokenQuestion, Exchange, Outcome, Prompt, Question, Reply, Source
from hybrid.core.images import ImageStore
from hybrid.plugins.discovery import add_search_path
from hybrid.plugins.registry import load

add_search_path([Path(__file__).parents[1]], __file__)


@pytest.fixture
def benchmark() -> Benchmark:
    loaded: Benchmark = load("hybrid.benchmarks", "my_benchmark")
    return loaded


@pytest.fixture
def data(tmp_path: Path, benchmark: Benchmark) -> Path:
    """Three generated questions."""
    (tmp_path / "data").mkdir()
    benchmark.generate(tmp_path / "data", benchmark.card.sample_tasks, 3, 0)
    return tmp_path / "data"


def read(benchmark: Benchmark, data: Path) -> list[Question | BrokenQuestion]:
    return list(benchmark.questions(Source(data, ImageStore(data.parent / "images"), "test")))


def exchange(question: Question, text: str) -> tuple[Exchange, ...]:
    return (Exchange(Prompt((question.text,), question.kind), Reply(text)),)


def test_questions_have_their_pictures_and_an_answer(benchmark: Benchmark, data: Path) -> None:
    questions = read(benchmark, data)
    assert [question.id for question in questions] == ["1", "2", "3"]
    assert all(isinstance(question, Question) and len(question.images) == 2 for question in questions)


def test_a_row_that_cannot_be_used_costs_itself(benchmark: Benchmark, data: Path) -> None:
    lines = (data / "questions.jsonl").read_text().splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), "images": ["absent.png", "absent.png"]})
    (data / "questions.jsonl").write_text("\n".join(lines))
    assert [isinstance(question, BrokenQuestion) for question in read(benchmark, data)] == [False, True, False]


def test_the_right_reply_is_right_and_others_are_not(benchmark: Benchmark, data: Path) -> None:
    question = read(benchmark, data)[0]
    assert isinstance(question, Question)
    prompt = Prompt((question.text,), question.kind)
    right = benchmark.score(question, exchange(question, benchmark.oracle_answer(question, prompt) or ""), AS_PAPERS)
    wrong = benchmark.score(question, exchange(question, "Answer: (9999, 9999)"), AS_PAPERS)
    unread = benchmark.score(question, exchange(question, "I cannot say."), AS_PAPERS)
    assert [score.correct for score in (right, wrong, unread)] == [1.0, 0.0, 0.0]
    assert [score.outcome for score in (right, wrong, unread)] == [Outcome.ANSWERED, Outcome.ANSWERED, Outcome.UNPARSED]
    assert benchmark.score_stored(question, right.answer or "") == right


def test_metrics_add_up(benchmark: Benchmark, data: Path) -> None:
    questions = [question for question in read(benchmark, data) if isinstance(question, Question)]
    prompt = Prompt((questions[0].text,), questions[0].kind)
    replies = [benchmark.oracle_answer(questions[0], prompt) or "", "Answer: (9999, 9999)", "I cannot say."]
    pairs = zip(questions, replies, strict=True)
    scores = [benchmark.score(question, exchange(question, text), AS_PAPERS) for question, text in pairs]
    metrics = {metric.name: metric for metric in benchmark.summarise(scores)}
    assert {*metrics} == {card.name for card in benchmark.card.metrics}
    assert metrics["accuracy"].value == pytest.approx(1 / 3)


def test_a_run_asks_and_scores_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = hybrid.run("my_benchmark", data="sample", limit=2, solvers=["chance"], out=tmp_path / "run")
    assert "chance" in str(report.as_json()["solvers"])
