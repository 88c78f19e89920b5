import json
from enum import StrEnum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from hybrid.errors import DataError, ToolError
from hybrid.models.toolspec import spec, split_args
from hybrid.tool import Args, Card, Tool


class Mode(StrEnum):
    FAST = "fast"
    SLOW = "slow"


class Spot(BaseModel):
    x: float
    y: float


class EverythingArgs(Args):
    spots: list[Spot] = Field(description="points in pixels")
    pair: tuple[int, str] | None = None
    mode: Mode = Field(default=Mode.FAST, description="how")
    only: Literal["one"] = "one"
    size: int = Field(default=3, ge=1, le=9, description="pixels")


class ImagesArgs(Args):
    images: list[str]


def test_a_tool_is_a_function_whose_first_argument_names_images(crop_tool: Tool) -> None:
    assert spec(crop_tool) == {
        "type": "function",
        "function": {
            "name": "crop",
            "description": "Cuts a piece out.\nLimits: Sees no more than the image holds.",
            "parameters": {
                "type": "object",
                "properties": {
                    "images": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                        "maxItems": 1,
                        "description": "Names of the images to look at (1), as shown before each image: img:1.",
                    },
                    "box": {
                        "type": "array",
                        "items": {"type": "number"},
                        "minItems": 4,
                        "maxItems": 4,
                        "description": "x0, y0, x1, y1 in pixels of the image (exactly 4 items)",
                    },
                    "zoom": {
                        "type": "integer",
                        "default": 2,
                        "minimum": 1,
                        "maximum": 4,
                        "description": "how much larger the piece is shown (at least 1, at most 4, default 2)",
                    },
                },
                "required": ["images", "box"],
            },
        },
    }


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
    properties = function["parameters"]["properties"]
    assert properties["spots"]["items"]["properties"] == {"x": {"type": "number"}, "y": {"type": "number"}}
    assert properties["pair"]["anyOf"][0]["items"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert properties["mode"]["enum"] == ["fast", "slow"]
    assert properties["only"]["enum"] == ["one"]
    assert "(2 to 4)" in properties["images"]["description"]
    json.dumps(function)


def test_an_argument_called_images_is_refused() -> None:
    with pytest.raises(DataError, match=r"'bad'.*'images'"):
        spec(Tool(Card("bad", "", "", backends=()), ImagesArgs))


def test_arguments_are_split_and_the_given_ones_left_alone() -> None:
    given_arguments = {"images": ["img:1", "img:1.2"], "zoom": 2}
    assert split_args(given_arguments) == (("img:1", "img:1.2"), {"zoom": 2})
    assert given_arguments == {"images": ["img:1", "img:1.2"], "zoom": 2}
    assert split_args({"images": "img:1"}) == (("img:1",), {})


@pytest.mark.parametrize("arguments", [{}, {"images": None}, {"images": 3}, {"images": ["img:1", 2]}, {"image": "a"}])
def test_arguments_without_image_names_are_told_to_the_model(arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match=r"'images'.*img:1"):
        split_args(arguments)


@given(st.dictionaries(st.text(), st.integers()), st.lists(st.text()))
def test_splitting_loses_nothing(args: dict[str, int], names: list[str]) -> None:
    own = {key: value for key, value in args.items() if key != "images"}
    assert split_args({**own, "images": names}) == (tuple(names), own)
