"""A tool as an MLLM sees it: a function in OpenAI's format, with the names of the images as one more argument.

The schema uses only what every provider takes: references are inlined,
tuples become arrays of one item type, constants become enums of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid.errors import DataError, ToolError
from hybrid.tool import Tool
from hybrid.types import Json

IMAGES = "images"


def spec(tool: Tool) -> dict[str, Any]:
    """`{"type": "function", "function": {"name", "description", "parameters"}}`.

    The description is the card's summary and limits. `images` comes first among the parameters and is required.

    Raises:
        DataError: the tool's own arguments have a field called `images`.
    """
    schema = tool.args.model_json_schema()
    properties = schema.get("properties", {})
    if IMAGES in properties:
        raise DataError(f"tool {tool.card.name!r}: an argument must not be called {IMAGES!r}")
    definitions = schema.get("$defs", {})
    parameters = {
        "type": "object",
        "properties": {
            IMAGES: _images(tool),
            **{name: _plain(value, definitions) for name, value in properties.items()},
        },
        "required": [IMAGES, *schema.get("required", [])],
    }
    description = f"{tool.card.summary}\nLimits: {tool.card.limits}" if tool.card.limits else tool.card.summary
    return {
        "type": "function",
        "function": {"name": tool.card.name, "description": description, "parameters": parameters},
    }


class Menu:
    """The schemas of the tools that are offered, made once for each list of tools."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[tuple[Tool, ...], list[dict[str, Any]]]] = {}

    def specs(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """`spec` of each; the list is not to be changed. Raises `DataError` as `spec`."""
        key = tuple(id(tool) for tool in tools)
        found = self._made.get(key)
        if found is None:
            # The tools are held as well, so that no other object gets the identity of one of them.
            found = self._made[key] = (tuple(tools), [spec(tool) for tool in tools])
        return found[1]


def _images(tool: Tool) -> dict[str, Any]:
    fewest, most = tool.card.images
    count = str(fewest) if fewest == most else f"{fewest} to {most}"
    return {
        "type": "array",
        "items": {"type": "string"},
        "minItems": fewest,
        "maxItems": most,
        "description": f"Names of the images to look at ({count}), as shown before each image: img:1.",
    }


def _plain(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    plain = {
        key: {name: _plain(child, definitions) for name, child in value.items()}
        if key == "properties"
        else _plain(value, definitions)
        for key, value in node.items()
        if key not in ("title", "additionalProperties", "prefixItems", "const")
    }
    if "const" in node:
        plain["enum"] = [node["const"]]
    if "prefixItems" in node:
        items = [_plain(item, definitions) for item in node["prefixItems"]]
        kinds = [item for place, item in enumerate(items) if item not in items[:place]]
        plain["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if "description" in plain and (bounds := _bounds(plain)):
        plain["description"] = f"{plain['description']} ({bounds})"
    return plain


def _bounds(node: Mapping[str, Any]) -> str:
    """Limits and default in words: two of the four clients drop them from the schema."""
    words = {
        "minimum": "at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
        "minItems": "at least {} items",
        "maxItems": "at most {} items",
    }
    found = [text.format(node[key]) for key, text in words.items() if key in node]
    if "minItems" in node and node.get("maxItems") == node["minItems"]:
        found = [text for text in found if not text.endswith(" items")] + [f"exactly {node['minItems']} items"]
    if node.get("default") is not None:
        found.append(f"default {json.dumps(node['default'], ensure_ascii=False)}")
    return ", ".join(found)


def split_args(arguments: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Json]]:
    """The image names and the tool's own arguments of a call; a single name counts as a list of one.

    Raises:
        ToolError: `images` is absent or not a list of names; the message is written for the model.
    """
    if IMAGES not in arguments:
        raise ToolError(f'the argument {IMAGES!r} is missing: give the names of the images, such as ["img:1"]')
    names = arguments[IMAGES]
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ToolError(f'the argument {IMAGES!r} must be a list of image names, such as ["img:1"]')
    return tuple(names), {key: value for key, value in arguments.items() if key != IMAGES}
