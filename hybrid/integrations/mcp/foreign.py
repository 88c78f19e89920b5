"""A tool of another MCP server as a tool of a run: which part of the server's description is taken over.

    tool = foreign_tool("shapes", protocol.Tool(name="outline", inputSchema=schema), "image:base64")   # shapes_outline
    tool.arguments([("iVBORw0...", "image/png")])                                      # {"image": "iVBORw0..."}

The server is not trusted: of its descriptions and schemas plain text and a few keywords are kept, with limits
(`schemas.py`). The user names the arguments that take an image
(`--mcp-image`): they leave the schema, a model names an image (`img:1`) as for any other tool, and the bytes are filled
in.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hybrid.errors import UsageError
from hybrid.integrations.mcp.schemas import (
    IMAGE_OPTION,
    args_of,
    arguments_schema,
    clean,
    list_of,
    mapping_of,
    one_line,
    resolved,
)
from hybrid.secrets import redact
from hybrid.tool import Card, Tool
from hybrid.types import Json

if TYPE_CHECKING:
    import mcp.types as protocol

OPTION = "--mcp"
BACKEND = "mcp"
"""The backend of findings of foreign tools."""
MOST_DESCRIPTION = 4000
"""Characters that are kept of the description of a tool."""
LONGEST_NAME, LONGEST_PREFIX = 64, 24
"""Characters of a tool's name, as providers take it, and of the server's word before it."""
MOST_IMAGES = 8
"""Images of one call that takes a list of them."""
CODE_DIGITS = 12
"""Digits of the hash of a tool in the manifest."""
SENT_AS = ("data_url", "base64", "object")
"""How an image is written: `data:image/png;base64,...`, the base64 alone, or `{"type", "data", "mimeType"}`."""


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

    `prefix` is the server's, `listed` what the server says of the tool, `images` the arguments that are filled in,
    `image_arguments` the value of `--mcp-image` that names them.
    """

    prefix: str
    listed: protocol.Tool
    tool: Tool
    images: tuple[ImageParameter, ...]
    image_arguments: str = ""

    @property
    def code(self) -> str:
        """Hex sha256 of what the server says of the tool and the user of its images."""
        facts = [self.listed.name, self.listed.description or "", self.listed.inputSchema]
        listed = _sha256(json.dumps(facts, sort_keys=True, ensure_ascii=True))
        return _sha256(f"{listed} {self.image_arguments}") if self.image_arguments else listed

    @property
    def name(self) -> str:
        """Its name in a run."""
        return self.tool.card.name

    def arguments(self, images: Sequence[tuple[str, str]]) -> dict[str, Json]:
        """Images, each as base64 and media type, as arguments, in the order in which the card takes them."""
        if self.images and self.images[0].several:
            return {self.images[0].name: [self.images[0].written(*image) for image in images]}
        return {one.name: one.written(*image) for one, image in zip(self.images, images, strict=False)}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def foreign_name(prefix: str, called: str) -> str:
    """The name in a run of what the server calls `called`."""
    return f"{prefix}_{word(called, LONGEST_NAME)}"[:LONGEST_NAME].strip("_")


def foreign_tool(prefix: str, listed: protocol.Tool, image_arguments: str = "") -> ForeignTool:
    """A tool of a server as a tool of a run.

    Args:
        prefix: the word before its name.
        listed: what the server says of it.
        image_arguments: the value of `--mcp-image`: `PARAMETER[:data_url|base64|object]`, several with commas between.

    Raises:
        UsageError: it cannot be offered; the message says why, and begins with its name.
    """
    name = foreign_name(prefix, listed.name)
    if name == prefix:
        raise UsageError(f"{prefix}: {one_line(listed.name, 60)!r} is no name of a tool")
    try:
        images = _images(image_arguments, listed.inputSchema) if image_arguments else ()
        schema = arguments_schema(listed.inputSchema, {one.name for one in images})
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    own = word(listed.name, LONGEST_NAME)
    summary = clean(listed.description or "", MOST_DESCRIPTION) or f"The tool {own} of the server {prefix}."
    several = bool(images) and images[0].several
    fewest = max(min(1, len(images)), sum(one.required for one in images if not several))
    card = Card(name, summary, "", (), (fewest, MOST_IMAGES if several else len(images)))
    return ForeignTool(prefix, listed, Tool(card, args_of(schema)), images, image_arguments)


def _images(image_arguments: str, schema: Mapping[str, Any]) -> tuple[ImageParameter, ...]:
    """The arguments that the user named, the required ones first. Raises `UsageError`."""
    images, properties = [], mapping_of(schema.get("properties"))
    for one in image_arguments.split(","):
        name, _, how = one.strip().partition(":")
        if (how or SENT_AS[0]) not in SENT_AS:
            raise UsageError(f"{IMAGE_OPTION}: {how!r:.40}: write {', '.join(SENT_AS)}")
        if name not in properties:
            raise UsageError(
                f"{IMAGE_OPTION}: it has no argument {name!r:.60}; there are: {', '.join(properties) or 'none'}"
            )
        several = resolved(properties[name], schema).get("type") == "array"
        images.append(ImageParameter(name, how or SENT_AS[0], several, name in list_of(schema.get("required"))))
    if len(images) > 1 and any(one.several for one in images):
        raise UsageError(f"{IMAGE_OPTION}: a list of images stands alone")
    return tuple(sorted(images, key=lambda one: not one.required))


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
    image_arguments: Mapping[str, str],
    taken: Sequence[str],
) -> ForeignServer:
    """A server with those of its tools that can be offered.

    Args:
        address: of the server.
        said: its greeting.
        listed: its tools.
        image_arguments: `--mcp-image`, by the name of the tool in the run.
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
            tools[name] = foreign_tool(prefix, one, image_arguments.get(name, ""))
        except UsageError as error:
            left_out[name] = str(error)
    facts = (one_line(info.name, 80), one_line(info.version, 40), one_line(str(said.protocolVersion), 40))
    return ForeignServer(address, prefix, *facts, tuple(tools.values()), left_out)
