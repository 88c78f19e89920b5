import json
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from hybrid.core.errors import DataError
from hybrid.models.toolspec import spec
from hybrid.tool import Args, Card, Tool
from hybrid.tool.args import UNTOLD


class Mode(StrEnum):
    FAST = "fast"
    SLOW = "slow"


class Spot(BaseModel):
    """A place in an image."""

    x: float = Field(ge=0)
    y: float


class EverythingArgs(Args):
    spots: list[Spot] = Field(description="points in pixels")
    pair: tuple[int, str] | None = None
    mode: Mode = Field(default=Mode.FAST, description="how")
    only: Literal["one"] = "one"
    size: int = Field(default=3, ge=1, le=9, description="pixels")


class ImagesArgs(Args):
    images: list[str]


class ImageArgs(Args):
    image: int = 0


class OptionalArgs(Args):
    at: Spot | None = None
    share: float | None = Field(default=None, gt=0, le=1, description="of the side")
    confidence: float | None = Field(default=None, gt=0, lt=1)
    words: tuple[str, ...] = Field(default=("A", "B"), max_length=5, description="letters")
    either: Annotated[int, Field(ge=2)] | str | None = None
    secret: str = Field(default="", json_schema_extra=UNTOLD)


def test_each_thing_is_said_once(crop_tool: Tool) -> None:
    """Each fact is stated once: optional arguments have their plain type, coordinates have no description, and `UNTOLD`
    is only in the full schema."""
    tool = Tool(Card("all", "Does it.", "", backends=()), OptionalArgs)
    assert spec(tool)["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "image": {"type": "string"},
            "at": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
            "share": {"type": "number", "description": "of the side (above 0, at most 1)"},
            "confidence": {"type": "number", "description": "between 0 and 1"},
            "words": {"type": "array", "description": "letters (default A, B)", "items": {"type": "string"}},
            "either": {"anyOf": [{"type": "integer", "description": "at least 2"}, {"type": "string"}]},
        },
        "required": ["image"],
    }
    assert "secret" in spec(tool, full=True)["function"]["parameters"]["properties"]


def keys(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(keys, node))
    if not isinstance(node, dict):
        return set()
    return set(node) | set().union(*map(keys, node.values()))


def test_the_schema_holds_nothing_that_a_provider_refuses() -> None:
    tool = Tool(Card("all", "Does it.", "", backends=(), images=(2, 4)), EverythingArgs)
    function = spec(tool)["function"]
    assert function["description"] == "Does it."
    assert not keys(function) & {"$ref", "$defs", "prefixItems", "const", "additionalProperties", "title"}
    assert not keys(function) & {"default", "minimum", "maximum", "minItems", "maxItems", "null"}
    properties = function["parameters"]["properties"]
    assert properties["spots"]["items"]["properties"] == {"x": {"type": "number"}, "y": {"type": "number"}}
    assert properties["pair"]["items"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert properties["mode"]["enum"] == ["fast", "slow"]
    assert properties["only"]["enum"] == ["one"]
    assert properties["images"]["description"] == "2 to 4 names"
    json.dumps(function)


@pytest.mark.parametrize("args", [ImagesArgs, ImageArgs])
def test_an_argument_that_is_called_as_the_images_is_refused(args: type[Args]) -> None:
    with pytest.raises(DataError, match=r"'bad'.*'images?'"):
        spec(Tool(Card("bad", "", "", backends=()), args))
