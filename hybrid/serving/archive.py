"""What can be done with a cache of findings as a whole: its size, pruning, export and import.

A node with a GPU precomputes, `hybrid tools cache export` packs, and a laptop imports: the same requests then find
their findings. An archive is a plain tar of `findings/KEY.json` and `images/SHA256`, regular files and nothing else. It
is checked as a whole before anything of it is written, and nothing is read, written or removed outside the two folders.
What an archive says is believed as much as who made it: a key says for which request a finding is, not that it is true.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from hybrid.errors import DataError
from hybrid.images import JPEG, PNG, inspect
from hybrid.serving.cache import FindingCache, finding_of
from hybrid.types import SHA256, Finding, StoredImage

FINDING = re.compile(rf"findings/({SHA256.pattern})\.json")
IMAGE = re.compile(rf"images/({SHA256.pattern})")
DAY_S = 86_400.0
BLOCK = tarfile.BLOCKSIZE
MOST_MEMBERS = 2_000_000
MOST_FINDING_BYTES = 32_000_000
MOST_IMAGE_BYTES = 400_000_000
"""Above the PNG of an image of `MAX_PIXELS` pixels."""


@dataclass(frozen=True)
class Size:
    """How much a cache holds."""

    findings: int
    findings_bytes: int
    pictures: int
    pictures_bytes: int


@dataclass(frozen=True)
class Imported:
    """What was taken out of an archive; `known` findings were here already and stay as they are."""

    findings: int
    pictures: int
    known: int


def entries(cache: FindingCache) -> Iterator[Path]:
    """The files of a cache, sorted by key: regular files under a key of their own, links followed nowhere."""
    if cache.folder is None:
        return
    for path in sorted(cache.folder.glob("[0-9a-f][0-9a-f]/*.json")):
        if SHA256.fullmatch(path.stem) and path.parent.name == path.stem[:2] and _is_inside(path):
            yield path


def _is_inside(path: Path) -> bool:
    """Whether a file of a store is a regular one in a real folder, and no link to elsewhere."""
    return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()


def pictures(cache: FindingCache) -> frozenset[str]:
    """The sha256 of every picture that a readable finding shows."""
    return frozenset(sha for _, finding in _readable(cache) for sha in _shown(finding))


def _readable(cache: FindingCache) -> Iterator[tuple[Path, Finding]]:
    for path in entries(cache):
        finding = cache.get(path.stem)
        if finding is not None:
            yield path, finding


def _shown(finding: Finding) -> list[str]:
    return [ref.image.sha256 for ref in finding.images]


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
        path = cache.store.path(sha)
        if _is_inside(path):
            path.unlink(missing_ok=True)
    return removed


def export(cache: FindingCache, archive: Path) -> Size:
    """Pack every readable finding and its pictures into a plain tar file. Returns what is in it.

    Raises:
        DataError: a picture is damaged or lies outside the store.
        OSError: the archive cannot be written; a file that was there is as it was.
    """
    if archive.exists() and not archive.is_file() and not archive.is_dir():
        # A device or a pipe stays what it is: a file in its place would be everybody's.
        with archive.open("wb") as out, tarfile.open(fileobj=out, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
            return _pack(cache, tar)
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_name(f".{archive.name}.{uuid.uuid4().hex[:12]}")
    try:
        with tarfile.open(unfinished, "w", format=tarfile.USTAR_FORMAT) as tar:
            packed = _pack(cache, tar)
        unfinished.replace(archive)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(archive)) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return packed


def _pack(cache: FindingCache, tar: tarfile.TarFile) -> Size:
    shown: dict[str, StoredImage] = {}
    findings = finding_bytes = picture_bytes = 0
    for path, finding in _readable(cache):
        findings += 1
        finding_bytes += _add(tar, f"findings/{path.name}", path.read_bytes(), path)
        shown |= {ref.image.sha256: ref.image for ref in finding.images}
    for sha, image in sorted(shown.items()):
        path = cache.store.path(sha)
        if not _is_inside(path):
            raise DataError(f"{path} is a link: what it leads to does not belong in an archive of findings")
        picture_bytes += _add(tar, f"images/{sha}", cache.store.read(image), path)
    return Size(findings, finding_bytes, len(shown), picture_bytes)


def _add(tar: tarfile.TarFile, name: str, data: bytes, path: Path) -> int:
    """Add a member, without what the file system says of its owner. Returns its bytes."""
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(data), int(path.stat().st_mtime)
    tar.addfile(member, io.BytesIO(data))
    return len(data)


@dataclass(frozen=True)
class _Member:
    """Where the bytes of a member begin in the archive, and their sha256."""

    name: str
    start: int
    size: int
    sha256: str


@dataclass
class _Contents:
    """What is in an archive: its members by name, its images by sha256, the sha256 that each finding shows, by key."""

    members: dict[str, _Member] = field(default_factory=dict)
    images: dict[str, StoredImage] = field(default_factory=dict)
    findings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shown: dict[str, tuple[StoredImage, str]] = field(default_factory=dict)
    """By sha256 what findings say of an image, and the first that says it."""


def import_archive(cache: FindingCache, archive: Path) -> Imported:
    """Check an archive as a whole, then take its findings, but for those that are here already.

    Raises:
        DataError: the file is no archive of ours, with the member that is not: a link, a device, a compressed or sparse
            file, a name of another form or twice, a finding that is none, an image of another hash or that does not
            decode, a picture that is not in it. Nothing is written then. Or the disk is full, with what was taken.
    """
    if cache.folder is None:
        raise DataError("this cache keeps nothing")
    try:
        with archive.open("rb") as file:
            contents = _contents(file, archive)
            return _take(cache, file, contents, archive)
    except OSError as error:
        raise DataError(f"{archive} cannot be read: {error}") from error


def _contents(file: BinaryIO, archive: Path) -> _Contents:
    """Read and check every member. Raises `DataError`."""
    found = _Contents()
    for name, start, data in _members(file, archive):
        if name in found.members:
            raise DataError(f"{archive}: {name} is in it twice")
        if len(found.members) >= MOST_MEMBERS:
            raise DataError(f"{archive}: more than {MOST_MEMBERS:,} members, the next one {name}")
        found.members[name] = _Member(name, start, len(data), hashlib.sha256(data).hexdigest())
        if (match := IMAGE.fullmatch(name)) is not None:
            found.images[match[1]] = _image(name, match[1], data, archive)
        else:
            _note_finding(found, name, data, archive)
    for sha, (image, name) in found.shown.items():
        if found.images.get(sha) != image:
            raise DataError(f"{archive}: {name} shows a picture {sha[:12]} that is not in it, or not like that")
    if unknown := sorted(found.images.keys() - found.shown.keys()):
        raise DataError(f"{archive}: images/{unknown[0]} is shown by no finding in it")
    return found


def _image(name: str, sha256: str, data: bytes, archive: Path) -> StoredImage:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(f"{archive}: {name} has other bytes than its name says")
    image = inspect(data, f"{archive}: {name}")
    if image.media_type not in (PNG, JPEG):
        raise DataError(f"{archive}: {name} is {image.media_type}, and pictures of tools are PNG or JPEG")
    return image


def _note_finding(found: _Contents, name: str, data: bytes, archive: Path) -> None:
    try:
        finding = finding_of(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{archive}: {name} is not a finding ({' '.join(str(error).split())[:250]})") from error
    found.findings[name.removeprefix("findings/").removesuffix(".json")] = tuple(_shown(finding))
    for ref in finding.images:
        if found.shown.setdefault(ref.image.sha256, (ref.image, name))[0] != ref.image:
            raise DataError(f"{archive}: {name} says otherwise than others of the picture {ref.image.sha256[:12]}")


def _members(file: BinaryIO, archive: Path) -> Iterator[tuple[str, int, bytes]]:
    """Name, place of the first byte, and bytes of each member of a plain tar. Raises `DataError`.

    Headers are read one by one: `tarfile` would follow those that change others, unpack what is compressed and fill the
    holes of sparse files. So the bytes of an archive are never more than its file has.
    """
    while block := file.read(BLOCK):
        if not any(block):
            return
        try:
            header = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise DataError(f"{archive} is not an archive of findings: no plain tar ({error})") from error
        _check_header(header, archive)
        start = file.tell()
        data = file.read(header.size)
        padding = -header.size % BLOCK
        if len(data) < header.size or len(file.read(padding)) < padding:
            break
        yield header.name, start, data
    raise DataError(f"{archive} is not a whole archive of findings: its end is missing")


def _check_header(header: tarfile.TarInfo, archive: Path) -> None:
    """Raises `DataError` unless a member is a regular file of ours that is not too large."""
    name = repr(header.name)[:150]
    if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        kind = header.type.decode("ascii", "backslashreplace")
        raise DataError(f"{archive}: {name} is not a plain file (type {kind!r} of tar); `export` writes nothing else")
    most = MOST_FINDING_BYTES if FINDING.fullmatch(header.name) else MOST_IMAGE_BYTES
    if not (FINDING.fullmatch(header.name) or IMAGE.fullmatch(header.name)):
        raise DataError(f"{archive}: {name} does not belong in an archive of findings")
    if not 0 <= header.size <= most:
        raise DataError(f"{archive}: {name} has {header.size:,} bytes; at most {most:,} are taken")


def _take(cache: FindingCache, file: BinaryIO, contents: _Contents, archive: Path) -> Imported:
    """Write what was checked, pictures first, so that no finding is there without its own."""
    new = [key for key in contents.findings if cache.get(key) is None]
    wanted = dict.fromkeys(sha for key in new for sha in contents.findings[key])
    pictures_taken = findings_taken = 0
    try:
        for sha in wanted:
            cache.store.put(_again(file, contents.members[f"images/{sha}"], archive), f"images/{sha}")
            pictures_taken += 1
        for key in new:
            cache.put(key, finding_of(_again(file, contents.members[f"findings/{key}.json"], archive)))
            findings_taken += 1
    except (OSError, DataError) as error:
        raise DataError(
            f"{archive}: {error}; {findings_taken:,} findings and {pictures_taken:,} pictures were taken before, "
            "whole; the same import goes on from there"
        ) from error
    return Imported(findings_taken, pictures_taken, len(contents.findings) - len(new))


def _again(file: BinaryIO, member: _Member, archive: Path) -> bytes:
    """The bytes that were checked. Raises `DataError` where the file has been changed since."""
    file.seek(member.start)
    data = file.read(member.size)
    if hashlib.sha256(data).hexdigest() != member.sha256:
        raise DataError(f"{archive}: {member.name} was changed while it was read")
    return data
