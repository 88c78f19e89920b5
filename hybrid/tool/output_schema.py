"""The schema of a tool's data, read: what data lack or have besides, and the words for a type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybrid.core.errors import did_you_mean
from hybrid.core.types import Json

# By the end of a value's name what it is counted in.
UNITS: Mapping[str, str] = {
    "_px": "pixels",
    "_0_1": "0 to 1",
    "_deg": "degrees",
    "_ms": "milliseconds",
    "_m": "metres",
    "_unit": "unit vector",
    "_grey": "grey levels",
    "_lab": "L*a*b* units",
}


def data_mismatch(schema: Mapping[str, Any], data: Mapping[str, Json]) -> str | None:
    """How the data of an output differ from the keys and types of a schema; None if they do not."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    if missing := [key for key in schema.get("required", ()) if key not in data]:
        hint = did_you_mean(missing[0], [key for key in data if key not in properties])
        return f"the value {missing[0]!r} of the output's schema is missing{hint}"
    if extra := [key for key in data if key not in properties and schema.get("additionalProperties") is False]:
        hint = did_you_mean(extra[0], list(properties))
        return f"the value {extra[0]!r} is not in the output's schema{hint}; there are: {', '.join(properties)}"
    for key, value in data.items():
        if key in properties and not _fits(value, properties[key], schema):
            return f"the value {key!r} is {value!r:.60}, and its schema says {describe_kind(properties[key])}"
    return None


def describe_kind(node: Mapping[str, Any]) -> str:
    """The type of a value of a schema in words: "list of numbers", "string or null"."""
    if "enum" in node:
        return " | ".join(str(value) for value in node["enum"])
    if "const" in node:
        return str(node["const"])
    if "anyOf" in node:
        return " or ".join(describe_kind(other) for other in node["anyOf"])
    if node.get("type") == "array":
        items = node.get("items")
        return "list" if not items else f"list of {describe_kind(items)}" + ("" if "anyOf" in items else "s")
    if "$ref" in node:
        return str(node["$ref"]).rpartition("/")[2]
    return str(node.get("type", "anything"))


_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (Mapping,),
}


def _fits(value: Any, node: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Whether a value has the type of a node; what the node does not say is not checked."""
    if "$ref" in node:
        return _fits(value, root.get("$defs", {}).get(str(node["$ref"]).rpartition("/")[2], {}), root)
    if "anyOf" in node:
        return any(_fits(value, other, root) for other in node["anyOf"])
    if "enum" in node:
        return value in node["enum"]
    if "const" in node:
        return bool(value == node["const"])
    kind = node.get("type")
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    if kind is not None and not isinstance(value, _JSON_TYPES[str(kind)]):
        return False
    if kind == "array":
        return all(_fits(item, node.get("items", {}), root) for item in value)
    if kind == "object":
        nested = {**node, "$defs": root.get("$defs", {})}
        rest = node.get("additionalProperties")
        if isinstance(rest, Mapping) and not all(_fits(item, rest, root) for item in value.values()):
            return False
        return data_mismatch(nested, value) is None
    return True


def unit_of(name: str) -> str:
    """The unit of a value by the end of its name; empty for a count or a pure number."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
