"""A tool as an MLLM gets it: a function in OpenAI's format, with the names of the images as an additional argument.

The schema is sent with every call of a model, so it states each fact once, in the shortest form that every client
passes on:

- References are inlined, tuples become arrays of one item type, and constants become enums with one value.
- An optional argument has its plain type and is not required: no `null`, no empty default.
- Bounds and defaults are in the description, `pixels to leave out (0 to 32, default 0)`, because two of four clients
  drop the keywords. The bounds of an array count its items. The maximum lengths of texts, and of lists that may be
  empty, are stated only in the error for a text or list that is too long.
- Coordinates (`x`, `y`, `x0`, ...) are bare numbers that belong together: their frame, like the names of images, is
  explained once for all tools in the system text that offers them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hybrid.core.errors import DataError
from hybrid.core.messages import MAX_NAME
from hybrid.tool import Args, Tool

IMAGE = "image"  # The argument that names the image, for a tool that takes one.
IMAGES = "images"  # The argument that names the images, for a tool that takes several.
# Arguments that are coordinates; they are never below 0.
COORDINATES = frozenset({"x", "y", "x0", "y0", "x1", "y1"})

_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"})


@dataclass(frozen=True)
class PublishedTool(Tool):
    """A tool of this project in the form in which a model was trained to call it."""

    function: str = ""  # The published JSON, which replaces the schema made from the arguments.


def all_published(tools: Sequence[Tool]) -> bool:
    """Return whether there are tools, and all of them are in a published form."""
    return bool(tools) and all(isinstance(tool, PublishedTool) for tool in tools)


def spec(tool: Tool, *, full: bool = False) -> dict[str, Any]:
    """Return `{"type": "function", "function": {"name", "description", "parameters"}}`.

    The description is the card's summary and limits. The first, required parameter is `image`, the name of an image, or
    `images`, a list of names whose description states their number; a tool without images has neither. With `full` the
    `UNTOLD` arguments, which are for people, are included.

    Raises:
        DataError: the tool's own arguments have a field called `image` or `images`.
    """
    if isinstance(tool, PublishedTool):
        return {"type": "function", "function": json.loads(tool.function)}
    schema = _schema(tool.args)
    schema = schema if full else _visible_schema(schema)
    for name in (IMAGE, IMAGES):
        if name in schema.get("properties", {}):
            raise DataError(f"tool {tool.card.name!r}: an argument must not be called {name!r}")
    fewest, most = tool.card.images
    images: dict[str, Any] = {}
    if fewest == most == 1:
        images = {IMAGE: {"type": "string"}}
    elif most:
        many = f"{_between(fewest, most)} names"
        images = {IMAGES: {"type": "array", "description": many, "items": {"type": "string"}}}
    parameters = {
        "type": "object",
        "properties": {**images, **_fields(schema, schema.get("$defs", {}))},
        "required": [*images, *schema.get("required", [])],
    }
    description = f"{tool.card.summary} {tool.card.limits}".strip()
    return {
        "type": "function",
        "function": {"name": tool.card.name, "description": description, "parameters": parameters},
    }


@lru_cache(maxsize=128)
def _schema(args: type[Args]) -> dict[str, Any]:
    """Return the schema of the arguments; do not change it. Cached: building it takes a hundred times as long."""
    return args.model_json_schema()


@lru_cache(maxsize=128)
def argument_schemas(args: type[Args]) -> Mapping[str, Any]:
    """Return the schema of each argument except the images, including `UNTOLD` ones, by name; not to be changed."""
    schema = _schema(args)
    return _fields(schema, schema.get("$defs", {}))


class ToolsOffered:
    """Caches the schemas of the offered tools, per list of tools."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[tuple[Tool, ...], list[dict[str, Any]]]] = {}

    def specs(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Return `spec` of each tool; do not change the list. Raises `DataError` like `spec`."""
        key = tuple(id(tool) for tool in tools)
        cached = self._made.get(key)
        if cached is None:
            # The cache also references the tools, so that no other object can get one of their ids.
            cached = self._made[key] = (tuple(tools), [spec(tool) for tool in tools])
        return cached[1]


def _visible_schema(node: Any) -> Any:
    """Remove the properties that are `UNTOLD` from a schema."""
    if isinstance(node, list):
        return [_visible_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    properties = {name: field for name, field in node.get("properties", {}).items() if field.get("told", True)}
    return {key: _visible_schema(properties if key == "properties" else value) for key, value in node.items()}


def _fields(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of an object's schema by name, each in the reduced form of `_plain`."""
    fields: dict[str, Any] = {}
    for name, subschema in schema.get("properties", {}).items():
        node = subschema
        kinds = [kind for kind in subschema.get("anyOf", ()) if kind.get("type") != "null"]
        if name not in schema.get("required", []) and kinds:
            # Drop the null that means an omitted argument.
            rest = {key: value for key, value in subschema.items() if key != "anyOf"}
            node = {**kinds[0], **rest} if len(kinds) == 1 else {**subschema, "anyOf": kinds}
        if name in COORDINATES and node.get("type") == "number":
            # The frame of coordinates implies the bounds.
            node = {key: value for key, value in node.items() if key not in _BOUNDS}
        fields[name] = _plain(node, definitions)
    return fields


def _plain(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a schema to the keywords that every client passes on, with bounds and default in the description."""
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        # The description of a field's type is for people; the model gets the description of the field itself.
        target_fields = {key: value for key, value in target.items() if key != "description"}
        return _plain({**target_fields, **{key: value for key, value in node.items() if key != "$ref"}}, definitions)
    plain = {key: node[key] for key in ("type", "enum") if key in node}
    if "const" in node:
        plain["enum"] = [node["const"]]
    description, limits = node.get("description", ""), ", ".join([*_bounds(node), *_default(node.get("default"))])
    if description or limits:
        plain["description"] = f"{description} ({limits})" if description and limits else description or limits
    if "anyOf" in node:
        plain["anyOf"] = [_plain(kind, definitions) for kind in node["anyOf"]]
    if "prefixItems" in node:
        items = [_plain(item, definitions) for item in node["prefixItems"]]
        kinds = [item for place, item in enumerate(items) if item not in items[:place]]
        plain["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    elif "items" in node:
        plain["items"] = _plain(node["items"], definitions)
    if "properties" in node:
        plain["properties"] = _fields(node, definitions)
        required = [name for name in node.get("required", ()) if name not in COORDINATES]
        plain |= {"required": required} if required else {}
    return plain


def _bounds(node: Mapping[str, Any]) -> list[str]:
    """Describe the limits of a number, or of the number of items."""
    low, high = node.get("minimum", node.get("minItems")), node.get("maximum", node.get("maxItems"))
    if "items" in node and not low:
        # As for texts, the maximum length is not stated: only the error for a list that is too long states it.
        return []
    edges = {"exclusiveMinimum": "above", "exclusiveMaximum": "below"}
    if all(key in node for key in edges):
        return ["between {exclusiveMinimum:g} and {exclusiveMaximum:g}".format_map(node)]
    words = [f"{word} {node[key]:g}" for key, word in edges.items() if key in node]
    if low is None and high is None:
        return words
    return [*words, _between(low, high) + (" entries" if "items" in node or "prefixItems" in node else "")]


def _between(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high:g}"
    if high is None:
        return f"at least {low:g}"
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _default(value: Any) -> list[str]:
    """Describe a default; nothing for an empty one, which means an omitted argument."""
    if value is None or value in ("", [], {}):
        return []
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [f"default {', '.join(value)}"]
    return [f"default {value}" if isinstance(value, str) else f"default {json.dumps(value, ensure_ascii=False)}"]


def tool_named(name: str, tools: Sequence[Tool]) -> Tool | None:
    """Return the tool that a name means, or None.

    Case and blanks may differ. A namespace may precede it (`functions.crop`, `mcp__server__crop`), and a number, a
    token or a tag (`crop<|channel|>commentary`) or an opening bracket may follow.
    """
    by_name = {tool.card.name: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    bare = re.split(r"[<(]", name[:MAX_NAME].rpartition("to=")[2], maxsplit=1)[0].strip(" \t\r\n\"'`*").lower()
    if bare in by_name:
        return by_name[bare]
    parts = re.split(r"\.|(?<=\w)/|:{1,2}|__", bare)
    last = parts[-2] if len(parts) > 1 and (parts[-1].isdecimal() or parts[-1] == "call") else parts[-1]
    last = re.sub(r"[\s-]+", "_", last.strip())
    return by_name.get(last) or by_name.get(re.sub(r"^functions?_|_(?:tool|\d+)$", "", last))
