"""Reads images that other programs pass in a call: as data, or by name from one folder.

    read_image("data:image/png;base64,iVBORw0KGgo...", None)
    read_image("iVBORw0KGgo...", None)
    read_image({"data": "iVBORw0KGgo..."}, None)
    read_image("holiday/photo.jpg", Folder(Path("pictures")))

A call may be written by a model that read a hostile page, so a name can only select a regular file below the one folder
that a person has allowed. No URL is fetched.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hybrid.core.errors import DataError, UsageError

# Maximum bytes of an image file.
MAX_BYTES = 64 * 1024 * 1024
DATA_URL = re.compile(r"data:[\w.+/-]*(;[\w.+=-]+)*;base64,", re.IGNORECASE)
# First bytes of files in the supported formats.
IMAGE_BYTES = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP|BM.{4}\0{4}|II\*\0|MM\0\*"
    rb"|.{4}ftyp(?:avi[fs]|m[is]f1)",
    re.DOTALL,
)
# Minimum characters of plain base64: every image file has at least 24 bytes.
MIN_CHARACTERS = 32
# Maximum characters of a name shown in an error.
SHOWN = 80


@dataclass(frozen=True)
class Folder:
    """A folder whose image files may be named. Links below it are not followed.

    Raises:
        UsageError: the folder does not exist.
    """

    path: Path

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise UsageError(f"{self.path} is not a folder")

    def read(self, name: str) -> bytes:
        """Return the bytes of a file below the folder.

        Args:
            name: its path relative to the folder, with `/` between the parts.

        Raises:
            DataError: the name is not a regular file below the folder, or has more than `MAX_BYTES`. The message does
                not reveal whether something exists elsewhere under that name.
        """
        parts = name.split("/")
        absent = DataError(f"the allowed folder has no image {name!r:.{SHOWN}}")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise absent
        try:
            handle = self._opened(parts)
        except (OSError, UnicodeError):
            raise absent from None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise absent
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        finally:
            os.close(handle)
        return _of_a_size(data, f"image {name!r:.{SHOWN}}")

    def _opened(self, parts: list[str]) -> int:
        """Open the file one folder at a time, so that links created meanwhile are not followed either."""
        place = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
                os.close(place)
                place = below
            # Do not block: a pipe would wait until its other end is opened.
            return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
        finally:
            os.close(place)


def read_image(value: object, folder: Folder | None) -> bytes:
    """Return the bytes of an image argument: a data URL, base64, `{"data": BASE64}`, or a name.

    A string counts as base64 if it begins like the base64 of an image file. The bytes are validated later, by
    `ImageStore.put`.

    Args:
        value: a string or a mapping from JSON. Other keys of a mapping (`type`, `mimeType`) are not trusted.
        folder: the folder whose images may be named; None if names are not permitted.

    Raises:
        DataError: none of these forms, invalid base64, no such file, or more than `MAX_BYTES`.
    """
    if isinstance(value, Mapping):
        data = value.get("data")
        if not isinstance(data, str):
            raise DataError('an image given as an object must have its bytes as base64 under "data"')
        return _decoded(data)
    if not isinstance(value, str):
        raise DataError(f"an image is a string or an object, not {type(value).__name__}")
    if head := DATA_URL.match(value):
        return _decoded(value[head.end() :])
    begins = b""
    if len(value) >= MIN_CHARACTERS:
        with suppress(ValueError):
            begins = base64.b64decode(value.lstrip()[:24], validate=True)
    if IMAGE_BYTES.match(begins):
        return _decoded(value)
    if value[:5].lower() == "data:" or folder is None:
        takes = "a data URL (data:image/png;base64,...), its base64" + (
            "" if folder is None else " or a name in the allowed folder"
        )
        raise DataError(f"{value!r:.{SHOWN}} is not an accepted image: give {takes}")
    return folder.read(value)


def _decoded(text: str) -> bytes:
    if len(text) > MAX_BYTES * 2:
        raise DataError(f"an image has more than {MAX_BYTES:,} bytes")
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"the data of an image is not base64 ({error})") from error
    return _of_a_size(data, "an image")


def _of_a_size(data: bytes, what: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise DataError(f"{what} has more than {MAX_BYTES:,} bytes")
    return data
