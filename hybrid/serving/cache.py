"""Findings on disk, by everything that decides them: shared by all solvers, runs and processes.

A key holds tool, the hash of its code (`sources.py`), backend, version (with the hash of the weights), device kind,
arguments, image hashes and the same of the tools it needs. An entry is one small JSON file, written atomically; its
pictures lie in the image store.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from hybrid.images import ImageStore, write_atomic
from hybrid.types import Finding, Json


@cache
def codec() -> TypeAdapter[Finding]:
    """How a finding becomes JSON and back."""
    return TypeAdapter(Finding)


class FindingCache:
    """A folder of findings; `None` as the folder keeps nothing."""

    def __init__(self, folder: Path | None, store: ImageStore) -> None:
        self.folder = folder
        self.store = store

    def get(self, key: str) -> Finding | None:
        """The finding of that key, or None when it, or a picture of it, is not there or not readable."""
        if self.folder is None:
            return None
        try:
            finding = codec().validate_json(self._path(key).read_bytes())
        except (OSError, ValueError):
            return None
        present = all(self.store.path(ref.image.sha256).exists() for ref in finding.images)
        return finding if present else None

    def put(self, key: str, finding: Finding) -> None:
        """Keep a finding."""
        if self.folder is not None:
            write_atomic(self._path(key), codec().dump_json(finding))

    def _path(self, key: str) -> Path:
        assert self.folder is not None  # noqa: S101 - both callers have checked it
        return self.folder / key[:2] / f"{key}.json"


def key_of(*parts: Json) -> str:
    """The sha256 of some JSON, independent of the order of mapping keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
