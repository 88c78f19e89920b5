"""Types as JSON and back, checked against their annotations.

    to_json(Attempt, attempt)                 # one line, without its end
    codec(Attempt).validate_json(line)        # raises ValueError

Pydantic does it: the values that cross seams stay plain frozen dataclasses, and msgspec, which would be faster, rejects
the recursive type `Json` that the data of a step has. A codec is made once for a type, when it is first asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hybrid.errors import DataError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


@cache
def codec(kind: Any) -> TypeAdapter[Any]:
    """The pydantic adapter of a type."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def to_json(kind: Any, value: Any, indent: int | None = None, exclude: Any = None) -> bytes:
    """A value as JSON. Half of a surrogate pair, which a model can write and UTF-8 cannot hold, becomes "?".

    `exclude` names fields that are left out, as pydantic takes them.
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
    """The reader of a line of `path` that raises `DataError` where `read` raises `ValueError`."""

    def one(line: bytes) -> T:
        try:
            return read(line)
        except ValueError as error:
            raise DataError(f"{path}: not {what} ({first_error(error)})") from error

    return one


def first_error(error: ValueError) -> str:
    """The first thing that pydantic found wrong, in one line."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    details = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in details["loc"])
    return f"{place}: {details['msg']}" if place else str(details["msg"])
