"""The tools of foreign MCP servers as a run offers them.

    tool = foreign_tool(server, protocol.Tool(name="outline", inputSchema=schema), "photo:base64")
    tool.arguments([("iVBORw0...", "image/png")])                                   # {"photo": "iVBORw0..."}

The user names the arguments that take an image (`--mcp-image`). They leave the schema: a model names an image (`img:1`)
as for any other tool, and the bytes are filled in. Other arguments are checked by the server; a model reads its clean
texts and what `spec` keeps of its schemas. Works without the package `mcp`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybrid.errors import DataError, UsageError
from hybrid.models.toolspec import spec
from hybrid.secrets import redact
from hybrid.tool import Card, Tool
from hybrid.tool.args import args_of_schema
from hybrid.types import Json

if TYPE_CHECKING:
    import mcp.types as protocol

BACKEND = "mcp"
"""The backend of findings of foreign tools."""
LONGEST_NAME, MOST_DESCRIPTION, MOST_WORDS = 64, 4000, 300
"""Characters of a tool's name, of its description, and of the description of one argument."""
MOST_SCHEMA, MOST_REFERENCES = 20_000, 16
"""Characters of a schema, which goes out with every call of a model, and references, which multiply what they hold."""
SENT_AS = ("data_url", "base64")
"""How an image is written: `data:image/png;base64,...`, or the base64 alone."""


def clean(text: str, most: int) -> str:
    """The text without invisible characters except newline and tab; a cut after `most` characters is noted."""
    kept = "".join(char for char in text if char in "\n\t" or unicodedata.category(char)[0] != "C").strip()
    return kept if len(kept) <= most else f"{kept[:most]}\n[{len(kept) - most:,} more characters are left out]"


def one_line(text: str) -> str:
    """The text as one line of at most 300 characters."""
    line = " ".join(clean(text[:3000], 3000).split())
    return line if len(line) <= 300 else f"{line[:297]}..."


@dataclass(frozen=True)
class ForeignServer:
    """A server: its name in the run, the words of its command or its URL alone, and what it says of itself."""

    name: str
    words: tuple[str, ...]
    title: str = ""
    version: str = ""
    protocol: str = ""

    def __str__(self) -> str:
        """URL or command without its secrets; redacted word by word, since quotes would take a secret apart."""
        return redact(self.words[0]) if self.is_url else shlex.join(map(redact, self.words))

    @property
    def about(self) -> str:
        """Title and version, as they stand in the manifest and in findings."""
        return f"{self.title} {self.version}".strip()

    @property
    def is_url(self) -> bool:
        """Whether it is reached over HTTP, not started by a command."""
        return re.match(r"https?://", self.words[0], re.IGNORECASE) is not None


def read_server(written: str) -> ForeignServer:
    """The server in a value of `--mcp`. Raises `UsageError`."""
    name, _, where = written.strip().partition("=")
    try:
        words = shlex.split(where)
    except ValueError as error:
        raise UsageError(f"--mcp: the value is no URL and no command: {error}") from error
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,23}", name) or not words or not words[0]:
        raise UsageError("--mcp: write NAME=URL or NAME=COMMAND, with a name of at most 24 of a-z, 0-9 and _")
    return ForeignServer(name.strip("_"), tuple(words))


@dataclass(frozen=True)
class ForeignTool:
    """A tool of a server, which calls it `called`.

    `images` has the arguments that take an image, each with one of `SENT_AS`. `code` is the hex sha256 of what the
    server says of the tool and the user of its images.
    """

    server: ForeignServer
    called: str
    tool: Tool
    images: Mapping[str, str]
    code: str

    def arguments(self, images: Sequence[tuple[str, str]]) -> dict[str, Json]:
        """Images, each as base64 and media type, as arguments."""
        return {
            name: base64 if how == "base64" else f"data:{media_type};base64,{base64}"
            for (name, how), (base64, media_type) in zip(self.images.items(), images, strict=True)
        }


@dataclass(frozen=True)
class ForeignTools:
    """The foreign servers of a run, their tools by name, and by name why a tool is not offered."""

    servers: tuple[ForeignServer, ...] = ()
    tools: Mapping[str, ForeignTool] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def backends(self) -> dict[str, str]:
        """By the name of a tool the backend, title and version of its server."""
        return {name: f"{BACKEND}:{one.server.about}" for name, one in self.tools.items()}

    def as_json(self, used: Collection[str]) -> list[Json]:
        """The servers of the tools in `used` as the manifest has them, with the hash of each of these tools."""
        rows: list[Json] = []
        for server in self.servers:
            tools = {name: one.code for name, one in self.tools.items() if name in used and one.server is server}
            facts = {"prefix": server.name, "name": server.title, "version": server.version}
            rows += [{**facts, "protocol": server.protocol, "address": str(server), "tools": tools}] if tools else []
        return rows


NOTHING_FOREIGN = ForeignTools()


def foreign_name(server: str, called: str) -> str:
    """The name in a run of what the server calls `called`: lower-case letters, digits and underscores."""
    words = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", called).lower())
    return f"{server}_{words.strip('_')}"[:LONGEST_NAME].strip("_")


def foreign_tool(server: ForeignServer, listed: protocol.Tool, image_arguments: str = "") -> ForeignTool:
    """A tool as the server lists it, with the value of `--mcp-image`: `ARGUMENT[:data_url|base64|object],...`.

    Raises:
        UsageError: it cannot be offered; the message says why.
    """
    name, properties = foreign_name(server.name, listed.name), listed.inputSchema.get("properties", {})
    if name == server.name:
        raise UsageError("its name is no word")
    split = [one.strip().partition(":") for one in image_arguments.split(",") if one]
    images = {argument: how or SENT_AS[0] for argument, _, how in split}
    args = args_of_schema(arguments_schema(listed.inputSchema, images), dict)
    for argument, how in images.items():
        if how not in SENT_AS or argument not in properties:
            there = ", ".join(properties) or "none"
            raise UsageError(f"--mcp-image {argument}:{how}: its arguments are {there}; sent as {', '.join(SENT_AS)}")
    summary = clean(listed.description or "", MOST_DESCRIPTION) or f"The tool {name} of the server {server.name}."
    tool = Tool(Card(name, summary, "", (), (len(images), len(images))), args)
    try:
        spec(tool)
    except DataError as error:
        raise UsageError(f"{error}; if it takes an image, write --mcp-image {name}=ARGUMENT") from None
    except (AttributeError, LookupError, TypeError, RecursionError):
        raise UsageError("its schema has a part that cannot be told to a model, such as an open reference") from None
    facts = json.dumps([listed.name, listed.description, listed.inputSchema, image_arguments], sort_keys=True)
    code = hashlib.sha256(facts.encode()).hexdigest()
    return ForeignTool(server, listed.name, tool, images, code)


def arguments_schema(schema: Mapping[str, Any], images: Collection[str]) -> dict[str, Any]:
    """The schema of all arguments but `images`, in clean texts. Raises `UsageError` where it cannot be used."""
    from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

    try:
        Draft202012Validator.check_schema(schema, format_checker=None)
    except (SchemaError, RecursionError) as error:
        raise UsageError(f"its arguments are no JSON schema: {one_line(str(error))}") from None
    text = json.dumps(schema)
    if len(text) > MOST_SCHEMA or text.count('"$ref"') > MOST_REFERENCES:
        raise UsageError(f"its schema has over {MOST_SCHEMA:,} characters or {MOST_REFERENCES} references")
    whole = json.loads(text, object_hook=_cleaned)
    fields = {name: node for name, node in whole.get("properties", {}).items() if name not in images}
    if odd := [name for name in fields if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", name)]:
        raise UsageError(f"{one_line(odd[0])!r} is no name of an argument")
    required = [name for name in whole.get("required", ()) if name in fields]
    definitions = {**whole.get("definitions", {}), **whole.get("$defs", {})}
    return {"type": "object", "properties": fields, "required": required, "$defs": definitions}


def _cleaned(node: dict[str, Any]) -> dict[str, Any]:
    return {key: clean(value, MOST_WORDS) if isinstance(value, str) else value for key, value in node.items()}
