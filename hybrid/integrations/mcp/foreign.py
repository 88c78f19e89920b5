"""A tool of another MCP server as a tool of a run: which part of the server's description is taken over.

    tool = foreign_tool("shapes", protocol.Tool(name="outline", inputSchema=schema), "image:base64")   # shapes_outline
    tool.arguments([("iVBORw0...", "image/png")])                                      # {"image": "iVBORw0..."}

The server is not trusted. Of its descriptions and schemas plain text and a few keywords are kept, with limits; no
reference is resolved outside of a schema, and no pattern is matched. The user names the arguments that take an image
(`--mcp-image`): they leave the schema, a model names an image (`img:1`) as for any other tool, and the bytes are filled
in.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hybrid.errors import UsageError
from hybrid.models.toolspec import COORDINATES, IMAGE, IMAGES
from hybrid.secrets import redact
from hybrid.tool import Card, Tool
from hybrid.types import Json

if TYPE_CHECKING:
    import mcp.types as protocol

    from hybrid.tool import Args

OPTION, IMAGE_OPTION = "--mcp", "--mcp-image"
BACKEND = "mcp"
"""The backend of findings of foreign tools."""
LONGEST_NAME, LONGEST_PREFIX = 64, 24
"""Characters of a tool's name, as providers take it, and of the server's word before it."""
MOST_DESCRIPTION, MOST_WORDS = 4000, 300
"""Characters that are kept of the description of a tool, and of that of one argument."""
MOST_SCHEMA = 20_000
"""Characters of a schema as JSON, which goes out with every call of a model."""
MOST_ARGUMENTS, MOST_NODES, DEEPEST = 32, 500, 6
"""Arguments of a tool, parts of their schema with all references followed, and levels of it."""
MOST_IMAGES = 8
"""Images of one call that takes a list of them."""
CODE_DIGITS = 12
"""Digits of the hash of a tool in the manifest."""
SENT_AS = ("data_url", "base64", "object")
"""How an image is written: `data:image/png;base64,...`, the base64 alone, or `{"type", "data", "mimeType"}`."""
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


def word(text: str, most: int) -> str:
    """A text as a word of lower-case letters, digits and underscores; empty where none of it fits."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"[^a-z0-9]+", "_", apart.lower()).strip("_")[:most].strip("_")


@dataclass(frozen=True)
class ServerAddress:
    """A server as the user named it: a URL, or the words of a command that speaks over stdin and stdout.

    `name` is the word before the `=`, empty where the server's own name is to be taken.
    """

    name: str
    url: str = ""
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        """URL or command without its secrets; redacted word by word, since quotes would take a secret apart."""
        return redact(self.url) or shlex.join(map(redact, self.command))


def read_address(written: str) -> ServerAddress:
    """The address in a value of `--mcp`: `URL`, `COMMAND`, or either after `NAME=`. Raises `UsageError`."""
    named = re.fullmatch(r"([a-z][a-z0-9_]*)=(.*)", written.strip(), re.DOTALL)
    name, where = (word(named[1], LONGEST_PREFIX), named[2].strip()) if named else ("", written.strip())
    try:
        if re.match(r"https?://", where, re.IGNORECASE):
            if not urlsplit(where).hostname:
                raise UsageError(f"{OPTION}: the address names no host")
            return ServerAddress(name, url=where)
        command = tuple(shlex.split(where))
    except ValueError as error:
        raise UsageError(f"{OPTION}: a value is no address and no command line: {error}") from error
    if not command:
        raise UsageError(f"{OPTION}: give an address (http://...) or a command")
    return ServerAddress(name, command=command)


@dataclass(frozen=True)
class ImageParameter:
    """An argument that takes an image, or several, written as one of `SENT_AS`."""

    name: str
    sent_as: str
    several: bool
    required: bool

    def written(self, base64: str, media_type: str) -> Json:
        """The value of the argument for one image."""
        if self.sent_as == "object":
            return {"type": "image", "data": base64, "mimeType": media_type}
        return base64 if self.sent_as == "base64" else f"data:{media_type};base64,{base64}"


@dataclass(frozen=True)
class ForeignTool:
    """A tool of another server under its name in a run.

    `prefix` is the server's, `called` the server's own name of the tool, `images` the arguments that are filled in,
    `listed` the hash of what the server says of the tool, `told` the value of `--mcp-image` for it.
    """

    prefix: str
    called: str
    tool: Tool
    images: tuple[ImageParameter, ...]
    listed: str
    told: str = ""

    @property
    def code(self) -> str:
        """Hex sha256 of what the server says of the tool and the user of its images."""
        return hashlib.sha256(f"{self.listed} {self.told}".encode()).hexdigest() if self.told else self.listed

    @property
    def name(self) -> str:
        """Its name in a run."""
        return self.tool.card.name

    def arguments(self, images: Sequence[tuple[str, str]]) -> dict[str, Json]:
        """Images, each as base64 and media type, as arguments, in the order in which the card takes them."""
        if self.images and self.images[0].several:
            return {self.images[0].name: [self.images[0].written(*image) for image in images]}
        return {one.name: one.written(*image) for one, image in zip(self.images, images, strict=False)}


def hash_of(listed: protocol.Tool) -> str:
    """Hex sha256 of what a server says of a tool."""
    facts = [listed.name, listed.description or "", listed.inputSchema]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def foreign_name(prefix: str, called: str) -> str:
    """The name in a run of what the server calls `called`."""
    return f"{prefix}_{word(called, LONGEST_NAME)}"[:LONGEST_NAME].strip("_")


def foreign_tool(prefix: str, listed: protocol.Tool, told: str = "") -> ForeignTool:
    """A tool of a server as a tool of a run.

    Args:
        prefix: the word before its name.
        listed: what the server says of it.
        told: the value of `--mcp-image` for it: `PARAMETER[:data_url|base64|object]`, several with commas between.

    Raises:
        UsageError: it cannot be offered; the message says why, and begins with its name.
    """
    name = foreign_name(prefix, listed.name)
    if name == prefix:
        raise UsageError(f"{prefix}: {one_line(listed.name, 60)!r} is no name of a tool")
    try:
        images = _images(told, listed.inputSchema) if told else ()
        schema = _arguments_schema(listed.inputSchema, {one.name for one in images})
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    own = word(listed.name, LONGEST_NAME)
    summary = clean(listed.description or "", MOST_DESCRIPTION) or f"The tool {own} of the server {prefix}."
    several = bool(images) and images[0].several
    fewest = max(min(1, len(images)), sum(one.required for one in images if not several))
    card = Card(name, summary, "", (), (fewest, MOST_IMAGES if several else len(images)))
    return ForeignTool(prefix, listed.name, Tool(card, _args_of(schema)), images, hash_of(listed), told)


def _images(told: str, schema: Mapping[str, Any]) -> tuple[ImageParameter, ...]:
    """The arguments that the user named, the required ones first. Raises `UsageError`."""
    images, properties = [], _mapping(schema.get("properties"))
    for one in told.split(","):
        name, _, how = one.strip().partition(":")
        if (how or SENT_AS[0]) not in SENT_AS:
            raise UsageError(f"{IMAGE_OPTION}: {how!r:.40}: write {', '.join(SENT_AS)}")
        if name not in properties:
            raise UsageError(
                f"{IMAGE_OPTION}: it has no argument {name!r:.60}; there are: {', '.join(properties) or 'none'}"
            )
        several = _resolved(properties[name], schema).get("type") == "array"
        images.append(ImageParameter(name, how or SENT_AS[0], several, name in _list(schema.get("required"))))
    if len(images) > 1 and any(one.several for one in images):
        raise UsageError(f"{IMAGE_OPTION}: a list of images stands alone")
    return tuple(sorted(images, key=lambda one: not one.required))


def _arguments_schema(schema: Mapping[str, Any], images: set[str]) -> dict[str, Any]:
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
    required = [name for name in _list(schema.get("required")) if name in fields]
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
    node = _resolved(node, root)
    kept = {key: node[key] for key in KEPT if key in node}
    if isinstance(node.get("description"), str) and (said := clean(node["description"], MOST_WORDS)):
        kept["description"] = said
    kinds = [{"type": kind} for kind in _list(node.get("type"))]
    if kinds := [*kinds, *_list(node.get("anyOf")), *_list(node.get("oneOf"))]:
        kept.pop("type", None)
        kept["anyOf"] = [_plain(kind, root, parts, depth + 1) for kind in kinds]
    if "items" in node:
        kept["items"] = _plain(node["items"], root, parts, depth + 1)
    if fields := _mapping(node.get("properties")):
        kept["properties"] = {name: _plain(field, root, parts, depth + 1) for name, field in fields.items()}
        kept["required"] = [name for name in _list(node.get("required")) if name in fields]
    return kept


def _resolved(node: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node, or the part of the schema that its reference leads to; nothing for any other reference."""
    for _ in range(DEEPEST):
        here = _mapping(node)
        reference = here.get("$ref")
        if not isinstance(reference, str):
            return here
        target: Any = root if reference.startswith("#/") else {}
        for part in reference[2:].split("/"):
            target = _mapping(target).get(part.replace("~1", "/").replace("~0", "~"))
        node = {**_mapping(target), **{key: value for key, value in here.items() if key != "$ref"}}
    return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _args_of(schema: dict[str, Any]) -> type[Args]:
    """A type of arguments that takes what fits the schema, and nothing else."""
    from jsonschema import Draft202012Validator

    from hybrid.tool_args import args_of_schema

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
        return [_whole_pixels(item, _mapping(schema.get("items"))) for item in given]
    if not isinstance(given, Mapping):
        return given
    fields = {key: _mapping(_mapping(schema.get("properties")).get(key)) for key in given}
    return {
        key: round(value)
        if key in COORDINATES and isinstance(value, float) and fields[key].get("type") == "integer"
        else _whole_pixels(value, fields[key])
        for key, value in given.items()
    }


@dataclass(frozen=True)
class ForeignServer:
    """A server as it was before the run, in clean texts; `left_out` says by name why a tool is not offered."""

    address: ServerAddress
    prefix: str
    name: str
    version: str
    protocol: str
    tools: tuple[ForeignTool, ...]
    left_out: Mapping[str, str]

    @property
    def backend(self) -> str:
        """Name and version of the server, as the manifest has them for each tool."""
        return f"{BACKEND}:{self.name} {self.version}".strip()


@dataclass(frozen=True)
class ForeignTools:
    """The tools of all foreign servers of a run; empty without any."""

    servers: tuple[ForeignServer, ...] = ()

    @property
    def tools(self) -> dict[str, ForeignTool]:
        """The tools by name, in the order in which their servers list them."""
        return {one.name: one for server in self.servers for one in server.tools}

    @property
    def left_out(self) -> dict[str, str]:
        """By name why a tool is not offered."""
        return {name: why for server in self.servers for name, why in server.left_out.items()}

    @property
    def backends(self) -> dict[str, str]:
        """By the name of a tool `ForeignServer.backend`."""
        return {one.name: server.backend for server in self.servers for one in server.tools}

    def as_json(self, used: Iterable[str]) -> list[Json]:
        """The servers as the manifest has them, with the hash of each of these tools."""
        return [
            {
                **{key: getattr(server, key) for key in ("prefix", "name", "version", "protocol")},
                "address": str(server.address),
                "tools": codes,
            }
            for server in self.servers
            if (codes := {one.name: one.code for one in server.tools if one.name in frozenset(used)})
        ]


NOTHING_FOREIGN = ForeignTools()


def foreign_server(
    address: ServerAddress,
    said: protocol.InitializeResult,
    listed: Sequence[protocol.Tool],
    told: Mapping[str, str],
    taken: Sequence[str],
) -> ForeignServer:
    """A server with those of its tools that can be offered.

    Args:
        address: of the server.
        said: its greeting.
        listed: its tools.
        told: `--mcp-image`, by the name of the tool in the run.
        taken: names that other tools have.

    Raises:
        UsageError: neither the user nor the server gives a name that is a word.
    """
    info = said.serverInfo
    prefix = address.name or word(one_line(info.name, 80), LONGEST_PREFIX)
    if not prefix[:1].isalpha():
        raise UsageError(f"{OPTION} {address}: the server gives no name that is a word: write NAME={address}")
    tools: dict[str, ForeignTool] = {}
    left_out: dict[str, str] = {}
    for one in listed:
        name = foreign_name(prefix, one.name)
        if name in tools or name in taken:
            left_out[name] = f"{name}: there is a tool of that name already"
            continue
        try:
            tools[name] = foreign_tool(prefix, one, told.get(name, ""))
        except UsageError as error:
            left_out[name] = str(error)
    facts = (one_line(info.name, 80), one_line(info.version, 40), one_line(str(said.protocolVersion), 40))
    return ForeignServer(address, prefix, *facts, tuple(tools.values()), left_out)
