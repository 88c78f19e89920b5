"""The base class of every tool's arguments: `from hybrid.tool import Args`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, JsonValue

UNTOLD: dict[str, JsonValue] = {"told": False}
"""`json_schema_extra` of an argument that is taken and not offered to a model: it can say the same in another way."""


class Args(BaseModel):
    """Arguments of a tool as a model writes them: field descriptions are written once, for the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")
