"""One row: which kind it is, what is right, why it cannot be used; and whether a reply is right."""

from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.registry import load
from hybrid.types import Exchange, Outcome, Prompt, Question, Reply, Score
from tests.tables import cases

BENCH = load("hybrid.benchmarks", "questions")


def score(question: Question, reply: str, unanswered: str = "wrong", outcome: Outcome = Outcome.ANSWERED) -> Score:
    exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(reply, outcome))
    return BENCH.score(question, (exchange,), ScoreOptions("strict", unanswered))  # type: ignore[arg-type]


@pytest.mark.parametrize(*cases(__file__, "test_the_kind_and_what_is_right", list))
def test_the_kind_and_what_is_right(
    made: Any, changed: dict[str, object], kind: str, target: object, right: str, wrong: str
) -> None:
    (question,) = made.sound(made.table([made.row(**changed)]))
    assert (question.kind, question.target) == (kind, target)
    assert score(question, right).correct == 1.0
    assert score(question, wrong).correct == 0.0
    prompt = Prompt((question.text,), question.kind, question.choices)
    assert score(question, BENCH.oracle_answer(question, prompt)).correct == 1.0, "the oracle is right"
    assert BENCH.oracle(question, prompt).startswith("The evidence favours ")
    assert BENCH.expected(question)


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_cannot_be_used_says_where_and_why", list))
def test_a_row_that_cannot_be_used_says_where_and_why(made: Any, changed: dict[str, object], said: str) -> None:
    why = made.why(**changed)
    assert why.startswith(f"{made.folder / 'questions.jsonl'}:1")
    assert said in why


def test_the_second_row_of_an_id_is_named_with_the_first(made: Any) -> None:
    first, second = made.asked(made.table([made.row(), made.row()]))
    assert isinstance(first, Question)
    assert "questions.jsonl:2, column id: the id 'q1' is that of line 1 too" in second.error


def test_a_picture_that_is_too_large_is_not_read(made: Any) -> None:
    with (made.folder / "large.png").open("wb") as file:
        file.truncate(200_000_001)
    assert "has 200,000,001 bytes; at most 200,000,000 are read" in made.why(image="large.png")


def test_what_may_not_be_meant_so(made: Any) -> None:
    rows = [
        made.row(id="a", choices=None, answer="yes"),
        made.row(id="b", choices=None, answer="yes"),
        made.row(id="c", choices=None, answer="3"),
        made.row(id="d", task="x", question="<image>Which?", note="n"),
        made.row(id="e", task="x", choices=["A. one", "B. two"], answer="A"),
        made.row(id="f", task="x", question="Which?\nA. one\nB. two"),
    ]
    for row in rows[:3]:
        row["task"] = "y"
    path = made.table(rows)
    from hybrid.benchmarks.base import Source
    from hybrid.images import ImageStore

    source = Source(path, ImageStore(made.folder / "s"), "all", ("y", "x"), {"mapping": "beside"})
    doubts = [doubt.removeprefix(str(path)) for doubt in BENCH.doubts(source)]
    assert doubts == [
        ": columns that are not used: note",
        ":3: integer by its answer, where 2 of y are yes_no",
        ":4: its text holds <image>, which is shown as it stands: images come before the text",
        ":5: the choice 'A. one' begins with its letter, which is shown before it again",
        ":5: the choice 'B. two' begins with its letter, which is shown before it again",
        ":6: the choice 'one' stands in the question too: options are shown twice",
        ":6: the choice 'two' stands in the question too: options are shown twice",
    ]
