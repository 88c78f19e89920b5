"""Questions on disk come back as they were, in their order, and no more of them is read than is asked for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.log.folder import RunFolder
from hybrid.log.questions import Questions, QuestionSpool, question_line, read_questions
from hybrid.types import BrokenQuestion, Kind, Question

ODD = st.text(max_size=12)


def row(identity: str, task: str = "a", text: str = "?") -> Question:
    return Question(identity, task, (), text, Kind.YES_NO, target={"x": [1, None]}, groups={"g": text})


def spooled(folder: Path, *questions: tuple[int, Question | BrokenQuestion]) -> Questions:
    spool = QuestionSpool(folder)
    assert all(spool.add(question, rank) for rank, question in questions)
    return spool.questions()


def test_questions_come_in_the_order_of_their_ranks(tmp_path: Path) -> None:
    broken = BrokenQuestion("b1", "b", "does not decode")
    found = spooled(tmp_path, (1, broken), (0, row("a1")), (1, row("b2")), (0, row("a2")))
    assert [question.id for question in found] == ["a1", "a2", "b1", "b2"]
    assert (found[2], found.broken, found.by_id["b2"]) == (broken, (broken,), row("b2"))
    assert [question.id for question in found.sound] == ["a1", "a2", "b2"]
    assert [question.id for question in found.without({"a1", "b2"})] == ["a2"]
    assert list(tmp_path.iterdir()) == []


def test_one_of_each_task_in_turn_whatever_a_task_is_called(tmp_path: Path) -> None:
    odd = 'b","task":"a\\'
    tasks = {"a1": "a", "a2": "a", "a3": "a", "b1": odd, "b2": odd, "c1": "\u2028"}
    rows = [(0, replace(row(name), task=task)) for name, task in tasks.items()]
    found = spooled(tmp_path, *rows, (0, BrokenQuestion("a0", "a", "does not decode")))
    assert [question.id for question in found.in_turn(set())] == ["a1", "b1", "c1", "a2", "b2", "a3"]
    # What was asked task by task is made even first.
    assert [question.id for question in found.in_turn({"a1", "a2"})] == ["b1", "c1", "b2", "a3"]


def test_a_second_question_of_an_id_is_not_taken(tmp_path: Path) -> None:
    spool = QuestionSpool(tmp_path)
    assert spool.add(row("a1", text="first"))
    assert not spool.add(row("a1", text="second"))
    assert list(spool.questions()) == [row("a1", text="first")]


@given(st.dictionaries(ODD, st.tuples(ODD, ODD, st.booleans()), min_size=1, max_size=6))
def test_whatever_an_id_holds_it_is_found_without_reading_the_question(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[str, tuple[str, str, bool]]
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    asked: list[Question | BrokenQuestion] = [
        BrokenQuestion(name, task, text) if broken else row(name, task, text)
        for name, (task, text, broken) in rows.items()
    ]
    extent = folder.write_questions(asked)
    path = folder.path / "questions.jsonl"
    for before in (extent, None):
        found, wrong = read_questions(path, before)
        assert (list(found), wrong, found.extent) == (asked, None, extent)
        assert list(found.broken) == [one for one in asked if isinstance(one, BrokenQuestion)]
        assert path.read_bytes() == b"".join(map(found.line, found.by_id)) == b"".join(map(question_line, asked))


def test_what_is_as_it_was_is_not_parsed(tmp_path: Path) -> None:
    """Lines that are no questions any more, under the sha256 that says that they were written so."""
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'{"id":"q1","task":"a","images":7}\n')
    nothing, wrong = read_questions(path, None)
    assert wrong is not None
    found, wrong = read_questions(path, nothing.extent)
    assert (list(found.by_id), wrong) == (["q1"], None)


def test_a_file_is_known_again_until_it_changes(tmp_path: Path, fakes: Any) -> None:
    folder = RunFolder(tmp_path)
    folder.write_questions([fakes.question("q1")])
    path = tmp_path / "questions.jsonl"
    found, _ = read_questions(path, None)
    assert found.is_file(path)
    folder.write_questions([replace(fakes.question("q1"), text="other")])
    assert not found.is_file(path)
    assert not Questions({"q1": fakes.question("q1")}, frozenset()).is_file(path)
