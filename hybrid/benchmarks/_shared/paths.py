"""Paths named in a data set: no path may lead out of the data set's folder, and only regular files are read.

    content = read_located(folder, row.text("image"), row.where)

A data set is not trusted: a name in it may be absolute, contain `..`, a drive, a URL or a NUL, or be a link out of the
folder. A file of the data set may be a pipe without a writer. Every such name raises a `DataError` with the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath

from hybrid.core.errors import DataError
from hybrid.core.images import read_image_file

# Maximum length of a file name, in characters.
MAX_NAME = 1024

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def refused(name: str) -> str | None:
    """Return why a name cannot be a file name in a data set, or None if it can; the disk is not read."""
    if len(name) > MAX_NAME:
        return f"a name of {len(name):,} characters"
    if any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in name):
        return "a name with characters that file names cannot have"
    # These rules are the same on every system, so that a data set that works here works elsewhere.
    if name.startswith("/") or PureWindowsPath(name).anchor:
        return "an absolute path"
    return "a URL" if _SCHEME.match(name) else None


def inside(folder: Path, path: Path) -> Path | None:
    """Return the regular file at `path`, following links; None if there is none or it is outside `folder`."""
    try:
        root, real = folder.resolve(), path.resolve()
        belongs = real.is_relative_to(root)
        if not belongs:
            # In the hub's cache, the files of a snapshot are links to files in `blobs`, a sibling of the folder
            # `snapshots`. The data may be in a subfolder of the snapshot.
            snapshot = next(
                (directory for directory in (root, *root.parents) if directory.parent.name == "snapshots"), None
            )
            belongs = snapshot is not None and real.parent == snapshot.parent.parent / "blobs"
        return real if belongs and real.is_file() else None
    except (OSError, RuntimeError, ValueError):
        return None


def located(folder: Path, name: str, below: Sequence[str] = ("",)) -> Path | None:
    """Return a file that a row names, relative to one of the folders `below`; None if it is missing or outside."""
    if refused(name) is not None:
        return None
    paths = (inside(folder, folder / base / name) for base in below)
    return next((path for path in paths if path is not None), None)


def read_located(folder: Path, name: str, location: str, below: Sequence[str] = ("",)) -> bytes:
    """Return the content of the file that `located` finds.

    Raises `DataError` if it is missing or larger than an image may be.
    """
    if reason := refused(name):
        raise DataError(f"{location}: {name!r:.80} is {reason}, not a file inside {folder}")
    path = located(folder, name, below)
    if path is None:
        # `os.path.isfile` is used, because `Path.is_file` raises for a name that is too long.
        leads_out = ".." not in Path(name).parts and any(os.path.isfile(folder / base / name) for base in below)
        reason = ": it is a link to a file outside the folder, which is not followed" if leads_out else ""
        raise DataError(f"{location}: no file {name!r:.120} inside {folder}{reason}")
    try:
        return read_image_file(path, f"{location}: {name!r:.80}")
    except OSError as error:
        raise DataError(f"{location}: {name!r:.80} cannot be read ({error.strerror})") from error


def check_table(folder: Path, path: Path) -> None:
    """Raise `DataError` unless a table is a regular file inside the folder."""
    if inside(folder, path) is None:
        raise DataError(f"{path} is not a regular file inside {folder}")
