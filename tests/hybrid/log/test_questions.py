"""Questions on disk are restored unchanged and in order, and only the requested ones are read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.types import BrokenQuestion, Kind, Question
from hybrid.log.folder import RunFolder
from hybrid.log.questions import question_line, read_question, read_questions
from hybrid.scoring.pairing import Data, check_same

ODD = st.text(max_size=12)


def row(identity: str, task: str = "a", text: str = "?") -> Question:
    return Question(identity, task, (), text, Kind.YES_NO, target={"x": [1, None]}, groups={"g": text})


@given(st.dictionaries(ODD, st.tuples(ODD, ODD, st.booleans()), min_size=1, max_size=6))
def test_whatever_an_id_holds_it_is_found_without_reading_the_question(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[str, tuple[str, str, bool]]
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    questions: list[Question | BrokenQuestion] = [
        BrokenQuestion(name, task, text) if broken else row(name, task, text)
        for name, (task, text, broken) in rows.items()
    ]
    extent = folder.write_questions(questions)
    path = folder.path / "questions.jsonl"
    for previous in (extent, None):
        result, wrong = read_questions(path, previous)
        assert (list(result), wrong, result.extent) == (questions, None, extent)
        assert list(result.broken) == [item for item in questions if isinstance(item, BrokenQuestion)]
        assert path.read_bytes() == b"".join(map(result.line, result.by_id)) == b"".join(map(question_line, questions))


def test_what_is_as_it_was_is_not_parsed(tmp_path: Path) -> None:
    """Lines with the sha256 of an unchanged file are not parsed: here it belongs to lines that are no longer
    questions."""
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'{"id":"q1","task":"a","images":7}\n')
    nothing, wrong = read_questions(path, None)
    assert wrong is not None
    result, wrong = read_questions(path, nothing.extent)
    assert (list(result.by_id), wrong) == (["q1"], None)


def test_cached_questions_are_parsed_once_and_equal_lines_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def parse(line: bytes) -> Question | BrokenQuestion:
        question = read_question(line)
        parsed.append(question.id)
        return question

    monkeypatch.setattr("hybrid.log.questions.read_question", parse)
    by_run = []
    for name in ("a", "b"):
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        extent = folder.write_questions([row("q1"), row("q2")])
        by_run.append(read_questions(folder.path / "questions.jsonl", extent)[0].cached().by_id)
    facts = Data("blink", "val", {}, {})
    parsed.clear()
    check_same("a", (facts, by_run[0]), "b", (facts, by_run[1]))
    assert parsed == []
    assert [by_run[0][name] for name in ("q1", "q1", "q2", "q1")] == [row("q1"), row("q1"), row("q2"), row("q1")]
    assert parsed == ["q1", "q2"]
