"""The result of a foreign tool as a finding: its text, structured content and pictures, with limits.

finding = finding_of(foreign, "shapes 1.2.0", result, refs, store)
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

import mcp.types as protocol

from hybrid.errors import DataError, Outage, ToolError
from hybrid.images import ImageStore
from hybrid.integrations.mcp.foreign import BACKEND, ForeignTool
from hybrid.integrations.mcp.schemas import clean, one_line
from hybrid.secrets import redact
from hybrid.types import Finding, ImageRef, Json

MOST_TEXT = 4000
"""Characters of a result's text, or of an error, that are kept."""
MOST_DATA = 100_000
"""Characters of a result's structured content, as JSON; more is left out."""
MOST_PICTURES = 8
MOST_PICTURE_BYTES = 64 * 1024 * 1024


def finding_of(
    foreign: ForeignTool, version: str, result: protocol.CallToolResult, images: Sequence[ImageRef], store: ImageStore
) -> Finding:
    """A result as a finding; its pictures are in the store and have no name yet.

    Texts are cut at `MOST_TEXT` characters. A picture of the size of the first image is laid over it; of any other a
    note says that its place is not known. `confidence` is that of the structured content where it is a number in 0..1;
    else it is 0.0, which claims nothing.

    Raises:
        ToolError: the server says that the call has failed, or there is nothing in the result.
    """
    said = clean(
        redact("\n".join(one.text for one in result.content if isinstance(one, protocol.TextContent))), MOST_TEXT
    )
    if result.isError:
        raise ToolError(f"{foreign.name}: {said or 'the call failed, and the server does not say why'}")
    notes: list[str] = []
    data = _data(result.structuredContent, notes)
    pictures = _pictures(result, images, store, notes)
    kinds = {str(one.type) for one in result.content} - {"text", "image"}
    if kinds:
        notes.append(f"[left out, as it cannot be shown: {one_line(', '.join(sorted(kinds)), 60)}]")
    if not said and data:
        said = clean(json.dumps(data, ensure_ascii=False), MOST_TEXT)
    if not (said or pictures or notes):
        raise ToolError(f"{foreign.name}: the result is empty")
    confidence = data.get("confidence")
    known = isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0.0 <= confidence <= 1.0
    text = "\n".join([*([said] if said else []), *notes])
    return Finding(text, data, float(confidence) if known else 0.0, BACKEND, version, tuple(pictures))  # type: ignore[arg-type]


def _data(structured: Mapping[str, Any] | None, notes: list[str]) -> dict[str, Json]:
    """The structured content as JSON; nothing, and a note, where it is none or too long."""
    if not structured:
        return {}
    try:
        written = json.dumps(structured, allow_nan=False, ensure_ascii=True)
        written.encode()
    except (ValueError, TypeError, RecursionError):
        notes.append("[the structured content is left out: it is no JSON]")
        return {}
    if len(written) > MOST_DATA:
        notes.append(f"[the structured content is left out: {len(written):,} characters]")
        return {}
    data: dict[str, Json] = json.loads(redact(written))
    return data


def _pictures(
    result: protocol.CallToolResult, images: Sequence[ImageRef], store: ImageStore, notes: list[str]
) -> list[ImageRef]:
    """The pictures of a result in the store. Those that cannot be used are left out, and a note says so."""
    given = [one for one in result.content if isinstance(one, protocol.ImageContent)]
    if given and not images:
        notes.append("[pictures are left out: they would be of no image]")
        return []
    if len(given) > MOST_PICTURES:
        notes.append(f"[{len(given) - MOST_PICTURES} more pictures are left out]")
    refs: list[ImageRef] = []
    for place, one in enumerate(given[:MOST_PICTURES], 1):
        try:
            stored = store.put(_bytes(one.data), f"picture {place}")
        except DataError as error:
            notes.append(f"[a picture is left out: {one_line(str(error))}]")
            continue
        except OSError as error:
            raise Outage(f"pictures cannot be written: {error.strerror or error}") from error
        of = images[0].image
        if (stored.width, stored.height) != (of.width, of.height):
            size = f"{stored.width} x {stored.height} px"
            notes.append(f"[picture {len(refs) + 1} has {size}; where it lies in {images[0].name} is not told]")
        refs.append(ImageRef("", stored, images[0].name))
    return refs


def _bytes(text: str) -> bytes:
    """The bytes of a picture. Raises `DataError`."""
    if len(text) > MOST_PICTURE_BYTES * 4 // 3 + 4:
        raise DataError(f"it has more than {MOST_PICTURE_BYTES:,} bytes")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"it is not base64 ({error})") from error
