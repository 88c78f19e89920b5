"""MVP-Bench's question files: `all_questions.json` (single run) and `mcq_questions.json` (rotations), both JSON lines.

An error in a file is a `DataError` that names file, line and field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from hybrid.benchmarks._shared.rows import checked_text, json_rows
from hybrid.core.errors import DataError

Task = Literal["yes_no", "cross", "single"]

SINGLE_RUN = "all_questions.json"
ROTATIONS = "mcq_questions.json"

# Pair ids form blocks of one category (Table 5 of the paper); the value is the first id of the block.
_STARTS = "B1 0, B3 51, B2 101, B4 151, R1 200, R2 247, R3 300, I1 347, I2 399, E1 447, E2 500, S1 549, S2 597"
CATEGORY_STARTS = {name: int(first) for name, first in map(str.split, _STARTS.split(","))}
LAST_PAIR = 646

TYPES: Mapping[str, Task] = {"y/n-s": "yes_no", "y/n-e": "yes_no", "mcq-cross": "cross", "mcq-e": "single"}
_IMAGE = re.compile(r"(?:Cross_Images/(\d{1,9})_concat|Single_Images/(\d{1,9})_([se]))\.jpg", re.ASCII)
_ROTATED = re.compile(r"(\d{1,9})__(\d{1,9})__(\d{1,2})", re.ASCII)
_INDEX = re.compile(r"([1-9]\d?)/([1-9]\d?)")


@dataclass(frozen=True)
class PairRow:
    """One question of a file. `rotation` counts from 1 to `rotations`; both are 0 in the single run."""

    id: str
    pair: int
    task: Task
    level: str
    image: str
    text: str
    answer: str
    rotation: int
    rotations: int
    where: str

    @property
    def image_side(self) -> str:
        """The picture of the pair that the question shows: natural, manipulated or both."""
        return {"s": "natural", "e": "manipulated"}.get(Path(self.image).stem.rsplit("_", 1)[1], "both")

    @property
    def number(self) -> int:
        """Official number of the question, without its rotation."""
        return int(self.id.split("#")[0])


def category(pair: int) -> str | None:
    """Return the paper's category of a pair, B1 to S2; None for an id that the data set does not use."""
    if not 0 <= pair <= LAST_PAIR:
        return None
    return max((start, name) for name, start in CATEGORY_STARTS.items() if start <= pair)[1]


def image_of(path: str) -> tuple[int, str] | None:
    """Return pair id and "s", "e" or "concat" of an official image path; None for any other path."""
    match = _IMAGE.fullmatch(path)
    return (int(match[1] or match[2]), match[3] or "concat") if match else None


def variant(question_id: object) -> tuple[str, int] | None:
    """Return hybrid's id and the rotation of an official question id: 462 is the single run, "462__0__3" circ4."""
    if isinstance(question_id, int) and not isinstance(question_id, bool) and 0 <= question_id < 10**9:
        return str(question_id), 0
    match = _ROTATED.fullmatch(question_id) if isinstance(question_id, str) else None
    if match is None:
        return None
    rotation = int(match[3]) + 1
    return f"{int(match[1])}#circ{rotation}", rotation


@dataclass(frozen=True)
class BadLine:
    """A line that is not a question; `task` is None if the line may belong to any task."""

    where: str
    error: str
    task: Task | None


@dataclass(frozen=True)
class QuestionFile:
    """The rows of a question file, in its order, and the lines that are not questions."""

    rows: tuple[PairRow, ...]
    bad: tuple[BadLine, ...]


def question_file(folder: Path, path: Path, *, rotations: bool = False) -> QuestionFile:
    """Read the question file of the single run or, with `rotations`, the file of the rotations.

    The content is cached until the file changes, because every task needs the whole file.

    Raises `DataError` if the file cannot be read, or none of its lines is a question.
    """
    try:
        facts = path.stat()
    except OSError:
        return _read(folder, path, rotations, ())
    return _read(folder, path, rotations, (facts.st_ino, facts.st_size, facts.st_mtime_ns))


@lru_cache(maxsize=2)
def _read(folder: Path, path: Path, rotations: bool, state: tuple[int, ...]) -> QuestionFile:
    del state
    types = None if rotations else TYPES
    rows: dict[str, PairRow] = {}
    bad: list[BadLine] = []
    for values, location in json_rows(folder, path):
        try:
            if isinstance(values, DataError):
                raise values
            row = _row(values, location, types)
        except DataError as error:
            bad.append(BadLine(location, str(error), _task_of(values, types)))
            continue
        if row.id in rows:
            twice = f"{location}, field question_id: {row.id} also appears in {rows[row.id].where}"
            bad.append(BadLine(location, twice, row.task))
        else:
            rows[row.id] = row
    if bad and not rows:
        raise DataError(bad[0].error)
    return QuestionFile(tuple(rows.values()), tuple(bad))


def _task_of(values: Mapping[str, Any] | DataError, types: Mapping[str, Task] | None) -> Task | None:
    """Return the task of a line without a usable question, from its image and type."""
    if isinstance(values, DataError):
        return None
    image, kind = values.get("image"), values.get("type")
    place = image_of(image) if isinstance(image, str) else None
    if place is None:
        return None
    if place[1] == "concat":
        return "cross"
    if types is None:
        return "single"
    return types.get(kind) if isinstance(kind, str) else None


def text_of(values: Mapping[str, Any], name: str, location: str) -> str:
    """Return a field of a line that must be a non-empty text. Raises `DataError` for anything else."""
    value = values.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{location}, field {name}: expected text, found {value!r:.60}")
    return checked_text(value, f"{location}, field {name}")


def _row(values: Mapping[str, Any], location: str, types: Mapping[str, Task] | None) -> PairRow:
    """Parse the row; without `types`, the file has the rotations, and every row has the same `type`."""
    image, level = text_of(values, "image", location), text_of(values, "level", location)
    official, place = variant(values.get("question_id")), image_of(image)
    if official is None or (official[1] > 0) != (types is None):
        raise DataError(f"{location}, field question_id: {values.get('question_id')!r:.60} is not an id of this file")
    if place is None or place[0] != values.get("id"):
        raise DataError(f"{location}, field image: {image!r:.80} is not an image of the pair {values.get('id')!r:.40}")
    if level not in ("low", "high"):
        raise DataError(f"{location}, field level: expected low or high, found {level!r:.40}")
    rotation = count = 0
    if types is None:
        task: Task = "cross" if place[1] == "concat" else "single"
        rotation, index = official[1], _INDEX.fullmatch(text_of(values, "index", location))
        if index is None or int(index[1]) != rotation or rotation > int(index[2]):
            raise DataError(
                f"{location}, field index: {values['index']!r:.40} is not a rotation {rotation} of any question"
            )
        count = int(index[2])
    else:
        kind = text_of(values, "type", location)
        if kind not in types:
            raise DataError(f"{location}, field type: {kind!r:.40} is not one of {', '.join(types)}")
        if place[1] != (kind[-1] if kind != "mcq-cross" else "concat"):
            raise DataError(f"{location}, field type: {kind!r} does not match the image {image!r}")
        task = types[kind]
    text, answer = text_of(values, "question", location), text_of(values, "answer", location)
    return PairRow(
        official[0],
        place[0],
        task=task,
        level=level,
        image=image,
        text=text,
        answer=answer,
        rotation=rotation,
        rotations=count,
        where=location,
    )
