"""One row: which kind it is, what is right, why it cannot be used; and whether a reply is right."""

from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.registry import load
from hybrid.types import Exchange, Outcome, Prompt, Question, Reply, Score

BENCH = load("hybrid.benchmarks", "questions")


def score(question: Question, reply: str, abstain: str = "wrong", outcome: Outcome = Outcome.ANSWERED) -> Score:
    exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(reply, outcome))
    return BENCH.score(question, (exchange,), ScoreOptions("strict", abstain))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "kind", "target", "right", "wrong"),
    [
        ({"answer": "(b)"}, "choice", "B", "Answer: (B)", "(A)"),
        ({"answer": "B. two"}, "choice", "B", "B", "A"),
        ({"answer": "Two."}, "choice", "B", "two", "one"),
        ({"choices": "['x', 'y']", "answer": "y"}, "choice", "B", "(B)", "(A)"),
        ({"choices": None, "answer": "Yes"}, "yes_no", "yes", "Yes.", "No."),
        ({"choices": None, "answer": False}, "yes_no", "no", "no", "yes"),
        ({"choices": None, "answer": 3}, "integer", 3, "There are three.", "4"),
        (
            {"choices": None, "answer": 2.5},
            "number",
            {"number": 2.5, "tolerance": 0.0, "relative": False},
            "2.50",
            "2.6",
        ),
        (
            {"choices": None, "answer": "200", "kind": "number", "tolerance": "5%"},
            "number",
            {"number": 200.0, "tolerance": 0.05, "relative": True},
            "About 209.9",
            "211",
        ),
        (
            {"choices": None, "answer": "0.3", "tolerance": 0.1},
            "number",
            {"number": 0.3, "tolerance": 0.1, "relative": False},
            "Answer: 0.2",
            "Answer: 0.19",
        ),
        ({"choices": None, "answer": "a dog|hound"}, "text", {"accepted": ["a dog", "hound"]}, "The dog!", "cat"),
        (
            {"choices": None, "answer": ["dog", "hound"]},
            "text",
            {"accepted": ["dog", "hound"]},
            "Answer: HOUND",
            "a hounds",
        ),
        ({"kind": "order", "answer": "BA"}, "order", "BA", "B, A", "A, B"),
        ({"kind": "order", "answer": ["two", "one"]}, "order", "BA", "BA", "AB"),
        (
            {"choices": None, "kind": "point", "answer": [10, 10], "tolerance": 5},
            "point",
            {"point": [10.0, 10.0], "within": 5.0},
            "Answer: (13, 14)",
            "(14, 14)",
        ),
        (
            {"choices": None, "kind": "point", "answer": "[5, 5, 20, 20]"},
            "point",
            {"box": [5.0, 5.0, 20.0, 20.0]},
            "x = 19, y = 5",
            "(20, 10)",
        ),
        (
            {"choices": None, "kind": "box", "answer": [0, 0, 10, 10]},
            "box",
            {"box": [0.0, 0.0, 10.0, 10.0]},
            "[0, 0, 10, 5]",
            "[0, 0, 10, 4.9]",
        ),
    ],
)
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


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"answer": "three"}, "column answer: 'three' is none of the choices: (A) one, (B) two"),
        ({"answer": "B. one"}, "'B. one' is none of the choices"),
        ({"answer": 1}, "a mapping may say `answer: index0` or `index1`"),
        ({"choices": ["B", "x"], "answer": "B"}, "is the letter of one choice and the text of another"),
        ({"choices": ["one", ""]}, "column choices: choice B is empty"),
        ({"choices": ["one", "one"]}, "a choice is there twice"),
        ({"choices": ["one"]}, "1 choices; from 2 to 26"),
        ({"choices": [str(n) for n in range(27)]}, "27 choices"),
        ({"choices": "one or two"}, "expected a list of texts; a mapping can split one"),
        ({"answer": ""}, "column answer: there is no answer"),
        ({"question": ""}, "column question: there is no question"),
        ({"question": "nul\0"}, "column question: a text with a NUL character"),
        ({"id": "a#r1"}, "holds #, which marks the variants"),
        ({"id": "x" * 300}, "is no name of at most 200 characters"),
        ({"image": ""}, "column image: there is no image"),
        ({"image": "away.png"}, "there is no file 'away.png' inside"),
        ({"image": "../red.png"}, "there is no file"),
        ({"image": "/etc/passwd.png"}, "is an absolute path"),
        ({"image": "http://x/y.png"}, "is a URL"),
        ({"image": "A" * 66}, "is neither the path of an image nor base64"),
        ({"image": "QUJD" * 30}, "are not an image that can be read"),
        ({"image": "red"}, "is neither the path of an image, nor base64, nor the id of a row"),
        (
            {"image": {"path": "red.png", "bytes": None}, "choices": [3, {}]},
            "column choices: expected text, found dict",
        ),
        ({"kind": "multiple"}, "is no kind"),
        ({"kind": "integer", "choices": None, "answer": "many"}, "is no whole number from 0"),
        ({"kind": "integer", "choices": None, "answer": "-1"}, "`kind: number` takes others"),
        ({"kind": "yes_no", "choices": None, "answer": "maybe"}, "is neither yes nor no"),
        ({"kind": "number", "choices": None, "answer": "tall"}, "is no number"),
        ({"kind": "number", "choices": None, "answer": "1", "tolerance": "wide"}, "is no tolerance"),
        ({"kind": "text", "choices": None, "answer": "a||b"}, "an accepted spelling is empty"),
        ({"kind": "order", "answer": "BB"}, "does not have each of the 2 choices once"),
        ({"kind": "box", "choices": None, "answer": [3, 3, 1, 1]}, "is no box: write left, top, right, bottom"),
        ({"kind": "point", "choices": None, "answer": [3, 3]}, "give a tolerance in pixels, or a box"),
        ({"choices": None, "answer": [3, 3]}, "may be a point, a box or a number: say its kind"),
    ],
)
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
