"""The data of the pages as scripts: a browser that reads from disk may load a script, but no JSON.

    script("blink/list", version, values)      # bytes of data/blink/list.js

Each file calls one function of the pages with its name, the version of the report and a JSON text. The text is parsed,
never run, and is pure ASCII: U+2028, half surrogates and null bytes are escapes in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any

from hybrid.report.payload import Chart, Overview, OverviewSection, QuestionPage
from hybrid.scoring.result import Result

CHUNK_QUESTIONS = 100  # Questions in one file of questions, at most: a page loads the file that its question lies in
CHUNK_CHARS = 500_000  # A file of questions ends with the question that brings it over so many characters


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
    """A value that JSON lacks in one that it has; `json` calls this for each, many times as fast as `asdict`."""
    if isinstance(value, Result):
        return value.as_json()
    if is_dataclass(value):
        return vars(value) if hasattr(value, "__dict__") else {f.name: getattr(value, f.name) for f in fields(value)}
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
    return {name: _finite(plain[name]) for name in plain} if isinstance(plain, dict) else [*map(_finite, plain)]


def overview_values(overview: Overview, places: Mapping[str, int]) -> dict[str, Any]:
    """The first page: of the sections only title and conclusion, as each has a file of its own."""
    heads = [{"id": section.id, "title": section.title, "lead": section.lead} for section in overview.sections]
    return {**vars(overview), "sections": heads, "front": _charts(overview.front, places)}


def section_values(section: OverviewSection, places: Mapping[str, int]) -> dict[str, Any]:
    """A section with its charts."""
    return {**vars(section), "charts": _charts(section.charts, places)}


def _charts(charts: Iterable[Chart], places: Mapping[str, int]) -> list[dict[str, Any]]:
    """Charts with the rows of the list that each count opens, by `places`; `absent` counts ids that no row has."""
    records = []
    for chart in charts:
        rows: list[dict[str, Any]] = [row.as_json() for row in chart.rows]
        for row, values in zip(chart.rows, rows, strict=True):
            if values.pop("ids", None):
                values["questions"] = sorted({places[name] for name in row.ids if name in places})
                values["absent"] = sum(name not in places for name in row.ids)
        records.append({**vars(chart), "rows": rows})
    return records


def chunks(questions: Iterable[QuestionPage]) -> Iterator[tuple[int, str, frozenset[str]]]:
    """The questions in files, made as they come: the row of the first, their list as JSON, and the images in it."""
    start, number, texts, chars, files = 0, 0, list[str](), 0, set[str]()
    for number, page in enumerate(questions, 1):
        text = as_json(page)
        texts.append(text)
        chars += len(text)
        asks = [ask for solver in page.solvers for ask in solver.asks]
        prompts = (part for ask in asks for part in ask.prompt if not isinstance(part, str))
        steps = (picture for ask in asks for step in ask.steps for picture in step.pictures)
        pictures = chain(page.pictures, prompts, steps)
        files.update(picture.file for picture in pictures if picture.file is not None)
        if len(texts) >= CHUNK_QUESTIONS or chars >= CHUNK_CHARS:
            yield start, f"[{','.join(texts)}]", frozenset(files)
            start, texts, chars, files = number, [], 0, set()
    if texts:
        yield start, f"[{','.join(texts)}]", frozenset(files)
