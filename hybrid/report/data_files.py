"""The data of the pages as scripts, because a page opened from disk may load scripts but no JSON.

    script("blink/list", version, values)      # bytes of data/blink/list.js

Each file calls one function of the pages with its name, the report's version and a JSON text. The text is parsed,
never executed, and is pure ASCII: U+2028, unpaired surrogates and null bytes are escaped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from typing import Any

from hybrid.report.payload import Chart, Overview, OverviewSection, QuestionPage
from hybrid.scoring.result import Result

CHUNK_QUESTIONS = 100  # Maximum questions per file of questions; a page loads the file that contains its question
CHUNK_CHARS = 500_000  # A file of questions ends when it exceeds this number of characters


def script(name: str, version: str, values: Any) -> bytes:
    """Return a data file; dataclasses become objects, and numbers that JSON lacks become strings (`nan`)."""
    return wrapped(name, version, as_json(values))


def wrapped(name: str, version: str, text: str) -> bytes:
    """Return a data file for a text that is already JSON."""
    return f"report.take({json.dumps(name)}, {json.dumps(version)}, {json.dumps(text)});\n".encode("ascii")


def as_json(values: Any) -> str:
    """Return one line of JSON, with characters beyond ASCII unescaped."""
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except ValueError:
        return json.dumps(_finite(values), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """Return the names of the fields of a dataclass; None for another type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def _plain(value: Any) -> Any:
    """Convert a value that JSON lacks; `json` calls this for each such value, which is much faster than `asdict`."""
    if isinstance(value, Result):
        return value.as_json()
    kind: Any = type(value)
    if (names := _field_names(kind)) is not None:
        return vars(value) if hasattr(value, "__dict__") else {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be written to a data file")


def _finite(value: Any) -> Any:
    """Return the value with non-finite numbers as strings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    plain = value if isinstance(value, dict | list | tuple) else _plain(value)
    return {name: _finite(plain[name]) for name in plain} if isinstance(plain, dict) else [*map(_finite, plain)]


def overview_values(overview: Overview, places: Mapping[str, int]) -> dict[str, Any]:
    """Return the first page; sections have only title and conclusion, because each section has its own file."""
    heads = [{"id": section.id, "title": section.title, "lead": section.lead} for section in overview.sections]
    return {**vars(overview), "sections": heads, "front": _charts(overview.front, places)}


def section_values(section: OverviewSection, places: Mapping[str, int]) -> dict[str, Any]:
    """Return a section with its charts."""
    return {**vars(section), "charts": _charts(section.charts, places)}


def _charts(charts: Iterable[Chart], places: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return charts with the list rows behind each count (from `places`); `absent` counts the ids without a row."""
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
    """Divide the questions into files as they arrive; yield each file's first row, questions as JSON, and images."""
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
