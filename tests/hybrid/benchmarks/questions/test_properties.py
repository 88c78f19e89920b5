"""Readers and parsers on any input: they return a question or a broken row, or raise `DataError`, and no other
error."""

import contextlib
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.questions.options import PATTERNS, split
from hybrid.benchmarks.questions.schema import layout_of, recipe_of
from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import BrokenQuestion, Question

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
CELL = JSON | st.sampled_from(["red.png", "A", "yes", "3", "choice", "box", "[1, 2, 3, 4]", "0,5", "one|two"])
COLUMNS = ("id", "image", "question", "choices", "answer", "kind", "task", "tolerance", "group", "cluster", "hint")
ROW = st.fixed_dictionaries({}, optional=dict.fromkeys(COLUMNS, CELL))


@settings(max_examples=50)
@given(rows=st.lists(ROW, min_size=1, max_size=4))
def test_any_json_is_read(table_writer: Any, rows: list[dict[str, object]]) -> None:
    path = table_writer.table([table_writer.row(), *rows])
    try:
        result = table_writer.read_questions(path)
    except DataError:
        return
    assert len(result) == len(rows) + 1
    assert all(isinstance(item, Question | BrokenQuestion) for item in result)
    assert all(str(path) in entry.error for entry in result if isinstance(entry, BrokenQuestion))


@settings(max_examples=50)
@given(content=st.binary(max_size=200), ending=st.sampled_from([".jsonl", ".csv", ".tsv", ".parquet"]))
def test_any_bytes_are_read_or_refused(table_writer: Any, content: bytes, ending: str) -> None:
    path = table_writer.folder / f"any{ending}"
    path.write_bytes(b"id,question,answer,image\n" + content if ending == ".csv" else content)
    try:
        result = table_writer.read_questions(path)
    except DataError:
        return
    assert all(isinstance(item, Question | BrokenQuestion) for item in result)


@settings(max_examples=50)
@given(
    text=st.text(max_size=80) | st.sampled_from(["columns: {id: [a, b]}", "hub: {}", "metrics: [f1]", "prompt: '{'"])
)
def test_any_yaml_is_a_mapping_or_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(text.encode(errors="replace"))
    for read in (layout_of, recipe_of):
        # Only `UsageError` may be raised; every other error fails the test.
        with contextlib.suppress(UsageError):
            read(path)


@given(
    st.sampled_from(sorted(PATTERNS)),
    st.text(max_size=60),
    st.lists(st.text("xyz ", min_size=1), min_size=2, max_size=4),
)
def test_options_are_found_as_they_were_written(pattern: str, text: str, options: list[str]) -> None:
    split(pattern, text)
    if "(a)" in pattern:
        output = " ".join(
            f"({letter}) {option.strip() or 'x'}" for letter, option in zip("ABCD", options, strict=False)
        )
        assert split(pattern, f"Q {output}") == ("Q", tuple(option.strip() or "x" for option in options))
