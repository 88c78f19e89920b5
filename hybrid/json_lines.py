"""Files of JSON lines: every object with its place, so that an error can name file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid.errors import DataError


def json_lines(path: Path, data: bytes | None = None) -> Iterator[tuple[dict[str, Any], str]]:
    """Every object of the file (`data`, where it has been read) with its place. Raises `DataError` for anything else.

    Only a line feed ends a line: a JSON text may hold U+2028 and its like as they are.
    """
    try:
        lines = (path.read_bytes() if data is None else data).split(b"\n")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error})") from error
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where}: not JSON ({error})") from error
        if not isinstance(values, dict):
            raise DataError(f"{where}: expected an object, found {type(values).__name__}")
        yield values, where
