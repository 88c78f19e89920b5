"""Matches rows of another program's format to the benchmark's questions, by the most reliable available key.

The keys, in this order, are: the benchmark's id; an index that is the id in the user's own questions; the position
within the task, if question, options and answer agree in every row as far as the file has them; question text and
options, if they match exactly one question. Rows without a match are listed, never dropped silently.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hybrid.benchmarks.base import Benchmark, PredictedRow, Prediction
from hybrid.benchmarks.card import BenchmarkCard
from hybrid.core.errors import DataError
from hybrid.core.image_clusters import PICTURE, cluster_by_pictures
from hybrid.core.types import Question, base_id
from hybrid.display.terminal import how_many
from hybrid.scoring.predictions.base import Joined, Origin, Recognised, first, letter_of

HOW: Mapping[str, str] = {
    "id": "by the benchmark's ids",
    "index": "by their index, which is the data's id",
    "place": "by order within the task (what the file says of question, options and answer agrees in every row)",
    "text": "by question text and options",
}


def join(recognised: Recognised, card: BenchmarkCard, questions: Sequence[Question]) -> Joined:
    """Return the rows with their questions, in the order of the data.

    Raises:
        DataError: two rows for one question, a gold answer that differs from the data's, or no row matches.
    """
    by_id = {question.id: question for question in questions}
    table = _Table(by_id)
    with_id = [row for row in recognised.rows if row.id is not None]
    trusted = any(row.id in by_id for row in with_id)
    for row in with_id if trusted else ():
        table.put(row, row.id, "id")
    unnamed = [row for row in recognised.rows if row.id is None or not trusted]
    by_index = _by_index(unnamed, by_id)
    for row in unnamed if by_index else ():
        if row.where in by_index:
            table.put(row, by_index[row.where], "index")
    unnamed = [row for row in unnamed if row.where not in by_index]
    refuse_rotations(unnamed)
    by_task: defaultdict[str | None, list[PredictedRow]] = defaultdict(list)
    for row in unnamed:
        by_task[card.task_in(row.task or "")].append(row)
    for task, rows in by_task.items():
        free = [q for q in questions if q.id == q.base and task in (None, q.task) and q.id not in table.rows]
        places = _by_place(rows, free, card.tasks.get(task, 0) if task else 0)
        fitting = places
        if not places:
            # Accept a row that matches one question, if no other row matches that question.
            texts = {row.where: [q.id for q in free if row.text and _fits(row, q)] for row in rows}
            claimed = Counter(place for places in texts.values() for place in places)
            fitting = {
                location: places[0]
                for location, places in texts.items()
                if len(places) == 1 and claimed[places[0]] == 1
            }
        for row in rows:
            table.put(row, fitting.get(row.where), "place" if places else "text")
    if not table.rows:
        raise DataError(
            f"none of {how_many(len(recognised.rows), 'prediction')} fits a question of the data: {first(table.extra)}"
        )
    return table.joined(recognised)


def without_data(recognised: Recognised, benchmark: Benchmark) -> Joined:
    """Return the rows with the questions that the rows themselves describe, if the benchmark can score such questions.

    Raises:
        UsageError: the benchmark needs its data to score.
        DataError: a row that does not describe its question, a question that appears twice, or no row.
    """
    refuse_rotations(recognised.rows)
    pairs: dict[str, tuple[Question, Prediction]] = {}
    locations: dict[str, str] = {}
    for row in recognised.rows:
        question = benchmark.question_from_row(row)
        if question.id in pairs:
            raise DataError(f"{row.where}: {question.id} also appears in {locations[question.id]}")
        locations[question.id] = row.where
        pairs[question.id] = (replace(question, cluster=row.cluster), prediction_of(row, question))
    if not pairs:
        raise DataError(f"{recognised.format}: the file contains no row")
    notes = (*recognised.notes, "not compared with the data: give --data DIR")
    return Joined(tuple(pairs.values()), Origin(recognised.format, notes=notes))


class _Table:
    """The assignment of rows to questions, filled row by row."""

    def __init__(self, questions: Mapping[str, Question]) -> None:
        self.questions = questions
        self.rows: dict[str, PredictedRow] = {}
        self.extra: list[str] = []
        self.how: Counter[str] = Counter()

    def put(self, row: PredictedRow, place: str | None, method: str) -> None:
        """Assign the row to its question; a row without a question counts as extra."""
        if place is None or place not in self.questions:
            self.extra.append(row.name)
            return
        question = self.questions[place]
        if place in self.rows:
            raise DataError(f"{row.where}: {place} is also answered in {self.rows[place].where}")
        if _same_answer(row, question) is False:
            raise DataError(f"{row.where}: the answer to {place} is {row.answer!r}, in the data {question.target!r}")
        self.rows[place] = row
        self.how[method] += 1

    def joined(self, recognised: Recognised) -> Joined:
        """Return the pairs in the order of the data, and the questions and rows that have no match."""
        questions = [question for place, question in self.questions.items() if place in self.rows]
        clustered = cluster_by_rows(questions, [self.rows[question.id].cluster for question in questions])
        pairs = tuple((question, prediction_of(self.rows[question.id], question)) for question in clustered)
        notes = tuple(f"joined {how_many(count, 'row')} {HOW[method]}" for method, count in self.how.items())
        missing = missing_from(self.questions, self.rows)
        return Joined(pairs, Origin(recognised.format, missing, tuple(self.extra), (*recognised.notes, *notes)))


def cluster_by_rows(questions: Sequence[Question], clusters: Sequence[str]) -> tuple[Question, ...]:
    """Return the questions with the clusters that their rows name; clustered by picture if no row names a cluster."""
    if not any(clusters):
        return cluster_by_pictures(questions)
    data_clusters = ("" if question.cluster.startswith(PICTURE) else question.cluster for question in questions)
    merged = (row or of_data for row, of_data in zip(clusters, data_clusters, strict=True))
    return tuple(replace(question, cluster=cluster) for question, cluster in zip(questions, merged, strict=True))


def pictures_note(questions: Sequence[Question]) -> tuple[str, ...]:
    """Return a note on questions without a named cluster whose pictures are unknown; empty if there are none."""
    unknown = sum(not question.images and not question.cluster for question in questions)
    if not unknown:
        return ()
    of_all = f"the pictures of {unknown} of {how_many(len(questions))} are not known"
    return (f"{of_all}: questions about the same picture count as independent, so intervals may be too narrow",)


def missing_from(questions: Mapping[str, Question], predicted: Mapping[str, object]) -> tuple[str, ...]:
    """Return the questions without a prediction in any variant."""
    answered = {base_id(name) for name in predicted}
    return tuple(dict.fromkeys(q.base for q in questions.values() if q.base not in answered))


def prediction_of(row: PredictedRow, question: Question) -> Prediction:
    """Return the recorded reply; a stored letter gets the benchmark's form, `(A)` or `A`."""
    stored = row.stored
    if stored and re.fullmatch(r"\([A-Z]\)", str(question.target)):
        stored = f"({letter_of(stored)})"
    return Prediction(row.reply, stored)


def refuse_rotations(rows: Sequence[PredictedRow]) -> None:
    """Raise `DataError` for a row of a circular data set whose index is not an id in the data."""
    from hybrid.benchmarks.questions.index import CIRCULAR_STEP

    for row in rows:
        if row.index is not None and row.index >= CIRCULAR_STEP:
            raise DataError(
                f"{row.where}, column index: {row.index} is a rotation of a circular data set, or an id in your own "
                "table: give that table with --data (hybrid score FILE --benchmark questions --data TABLE.tsv)"
            )


def _by_index(rows: Sequence[PredictedRow], questions: Mapping[str, Question]) -> Mapping[str, str]:
    """Map each row's location to the question whose id is the row's index; empty if a row contradicts its question."""
    from hybrid.benchmarks.questions.index import CIRCULAR_STEP

    by_location: dict[str, str] = {}
    for row in rows:
        if row.index is None:
            continue
        rotation = f"{row.index % CIRCULAR_STEP}#circ{row.index // CIRCULAR_STEP}"
        if (place := next((name for name in (str(row.index), rotation) if name in questions), None)) is None:
            continue
        if not _fits(row, questions[place]) or _same_answer(row, questions[place]) is False:
            return {}
        by_location[row.where] = place
    return by_location


def _by_place(rows: Sequence[PredictedRow], questions: Sequence[Question], expected: int) -> Mapping[str, str]:
    """Map each row's location to a question id by order; empty if any row does not confirm the order."""
    numbers = _numbers(rows, expected)
    at = {int(n[0]) if (n := re.findall(r"\d+$", question.base)) else None: question for question in questions}
    if None in at or len(at) < len(questions):
        return {}
    pairs = [(row, at[numbers[row.where]]) for row in rows if numbers.get(row.where) in at]
    proven = all(_fits(row, question) and _same_answer(row, question) is True for row, question in pairs)
    return {row.where: question.id for row, question in pairs} if proven else {}


def _numbers(rows: Sequence[PredictedRow], expected: int) -> Mapping[str, int]:
    """Return each row's position in its task (1, 2, ...): from the file, or by index if the task is complete."""
    places = {row.where: row.place for row in rows if row.place is not None}
    if len(places) == len(rows):
        return places
    order = sorted((row.index, row.where) for row in rows if row.index is not None)
    if len(order) != len(rows) or len(rows) != expected:
        return {}
    return {location: place for place, (_, location) in enumerate(order, 1)}


def _fits(row: PredictedRow, question: Question) -> bool:
    """Return whether the question's text contains the row's text and their options agree, as far as these are known."""
    if row.text and question.text and _words(row.text) not in _words(question.text):
        return False
    if not row.choices or not any(question.choices):
        return True
    return list(map(_words, row.choices)) == list(map(_words, question.choices))


def _same_answer(row: PredictedRow, question: Question) -> bool | None:
    """Return whether row and question have the same right answer; None if one of them has no comparable answer."""
    if row.answer is None or not isinstance(question.target, str | int):
        return None
    return row.answer.casefold() == letter_of(str(question.target)).casefold()


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()
