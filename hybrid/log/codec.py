"""Types as JSON and back, checked against their annotations.

    to_json(Attempt, attempt)                 # one line, without its end
    codec(Attempt).validate_json(line)        # raises ValueError

Pydantic does the work, so the values stay plain frozen dataclasses. msgspec would be faster, but rejects the recursive
type `Json` of a step's data. The codec of a type is created on first use and cached. All parsed JSON is
`Json`, so it is not checked against the type's alternatives, which would take three quarters of the time to read steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hybrid.core.errors import DataError
from hybrid.core.types import Json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


@cache
def codec(kind: Any) -> TypeAdapter[Any]:
    """Return the (cached) pydantic adapter of a type."""
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    adapter = TypeAdapter(kind)
    schema: Any = adapter.core_schema
    if any(_is_json(part) for part in schema.get("definitions", ())):
        definitions = [_accept_any_json(part) if _is_json(part) else part for part in schema["definitions"]]
        adapter.validator = SchemaValidator({**schema, "definitions": definitions})
    return adapter


def _is_json(definition: Mapping[str, Any]) -> bool:
    return str(definition["ref"]).startswith(f"{Json.__module__}.{Json.__name__}:")


def _accept_any_json(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of `Json` that accepts any parsed JSON but still checks Python values."""
    python = {key: value for key, value in definition.items() if key != "ref"}
    anything = {"type": "any"}
    return {"type": "json-or-python", "json_schema": anything, "python_schema": python, "ref": definition["ref"]}


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
