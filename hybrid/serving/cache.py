"""Tool outputs on disk, keyed by everything that affects them, and shared by all solvers, runs and processes.

A key covers the tool, the hash of its code (`sources.py`), backend, version (with the hash of the weights), device
kind, precision, arguments, image hashes, and the same for the tools it needs. An entry is one small JSON file, written
atomically; its pictures are in the image store. Both folders can be copied to another machine.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid.core.errors import DataError
from hybrid.core.files import write_atomic
from hybrid.core.images import ImageStore
from hybrid.core.types import SHA256, Finding, Json, StoredImage
from hybrid.display.notes import tell
from hybrid.log.codec import codec

log = logging.getLogger(__name__)

DAY_S = 86_400.0
# A picture of a cached output names the input that it shows by number, from 0; these are the valid names.
INPUT = frozenset(map(str, range(1000)))


def finding_of(data: bytes) -> Finding:
    """Parse and validate a file of the cache, which another program may have written.

    Raises:
        ValueError: the file contains no tool output, an image in it is invalid (`hybrid.core.types.StoredImage`), a
            picture shows no input, or a number is not finite.
    """
    finding: Finding = codec(Finding).validate_json(data)
    # Reject values that are not finite or not UTF-8, because they would change when written again.
    json.dumps(finding.data, allow_nan=False, ensure_ascii=False).encode()
    finding.text.encode()
    if not 0.0 <= finding.confidence <= 1.0:
        raise ValueError(f"a confidence of {finding.confidence}, which is outside 0..1")
    for ref in finding.images:
        box = ref.box
        numbers = (ref.scale, *((box.x0, box.y0, box.x1, box.y1) if box else ()))
        is_of_an_input = not ref.name and ref.parent in INPUT and all(map(math.isfinite, numbers)) and ref.scale > 0
        if not is_of_an_input:
            raise ValueError("a picture that shows no input of the tool")
    return finding


class FindingCache:
    """A folder of tool outputs; with `None` as the folder nothing is cached."""

    def __init__(self, folder: Path | None, store: ImageStore) -> None:
        self.folder = folder
        self.store = store
        self._told_damage = False

    def get(self, key: str) -> Finding | None:
        """Return the cached output of a key, or None if it or one of its pictures is missing or damaged.

        A note reports the first damaged picture in a process; the tool is then called again and rewrites it.
        """
        finding = self.find(key)
        for ref in finding.images if finding else ():
            try:
                self.store.read(ref.image)
            except DataError as error:
                self._tell_damage(ref.image, error)
                return None
        return finding

    def find(self, key: str) -> Finding | None:
        """Return the cached output of a key without reading its pictures, or None if missing or unreadable."""
        if self.folder is None:
            return None
        try:
            return finding_of(self._path(key).read_bytes())
        except (OSError, ValueError):
            return None

    def _tell_damage(self, image: StoredImage, error: DataError) -> None:
        path = self.store.path(image.sha256)
        # A deleted picture is made again silently.
        if not path.exists():
            return
        log.info("%s; the tool is called again", error)
        if not self._told_damage:
            self._told_damage = True
            tell(
                f"note: {path} is no longer the picture that a tool made, so the tool is called again; "
                "further cases are in log.txt"
            )

    def put(self, key: str, finding: Finding) -> None:
        """Save a tool output. Raises `DataError` for a key that is not a sha256, which could name another file."""
        if self.folder is not None:
            write_atomic(self._path(key), codec(Finding).dump_json(finding))

    def _path(self, key: str) -> Path:
        assert self.folder is not None  # noqa: S101 - both callers have checked it
        if not SHA256.fullmatch(key):
            raise DataError(f"{key[:80]!r} is not a key of the cache")
        return self.folder / key[:2] / f"{key}.json"


def key_of(*parts: Json) -> str:
    """Return the sha256 of some JSON, independent of the order of mapping keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def without_overlays(key: str) -> str:
    """Return the key of the same output without overlays."""
    return key_of(key, "without overlays")


@dataclass(frozen=True)
class Size:
    """The size of a cache: numbers of outputs and of pictures, and the bytes of their files."""

    findings: int
    findings_bytes: int
    pictures: int
    pictures_bytes: int


def entries(cache: FindingCache) -> Iterator[Path]:
    """Yield the files of a cache, sorted by key: only regular files under valid keys; links are not followed."""
    if cache.folder is None:
        return
    for path in sorted(cache.folder.glob("[0-9a-f][0-9a-f]/*.json")):
        if SHA256.fullmatch(path.stem) and path.parent.name == path.stem[:2] and _is_inside(path):
            yield path


def _is_inside(path: Path) -> bool:
    """Return whether a file of a store is a regular file in a real folder, not a link."""
    return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()


def pictures(cache: FindingCache) -> frozenset[str]:
    """Return the sha256 of every picture that a readable output shows."""
    readable = filter(None, (cache.find(path.stem) for path in entries(cache)))
    return frozenset(ref.image.sha256 for finding in readable for ref in finding.images)


def size(cache: FindingCache) -> Size:
    """Return number and bytes of outputs, and of the pictures that they show."""
    files = list(entries(cache))
    picture_paths = [path for sha in pictures(cache) if (path := cache.store.path(sha)).exists()]
    findings_bytes, pictures_bytes = (sum(path.stat().st_size for path in paths) for paths in (files, picture_paths))
    return Size(len(files), findings_bytes, len(picture_paths), pictures_bytes)


def prune(cache: FindingCache, older_than_days: float) -> int:
    """Remove outputs older than `older_than_days`, and pictures that only these show; return the number of outputs."""
    limit = time.time() - older_than_days * DAY_S
    old_pictures = pictures(cache)
    old = [path for path in entries(cache) if path.stat().st_mtime < limit]
    for path in old:
        path.unlink(missing_ok=True)
    # Images of questions are in the same store, so only delete pictures that were in outputs and are in none any more.
    for sha in old_pictures - pictures(cache):
        path = cache.store.path(sha)
        if _is_inside(path):
            path.unlink(missing_ok=True)
    return len(old)
