"""Prompt texts that no data set carries, written for this project: one file a benchmark, `benchmarks/NAME/texts.toml`.

`--prompts FILE` replaces single texts; the words in force are hashed into the manifest.
"""

from __future__ import annotations

import hashlib
import json
import string
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from hybrid.errors import DataError, UsageError

FOLDER = Path(__file__).parent / "benchmarks"


@cache
def words(benchmark: str, replacement: Path | None = None) -> Mapping[str, str]:
    """The texts of a benchmark by name, those of `replacement` (`[NAME]` tables of texts) in their place.

    Raises:
        UsageError: the replacement cannot be read, or names a text or placeholder that ours does not have.
        DataError: our own file is not a table of texts.
    """
    path = FOLDER / benchmark / "texts.toml" if benchmark != "judge" else FOLDER.parent / "scoring" / "judge.toml"
    ours = _texts(tomllib.loads(path.read_text()), str(path)) if path.exists() else {}
    if replacement is None:
        return ours
    try:
        tables = tomllib.loads(replacement.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"--prompts {replacement}: {error}") from error
    theirs = _texts(tables.get(benchmark, {}), f"{replacement} [{benchmark}]")
    for name, text in theirs.items():
        if name not in ours:
            raise UsageError(f"--prompts {replacement}: {benchmark} has no text {name!r}; it has: {', '.join(ours)}")
        if extra := _fields(text) - _fields(ours[name]):
            raise UsageError(f"--prompts {replacement}: {name} has no placeholder {', '.join(sorted(extra))}")
    return {**ours, **theirs}


def text_hash(texts: Mapping[str, str]) -> str:
    """One sha256 over the texts and their names, for the manifest."""
    return hashlib.sha256(json.dumps(dict(texts), sort_keys=True).encode()).hexdigest()


def _texts(table: object, where: str) -> dict[str, str]:
    if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
        raise DataError(f"{where}: expected a table of texts")
    return dict(table)


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}
