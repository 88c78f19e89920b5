"""Image files that are small but take minutes to open; they are refused before Pillow opens them.

Each scan of a progressive JPEG passes over all pixels, and an empty scan of 120 million pixels needs 200 bytes. Pillow
copies a GIF's comment once for each of its blocks of 255 bytes. Other costs of a decoder grow in proportion to the file
or its pixels, which have separate limits (`hybrid/core/images.py`).
"""

from __future__ import annotations

import io
import re

# Maximum number of scans of a JPEG, as in libtiff (LIBTIFF_JPEG_MAX_ALLOWED_SCAN_NUMBER); encoders write 1 to about 20.
MAX_SCANS = 100
# Maximum bytes of the comments before the second frame of a GIF.
MAX_COMMENTS = 2**20
# A marker of a JPEG: a byte stuffed into coded data (FF 00) and a restart marker (FF D0 to FF D7) are excluded.
MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])", re.DOTALL)
START_OF_SCAN, END_OF_IMAGE, WITHOUT_LENGTH = b"\xda", b"\xd9", b"\x01\xd8"
GIF_COMMENT, GIF_APPLICATION = b"\xfe", b"\xff"


def slow_structure(data: bytes) -> str | None:
    """Return why Pillow would take too long to open an image file, or None; files of other formats are not checked."""
    if data[:2] == b"\xff\xd8" and has_more_scans(data, MAX_SCANS):
        return f"a JPEG of more than {MAX_SCANS} scans is not read"
    if data[:6] in (b"GIF87a", b"GIF89a") and comment_bytes(data) > MAX_COMMENTS:
        return f"a GIF with more than {MAX_COMMENTS:,} bytes of comments is not read"
    return None


def has_more_scans(data: bytes, limit: int) -> bool:
    """Return whether the first picture of a JPEG file has more than `limit` scans."""
    # Metadata, a second picture and appended data may also contain these bytes, so a high count is checked below.
    if data.count(b"\xff" + START_OF_SCAN) <= limit:
        return False
    scans, place = 0, 2
    while scans <= limit and (match := MARKER.search(data, place)):
        kind, place = match[1], match.end()
        if kind == END_OF_IMAGE:
            break
        if kind not in WITHOUT_LENGTH:
            place += int.from_bytes(data[place : place + 2])
        scans += kind == START_OF_SCAN
    return scans > limit


def comment_bytes(data: bytes) -> int:
    """Return the bytes of a GIF's comments before its second frame, with blocks delimited as Pillow delimits them."""
    if b"!" + GIF_COMMENT not in data:
        return 0
    file = io.BytesIO(data)
    file.seek(10)
    file.seek(13 + _palette_bytes(file.read(1)))
    total = frames = 0
    while frames < 2 and (kind := file.read(1)) not in (b"", b";"):
        if kind == b",":
            frames += 1
            # The byte after the palette gives the size of the codes.
            file.seek(_palette_bytes(file.read(9)[8:]) + 1, io.SEEK_CUR)
            _skip_blocks(file)
        elif kind == b"!":
            label, block = file.read(1), _block(file)
            if label == GIF_COMMENT:
                total += len(block) + (_skip_blocks(file) if block else 0)
                continue
            if label == GIF_APPLICATION and not frames and block.startswith(b"NETSCAPE2.0"):
                _block(file)
            # Pillow looks for more blocks even after an empty one.
            _skip_blocks(file)
    return total


def _palette_bytes(flags: bytes) -> int:
    """Return the size of the palette that a GIF's flags announce; 0 if the file ends before them."""
    return 3 * 2 ** (flags[0] % 8 + 1) if flags and flags[0] & 128 else 0


def _block(file: io.BytesIO) -> bytes:
    size = file.read(1)
    return file.read(size[0]) if size else b""


def _skip_blocks(file: io.BytesIO) -> int:
    """Move past the next empty block, and return the number of bytes in the blocks before it."""
    total = 0
    while block := _block(file):
        total += len(block)
    return total
