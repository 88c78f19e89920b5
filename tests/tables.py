"""Rows of a parametrized test, read from the file of tables beside it: `test_x.tsv` for `test_x.py`.

A table begins with `[name]` and a line of argument names. A cell is JSON if it can be parsed as such, else the text
itself; an array is a tuple unless a list is requested. A line that begins with `# ` gives the reason of the
next row.
"""

import dataclasses
import functools
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


@functools.cache
def _tables(file: Path) -> dict[str, list[list[str]]]:
    results: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    # The interpreter and the folder of the tests.
    text = file.read_text(encoding="utf-8").replace("{PYTHON}", sys.executable)
    for line in text.replace("{TESTS}", Path(__file__).parent.as_posix()).split("\n"):
        # A cell may be an array, which begins and ends as a heading does.
        if heading := re.fullmatch(r"\[([A-Za-z_][\w ]*)\]", line):
            rows = results[heading[1]] = []
        elif line and not line.startswith("# "):
            rows.append(line.split("\t"))
    return results


def _cell(text: str, arrays: Callable[[Iterable[Any]], Any]) -> Any:
    def nested(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: nested(inner) for key, inner in value.items()}
        return arrays(nested(inner) for inner in value) if isinstance(value, list) else value

    try:
        return nested(json.loads(text))
    except ValueError:
        return text


def cases(
    file: str, name: str, arrays: Callable[[Iterable[Any]], Any] = tuple, **types: Callable[..., Any]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return argument names and rows, for `pytest.mark.parametrize(*cases(__file__, "test_name", kind=Kind))`.

    In the columns named in `types`, values other than null become that type: a dataclass gets an array's items.
    """
    names, *rows = _tables(Path(file).with_suffix(".tsv"))[name]

    def value(column: str, text: str) -> Any:
        read = _cell(text, arrays)
        make = types.get(column)
        if read is None or make is None:
            return read
        return make(*read) if dataclasses.is_dataclass(make) else make(read)

    return tuple(names), [tuple(value(*cell) for cell in zip(names, row, strict=True)) for row in rows]


def every(file: str) -> list[tuple[str, dict[str, Any]]]:
    """Return every row of the tables of a test module: the table's name, and the row as a mapping by column name."""
    return [
        (table, dict(zip(names, row, strict=True)))
        for table in _tables(Path(file).with_suffix(".tsv"))
        for names, rows in [cases(file, table)]
        for row in rows
    ]


def stored(file: str, name: str) -> Any:
    """Return one value of the JSON or TOML file next to a test: `test_x.json` or `test_x.toml` for `test_x.py`."""
    toml = Path(file).with_suffix(".toml")
    read = tomllib.loads if toml.exists() else json.loads
    return read((toml if toml.exists() else toml.with_suffix(".json")).read_text(encoding="utf-8"))[name]
