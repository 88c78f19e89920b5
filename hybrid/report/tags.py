"""Tags: people's notes about the questions of an error sheet, saved by the pages and read back.

    tags = read_tags(Path("tags.json"))
    hybrid report RUN -o site --tags tags.json       # counts them by task and by solver

A file is `{"format": 1, "tags": [{"benchmark", "question", "solver", "tag", "note"}]}`. `note` is optional; a row with
a note may have an empty tag.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from hybrid.core.errors import DataError
from hybrid.core.files import read_small
from hybrid.display.tables import Column, Table
from hybrid.report.payload import Tag

FORMAT = 1
COLUMNS = tuple(field.name for field in fields(Tag))
NO_TAG = "(a note alone)"  # Tag under which a note without a tag is counted
UNKNOWN_SHOWN = 5


def read_tags(path: Path) -> tuple[Tag, ...]:
    """Read the tags of a file, in its order.

    Raises:
        DataError: invalid file; the message names the row, from 1, and the error.
    """
    try:
        content = json.loads(read_small(path).decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text in UTF-8 ({error})") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error})") from error
    if not isinstance(content, dict) or not isinstance(content.get("tags"), list):
        raise DataError(f"{path}: expected an object with a list `tags`")
    if content.get("format") != FORMAT:
        raise DataError(f"{path}: expected tags of format {FORMAT}, found {content.get('format')!r}")
    tags: dict[Tag, int] = {}
    for number, row in enumerate(content["tags"], 1):
        location = f"{path}, row {number}"
        if not isinstance(row, dict):
            raise DataError(f"{location}: expected an object, found {type(row).__name__}")
        if (first := tags.setdefault(_tag(row, location), number)) != number:
            raise DataError(f"{location}: the same as row {first}")
    return tuple(tags)


def _tag(row: Mapping[str, Any], location: str) -> Tag:
    for name in (*row, *COLUMNS):
        if name not in COLUMNS:
            raise DataError(f"{location}: unknown field {name!r}; available: {', '.join(COLUMNS)}")
        value = row.get(name, "" if name == "note" else None)
        if not isinstance(value, str):
            raise DataError(
                f"{location}: {name} must be a text, found {'none' if value is None else type(value).__name__}"
            )
    tag = Tag(**row)
    if not tag.question:
        raise DataError(f"{location}: question is empty")
    if not (tag.tag or tag.note):
        raise DataError(f"{location}: tag and note are empty")
    return tag


def check_tags(
    tags: Sequence[Tag], contents: Mapping[str, tuple[Collection[str], Collection[str]]], path: Path
) -> None:
    """Raise `DataError` for tags of benchmarks, solvers or questions that a report does not have.

    Args:
        tags: the content of `path`.
        contents: the solvers and the questions of the report by benchmark.
        path: the file, for the message.
    """
    unknown = {}
    for number, tag in enumerate(tags, 1):
        location = f"{path}, row {number}: the report"
        if tag.benchmark not in contents:
            raise DataError(f"{location} has no benchmark {tag.benchmark!r}; it has: {', '.join(contents)}")
        solvers, questions = contents[tag.benchmark]
        if tag.solver not in solvers:
            raise DataError(f"{location} of {tag.benchmark} has no solver {tag.solver!r}; it has: {', '.join(solvers)}")
        if tag.question not in questions:
            unknown[tag.question] = number
    if unknown:
        examples = ", ".join(f"{name!r} (row {number})" for name, number in list(unknown.items())[:UNKNOWN_SHOWN])
        more = f" and {len(unknown) - UNKNOWN_SHOWN} more" if len(unknown) > UNKNOWN_SHOWN else ""
        raise DataError(f"{path}: the report does not have the questions {examples}{more}")


def tag_tables(tags: Sequence[Tag], tasks: Mapping[str, str]) -> tuple[Table, ...]:
    """Return how often each tag was given, by task and by solver; `tasks` is the task of each question.

    A share is relative to the tagged answers of its column. An answer with two tags counts in both rows, so the shares
    of a column may add up to more than 100 %.
    """
    by_task = [(tag.tag or NO_TAG, tasks[tag.question], (tag.question, tag.solver)) for tag in tags]
    by_solver = [(tag.tag or NO_TAG, tag.solver, (tag.question, tag.solver)) for tag in tags]
    return (_crossed("Tags by task", by_task), _crossed("Tags by solver", by_solver))


# A tag, its column, and the tagged answer (question and solver).
Given = tuple[str, str, tuple[str, str]]


def _crossed(title: str, cells: Sequence[Given]) -> Table:
    heads = sorted({head for _, head, _ in cells})

    def cell(name: str | None, head: str | None) -> set[tuple[str, str]]:
        """Return the answers with this tag (None: any) in this column (None: all)."""
        return {it for n, h, it in cells if name in (None, n) and head in (None, h)}

    columns = (*heads, None)
    tagged = [cell(None, head) for head in columns]
    names = sorted({name for name, _, _ in cells}, key=lambda name: (-len(cell(name, None)), name))
    rows = []
    for name in names:
        some = [len(cell(name, head)) for head in columns]
        shares = (f"{n} ({n / len(of):.0%})" if n else "0" for n, of in zip(some, tagged, strict=True))
        rows.append((name, *shares))
    last = ("tagged answers", *(str(len(of)) for of in tagged))
    note = "Shares are of the tagged answers of the column; an answer with several tags counts in each of their rows."
    return Table(title, (Column("tag", "left"), *map(Column, heads), Column("all")), (*rows, last), (note,))
