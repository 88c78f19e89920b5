"""Doubts of `hybrid data check`: rows that can be asked but may be misread, each with a way to resolve it.

    doubts = Doubts(columns, layout, task)
    for row, question in rows:
        yield from doubts.look_at(row, question, sizes)
    yield from doubts.of_table()          # doubts that only all rows together show

A mapping that defines the kind, the form of answers or the frame resolves doubts about these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from hybrid.benchmarks._shared.rows import DataRow
from hybrid.benchmarks.questions.cells import scalar_text, texts
from hybrid.benchmarks.questions.columns import Columns
from hybrid.benchmarks.questions.frames import FrameDoubts, Size
from hybrid.benchmarks.questions.options import PATTERNS, split
from hybrid.benchmarks.questions.schema import Layout
from hybrid.benchmarks.questions.targets import WHOLE, answer_in, number_in
from hybrid.core.errors import DataError
from hybrid.core.types import LETTERS, BrokenQuestion, Json, Kind, Point, Question

_IMAGE_MARK: Final = re.compile(r"<image[ _]?\d*>|<img>")
# Patterns of options inside a question; the doubt names the first pattern that matches.
_LETTERED: Final = ("(a) X (b) Y", "a) X b) Y", "a. X b. Y", "a: X b: Y")
_LISTED: Final = re.compile(
    r"(?s)(?:^|\s)\(?1[).:]\s.{1,400}?\s\(?2[).:]\s|(?:^|[\s?])[\[(]?A[\]).:].{1,400}?[\s,;][\[(]?B[\]).:]"
)
_NAMED_OPTIONS: Final = re.compile(r"(?i)\b(?:options|choices)\s?:")
_ASKS_YES_NO: Final = re.compile(
    r"(?i)(?:^|[.!?:,\n]\s*)(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should)\b[^?\n]*(?:\?|\Z)"
    r"|\byes\b.{0,20}\bno\b|\btrue or false\b|\b(?:true|correct)\?"
)
_COUNTS: Final = re.compile(r"(?i)\bhow (?:many|much|often)\b|\bnumber of\b|\bcount\b")
# Words that data sets publish instead of an answer that is hidden or missing.
_PLACEHOLDERS: Final = frozenset(
    {
        *("hidden", "withheld", "masked", "n/a", "na", "none", "null", "nil", "nan", "undefined", "unknown"),
        *("unavailable", "tbd", "todo", "test", "?", "??", "???", "-", "--", "-1", "-1.0", "-100", "not available"),
        *("not applicable", "not given", "no answer", "to be determined", "to be released", "to be announced"),
        *(
            "redacted",
            "secret",
            "private",
            "missing",
            "placeholder",
            "undisclosed",
            "tba",
            "xxx",
            "-99",
            "-999",
            "-9999",
        ),
        *("not public", "not released", "not disclosed", "not provided", "n.a", "no label", "no ground truth"),
    }
)
# Matches texts such as `answer withheld` and `label: hidden`.
_ABOUT_ANSWER: Final = re.compile(r"(?:the )?(?:answer|label|target|ground truth|gt)s?:? (?:is |are )?(?P<word>.+)")
_FOREIGN_NUMBER: Final = re.compile(
    r"[-+\u2212]?(?:[0-9]{1,3}(?:[.'\u2019 \u00a0\u202f][0-9]{3})+(?:[,.][0-9]+)?|[0-9]+,[0-9]+)"
)


class Doubts:
    """Checks the rows of one task, in order."""

    def __init__(self, columns: Columns, layout: Layout, task: str) -> None:
        self._columns, self._layout, self._task = columns, layout, task
        self._frames = FrameDoubts()
        # Locations of the rows by kind, if neither a column nor the mapping defines the kind.
        self._by_kind: dict[Kind, list[str]] = {}
        # Doubts about answers that may be numbers of choices, and whether some answer cannot be such a number.
        self._index_like: list[str] = []
        self._is_text = False
        # Whole numbers without choices: locations of 0 and 1, and whether another number occurred.
        self._zero_one: dict[str, str] = {}
        self._counts = False

    def look_at(self, row: DataRow, question: Question | BrokenQuestion, sizes: Sequence[Size]) -> Iterator[str]:
        """Yield the doubts about one row; `sizes` are the sizes of the pictures with a box or point, if known."""
        if isinstance(question, BrokenQuestion):
            return
        self._by_kind.setdefault(question.kind, []).append(row.where)
        if question.kind is Kind.INTEGER and not self._kind_is_said(row):
            if question.target in (0, 1) and not _COUNTS.search(question.text):
                if not _asks_yes_no(question):
                    self._zero_one[row.where] = str(question.target)
            else:
                self._counts = True
        if self._layout.frame is None:
            yield from self._frames.look_at(question.target, sizes, row.where)
            for annotated in question.evidence:
                # Pass all corners of a box, because the largest of their numbers shows which frame they use.
                place = annotated.place
                ends: Json = (
                    [place.x, place.y] if isinstance(place, Point) else [place.x0, place.y0, place.x1, place.y1]
                )
                picture_sizes = sizes[annotated.image - 1 : annotated.image]
                yield from self._frames.look_at({"box": ends}, picture_sizes, f"{row.where}, evidence")
        # Doubts about the answer are reported only without doubts about options, which also explain an odd answer.
        doubts = list(self._of_options(row, question)) or list(self._of_answer(row, question))
        for doubt in (*_of_text(question), *doubts):
            yield f"{row.where}: {doubt}"

    def of_table(self) -> Iterator[str]:
        """Yield the doubts that the rows raise together."""
        yield from self._frames.of_table()
        if not self._is_text:
            yield from self._index_like
        if not self._counts and len(set(self._zero_one.values())) == 2:
            yield from (
                f"{location}: its answer {answer}, like every other of {self._task}, is 0 or 1 and is read as a "
                "number: write `kind: yes_no` if these mean no and yes, or `kind: integer` if they are numbers"
                for location, answer in self._zero_one.items()
            )
        if len(self._by_kind) > 1 and not self._columns.kind and self._layout.kind is None:
            usual = max(self._by_kind, key=lambda kind: len(self._by_kind[kind]))
            mostly = f"while {len(self._by_kind.pop(usual))} of {self._task} are {usual}"
            for kind, places in self._by_kind.items():
                fix = f"write {kind} in a column `kind` if that is right, else {usual} and the right answer"
                yield from (
                    f"{place}: its answer makes it a question of the kind {kind}, {mostly}: {fix}" for place in places
                )

    def _kind_is_said(self, row: DataRow) -> bool:
        column = self._columns.kind
        return self._layout.kind is not None or bool(column and row.values.get(column))

    def _of_answer(self, row: DataRow, question: Question) -> Iterator[str]:
        """Yield doubts about the answer; none if it is hidden."""
        if question.target is None:
            return
        with suppress(DataError):
            items = texts(row, self._columns.answer)
            answers = items if items else (answer_in(row, self._columns.answer),)
            is_stated = self._kind_is_said(row)
            if question.kind in (Kind.CHOICE, Kind.ORDER):
                self._note_index(row, question, answers)
            elif not is_stated or question.kind is Kind.TEXT:
                yield from _of_open_answer(question, answers, is_stated)
        target = question.target
        if isinstance(target, dict) and "within" in target and 0 < float(target["within"]) < 1:
            yield f"its point counts within {target['within']:g} px, because a tolerance is in pixels in every frame"

    def _note_index(self, row: DataRow, question: Question, answers: Sequence[str]) -> None:
        """Record an answer that is the text of one choice but may be the number of another choice."""
        parts = [part.strip() for answer in answers for part in answer.split(",")]
        if self._layout.answer is not None or not all(map(WHOLE.fullmatch, parts)):
            return
        numbers = [choice for choice in question.choices if number_in(choice) is not None]
        if len(numbers) < len(question.choices):
            return
        if max(map(int, parts)) > len(question.choices):
            self._is_text = True
            return
        self._index_like.append(
            f"{row.where}: the answer {', '.join(parts)} is read as the text of a choice, but may be the number of "
            "another: say which in a mapping (`answer: text`, `answer: index0` or `answer: index1`)"
        )

    def _of_options(self, row: DataRow, question: Question) -> Iterator[str]:
        """Yield doubts about options in the text of a question without choices."""
        if question.choices or self._layout.split_choices:
            return
        question_text = scalar_text(row, self._columns.question) or ""
        for pattern in _LETTERED:
            if split(pattern, question_text)[1]:
                yield (
                    f"its text shows options, and it is asked as {question.kind}; a mapping with `columns: {{choices: "
                    f'{self._columns.question}}}` and `split_choices: "{pattern}"` reads them'
                )
                return
        if _LISTED.search(question_text) or (_NAMED_OPTIONS.search(question_text) and question.kind is not Kind.YES_NO):
            yield (
                f"its text shows options, but it is asked as {question.kind}; add a column of choices to "
                "make it a choice"
            )


def _of_open_answer(question: Question, answers: Sequence[str], kind_stated: bool) -> Iterator[str]:
    """Yield doubts about an answer without choices.

    `kind_stated` is True if the table or its mapping defines the kind.
    """
    first = answers[0].strip()
    if any(map(_is_placeholder, answers)):
        yield f"its answer {first!r:.40} may mean that the answer is hidden: leave the row out, or give its answer"
    if kind_stated:
        return
    if question.kind is Kind.INTEGER and first in ("0", "1"):
        if _asks_yes_no(question):
            word = ("no", "yes")[int(first)]
            yield f"its answer {first} is read as a number, but may mean {word}: write `kind: yes_no` if it does"
    elif question.kind is Kind.TEXT and re.fullmatch(r"\(?[A-Za-z][).]?", first):
        yes_no = " (or `kind: yes_no`)" if first.casefold() in "ynft" else ""
        yield (
            f"its answer {first!r} is a single letter, but the row has no choices: give them{yes_no}, or "
            "write `kind: text`"
        )
    elif question.kind is Kind.TEXT and any(map(_FOREIGN_NUMBER.fullmatch, answers)):
        yield (
            f"its answer {first!r:.40} is read as a text, but may be a number: write 1204.75 for 1.204,75, or write "
            "`kind: text`"
        )


def _is_placeholder(answer: str) -> bool:
    word = answer.casefold().replace("_", " ").strip("[]<>(){}. ")
    match = _ABOUT_ANSWER.fullmatch(word)
    return (match["word"] if match else word) in _PLACEHOLDERS


def _asks_yes_no(question: Question) -> bool:
    return bool(_ASKS_YES_NO.search(question.text)) and not _COUNTS.search(question.text)


def _of_text(question: Question) -> Iterator[str]:
    """Yield doubts about the text of a question and its choices."""
    if mark := _IMAGE_MARK.search(question.text):
        yield f"its text contains {mark[0]}, which is shown unchanged, because images come before the text"
    inside = _options_inside(question)
    for place, (letter, choice) in enumerate(zip(LETTERS, question.choices, strict=False)):
        if choice.casefold() == "nan":
            yield f"the choice ({letter}) {choice} may be an empty cell that pandas wrote"
        elif re.match(rf"\(?{letter}[).:]\s", choice):
            yield f"the choice {choice!r:.40} begins with its letter, so the letter is shown twice"
        elif inside[place : place + 1] == (choice.casefold(),):
            yield f"the choice {choice!r:.40} is also in the question, so options are shown twice"


def _options_inside(question: Question) -> tuple[str, ...]:
    """Return the options in the question's own text, before the listed options; empty if there are none."""
    for pattern in PATTERNS:
        if pattern.startswith(("(a)", "a")):
            _, options = split(pattern, question.text)
            if len(options) > 1 and question.text.count(options[0].split("\n")[0]) > 1:
                return tuple(option.partition("\n")[0].strip().casefold() for option in options)
    return ()
