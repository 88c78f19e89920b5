"""Types as JSON and back, checked against their annotations.

    to_json(Attempt, attempt)                 # one line, without its end
    codec(Attempt).validate_json(line)        # raises ValueError

A codec is made once for a type, when it is first asked for.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def codec(kind: Any) -> TypeAdapter[Any]:
    """How a type becomes JSON and back, checked against its annotations."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def to_json(kind: Any, value: Any, indent: int | None = None) -> bytes:
    """A value as JSON. Half of a surrogate pair, which a model can write and UTF-8 cannot hold, becomes "?"."""
    from pydantic_core import PydanticSerializationError

    try:
        written: bytes = codec(kind).dump_json(value, indent=indent)
    except PydanticSerializationError:
        plain = codec(kind).dump_python(value, mode="json")
        return json.dumps(plain, ensure_ascii=False, indent=indent).encode("utf-8", "replace")
    return written
