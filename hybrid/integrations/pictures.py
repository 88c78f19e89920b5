"""Images that come from outside with a call: as data, or by a name in one folder.

    read_image("data:image/png;base64,iVBORw0KGgo...", None)
    read_image("iVBORw0KGgo...", None)
    read_image({"data": "iVBORw0KGgo..."}, None)
    read_image("holiday/photo.jpg", Folder(Path("pictures")))

A call may be written by a model that read a hostile page: a name leads to a regular file below the one folder that a
person has allowed, or to nothing. No address is fetched.
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

# Bytes of the largest image file that is taken.
MAX_BYTES = 64 * 1024 * 1024
DATA_URL = re.compile(r"data:[\w.+/-]*(;[\w.+=-]+)*;base64,", re.IGNORECASE)
# How files of the formats that are read begin.
IMAGE_BYTES = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP|BM.{4}\0{4}|II\*\0|MM\0\*"
    rb"|.{4}ftyp(?:avi[fs]|m[is]f1)",
    re.DOTALL,
)
# Of base64 that stands alone: no image file has fewer than 24 bytes.
MIN_CHARACTERS = 32
# Characters of a name that stand in an error.
SHOWN = 80


@dataclass(frozen=True)
class Folder:
    """A folder whose image files may be named. Links below it are not followed, wherever they lead.

    Raises:
        UsageError: there is no such folder.
    """

    path: Path

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise UsageError(f"{self.path} is no folder")

    def read(self, name: str) -> bytes:
        """The bytes of a file below the folder.

        Args:
            name: its path from the folder on, with `/` between the parts.

        Raises:
            DataError: the name leads to no regular file below the folder, or to more than `MAX_BYTES`. Whether there
                is something elsewhere under that name is not said.
        """
        parts = name.split("/")
        absent = DataError(f"there is no image {name!r:.{SHOWN}} in the folder whose images may be named")
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
        """A handle of the file. One step a folder, so that no link is followed that is laid while this looks."""
        place = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
                os.close(place)
                place = below
            # Without waiting: a pipe has no end until its other end is opened.
            return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
        finally:
            os.close(place)


def read_image(value: object, folder: Folder | None) -> bytes:
    """The bytes of an image as the caller of a tool wrote it: a data URL, base64, `{"data": BASE64}`, or a name.

    A string is base64 where it begins as that of an image file does. Further than that the bytes are not looked into
    here; `ImageStore.put` does that.

    Args:
        value: a string or a mapping from JSON. Other keys of a mapping (`type`, `mimeType`) are not trusted.
        folder: the folder whose images may be named; None where none may be.

    Raises:
        DataError: none of these, base64 that is none, no such file, or more than `MAX_BYTES`.
    """
    if isinstance(value, Mapping):
        data = value.get("data")
        if not isinstance(data, str):
            raise DataError('an image that is an object holds its bytes as base64 under "data"')
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
        raise DataError(f"{value!r:.{SHOWN}} is no image that is taken here: give {takes}")
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
