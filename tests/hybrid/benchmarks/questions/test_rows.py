"""One row becomes a question with its kind and right answer, or is refused with the reason; and a reply is scored."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hybrid.benchmarks.base import ScoreOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Exchange, Outcome, Prompt, Question, Reply, Score
from hybrid.plugins.registry import load
from hybrid.running.data import mount
from tests.image_bytes import saved
from tests.tables import cases

BENCH = load("hybrid.benchmarks", "questions")


def doubts_in(built: Any, path: Path) -> list[str]:
    """Return the doubts of `data check` about the rows of a file."""
    source = mount(BENCH, str(path), split=None, tasks=(), settings={}, store=ImageStore(built.folder / "store")).source
    return list(BENCH.doubts(source))


def score(question: Question, reply: str, unanswered: str = "wrong", outcome: Outcome = Outcome.ANSWERED) -> Score:
    exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(reply, outcome))
    return BENCH.score(question, (exchange,), ScoreOptions("strict", unanswered))  # type: ignore[arg-type]


@pytest.mark.parametrize(*cases(__file__, "test_the_kind_and_what_is_right", list))
def test_the_kind_and_what_is_right(
    table_writer: Any, changed: dict[str, object], kind: str, target: object, right: str, wrong: str
) -> None:
    (question,) = table_writer.sound(table_writer.table([table_writer.row(**changed)]))
    assert (question.kind, question.target) == (kind, target)
    assert score(question, right).correct == 1.0
    assert score(question, wrong).correct == 0.0
    prompt = Prompt((question.text,), question.kind, question.choices)
    assert score(question, BENCH.oracle_answer(question, prompt)).correct == 1.0, "the oracle is right"
    assert BENCH.oracle(question, prompt).startswith("The evidence favours ")
    assert BENCH.expected(question)


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_cannot_be_used_says_where_and_why", list))
def test_a_row_that_cannot_be_used_says_where_and_why(
    table_writer: Any, changed: dict[str, object], message: str
) -> None:
    reason = table_writer.why(**changed)
    assert reason.startswith(f"{table_writer.folder / 'questions.jsonl'}:1")
    assert message in reason


def test_the_second_row_of_an_id_is_named_with_the_first(table_writer: Any) -> None:
    first, second = table_writer.read_questions(table_writer.table([table_writer.row(), table_writer.row()]))
    assert isinstance(first, Question)
    assert "questions.jsonl:2, column id: the id 'q1' is also the id of line 1" in second.error


def test_a_picture_that_is_too_large_is_not_read(table_writer: Any) -> None:
    with (table_writer.folder / "large.png").open("wb") as file:
        file.truncate(200_000_001)
    assert "has 200,000,001 bytes; at most 200,000,000 are read" in table_writer.why(image="large.png")


def test_what_may_not_be_meant_so(table_writer: Any) -> None:
    rows = [
        table_writer.row(id="a", choices=None, answer="yes"),
        table_writer.row(id="b", choices=None, answer="yes"),
        table_writer.row(id="c", choices=None, answer="3"),
        table_writer.row(id="d", task="x", question="<image>Which?", note="n"),
        table_writer.row(id="e", task="x", choices=["A. one", "B. two"], answer="A"),
        table_writer.row(id="f", task="x", question="Which?\nA. one\nB. two"),
    ]
    for row in rows[:3]:
        row["task"] = "y"
    path = table_writer.table(rows)
    doubts = [doubt.removeprefix(str(path)) for doubt in doubts_in(table_writer, path)]
    fix = "write integer in a column `kind` if that is right, else yes_no and the right answer"
    assert doubts == [
        ": columns that are not used: note",
        f":3: its answer makes it a question of the kind integer, while 2 of y are yes_no: {fix}",
        ":4: its text contains <image>, which is shown unchanged, because images come before the text",
        ":5: the choice 'A. one' begins with its letter, so the letter is shown twice",
        ":5: the choice 'B. two' begins with its letter, so the letter is shown twice",
        ":6: the choice 'one' is also in the question, so options are shown twice",
        ":6: the choice 'two' is also in the question, so options are shown twice",
    ]


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_may_be_read_otherwise_says_what_settles_it", list))
def test_a_row_that_may_be_read_otherwise_says_what_settles_it(
    table_writer: Any, changed: dict[str, object], message: str, mapping: str
) -> None:
    path = table_writer.table([table_writer.row(**changed)])
    (doubt,) = doubts_in(table_writer, path)
    assert doubt.startswith(f"{path}:1: ")
    assert message in doubt
    path.with_suffix(".yaml").write_text(mapping)
    assert doubts_in(table_writer, path) == []
    table_writer.sound(path)


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_is_clear_raises_no_doubt", list))
def test_a_row_that_is_clear_raises_no_doubt(table_writer: Any, changed: dict[str, object]) -> None:
    path = table_writer.table([table_writer.row(**changed)])
    table_writer.sound(path)
    assert doubts_in(table_writer, path) == []


@pytest.mark.parametrize(
    "answer",
    [
        *("hidden", "N/A", "-1", "[HIDDEN]", "unknown", ["n/a"], -1, -999, "redacted", "n.a.", "not_public"),
        *("answer withheld", "The answer is hidden.", "label: -1"),
    ],
)
def test_an_answer_that_stands_for_a_hidden_one_is_doubtful(table_writer: Any, answer: object) -> None:
    (doubt,) = doubts_in(table_writer, table_writer.table([table_writer.row(choices=None, answer=answer)]))
    assert "may mean that the answer is hidden" in doubt


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ("", "the cell is empty; the row counts with"),
        ("x" * 300, "is not a name"),
        ("a\nb", "is not a name"),
    ],
)
def test_a_row_that_counts_with_its_neighbour_is_doubtful(table_writer: Any, task: str, reason: str) -> None:
    tasks = ("a", "b", task)
    path = table_writer.table([table_writer.row(id=str(number), task=name) for number, name in enumerate(tasks)])
    (doubt,) = doubts_in(table_writer, path)
    assert reason in doubt
    assert "counts with 'b'" in doubt


def test_zeros_and_ones_alone_may_be_yes_and_no(table_writer: Any) -> None:
    rows = [table_writer.row(id="a", choices=None, answer=0), table_writer.row(id="b", choices=None, answer=1)]
    path = table_writer.table(rows)
    result = doubts_in(table_writer, path)
    assert len(result) == 2
    assert all("`kind: yes_no` if these mean no and yes" in doubt for doubt in result)
    path.with_suffix(".yaml").write_text("kind: integer\n")
    assert doubts_in(table_writer, path) == []
    path.with_suffix(".yaml").unlink()
    assert doubts_in(table_writer, table_writer.table([*rows, table_writer.row(id="c", choices=None, answer=2)])) == []


def test_a_number_that_no_choice_has_shows_that_answers_are_texts(table_writer: Any) -> None:
    numbers = ["1", "2", "7"]
    rows = [table_writer.row(id="a", choices=numbers, answer=2), table_writer.row(id="b", choices=numbers, answer=7)]
    assert len(doubts_in(table_writer, table_writer.table(rows[:1]))) == 1
    assert doubts_in(table_writer, table_writer.table(rows)) == []


@pytest.mark.parametrize(*cases(__file__, "test_choices_of_the_hub_are_read", list))
def test_choices_of_the_hub_are_read(
    table_writer: Any, choices: object, answer: object, read: list[str], target: str
) -> None:
    for form in (choices, json.dumps(choices), repr(choices)):
        (question,) = table_writer.sound(table_writer.table([table_writer.row(choices=form, answer=answer)]))
        assert (list(question.choices), question.target) == (read, target)


def test_a_table_of_the_hub_names_its_answer_another_way(table_writer: Any) -> None:
    row = table_writer.row(choices={"text": ["one", "two"], "label": ["A", "B"]}, answer="A")
    row["answerKey"] = row.pop("answer")
    (question,) = table_writer.sound(table_writer.table([row]))
    assert (question.choices, question.target) == (("one", "two"), "A")


def test_choices_of_typed_columns_are_read(table_writer: Any) -> None:
    rows = [
        table_writer.row(id="a", choices={"A": "one", "B": "two", "C": None}),
        table_writer.row(id="b", choices={"A": "one", "B": "two", "C": "three"}, answer="C"),
    ]
    first, second = table_writer.sound(table_writer.table(rows, "questions.parquet"))
    assert (first.choices, first.target) == (("one", "two"), "B")
    assert (second.choices, second.target) == (("one", "two", "three"), "C")


# The pictures of `table_writer` have 40 x 30 px.
@pytest.mark.parametrize(*cases(__file__, "test_places_are_converted_exactly", list))
def test_places_are_converted_exactly(
    table_writer: Any, changed: dict[str, object], frame: str, target: dict[str, object]
) -> None:
    path = table_writer.table([table_writer.row(choices=None, **changed)])
    path.with_suffix(".yaml").write_text(f"frame: {frame}\n")
    (question,) = table_writer.sound(path)
    assert question.target == target
    source = mount(
        BENCH, str(path), split=None, tasks=(), settings={}, store=ImageStore(table_writer.folder / "s")
    ).source
    (unseen,) = BENCH.questions(replace(source, for_predictions=True))
    assert unseen.target == target, "predictions are joined without a store"


@pytest.mark.parametrize(*cases(__file__, "test_a_place_outside_of_its_picture_is_broken", list))
def test_a_place_outside_of_its_picture_is_broken(
    table_writer: Any, changed: dict[str, object], frame: str, message: str
) -> None:
    path = table_writer.table([table_writer.row(choices=None, **changed)])
    if frame:
        path.with_suffix(".yaml").write_text(f"frame: {frame}\n")
    (broken,) = table_writer.read_questions(path)
    assert f"{path}:1, column answer: " in broken.error
    assert message in broken.error


@pytest.mark.parametrize(
    ("places", "size", "doubtful"),
    [
        ([[0.1, 0.2, 0.5, 0.8]], (40, 30), ["frame: normalised"]),
        ([[0, 0, 1, 1]], (40, 30), ["frame: normalised"]),
        ([[100, 200, 300, 400]], (1200, 1300), ["frame: thousandths"]),
        # One number above 1,000 shows that all numbers are pixels.
        ([[100, 200, 300, 400], [100, 200, 1100, 400]], (1200, 1300), []),
        # One position outside of a small picture shows that the numbers may not be pixels.
        ([[5, 5, 20, 20], [5, 5, 900, 20]], (40, 30), ["frame: thousandths"]),
        ([[5, 5, 20, 20]], (40, 30), []),
    ],
)
def test_numbers_that_look_like_another_frame_are_doubtful(
    table_writer: Any, places: list[list[float]], size: tuple[int, int], doubtful: list[str]
) -> None:
    (table_writer.folder / "sized.png").write_bytes(saved(Image.new("RGB", size)))
    rows = [
        table_writer.row(id=f"q{number}", image="sized.png", choices=None, kind="box", answer=place)
        for number, place in enumerate(places)
    ]
    path = table_writer.table(rows)
    result = doubts_in(table_writer, path)
    assert len(result) == len(doubtful)
    assert all(option in doubt for option, doubt in zip(doubtful, result, strict=True))
    path.with_suffix(".yaml").write_text("frame: pixels\n")
    assert doubts_in(table_writer, path) == []


def test_a_frame_needs_pictures_of_one_size(table_writer: Any) -> None:
    (table_writer.folder / "sized.png").write_bytes(saved(Image.new("RGB", (80, 30))))
    row = table_writer.row(choices=None, kind="box", answer=[0, 0, 0.5, 0.5], image=["red.png", "sized.png"])
    path = table_writer.table([row])
    path.with_suffix(".yaml").write_text("frame: normalised\n")
    (broken,) = table_writer.read_questions(path)
    assert "its pictures have different sizes" in broken.error


def test_a_large_id_is_a_rotation_only_with_the_question_and_options_of_its_base(table_writer: Any) -> None:
    rows = [
        {"index": "148000", "image": "red.png", "question": "Which?", "A": "one", "B": "two", "answer": "A"},
        {"index": "1148000", "image": "red.png", "question": "Which?", "A": "two", "B": "one", "answer": "B"},
        {"index": "262148000", "image": "red.png", "question": "What?", "A": "one", "B": "two", "answer": "B"},
        {"index": "3148000", "image": "red.png", "question": "Which?", "A": "one", "B": "six", "answer": "B"},
    ]
    for name in ("questions.tsv", "questions.parquet"):
        path = table_writer.table(rows, name)
        assert [question.id for question in table_writer.sound(path)] == [
            "148000",
            "148000#circ1",
            "262148000",
            "3148000",
        ]
        first, second = doubts_in(table_writer, path)
        assert "the id 262148000 would be rotation 262 of 148000, but its question or options differ" in first
        assert "the id 3148000 would be rotation 3 of 148000" in second
        path.with_suffix(".yaml").write_text("columns: {id: index}\n")
        assert doubts_in(table_writer, path) == []
        path.unlink()
        path.with_suffix(".yaml").unlink()
