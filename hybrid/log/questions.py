"""The questions of a run on disk: counted and selected by id, and read one at a time.

    asked, wrong = read_questions(RUN / "questions.jsonl", extent)
    len(asked), asked[0], asked.by_id["q7"], asked.sound, asked.broken

    spool = QuestionSpool(folder)
    spool.add(question)
    asked = spool.questions()     # in an unnamed temporary file, deleted with the last object that reads it

Only the ids, the offsets and the ids of broken rows are in memory, and with `cached()` every question that was read.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar, overload

from hybrid.core.types import BrokenQuestion, Question
from hybrid.log.codec import codec, first_error, reading, to_json
from hybrid.log.lines import FileExtent, LineFormat, LineOffsets, OpenFile, Records, index_lines

AnyQuestion = Question | BrokenQuestion
T = TypeVar("T", bound=AnyQuestion)


def question_line(question: AnyQuestion) -> bytes:
    """Encode a question as a line, with its line feed."""
    # Leave out an empty `evidence`, so that files of questions without annotations keep the same bytes.
    unannotated = isinstance(question, Question) and not question.evidence
    return to_json(type(question), question, exclude={"evidence"} if unannotated else None) + b"\n"


def read_question(line: bytes) -> AnyQuestion:
    """Read the question of a line. Raises `ValueError` if it is not a question."""
    question: AnyQuestion
    try:
        question = codec(Question).validate_json(line)
    except ValueError as error:
        try:
            question = codec(BrokenQuestion).validate_json(line)
        except ValueError:
            raise error from None
    return question


_HEAD = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*"),"task":"(?:[^"\\]|\\.)*","(images|error)":')
_TASK = re.compile(rb'\{"id":"(?:[^"\\]|\\.)*","task":("(?:[^"\\]|\\.)*"),')

FORM = LineFormat(_HEAD, read_question, BrokenQuestion)


class SomeQuestions(Sequence[T], Generic[T]):
    """Some questions in order; each access reads from disk, unless `by_id` keeps them."""

    def __init__(self, by_id: Mapping[str, AnyQuestion], ids: Sequence[str]) -> None:
        self.by_id = by_id
        self.ids = ids

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            return tuple(self._question(name) for name in self.ids[place])
        return self._question(self.ids[place])

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[T]:
        return map(self._question, self.ids)

    def _question(self, name: str) -> T:
        # The ids were selected so that every record is a question.
        return self.by_id[name]  # type: ignore[return-value]


class RecordedQuestions(SomeQuestions[AnyQuestion]):
    """All questions of a run or of some data.

    Args:
        by_id: the questions.
        broken_ids: ids of the rows that cannot be asked.
        extent: extent of the run's file with exactly these questions; None if they are in no run.
    """

    def __init__(
        self, by_id: Mapping[str, AnyQuestion], broken_ids: frozenset[str], extent: FileExtent | None = None
    ) -> None:
        super().__init__(by_id, tuple(by_id))
        self.extent = extent
        self.broken_ids = broken_ids
        self.picture_files = 0
        """Number of picture files read for these, in addition to the files that the data's fingerprint covers."""

    @cached_property
    def sound(self) -> Sequence[Question]:
        """The questions that can be asked."""
        return self.without(())

    def cached(self) -> RecordedQuestions:
        """Return the same questions; each stays in memory once it was read, about 800 bytes for a short question."""
        by_id = self.by_id.cached() if isinstance(self.by_id, Records) else self.by_id
        return RecordedQuestions(by_id, self.broken_ids, self.extent)

    def without(self, finished: frozenset[str] | set[str] | tuple[str, ...]) -> Sequence[Question]:
        """Return the questions that can be asked, without the finished ones."""
        open_ids = [name for name in self.ids if name not in self.broken_ids and name not in finished]
        return SomeQuestions(self.by_id, open_ids)

    def in_turn(self, finished: frozenset[str] | set[str]) -> Sequence[Question]:
        """Return the open questions, one of each task in turn, so that all tasks advance evenly if the run stops early.

        If the run used another order before, tasks that are behind come first.
        """
        counts: Counter[bytes] = Counter()
        turn: dict[str, int] = {}
        for name in self.ids:
            if name not in self.broken_ids:
                # Only the task is read from the line, as there may be 200,000 questions.
                line = self.line(name)
                head = _TASK.match(line)
                task = head[1] if head else json.dumps(read_question(line).task).encode()
                turn[name] = counts[task]
                counts[task] += 1
        waiting = [name for name in turn if name not in finished]
        return SomeQuestions(self.by_id, sorted(waiting, key=turn.__getitem__))

    @property
    def broken(self) -> tuple[BrokenQuestion, ...]:
        """The rows that cannot be asked."""
        rows = (self.by_id[name] for name in self.ids if name in self.broken_ids)
        return tuple(row for row in rows if isinstance(row, BrokenQuestion))

    def line(self, name: str) -> bytes:
        """Read the line of a question, with its line feed. Raises `KeyError`."""
        return self.by_id.line(name) if isinstance(self.by_id, Records) else question_line(self.by_id[name])

    def is_file(self, path: Path) -> bool:
        """Return whether these questions are read from the file `path`, and it is unchanged."""
        return isinstance(self.by_id, Records) and self.by_id.file.is_at(path)


def read_questions(path: Path, previous: FileExtent | None) -> tuple[RecordedQuestions, str | None]:
    """Read the questions of a file, and describe its first defect (None if it is sound).

    `previous` is its extent when the last command ended normally.
    """
    index = index_lines(path, previous, FORM)
    read = reading(read_question, path, "a Question")
    questions = RecordedQuestions(index.records(read), frozenset(index.errors), index.measure.extent)
    wrong = {number: f"not a Question ({first_error(error)})" for number, error in index.unreadable}
    wrong |= {number: f"the id {name!r} appears twice" for number, name in index.repeated}
    if wrong:
        return questions, f"{path}, line {min(wrong)}: {wrong[min(wrong)]}"
    if problem := index.describe_damage("questions"):
        return questions, f"{path} {problem}"
    cut = path.exists() and index.measure.extent.bytes != path.stat().st_size
    return questions, f"{path} ends in the middle of a line" if cut else None


class QuestionSpool:
    """Collects questions in an unnamed temporary file.

    Args:
        folder: the folder of that file; created if missing.

    Raises:
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `questions`
        self._places = LineOffsets()
        self._ranks: list[int] = []
        self._broken: set[str] = set()
        self._end = 0

    def add(self, question: AnyQuestion, rank: int = 0) -> bool:
        """Add a question; returns False if its id was added before. Questions of a lower `rank` come first."""
        if question.id in self._places.numbers:
            return False
        line = question_line(question)
        self._places.add(question.id, self._end, len(line))
        self._file.write(line)
        self._end += len(line)
        self._ranks.append(rank)
        if isinstance(question, BrokenQuestion):
            self._broken.add(question.id)
        return True

    def questions(self) -> RecordedQuestions:
        """Return all questions; no more can be added."""
        with self._file as file:
            file.flush()
            handle = OpenFile(os.dup(file.fileno()))
        numbers = dict(sorted(self._places.numbers.items(), key=lambda item: self._ranks[item[1]]))
        return RecordedQuestions(Records(handle, self._places, read_question, numbers), frozenset(self._broken))

    def close(self) -> None:
        """Discard the questions, if `questions` was never called."""
        self._file.close()
