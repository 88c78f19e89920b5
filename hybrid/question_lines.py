"""The questions of a run on disk: counted and chosen by their ids, and read one at a time.

    asked, wrong = read_questions(RUN / "questions.jsonl", extent)
    len(asked), asked[0], asked.by_id["q7"], asked.sound, asked.broken

    spool = QuestionSpool(folder)
    spool.add(question)
    asked = spool.questions()     # in a file without a name, which is gone when nobody has them any more

Ids, places and which rows are broken are all that memory holds.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import overload

from hybrid.codecs import codec, to_json
from hybrid.errors import DataError
from hybrid.manifest import Extent, first_error
from hybrid.record_lines import Chosen, LineIndex, Places, RecordLines, index_lines
from hybrid.types import BrokenQuestion, Question

AnyQuestion = Question | BrokenQuestion

_HEAD = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*"),"task":"(?:[^"\\]|\\.)*","(images|error)":')
"""How a line begins that was written here; what follows the task tells a question from a broken row."""


class Questions(Sequence[AnyQuestion]):
    """Questions in order, each read from disk when it is asked for.

    Args:
        by_id: the questions.
        broken: ids of the rows that cannot be asked.
        extent: how much of a file holds just these; None where no file of a run does.
    """

    def __init__(self, by_id: Mapping[str, AnyQuestion], broken: frozenset[str], extent: Extent | None = None) -> None:
        self.by_id = by_id
        self.extent = extent
        self._broken = broken

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids, in order."""
        return tuple(self.by_id)

    @property
    def sound(self) -> Sequence[Question]:
        """The questions that can be asked."""
        return self.without(())

    def without(self, finished: frozenset[str] | set[str] | tuple[str, ...]) -> Sequence[Question]:
        """The questions that can be asked and are not among these."""
        names = [name for name in self.by_id if name not in self._broken and name not in finished]
        return Chosen[Question](self.by_id, names)  # type: ignore[arg-type]

    @property
    def broken_ids(self) -> frozenset[str]:
        """The ids of the rows that cannot be asked."""
        return self._broken

    @property
    def broken(self) -> tuple[BrokenQuestion, ...]:
        """The rows that cannot."""
        rows = (self.by_id[name] for name in self.by_id if name in self._broken)
        return tuple(row for row in rows if isinstance(row, BrokenQuestion))

    def line(self, name: str) -> bytes:
        """The line of a question, with its end. Raises `KeyError`."""
        if isinstance(self.by_id, RecordLines):
            return self.by_id.line(name)
        return question_line(self.by_id[name])

    def is_file(self, path: Path) -> bool:
        """Whether these are read from the file `path`, and it is as it was."""
        return isinstance(self.by_id, RecordLines) and self.by_id.is_file(path)

    @overload
    def __getitem__(self, place: int) -> AnyQuestion: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[AnyQuestion, ...]: ...
    def __getitem__(self, place: int | slice) -> AnyQuestion | tuple[AnyQuestion, ...]:
        if isinstance(place, slice):
            return tuple(self.by_id[name] for name in self.ids[place])
        return self.by_id[self.ids[place]]

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[AnyQuestion]:
        return (self.by_id[name] for name in self.by_id)


def question_line(question: AnyQuestion) -> bytes:
    """A question as a line, with its end."""
    return to_json(type(question), question) + b"\n"


def read_question(line: bytes) -> AnyQuestion:
    """The question of a line. Raises `ValueError` where it is none."""
    found: AnyQuestion
    try:
        found = codec(Question).validate_json(line)
    except ValueError as error:
        try:
            found = codec(BrokenQuestion).validate_json(line)
        except ValueError:
            raise error from None
    return found


class _Heads:
    """Reads ids, and keeps those of rows that cannot be asked."""

    def __init__(self) -> None:
        self.broken: set[str] = set()

    def known(self, line: bytes) -> str:
        """The id of a line that was written here."""
        found = _HEAD.match(line)
        if found is None:
            raise ValueError("a line of another form")
        name: str = json.loads(found[1])
        if found[2] == b"error":
            self.broken.add(name)
        return name

    def checked(self, line: bytes) -> str:
        """The id of any line. Raises `ValueError` where it is no question."""
        question = read_question(line)
        if isinstance(question, BrokenQuestion):
            self.broken.add(question.id)
        return question.id


def read_questions(path: Path, before: Extent | None) -> tuple[Questions, str | None]:
    """The questions of a file, and the first thing that is wrong with it.

    `before` is how much of it there was when a command last ended in order.
    """
    heads = _Heads()
    index = index_lines(path, before, heads.known, heads.checked)
    wrong = _first_wrong(path, index)

    def read(line: bytes) -> AnyQuestion:
        try:
            return read_question(line)
        except ValueError as error:
            raise DataError(f"{path}: not a Question ({first_error(error)})") from error

    return Questions(index.records(read), frozenset(heads.broken), index.measure.extent), wrong


def _first_wrong(path: Path, index: LineIndex) -> str | None:
    wrong = {number: f"not a Question ({first_error(error)})" for number, error in index.unreadable}
    wrong |= {number: f"the id {name!r} appears twice" for number, name in index.repeated}
    if wrong:
        number = min(wrong)
        return f"{path}, line {number}: {wrong[number]}"
    if lost := index.measure.wrong("questions"):
        return f"{path} {lost}"
    if path.exists() and index.measure.extent.bytes != path.stat().st_size:
        return f"{path} ends in the middle of a line"
    return None


class QuestionSpool:
    """Takes questions up one after the other.

    Args:
        folder: where their file lies, which has no name; it is made where it is not there.

    Raises:
        OSError: it cannot be written there.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `questions`
        self._places = Places()
        self._ranks: list[int] = []
        self._broken: set[str] = set()
        self._end = 0

    def add(self, question: AnyQuestion, rank: int = 0) -> bool:
        """Take a question; whether it is the first of its id. Those of a lower `rank` come before it."""
        line = question_line(question)
        if not self._places.add(question.id, self._end, len(line)):
            return False
        self._file.write(line)
        self._end += len(line)
        self._ranks.append(rank)
        if isinstance(question, BrokenQuestion):
            self._broken.add(question.id)
        return True

    def questions(self) -> Questions:
        """All of them; nothing can be added any more."""
        with self._file as file:
            file.flush()
            handle = os.dup(file.fileno())
        names = list(self._places.numbers)
        in_order = [names[place] for place in sorted(range(len(names)), key=self._ranks.__getitem__)]
        self._places.sort(in_order)
        return Questions(RecordLines(handle, self._places, read_question), frozenset(self._broken))

    def close(self) -> None:
        """Forget what was taken, where `questions` was never called."""
        self._file.close()
