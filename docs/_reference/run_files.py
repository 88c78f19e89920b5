"""The page of the files of a run: their paths, and the fields of each record, from the types of these records."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any

from _reference.markdown import Page, code, escaped, prose, table
from hybrid import log
from hybrid.core.types import Attempt, BrokenQuestion, Exchange, Prompt, Question, Reply, Score, Step, Usage
from hybrid.log import manifest
from hybrid.log.attempts import Unfinished

RECORDS: tuple[tuple[str, str, tuple[type, ...]], ...] = (
    (
        "questions.jsonl",
        "One line per question, with its target; a row that could not be read is a `BrokenQuestion`.",
        (Question, BrokenQuestion),
    ),
    (
        "attempts.jsonl",
        "One line per question; `steps`, the last key, holds each ask's steps; `Unfinished` says why there are none.",
        (Attempt, Exchange, Prompt, Reply, Usage, Step, Unfinished),
    ),
    ("scores.jsonl", "One line per question, sorted by id.", (Score,)),
)
"""For each file, its content, and the types of its records from the outermost to the innermost."""


def pages() -> tuple[Page, ...]:
    """The one page."""
    return (Page("reference/run-files.md", "Files of a run", "\n\n".join(_sections()) + "\n"),)


def _sections() -> Iterator[str]:
    told = inspect.cleandoc(log.__doc__ or "").split("\n\n")
    listing = next(part for part in told if part.startswith("RUN/"))
    yield "# Files of a run"
    yield prose(told[0])
    places = [re.split(r"\s{2,}", line, maxsplit=1) for line in listing.splitlines()]
    yield table(("file", "what it holds"), [(code(path), escaped(about)) for path, about in places])
    yield from (prose(part) for part in told[told.index(listing) + 1 :])
    yield "## manifest.json"
    yield prose(manifest.__doc__ or "")
    for name, about, types in RECORDS:
        yield f"## {name}"
        yield about
        for kind in types:
            yield f"### {kind.__name__} {{ #{kind.__name__.lower()} }}"
            yield prose(kind.__doc__ or "")
            yield table(("field", "type", "default", "what it is"), _fields(kind))


def _fields(kind: type) -> list[tuple[str, ...]]:
    said = _said(kind)
    return [
        (code(one.name), code(str(one.type)), _default(one), escaped(said.get(one.name, ""))) for one in fields(kind)
    ]


def _default(field: Any) -> str:
    if field.default is not MISSING:
        value = field.default.value if isinstance(field.default, Enum) else field.default
        return code(repr(value)) if isinstance(value, str | int | float | tuple) or value is None else "empty"
    return "always there" if field.default_factory is MISSING else "empty"


def _said(kind: type) -> dict[str, str]:
    """Return the docstring below each field in the source."""
    (node,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(node, ast.ClassDef)  # noqa: S101 - the source defines a class
    docs = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            value = below.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docs[field.target.id] = " ".join(value.value.split())
    return docs
