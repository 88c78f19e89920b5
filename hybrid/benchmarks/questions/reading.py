"""Converts rows of a table to questions. An unusable row is a `BrokenQuestion` that names file, line and column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hybrid.benchmarks._shared.rows import DataRow, lost
from hybrid.benchmarks.base import Source
from hybrid.benchmarks.questions.annotated import annotated_places, is_ignored
from hybrid.benchmarks.questions.cells import ImageOfRow, images, labelled, parse_list, scalar_text, texts
from hybrid.benchmarks.questions.columns import Columns, resolve
from hybrid.benchmarks.questions.doubts import Doubts
from hybrid.benchmarks.questions.frames import Size, in_pixels
from hybrid.benchmarks.questions.index import CIRCULAR_STEP, Index, cluster_in, index_of, is_number, name_in
from hybrid.benchmarks.questions.options import split
from hybrid.benchmarks.questions.schema import Layout
from hybrid.benchmarks.questions.tables import At, DataTable, table_of
from hybrid.benchmarks.questions.targets import kind_of, target_of
from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore, inspect
from hybrid.core.option_rotation import rotated
from hybrid.core.types import LETTERS, AnnotatedPlace, BrokenQuestion, Kind, Question, StoredImage

# Route of the rules that read the question's text.
ROUTE: Final = "by_text"
# A column of notes to the author of the table, as in `hybrid data template`.
COMMENT: Final = "comment"
PLACES: Final = (Kind.POINT, Kind.BOX)


@dataclass(frozen=True)
class QuestionReader:
    """Reads the questions of one table."""

    folder: Path
    # The root of the image paths.
    images_root: Path
    table: DataTable
    layout: Layout
    columns: Columns
    index: Index
    # Default texts of a question's parts: `prompt`, `hint`, `option`.
    texts: Mapping[str, str]
    # Whether every cyclic permutation of the options is asked.
    cyclic: bool = False
    rows_a_unit: int = 1
    # Prefix of ids made from row numbers, which distinguishes the tables of a data set.
    prefix: str = ""
    has_answers: bool = True

    def questions(
        self, task: str, store: ImageStore, *, needs_images: bool = True
    ) -> Iterator[Question | BrokenQuestion]:
        """Yield the questions of a task; without `needs_images`, a question may lack unreadable images."""
        for at, row in self.table.some(self.index.places.get(task, ())):
            question = self._read_question(at, row, task, store, needs_images=needs_images)
            yield question
            if not self.cyclic or isinstance(question, BrokenQuestion) or question.kind is not Kind.CHOICE:
                continue
            # Yield the other cyclic permutations of the options. They are broken questions if the text does not show
            # the options.
            for places in range(1, len(question.choices)):
                identity = f"{question.id}#circ{places}"
                rotation = rotated(question, places)
                if rotation is None:
                    reason = (
                        f"{question.id}: its text does not show its options as (A) TEXT, A. TEXT or [A] TEXT, so "
                        "they cannot be rotated"
                    )
                    yield BrokenQuestion(identity, question.task, reason, question.groups, question.cluster)
                else:
                    yield replace(rotation, id=identity)

    def _read_question(
        self, at: At, row: DataRow | DataError, task: str, store: ImageStore | None, *, needs_images: bool = True
    ) -> Question | BrokenQuestion:
        if isinstance(row, DataError):
            return lost(task, self.folder, f"{self.table.path}:{at.line}", row)
        try:
            identity = self._identity(row, at)
        except DataError as error:
            return lost(task, self.folder, row.where, error)
        cluster = ""
        try:
            if self.columns.cluster:
                cluster = cluster_in(row, self.columns.cluster)
            elif self.rows_a_unit > 1:
                cluster = f"{self.prefix}rows{self.index.number[at.line] // self.rows_a_unit + 1}"
            question = self._question(row, identity, task, cluster)
            if store is not None:
                # Saved predictions are scored without pictures, which are then only needed for the clusters.
                with nullcontext() if needs_images else suppress(DataError):
                    question = replace(question, images=self._images(row, store, identity))
            if question.kind in PLACES and self.has_answers:
                question = replace(question, target=self._target_in_pixels(row, question))
            if self.has_answers:
                question = replace(question, evidence=self._evidence(row, question))
        except DataError as error:
            return BrokenQuestion(identity, task, str(error), cluster=cluster)
        return question

    def doubts(self, tasks: Sequence[str]) -> Iterator[str]:
        """Yield doubts about usable questions, each with its location; images are not read."""
        used = {*vars(self.columns).values(), *self.columns.image, *self.columns.choices, *self.columns.groups}
        if unused := [name for name in self.table.columns() if name not in used and name != COMMENT]:
            yield f"{self.table.path}: columns that are not used: {', '.join(unused)}"
        for task in tasks:
            doubts = Doubts(self.columns, self.layout, task)
            for at, row in self.table.some(self.index.places.get(task, ())):
                question = self._read_question(at, row, task, None)
                if isinstance(row, DataRow):
                    yield from doubts.look_at(row, question, self._sizes_for_doubts(row, question))
                    if is_ignored(row, self.columns):
                        yield (
                            f"{row.where}, column {self.columns.evidence}: not used, as it contains no boxes or points"
                        )
                    yield from self._id_doubt(row, at)
                    yield from self._task_doubt(row, task)
            yield from doubts.of_table()

    def _sizes_for_doubts(self, row: DataRow, question: Question | BrokenQuestion) -> Sequence[Size]:
        """Return the picture sizes of boxes and points if the layout defines no frame; () if they are unreadable."""
        has_places = isinstance(question, Question) and (question.kind in PLACES or question.evidence)
        if not has_places or self.layout.frame is not None:
            return ()
        try:
            return self._sizes(row)
        except DataError:
            return ()

    def _id_doubt(self, row: DataRow, at: At) -> Iterator[str]:
        """Yield the doubt about an id that looks like the id of a rotation, in a row that is no rotation."""
        with suppress(DataError):
            name = name_in(row, self.columns.id) if self.columns.circular else None
            if name is None or not is_number(name) or self.index.rotation_of(name, at) is not None:
                return
            base = self.index.place_of(str(int(name) % CIRCULAR_STEP))
            if int(name) >= CIRCULAR_STEP and base is not None:
                yield (
                    f"{row.where}: the id {name} would be rotation {int(name) // CIRCULAR_STEP} of "
                    f"{int(name) % CIRCULAR_STEP}, but its question or options differ: it is read as a separate "
                    "question; a mapping with `columns: {id: index}` settles this"
                )

    def _task_doubt(self, row: DataRow, task: str) -> Iterator[str]:
        """Yield the doubt about a row that counts with its neighbour's task because its own task cannot be read."""
        # In a table without tasks, the only task's name is not in a cell.
        if not self.columns.task or len(self.index.tasks) == 1:
            return
        try:
            if name_in(row, self.columns.task) is None:
                where = f"{row.where}, column {self.columns.task}"
                yield f"{where}: the cell is empty; the row counts with {task!r:.40}, like its neighbour"
        except DataError as error:
            yield f"{error}; the row counts with {task!r:.40}, like its neighbour"

    def _identity(self, row: DataRow, at: At) -> str:
        """Return the id of a row. Raises `DataError` for a missing, duplicate or reserved id."""
        column = self.columns.id
        if not column:
            return f"{self.prefix}row{at.line}"
        name = name_in(row, column)
        location = f"{row.where}, column {column}"
        if name is None:
            raise DataError(f"{location}: no id")
        if "#" in name:
            raise DataError(f"{location}: {name!r:.80} contains #, which marks the variants of a question")
        first = self.index.place_of(name)
        if first is not None and first.line != at.line:
            raise DataError(f"{location}: the id {name!r:.80} is also the id of {self.table.counted} {first.line}")
        return self.index.rotation_of(name, at) or name

    def _question(self, row: DataRow, identity: str, task: str, cluster: str) -> Question:
        columns = self.columns
        question_text = scalar_text(row, columns.question)
        if question_text is None:
            raise DataError(f"{row.where}, column {columns.question}: no question")
        stem, choices, labels = self._choices(row, question_text)
        kind = kind_of(row, columns, self.layout, choices, has_answer=self.has_answers)
        target = None
        if self.has_answers:
            target = target_of(kind, row, columns=columns, layout=self.layout, choices=choices, labels=labels)
        hint = scalar_text(row, columns.hint) if columns.hint else None
        # VLMEvalKit reads its tables with pandas, which treats these words as an empty cell.
        hint = None if hint in ("nan", "NaN") else hint
        listed_choices = choices if kind in (Kind.CHOICE, Kind.ORDER) else ()
        route = name_in(row, columns.route) if columns.route else None
        return Question(
            identity,
            task,
            images=(),
            text=self._text(stem, listed_choices, hint or ""),
            kind=kind,
            choices=listed_choices,
            target=target,
            route=route or ROUTE,
            groups=self._groups(row),
            cluster=cluster,
            task_route="" if route else task,
            fallback_route=ROUTE if route else "",
        )

    def _target_in_pixels(self, row: DataRow, question: Question) -> Any:
        """Convert a question's box or point to pixels of its picture. Raises `DataError` if it is outside."""
        sizes: Sequence[Size] = [(picture.width, picture.height) for picture in question.images]
        if not sizes and self.layout.frame not in (None, "pixels"):
            sizes = self._sizes(row)
        return in_pixels(question.target, self.layout.frame, sizes, f"{row.where}, column {self.columns.answer}")

    def _evidence(self, row: DataRow, question: Question) -> tuple[AnnotatedPlace, ...]:
        """Return the annotated places of a question. Raises `DataError` for an invalid place."""
        sizes: Sequence[Size] = [(picture.width, picture.height) for picture in question.images]
        places: tuple[AnnotatedPlace, ...] = annotated_places(row, self.columns, self.layout, self.images_root, sizes)
        # Without pictures, positions in another frame than pixels cannot be converted.
        return places if sizes or self.layout.frame in (None, "pixels") else ()

    def _text(self, question: str, choices: Sequence[str], hint: str) -> str:
        option, prompt = self.layout.option or self.texts["option"], self.layout.prompt or self.texts["prompt"]
        options = (option.format(letter=a, text=text) for a, text in zip(LETTERS, choices, strict=False))
        # A hint precedes the question, as in VLMEvalKit (image_mcq.py, build_prompt).
        hint = self.texts["hint"].format(hint=hint) if hint else ""
        values = {"question": question, "choices": "\n".join(options), "hint": hint}
        # A line with only an empty placeholder is left out.
        empty = {f"{{{name}}}" for name, text in values.items() if not text}
        return "\n".join(line for line in prompt.split("\n") if line.strip() not in empty).format(**values).strip()

    def _choices(self, row: DataRow, question_text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Return the question without its options, the options, and the labels of the options if the table has its own.

        Raises `DataError` for conflicting options.
        """
        columns, stem, labels = self.columns.choices, question_text, tuple[str, ...]()
        if not columns:
            return question_text, (), ()
        location = f"{row.where}, column {columns[0]}"
        if len(columns) > 1:
            cells = [scalar_text(row, column) or "" for column in columns]
            while cells and not cells[-1]:
                cells.pop()
            choices = tuple(cells)
        elif (pairs := labelled(row, columns[0])) is not None:
            labels, choices = pairs
            # Labels that are letters in order are the same as the letters that are shown anyway.
            labels = () if tuple(map(str.upper, labels)) == tuple(LETTERS[: len(labels)]) else labels
        else:
            text = scalar_text(row, columns[0]) if self.layout.split_choices else None
            if text is None:
                choices = texts(row, columns[0]) or ()
                if not choices and row.cell(columns[0]) not in (None, "") and parse_list(row.cell(columns[0])) != []:
                    raise DataError(f"{location}: expected a list of texts; a mapping can split one (`split_choices:`)")
            else:
                question_part, choices = split(self.layout.split_choices or "", text)
                stem = question_part if columns[0] == self.columns.question else question_text
        if "" in choices:
            raise DataError(f"{location}: choice {LETTERS[choices.index('') % len(LETTERS)]} is empty")
        if len(set(choices)) < len(choices):
            raise DataError(f"{location}: a choice appears twice: {choices!r:.120}")
        if choices and not 2 <= len(choices) <= len(LETTERS):
            raise DataError(f"{location}: {len(choices)} choices; from 2 to {len(LETTERS)} can be asked")
        return stem, choices, labels

    def _sizes(self, row: DataRow) -> Sequence[Size]:
        """Return width and height of a row's pictures. Raises `DataError` for an unreadable picture."""
        sizes = []
        for place, data in images(row, self.columns.image, self.images_root):
            picture = inspect(self._referred(data, place) if isinstance(data, ImageOfRow) else data, place)
            sizes.append((picture.width, picture.height))
        return sizes

    def _images(self, row: DataRow, store: ImageStore, identity: str) -> tuple[StoredImage, ...]:
        location = f"question {identity}"
        stored = tuple(
            store.put(self._referred(data, place) if isinstance(data, ImageOfRow) else data, f"{place}, {location}")
            for place, data in images(row, self.columns.image, self.images_root)
        )
        if not stored:
            if not self.columns.image:
                raise DataError(
                    f"{row.where}: no image, because no column is certain to be the image; write a mapping "
                    f"(`columns: {{image: NAME}}`); available: {', '.join(self.table.columns())}"
                )
            raise DataError(f"{row.where}, column {', '.join(self.columns.image)}: no image")
        return stored

    def _referred(self, reference: ImageOfRow, location: str) -> bytes:
        """Return the image of the row to which another row refers by id."""
        at = self.index.place_of(reference)
        row = next((row for _, row in self.table.some([at])), None) if at is not None else None
        if not isinstance(row, DataRow):
            raise DataError(
                f"{location}: {reference!r:.64} is neither the path of an image, nor base64, nor the id of a row"
            )
        data = next((data for _, data in images(row, self.columns.image, self.images_root)), None)
        if data is None or isinstance(data, ImageOfRow):
            raise DataError(f"{location}: row {reference!r:.64}, whose image it names, has no image")
        return data

    def _groups(self, row: DataRow) -> Mapping[str, str]:
        """Return the groups by the names of their columns, or from a column that contains a mapping."""
        values: dict[str, str] = {}
        for column in self.columns.groups:
            value = row.cell(column)
            if isinstance(value, dict):
                values |= {str(key): str(part) for key, part in value.items() if isinstance(part, str | int | float)}
            elif (text := name_in(row, column)) is not None:
                values[column] = text
        return values


def folder_of(source: Source) -> Path:
    """Return the folder of images: the folder of the source, or the folder that contains the source's file."""
    return source.folder.parent if source.folder.is_file() else source.folder


def reader_of(
    source: Source,
    path: Path,
    layout: Layout,
    *,
    texts: Mapping[str, str],
    task: str,
    rows: int = 1,
    has_answers: bool = True,
) -> QuestionReader:
    """Scan the table once, and return a reader for it.

    Args:
        source: the data set.
        path: path of the table.
        layout: layout of the table.
        texts: default texts of a question's parts.
        task: task of all rows without a task column.
        rows: number of consecutive rows that form one unit.
        has_answers: whether the table has right answers; if not, its column of answers is not read.

    Raises:
        DataError: the table cannot be read, or lacks columns.
    """
    folder = folder_of(source)
    table = table_of(folder, path)
    columns = resolve(table.columns(), layout, str(path), hidden=not has_answers)
    index = index_of(folder, path, columns, task, rows)
    images_root = source.images_root or folder
    return QuestionReader(
        folder,
        images_root,
        table=table,
        layout=layout,
        columns=columns,
        index=index,
        texts=texts,
        rows_a_unit=rows,
        has_answers=has_answers,
    )
