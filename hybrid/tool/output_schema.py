"""Reads the schema of a tool's data: finds missing and extra values, and describes types in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from hybrid.core.errors import did_you_mean
from hybrid.core.types import Json

# Unit of a value by the suffix of its name.
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
    """Return how the data of an output differ from the keys and types of a schema; None if they do not."""
    return _object_mismatch(schema, data, schema, "")


def describe_kind(node: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the type of a value of the schema `root` in words: "list of numbers", "string or null"."""
    if "$ref" in node:
        definition = resolve(node, root)
        # A recursive type would never end, so it keeps its name.
        plain = {"enum", "const", "properties"} & {*definition}
        return describe_kind(definition, root) if plain else str(node["$ref"]).rpartition("/")[2]
    if "enum" in node:
        return " | ".join(str(value) for value in node["enum"])
    if "const" in node:
        return str(node["const"])
    if "anyOf" in node:
        return " or ".join(describe_kind(other, root) for other in node["anyOf"])
    if node.get("type") == "array":
        return _describe_list(node, root)
    if node.get("type") == "object" and isinstance(values := node.get("additionalProperties"), Mapping) and values:
        return f"{_plural(values, root)} by name"
    return str(node.get("type", "anything"))


def resolve(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a node, or for a reference the definition that it refers to, with the node's own description."""
    if "$ref" not in node:
        return node
    definition = root.get("$defs", {}).get(str(node["$ref"]).rpartition("/")[2], {})
    return {**resolve(definition, root), **{key: value for key, value in node.items() if key != "$ref"}}


def inner_object(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the object schema that `node` is, or has as items or as an alternative; `root` defines its references."""
    if "$ref" in node or node.get("properties"):
        definition = resolve(node, root)
        return definition if definition.get("properties") else None
    others = node.get("additionalProperties")
    inner = [node.get("items"), *node.get("prefixItems", ()), *node.get("anyOf", ()), others]
    objects = (inner_object(other, root) for other in inner if isinstance(other, Mapping))
    return next(filter(None, objects), None)


def _describe_list(node: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    places = node.get("prefixItems", [])
    if places and all(place == places[0] for place in places):
        return f"list of {len(places)} {_plural(places[0], root)}"
    if places:
        return f"list of {', '.join(describe_kind(place, root) for place in places)}"
    items = node.get("items")
    return f"list of {_plural(items, root)}" if items else "list"


def _plural(node: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    words, node = describe_kind(node, root), resolve(node, root)
    if node.get("type") == "array":
        return words.replace("list", "lists", 1)
    return words if {"anyOf", "enum", "const"} & {*node} else f"{words}s"


_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (Mapping,),
}


def _object_mismatch(
    node: Mapping[str, Any], data: Mapping[str, Json], root: Mapping[str, Any], path: str
) -> str | None:
    """Return how an object differs from a schema's node; `path` is its place in the output, such as "points[0]."."""
    properties: Mapping[str, Any] = node.get("properties", {})
    others = node.get("additionalProperties")
    if missing := [key for key in node.get("required", ()) if key not in data]:
        hint = did_you_mean(missing[0], [key for key in data if key not in properties])
        return f"the output lacks the value {path + missing[0]!r} of its schema{hint}"
    if extra := [key for key in data if key not in properties and others is False]:
        hint = did_you_mean(extra[0], list(properties))
        return f"the value {path + extra[0]!r} is not in the output's schema{hint}; there are: {', '.join(properties)}"
    nodes = {key: properties.get(key, others if isinstance(others, Mapping) else {}) for key in data}
    mismatches = (_mismatch(value, nodes[key], root, path + key) for key, value in data.items())
    return next(filter(None, mismatches), None)


def _mismatch(value: Any, node: Mapping[str, Any], root: Mapping[str, Any], path: str) -> str | None:
    """Return how a value differs from a node; None if it does not. Properties without a schema are not checked."""
    node = resolve(node, root)
    if "anyOf" in node:
        return _choice_mismatch(value, [resolve(other, root) for other in node["anyOf"]], node, root, path)
    if not _has_type(value, node):
        return f"the value {path!r} is {value!r:.60}, but its schema requires {describe_kind(node, root)}"
    if isinstance(value, Mapping):
        return _object_mismatch(node, value, root, f"{path}.")
    if isinstance(value, list | tuple):
        nodes = chain(node.get("prefixItems", ()), repeat(node.get("items", {})))
        items = enumerate(zip(value, nodes, strict=False))
        mismatches = (_mismatch(item, inner, root, f"{path}[{number}]") for number, (item, inner) in items)
        return next(filter(None, mismatches), None)
    return None


def _choice_mismatch(
    value: Any, choices: Sequence[Mapping[str, Any]], node: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> str | None:
    """Return how a value differs from all choices of an `anyOf`, or from the only choice of its type."""
    wrong = [_mismatch(value, choice, root, path) for choice in choices]
    if None in wrong:
        return None
    same_type = [fault for fault, choice in zip(wrong, choices, strict=True) if _has_type(value, choice)]
    if len(same_type) == 1:
        return same_type[0]
    return f"the value {path!r} is {value!r:.60}, but its schema requires {describe_kind(node, root)}"


def _has_type(value: Any, node: Mapping[str, Any]) -> bool:
    """Return whether a value is one of the node's values, or of its type and length; nested values are not checked."""
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
        return bool(node.get("minItems", 0) <= len(value) <= node.get("maxItems", len(value)))
    return True


def unit_of(name: str) -> str:
    """Return the unit of a value by the end of its name; empty for a count or a pure number."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
