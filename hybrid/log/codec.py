"""Types as JSON and back, checked against their annotations.

    to_json(Attempt, attempt)                 # one line, without its end
    codec(Attempt).validate_json(line)        # raises ValueError

Pydantic does the work, so the values stay plain frozen dataclasses. msgspec would be faster, but rejects the recursive
type `Json` of a step's data. The codec of a type is created on first use and cached.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hybrid.core.errors import DataError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


@cache
def codec(kind: Any) -> TypeAdapter[Any]:
    """Return the (cached) pydantic adapter of a type."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def to_json(kind: Any, value: Any, indent: int | None = None, exclude: Any = None) -> bytes:
    """Encode a value as JSON. A lone surrogate, which a model can write but UTF-8 cannot encode, becomes "?".

    `exclude` names fields to leave out, in pydantic's form.
    """
    from pydantic_core import PydanticSerializationError

    try:
        data: bytes = codec(kind).dump_json(value, indent=indent, exclude=exclude)
    except PydanticSerializationError:
        plain = codec(kind).dump_python(value, mode="json", exclude=exclude)
        separators = (",", ":") if indent is None else None
        text = json.dumps(plain, ensure_ascii=False, indent=indent, separators=separators)
        return text.encode("utf-8", "replace")
    return data


def reading(read: Callable[[bytes], T], path: Path, what: str) -> Callable[[bytes], T]:
    """Wrap `read` so that it raises `DataError`, naming `path`, instead of `ValueError`."""

    def read_line(line: bytes) -> T:
        try:
            return read(line)
        except ValueError as error:
            raise DataError(f"{path}: not {what} ({first_error(error)})") from error

    return read_line


def first_error(error: ValueError) -> str:
    """Describe the first validation error in one line."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    details = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in details["loc"])
    return f"{place}: {details['msg']}" if place else str(details["msg"])
