"""The tools of external MCP servers in the form that a run offers.

    tool = foreign_tool(server, protocol.Tool(name="outline", inputSchema=schema), "photo:base64")
    tool.arguments([("iVBORw0...", "image/png")])                                   # {"photo": "iVBORw0..."}

The user names the arguments that take an image (`--mcp-image`). These are removed from the schema: a model names an
image (`img:1`) as for any other tool, and the bytes are filled in. Other arguments are validated by the server; a model
sees cleaned texts and the parts of the schemas that `spec` keeps.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp.types as protocol
from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

from hybrid.core.errors import DataError, UsageError
from hybrid.core.secrets import redact
from hybrid.core.types import Json
from hybrid.models.toolspec import spec
from hybrid.serving.service import ForeignServer, ForeignTool
from hybrid.tool import Card, Tool
from hybrid.tool.args import args_of_schema

# The backend name in outputs of external tools.
BACKEND = "mcp"
# Maximum characters of a tool's name, of its description, and of an argument's description.
MAX_NAME_LENGTH, MAX_DESCRIPTION, MAX_WORDS = 64, 4000, 300
# Maximum characters of a schema, which is sent with every model call, and maximum references, which multiply content.
MAX_SCHEMA, MAX_REFERENCES = 20_000, 16
# The forms in which an image is sent: `data:image/png;base64,...`, or only the base64.
SENT_AS = ("data_url", "base64")


def clean(text: str, most: int) -> str:
    """Return the text without invisible characters except newline and tab; truncation after `most` is noted."""
    printable = "".join(char for char in text if char in "\n\t" or unicodedata.category(char)[0] != "C").strip()
    return (
        printable
        if len(printable) <= most
        else f"{printable[:most]}\n[{len(printable) - most:,} more characters are left out]"
    )


def one_line(text: str) -> str:
    """Return the text as one line of at most 300 characters."""
    line = " ".join(clean(text[:3000], 3000).split())
    return line if len(line) <= 300 else f"{line[:297]}..."


@dataclass(frozen=True)
class ServerAddress:
    """The address of a server: its name in the run, and the words of its command, or only its URL."""

    name: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        """Return URL or command without secrets.

        Words are redacted one by one, because quoting would split a secret.
        """
        return redact(self.words[0]) if self.is_url else shlex.join(map(redact, self.words))

    @property
    def is_url(self) -> bool:
        """Whether the server is reached over HTTP instead of started by a command."""
        return re.match(r"https?://", self.words[0], re.IGNORECASE) is not None


def read_server(spec: str) -> ServerAddress:
    """Parse a value of `--mcp`. Raises `UsageError`."""
    name, _, command = spec.strip().partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--mcp: the value is neither a URL nor a command: {error}") from error
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,23}", name) or not words or not words[0]:
        raise UsageError("--mcp: write NAME=URL or NAME=COMMAND, with a name of at most 24 of a-z, 0-9 and _")
    return ServerAddress(name.strip("_"), tuple(words))


@dataclass(frozen=True)
class McpTool(ForeignTool):
    """A tool of a server, named `called` there; `images` maps each image argument to its encoding (`SENT_AS`)."""

    address: ServerAddress
    called: str
    images: Mapping[str, str]

    def arguments(self, images: Sequence[tuple[str, str]]) -> dict[str, Json]:
        """Return the images, each given as base64 and media type, as arguments."""
        return {
            name: base64 if form == "base64" else f"data:{media_type};base64,{base64}"
            for (name, form), (base64, media_type) in zip(self.images.items(), images, strict=True)
        }


def foreign_name(server: str, tool_name: str) -> str:
    """Return a tool's name in a run from the server's name for it: lower-case letters, digits and underscores."""
    words = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tool_name).lower())
    return f"{server}_{words.strip('_')}"[:MAX_NAME_LENGTH].strip("_")


def foreign_tool(
    address: ServerAddress, server: ForeignServer, remote_tool: protocol.Tool, image_arguments: str = ""
) -> McpTool:
    """Return a tool from a server's list, with the value of `--mcp-image`: `ARGUMENT[:data_url|base64],...`.

    Raises:
        UsageError: it cannot be offered; the message gives the reason.
    """
    name, properties = foreign_name(server.name, remote_tool.name), remote_tool.inputSchema.get("properties", {})
    split = [entry.strip().partition(":") for entry in image_arguments.split(",") if entry]
    images = {argument: form or SENT_AS[0] for argument, _, form in split}
    summary = clean(remote_tool.description or "", MAX_DESCRIPTION) or f"The tool {name} of the server {server.name}."
    card = Card(name, summary, "", (), (len(images), len(images)))
    try:
        for argument, form in images.items():
            if form not in SENT_AS or argument not in properties:
                available, forms = ", ".join(properties) or "none", ", ".join(SENT_AS)
                raise UsageError(f"--mcp-image {argument}:{form}: its arguments are {available}; sent as {forms}")
        tool = Tool(card, args_of_schema(arguments_schema(remote_tool.inputSchema, images), dict))
        # Validate only what `spec` keeps of the server's schema, because only that is sent.
        Draft202012Validator.check_schema(spec(tool)["function"]["parameters"], format_checker=None)
    except DataError as error:
        raise UsageError(f"{error}; if it takes an image, write --mcp-image {name}=ARGUMENT") from None
    except (SchemaError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        raise UsageError("its arguments are not a JSON schema that can be shown to a model") from None
    facts = json.dumps(
        [remote_tool.name, remote_tool.description, remote_tool.inputSchema, image_arguments], sort_keys=True
    )
    code = hashlib.sha256(facts.encode()).hexdigest()
    return McpTool(server, tool, f"{BACKEND}:{server.about}", code, address, remote_tool.name, images)


def arguments_schema(schema: Mapping[str, Any], images: Collection[str]) -> dict[str, Any]:
    """Return the schema of all arguments except `images`, with cleaned texts. Raises `UsageError` if too large."""
    text = json.dumps(schema)
    if len(text) > MAX_SCHEMA or text.count('"$ref"') > MAX_REFERENCES:
        raise UsageError(f"its schema has over {MAX_SCHEMA:,} characters or {MAX_REFERENCES} references")
    clean_schema = json.loads(
        text,
        object_hook=lambda node: {
            key: clean(value, MAX_WORDS) if isinstance(value, str) else value for key, value in node.items()
        },
    )
    fields = {name: node for name, node in clean_schema.get("properties", {}).items() if name not in images}
    if odd := [name for name in fields if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", name)]:
        raise UsageError(f"{one_line(odd[0])!r} is not an argument name")
    required = [name for name in clean_schema.get("required", ()) if name in fields]
    definitions = {**clean_schema.get("definitions", {}), **clean_schema.get("$defs", {})}
    return {"type": "object", "properties": fields, "required": required, "$defs": definitions}
