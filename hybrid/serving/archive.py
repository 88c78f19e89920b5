"""What can be done with a cache of findings as a whole: its size, pruning, export and import.

A node with a GPU precomputes, `hybrid tools cache export` packs, and a laptop imports: the same requests then find
their findings. An archive is a tar of `findings/KEY.json` and `images/SHA256`; everything in it is checked when it is
read, and nothing is written outside the two folders.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid.errors import DataError
from hybrid.images import write_atomic
from hybrid.serving.cache import FindingCache, codec

KEY = re.compile(r"findings/([0-9a-f]{64})\.json")
IMAGE = re.compile(r"images/([0-9a-f]{64})")
DAY_S = 86_400.0


@dataclass(frozen=True)
class Size:
    """How much a cache holds."""

    findings: int
    findings_bytes: int
    pictures: int
    pictures_bytes: int


def entries(cache: FindingCache) -> Iterator[Path]:
    """The files of a cache, sorted by key."""
    if cache.folder is not None:
        yield from sorted(cache.folder.glob("[0-9a-f][0-9a-f]/*.json"))


def pictures(cache: FindingCache) -> frozenset[str]:
    """The sha256 of every picture that a readable finding shows."""
    found = (cache.get(path.stem) for path in entries(cache))
    return frozenset(ref.image.sha256 for finding in found if finding for ref in finding.images)


def size(cache: FindingCache) -> Size:
    """Number and bytes of findings, and of the pictures that they show."""
    files = list(entries(cache))
    shown = [cache.store.path(sha) for sha in pictures(cache)]
    return Size(len(files), _bytes(files), len(shown), _bytes(shown))


def _bytes(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def prune(cache: FindingCache, older_than_days: float) -> int:
    """Remove findings written longer ago, and the pictures that only they showed. Returns how many findings."""
    limit = time.time() - older_than_days * DAY_S
    before = pictures(cache)
    removed = 0
    for path in list(entries(cache)):
        if path.stat().st_mtime < limit:
            path.unlink(missing_ok=True)
            removed += 1
    # Images of questions lie in the same store: only what no finding shows any more may go.
    for sha in before - pictures(cache):
        cache.store.path(sha).unlink(missing_ok=True)
    return removed


def export(cache: FindingCache, archive: Path) -> Size:
    """Pack every readable finding and its pictures into a tar file."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w") as tar:
        for path in entries(cache):
            if cache.get(path.stem) is not None:
                tar.add(path, f"findings/{path.name}")
        for sha in sorted(pictures(cache)):
            tar.add(cache.store.path(sha), f"images/{sha}")
    return size(cache)


def import_archive(cache: FindingCache, archive: Path) -> int:
    """Unpack an archive into a cache. Returns how many findings.

    Raises:
        DataError: the file is no archive of ours: another member, a finding that is none, a picture of another hash.
    """
    if cache.folder is None:
        raise DataError("this cache keeps nothing")
    count = 0
    try:
        with tarfile.open(archive, "r") as tar:
            for member in tar:
                file = tar.extractfile(member)
                if file is None:
                    raise DataError(f"{archive}: {member.name} is not a file")
                count += _take(cache, member.name, file.read(), archive)
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"{archive} is not an archive of findings ({error})") from error
    return count


def _take(cache: FindingCache, name: str, data: bytes, archive: Path) -> int:
    """Keep one member. Returns how many findings it was."""
    if match := KEY.fullmatch(name):
        try:
            finding = codec().validate_json(data)
        except ValueError as error:
            raise DataError(f"{archive}: {name} is not a finding") from error
        cache.put(match[1], finding)
        return 1
    if match := IMAGE.fullmatch(name):
        if hashlib.sha256(data).hexdigest() != match[1]:
            raise DataError(f"{archive}: {name} has other bytes than its name says")
        write_atomic(cache.store.path(match[1]), data)
        return 0
    raise DataError(f"{archive}: {name} does not belong in an archive of findings")
