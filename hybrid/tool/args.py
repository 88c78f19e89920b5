"""The base class of every tool's arguments: `from hybrid.tool import Args`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator

# `json_schema_extra` of an argument that is accepted but not offered to a model, because another argument means the
# same.
UNTOLD: dict[str, JsonValue] = {"told": False}


class Args(BaseModel):
    """Arguments of a tool as a model writes them: field descriptions are written for the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def args_of_schema(schema: Mapping[str, Any], fit: Callable[[Any], Any]) -> type[Args]:
    """Return a type of arguments without declared fields; an instance holds the values that `fit` returns.

    Args:
        schema: the JSON schema of the type.
        fit: raises `ValueError` for arguments that are not accepted.
    """

    class Arguments(Args):
        model_config = ConfigDict(frozen=True, extra="allow")

        @model_validator(mode="before")
        @classmethod
        def _fit(cls, value: Any) -> Any:
            return fit(value)

        @classmethod
        def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
            """Return a copy of the schema."""
            copied: dict[str, Any] = json.loads(json.dumps(schema))
            return copied

    return Arguments
