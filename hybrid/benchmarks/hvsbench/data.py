"""HVSBench's parquet files: rows of one question type at a time, and parsers of their `answer` column.

The files are large because images are embedded, so the small columns are read first, and an image only for a row in
use. How the column writes orders and scanpaths is not documented, so several notations are accepted; any other is an
error.
"""

from __future__ import annotations

import ast
import json
import math
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hybrid.benchmarks._shared.rows import DataRow, check_one, opened, read_group
from hybrid.benchmarks.hvsbench.question_text import KINDS, lists
from hybrid.core.errors import DataError
from hybrid.core.types import LETTERS, Scanpath

COLUMNS: Final = ("index", "image", "question", "question_type", "answer")
OPTIONAL: Final = ("category", "real_image_path", "origin_dataset")

# Largest distance of a fixation outside the image, as a fraction of the image's size. Eye trackers record some
# fixations outside; a larger distance indicates another unit.
OUTSIDE: Final = 0.25

MIN_TRUE_FIXATIONS: Final = 2


@dataclass(frozen=True)
class Subject:
    """All human scanpaths of one image and one task, from every row that shows the image."""

    image: str
    paths: tuple[Scanpath, ...]


def files(folder: Path, split: str) -> tuple[Path, ...]:
    """Return the parquet files of a split, `data/SPLIT-*.parquet`."""
    return tuple(sorted((folder / "data").glob(f"{split}-*.parquet")))


def types_present(folder: Path, paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the question types in the readable files, in the order Q1 to Q13.

    Raises `DataError` if there is no type: an error that names the first row without a type, else the error of the
    first unreadable file.
    """
    types: set[str] = set()
    stray: list[DataRow] = []

    def read(path: Path) -> None:
        for row in rows(folder, path, images=False):
            if (question_type_found := type_of(row)) is None:
                stray.append(row)
            else:
                types.add(question_type_found)

    for path in paths:
        with suppress(DataError):
            read(path)
    if not types and stray:
        raise DataError(_no_type(stray[0]))
    if not types:
        check_one(paths, read)
    return tuple(sorted(types, key=lambda name: int(name[1:])))


def type_of(row: DataRow) -> str | None:
    """Return a row's question type, Q1 to Q13; None if it has none."""
    question_type = row.values.get("question_type")
    return question_type if isinstance(question_type, str) and question_type in KINDS else None


def identity_of(row: DataRow, task: str, seen: set[str]) -> str:
    """Return the row's id within its type, adding it to `seen`.

    Raises `DataError` for a row without a type or an index, or with a duplicate index.
    """
    if type_of(row) is None:
        raise DataError(_no_type(row))
    index = row.cell("index")
    if index is None:
        raise DataError(f"{row.where}, column index: empty")
    identity = f"{task}_{index}"
    if identity in seen:
        raise DataError(f"{row.where}, column index: a second {identity}")
    seen.add(identity)
    return identity


def _no_type(row: DataRow) -> str:
    try:
        question_type = row.cell("question_type")
    except DataError as error:
        return str(error)
    return f"{row.where}, column question_type: {question_type!r:.60} is not one of Q1 to Q13"


def rows(folder: Path, path: Path, question_type: str | None = None, *, images: bool = True) -> Iterator[DataRow]:
    """Stream the rows of a file, all or those of one question type, with or without the `image` column.

    A row without a type counts as a row of every type.

    Raises:
        DataError: the file is not parquet, lacks a column, or has a column of another type.
    """
    with opened(folder, path, COLUMNS) as file:
        _check_schema(file.schema_arrow, path)
        small = [name for name in (*COLUMNS, *OPTIONAL) if name != "image" and name in file.schema_arrow.names]
        rows_before = 0
        for group in range(file.num_row_groups):
            table = read_group(file, group, small, path, rows_before)
            selected = [
                (n, row) for n, row in enumerate(table) if question_type in (None, type_of(row) or question_type)
            ]
            pictures = read_group(file, group, ["image"], path, rows_before) if images and selected else None
            for number, row in selected:
                if pictures is None:
                    yield row
                    continue
                more = pictures[number]
                yield replace(row, values={**row.values, **more.values}, unread={**row.unread, **more.unread})
            rows_before += len(table)


def letter(text: str, options: Sequence[str]) -> str:
    """Return the right option's letter from "B", "(B)", "[B]", "B." or the option's text. Raises `DataError`."""
    match = re.fullmatch(r"\s*[\[(]?([A-Z])[\])]?[.:]?(?:\s.*)?", text, re.DOTALL)
    if match and match[1] in LETTERS[: len(options)]:
        return match[1]
    same = [LETTERS[place] for place, option in enumerate(options) if option and option == text.strip()]
    if len(same) != 1:
        raise DataError(f"{text!r:.60} is not one of the {len(options)} options")
    return same[0]


def count(text: str) -> int:
    """Parse a whole number from 0 up, in digits. Raises `DataError`."""
    match = re.fullmatch(r"\s*(\d{1,6})(?:\.0*)?\s*", text)
    if match is None:
        raise DataError(f"{text!r:.60} is not a count")
    return int(match[1])


def order(text: str, options: Sequence[str]) -> str:
    """Parse letters in order from "BCA", "B, C, A", "[B] [C] [A]" or "B > C > A". Raises `DataError`."""
    letters = re.sub(r"[\s,;>\[\]()\"'.-]+", "", text)
    letters_offered = LETTERS[: len(options)]
    if not letters or not set(letters) <= set(letters_offered) or len(set(letters)) != len(letters):
        raise DataError(f"{text!r:.60} is not an order of {letters_offered}")
    return letters


def human_paths(text: str) -> tuple[Scanpath, ...]:
    """Parse the human scanpaths of an answer; x, y as fractions of the image, durations in milliseconds.

    Two forms are accepted: lists `X = [...] Y = [...] T = [...]`, once or several times, and JSON or Python literals. A
    literal is an object {"X", "Y", "T"}, several such objects in a list or under names, or lists of [x, y, t] points.

    Raises:
        DataError: no scanpath; lists of different lengths; fewer than two fixations; a coordinate that is not finite
            or far outside the image; a duration that is not finite or negative.
    """
    try:
        value = _literal(text)
        paths = lists(text) if value is None else tuple(_paths_of(value))
    except OverflowError as error:
        raise DataError(f"a number that is too large ({error})") from error
    if not paths:
        raise DataError(f"{text!r:.80} contains no scanpath")
    for number, path in enumerate(paths, 1):
        _check_path(path, f"scanpath {number}")
    return paths


def subjects(folder: Path, paths: Sequence[Path], question_type: str) -> Mapping[str, Subject]:
    """Return all human paths of each row's image and task, by the row's location (`DataRow.where`).

    Rows of one type on the same image with the same search target belong together, whether each row has one path or all
    paths. Rows whose answer cannot be read are skipped here and broken when they are asked.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    by_image: dict[tuple[str, str], dict[Scanpath, None]] = {}
    for path in paths:
        # Errors are reported when the question is asked.
        with suppress(DataError):
            for row in rows(folder, path, question_type, images=False):
                if type_of(row) is None:
                    continue
                with suppress(DataError):
                    path_cell = row.values.get("real_image_path")
                    image = path_cell if isinstance(path_cell, str) and path_cell else row.where
                    # Rows that differ only in the requested number of fixations are one task.
                    key, human = (image, re.sub(r"\d+", "", row.text("question"))), human_paths(row.text("answer"))
                    groups.setdefault(key, []).append(row.where)
                    by_image.setdefault(key, {}).update(dict.fromkeys(human))
    return {place: Subject(key[0], tuple(by_image[key])) for key, places in groups.items() for place in places}


def of_another_image(pool: Mapping[str, Subject], location: str, seed: str) -> Scanpath | None:
    """Return a random human path of another image, seeded; None if there is no other image."""
    mine = pool[location].image
    others = sorted(place for place, subject in pool.items() if subject.image != mine)
    if not others:
        return None
    rng = random.Random(zlib.crc32(seed.encode()))
    return rng.choice(pool[rng.choice(others)].paths)


def _check_schema(schema: Any, path: Path) -> None:
    import pyarrow as pa

    for column in COLUMNS:
        kind = schema.field(column).type
        if column == "index":
            fits = pa.types.is_integer(kind)
        elif column == "image":
            fits = pa.types.is_struct(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        else:
            fits = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not fits:
            raise DataError(f"{path}, column {column}: the type {kind} cannot be used")


def _literal(text: str) -> Any:
    """Return the value of a JSON or Python literal; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        pass
    except RecursionError as error:
        raise DataError("the answer is nested too deeply") from error
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return None
    except (RecursionError, MemoryError) as error:
        raise DataError("the answer is nested too deeply") from error


def _paths_of(value: Any, depth: int = 0) -> Iterator[Scanpath]:
    if depth > 3:
        raise DataError("the answer is nested too deeply")
    if isinstance(value, dict):
        axes = {str(key).strip().upper(): content for key, content in value.items()}
        if {"X", "Y"} <= axes.keys():
            yield from _from_axes(axes)
        else:
            for content in value.values():
                yield from _paths_of(content, depth + 1)
    elif (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(item, list | tuple) and len(item) in (2, 3) and all(map(_is_number, item)) for item in value)
    ):
        times = tuple(float(point[2]) for point in value if len(point) == 3)
        yield Scanpath(tuple(float(p[0]) for p in value), tuple(float(p[1]) for p in value), times)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from _paths_of(item, depth + 1)
    else:
        raise DataError(f"{value!r:.60} is not a scanpath")


def _from_axes(axes: Mapping[str, Any]) -> Iterator[Scanpath]:
    """Yield one path from three lists of numbers, several from three lists of lists."""
    columns = [axes["X"], axes["Y"], axes.get("T", [])]
    if not all(isinstance(column, list | tuple) for column in columns):
        raise DataError("X, Y and T must be lists")
    if columns[0] and all(isinstance(item, list | tuple) for item in columns[0]):
        if not len(columns[0]) == len(columns[1]) or len(columns[2]) not in (0, len(columns[0])):
            raise DataError(f"{len(columns[0])}, {len(columns[1])} and {len(columns[2])} lists do not form scanpaths")
        for x, y, t in zip(columns[0], columns[1], columns[2] or [[]] * len(columns[0]), strict=True):
            yield from _from_axes({"X": x, "Y": y, "T": t})
        return
    if not all(_is_number(item) for column in columns for item in column):
        raise DataError("X, Y and T must hold numbers")
    yield Scanpath(*(tuple(float(item) for item in column) for column in columns))


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool)


def _check_path(path: Scanpath, name: str) -> None:
    if len(path.x) != len(path.y) or len(path.t_ms) not in (0, len(path.x)):
        raise DataError(f"{name}: lists of {len(path.x)}, {len(path.y)} and {len(path.t_ms)} values")
    if len(path.x) < MIN_TRUE_FIXATIONS:
        raise DataError(f"{name} has {len(path.x)} fixation; a human path has at least {MIN_TRUE_FIXATIONS}")
    if not all(math.isfinite(value) for value in (*path.x, *path.y, *path.t_ms)):
        raise DataError(f"{name} has a value that is not finite")
    if not all(-OUTSIDE <= value <= 1 + OUTSIDE for value in (*path.x, *path.y)):
        raise DataError(f"{name} has coordinates outside the image; they must be fractions of its width and height")
    if any(value < 0 for value in path.t_ms):
        raise DataError(f"{name} has a negative duration")
