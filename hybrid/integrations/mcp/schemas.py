"""The texts and the schemas of a foreign server, cut down to plain words and a few keywords.

    args = args_of(arguments_schema(schema, {"image"}))     # a type of arguments without the image

No reference is resolved outside of a schema, no pattern is matched, and a schema that unfolds without end is refused.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from hybrid.errors import UsageError
from hybrid.models.toolspec import COORDINATES, IMAGE, IMAGES

if TYPE_CHECKING:
    from hybrid.tool import Args

IMAGE_OPTION = "--mcp-image"
MOST_WORDS = 300
"""Characters that are kept of the description of one argument."""
MOST_SCHEMA = 20_000
"""Characters of a schema as JSON, which goes out with every call of a model."""
MOST_ARGUMENTS, MOST_NODES, DEEPEST = 32, 500, 6
"""Arguments of a tool, parts of their schema with all references followed, and levels of it."""
KEPT = (
    *("type", "enum", "const", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems", "minLength", "maxLength"),
)
"""Keywords of a schema that are kept as they are."""
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Control, format, surrogate, private and unassigned characters, which a terminal obeys or a person does not see."""


def clean(text: str, most: int) -> str:
    """A server's text without unseen characters but line ends and tabs, cut after `most` characters with a note."""
    kept = "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in UNSEEN).strip()
    return kept if len(kept) <= most else f"{kept[:most]}\n[{len(kept) - most:,} more characters are left out]"


def one_line(text: str, most: int = 200) -> str:
    """A server's text in one line of a message."""
    line = " ".join(clean(text[: 10 * most], 10 * most).split())
    return line if len(line) <= most else f"{line[:most]}..."


def arguments_schema(schema: Mapping[str, Any], images: set[str]) -> dict[str, Any]:
    """The schema of the other arguments in the keywords that are kept. Raises `UsageError` for one of no use."""
    from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or len(properties) > MOST_ARGUMENTS:
        raise UsageError(f"more than {MOST_ARGUMENTS} arguments, or none that can be read")
    if odd := [key for key in properties if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", str(key))]:
        raise UsageError(f"{one_line(str(odd[0]), 60)!r} is no name of an argument")
    parts = count(1)
    fields = {name: _plain(node, schema, parts) for name, node in properties.items() if name not in images}
    if named := {IMAGE, IMAGES} & fields.keys():
        raise UsageError(f"its argument {min(named)} has the name of our images: if it takes one, write {IMAGE_OPTION}")
    required = [name for name in list_of(schema.get("required")) if name in fields]
    plain = {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
    try:
        Draft202012Validator.check_schema(plain)
    except SchemaError as error:
        raise UsageError(f"its arguments are no JSON schema: {one_line(error.message, 80)}") from None
    if len(json.dumps(plain)) > MOST_SCHEMA:
        raise UsageError(f"its arguments take more than {MOST_SCHEMA:,} characters to describe")
    return plain


def _plain(node: Any, root: Mapping[str, Any], parts: Iterator[int], depth: int = 0) -> dict[str, Any]:
    """A schema in the keywords that are kept, without references. Raises `UsageError` for one of too many parts."""
    if next(parts) > MOST_NODES or depth > DEEPEST:
        raise UsageError(f"its arguments have more than {MOST_NODES} parts, or lie deeper than {DEEPEST}")
    node = resolved(node, root)
    kept = {key: node[key] for key in KEPT if key in node}
    if isinstance(node.get("description"), str) and (said := clean(node["description"], MOST_WORDS)):
        kept["description"] = said
    kinds = [{"type": kind} for kind in list_of(node.get("type"))]
    if kinds := [*kinds, *list_of(node.get("anyOf")), *list_of(node.get("oneOf"))]:
        kept.pop("type", None)
        kept["anyOf"] = [_plain(kind, root, parts, depth + 1) for kind in kinds]
    if "items" in node:
        kept["items"] = _plain(node["items"], root, parts, depth + 1)
    if fields := mapping_of(node.get("properties")):
        kept["properties"] = {name: _plain(field, root, parts, depth + 1) for name, field in fields.items()}
        kept["required"] = [name for name in list_of(node.get("required")) if name in fields]
    return kept


def resolved(node: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node, or the part of the schema that its reference leads to; nothing for any other reference."""
    for _ in range(DEEPEST):
        here = mapping_of(node)
        reference = here.get("$ref")
        if not isinstance(reference, str):
            return here
        target: Any = root if reference.startswith("#/") else {}
        for part in reference[2:].split("/"):
            target = mapping_of(target).get(part.replace("~1", "/").replace("~0", "~"))
        node = {**mapping_of(target), **{key: value for key, value in here.items() if key != "$ref"}}
    return {}


def mapping_of(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def args_of(schema: dict[str, Any]) -> type[Args]:
    """A type of arguments that takes what fits the schema, and nothing else."""
    from jsonschema import Draft202012Validator

    from hybrid.tool.args import args_of_schema

    validator = Draft202012Validator(schema)

    def fit(given: Any) -> Any:
        given = _whole_pixels(given, schema)
        wrong = [(".".join(map(str, one.absolute_path)), one.message) for one in validator.iter_errors(given)]
        if wrong:
            raise ValueError("; ".join(one_line(f"{place}: {said}" if place else said) for place, said in wrong[:3]))
        return given

    return args_of_schema(schema, fit)


def _whole_pixels(given: Any, schema: Mapping[str, Any]) -> Any:
    """The arguments with coordinates rounded whose schema wants whole numbers: conversion gives parts of pixels."""
    if isinstance(given, list | tuple):
        return [_whole_pixels(item, mapping_of(schema.get("items"))) for item in given]
    if not isinstance(given, Mapping):
        return given
    fields = {key: mapping_of(mapping_of(schema.get("properties")).get(key)) for key in given}
    return {
        key: round(value)
        if key in COORDINATES and isinstance(value, float) and fields[key].get("type") == "integer"
        else _whole_pixels(value, fields[key])
        for key, value in given.items()
    }
