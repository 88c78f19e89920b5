"""Prompt texts written for this project because the data sets have none: files such as `benchmarks/NAME/texts.toml`.

`--prompts FILE` replaces single texts; the texts in force are hashed into the manifest.
"""

from __future__ import annotations

import hashlib
import json
import string
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from hybrid.core.errors import DataError, UsageError
from hybrid.core.files import read_small
from hybrid.plugins.registry import names


@cache
def read_texts(path: Path, replacement: Path | None = None) -> Mapping[str, str]:
    """Read the texts of a file by name; texts in `replacement` override them.

    The replacement has tables `[NAME]` of texts, where NAME is the name of the file's folder. A missing file has no
    texts.

    Raises:
        UsageError: the replacement cannot be read, replaces nothing, or names an unknown benchmark, text or
            placeholder.
        DataError: the file itself is not a table of texts.
    """
    defaults = _texts(tomllib.loads(path.read_text()), str(path)) if path.exists() else {}
    if replacement is None:
        return defaults
    try:
        tables = tomllib.loads(read_small(replacement).decode())
    except OSError as error:
        raise UsageError(f"--prompts {replacement}: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"--prompts {replacement}: {error}") from error
    owner = path.parent.name
    benchmarks = names("hybrid.benchmarks")
    if strange := [name for name in tables if name not in benchmarks]:
        raise UsageError(f"--prompts {replacement}: no benchmark is called {strange[0]!r}; write a table [{owner}]")
    if owner not in tables:
        raise UsageError(f"--prompts {replacement}: it has no table [{owner}], so it would replace nothing")
    replacements = _texts(tables.get(owner, {}), f"{replacement} [{owner}]")
    for name, text in replacements.items():
        if name not in defaults:
            raise UsageError(f"--prompts {replacement}: {owner} has no text {name!r}; it has: {', '.join(defaults)}")
        if extra := _fields(text) - _fields(defaults[name]):
            raise UsageError(f"--prompts {replacement}: {name} has no placeholder {', '.join(sorted(extra))}")
    return {**defaults, **replacements}


def text_hash(texts: Mapping[str, str]) -> str:
    """Return one sha256 of the texts and their names, for the manifest."""
    return hashlib.sha256(json.dumps(dict(texts), sort_keys=True).encode()).hexdigest()


def _texts(table: object, source: str) -> dict[str, str]:
    if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
        raise DataError(f"{source}: expected a table of texts")
    return dict(table)


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}
