"""The data of the pages as scripts: a browser that reads from disk may load a script, but no JSON.

    script("blink/list", version, values)      # bytes of data/blink/list.js

Each file calls one function of the pages with its name, the version of the report and a JSON text. The text is parsed,
never run, and is pure ASCII: U+2028, half surrogates and null bytes are escapes in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from hybrid.report.payload import BenchmarkPages, Matrix, Overview, QuestionPage, QuestionRow

CHUNK_QUESTIONS = 100
"""Questions in one file of questions, at most: a page loads the file that its question lies in."""
CHUNK_CHARS = 500_000
"""A file of questions ends with the question that brings it over so many characters."""


def script(name: str, version: str, values: Any) -> bytes:
    """A data file: dataclasses become objects of their fields; a number that JSON lacks becomes a string (`nan`)."""
    return wrapped(name, version, as_json(values))


def wrapped(name: str, version: str, text: str) -> bytes:
    """A data file of a text that is JSON already."""
    return f"report.take({json.dumps(name)}, {json.dumps(version)}, {json.dumps(text)});\n".encode("ascii")


def as_json(values: Any) -> str:
    """One line of JSON; characters beyond ASCII stand as they are."""
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except ValueError:
        return json.dumps(_finite(values), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    """What JSON knows no form of; `json` calls this for each, which is many times as fast as `asdict`."""
    if is_dataclass(value):
        if hasattr(value, "__dict__"):
            return vars(value)
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no form in a data file")


def _finite(value: Any) -> Any:
    """The value with numbers that are none as strings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    plain = value if isinstance(value, dict | list | tuple) else _plain(value)
    if isinstance(plain, dict):
        return {name: _finite(one) for name, one in plain.items()}
    return [_finite(one) for one in plain]


def coded(values: Iterable[Hashable]) -> dict[str, Any]:
    """A column of which many cells are equal: each value once, and for each row the place of its value."""
    places: dict[Hashable, int] = {}
    codes = [places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "codes": codes}


def question_list(rows: Sequence[QuestionRow], solvers: int, starts: Sequence[int]) -> dict[str, Any]:
    """The list of questions by columns; `starts` has the row that each file of questions begins with.

    Raises:
        ValueError: a row has not one verdict for each solver.
    """
    for row in rows:
        if len(row.verdicts) != solvers:
            raise ValueError(f"question {row.id!r}: {len(row.verdicts)} verdicts for {solvers} solvers")
    return {
        "ids": [row.id for row in rows],
        "tasks": coded(row.task for row in rows),
        "texts": coded(row.text for row in rows),
        "sampled": [place for place, row in enumerate(rows) if row.sampled],
        "starts": list(starts),
        "solvers": [
            {
                "correct": coded(row.verdicts[place].correct for row in rows),
                "outcomes": coded(row.verdicts[place].outcome for row in rows),
                "answers": coded(row.verdicts[place].answer for row in rows),
                "tools": coded(row.verdicts[place].tools for row in rows),
            }
            for place in range(solvers)
        ],
    }


def overview_values(overview: Overview) -> dict[str, Any]:
    """The first page without the ids of its matrices' cells, which `cell_rows` has."""
    values = dict(vars(overview))
    values["sections"] = [
        {**vars(section), "charts": [_without_ids(chart) for chart in section.charts]} for section in overview.sections
    ]
    return values


def _without_ids(chart: Any) -> Any:
    if not isinstance(chart, Matrix):
        return chart
    cells = [{**vars(cell), "ids": bool(cell.ids)} for cell in chart.cells]
    return {**vars(chart), "cells": cells}


def cell_rows(pages: BenchmarkPages) -> dict[str, Any]:
    """For each cell of a matrix that has ids, under `SECTION.CHART.CELL`: the rows that it opens the list with.

    `absent` counts its ids that no row has.
    """
    places = {row.id: place for place, row in enumerate(pages.rows)}
    found = {}
    for section in pages.overview.sections:
        for number, chart in enumerate(section.charts):
            for cell_number, cell in enumerate(chart.cells if isinstance(chart, Matrix) else ()):
                if cell.ids:
                    rows = sorted({places[id_] for id_ in cell.ids if id_ in places})
                    absent = sum(id_ not in places for id_ in cell.ids)
                    found[f"{section.id}.{number}.{cell_number}"] = {"rows": rows, "absent": absent}
    return found


@dataclass(frozen=True)
class Chunk:
    """Some questions that lie in one file."""

    start: int
    """The row of the first."""
    text: str
    """JSON: a list of questions."""
    files: frozenset[str]
    """The images that they show."""


def chunks(questions: Iterable[QuestionPage], rows: Sequence[QuestionRow]) -> Iterator[Chunk]:
    """The questions in files, made as they come.

    Raises:
        ValueError: they are not those of the rows, in their order.
    """
    start, texts, chars, files = 0, list[str](), 0, set[str]()
    place = -1
    for place, page in enumerate(questions):
        if place >= len(rows) or rows[place].id != page.id:
            raise ValueError(f"question {page.id!r} is not that of row {place} of the list")
        text = as_json(page)
        texts.append(text)
        chars += len(text)
        files.update(image_files(page))
        if len(texts) >= CHUNK_QUESTIONS or chars >= CHUNK_CHARS:
            yield Chunk(start, f"[{','.join(texts)}]", frozenset(files))
            start, texts, chars, files = place + 1, [], 0, set()
    if place + 1 != len(rows):
        raise ValueError(f"{place + 1} questions for {len(rows)} rows of the list")
    if texts:
        yield Chunk(start, f"[{','.join(texts)}]", frozenset(files))


def image_files(page: QuestionPage) -> Iterator[str]:
    """The files of all images that a question's page shows."""
    for picture in page.pictures:
        if picture.file is not None:
            yield picture.file
    for solver in page.solvers:
        for ask in solver.asks:
            for part in ask.prompt:
                if not isinstance(part, str) and part.file is not None:
                    yield part.file
            for step in ask.steps:
                for picture in step.pictures:
                    if picture.file is not None:
                        yield picture.file
