"""A tool of another MCP server as a tool of a run: which part of the server's description is taken over.

    address = read_address("shapes=python shapes_server.py")
    foreign = foreign_tool("shapes", Listed("outline", "Outlines things.", schema), "image:base64")   # shapes_outline
    foreign.tool.parse({"colour": "red"})
    foreign.arguments([sent])                        # {"image": "iVBORw0..."}

The server is not trusted. Of the description and of the schema of the arguments plain text and a few keywords are kept,
with limits; nothing is resolved outside of the schema, no pattern is matched. The arguments that take an image are
named by the user (`--mcp-image`) and leave the schema: a model names an image (`img:1`) as for any other tool, and the
bytes are filled in.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from hybrid.errors import UsageError
from hybrid.models.toolspec import COORDINATES, IMAGE, IMAGES
from hybrid.secrets import redact
from hybrid.tool import Card, Tool
from hybrid.types import Json, StoredImage

if TYPE_CHECKING:
    from hybrid.tool import Args

OPTION = "--mcp"
IMAGE_OPTION = "--mcp-image"
BACKEND = "mcp"
"""The backend of findings of foreign tools."""
LONGEST_NAME = 64
"""Characters of a tool's name: what providers take."""
LONGEST_PREFIX = 24
MOST_DESCRIPTION = 4000
"""Characters of a description that are kept."""
MOST_WORDS = 300
"""Characters of the description of one argument."""
MOST_SCHEMA = 20_000
"""Characters of a schema, as JSON: it goes out with every call of a model."""
MOST_ARGUMENTS = 32
DEEPEST = 6
MOST_NODES = 500
"""Values in a schema whose references are followed."""
MOST_IMAGES = 8
"""Of one call, where the server tells no number."""
CODE_DIGITS = 12
"""Of the hash of a tool, as the manifest has it."""

SentAs = Literal["data_url", "base64", "object"]
"""How an image is written: `data:image/png;base64,...`, the base64 alone, or `{"type", "data", "mimeType"}`."""
SENT_AS: tuple[SentAs, ...] = ("data_url", "base64", "object")
_KEPT = (
    *("enum", "const", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems", "minLength", "maxLength"),
)
"""Keywords that are kept as they are."""
_ARGUMENT = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_NAMED = re.compile(r"([a-z][a-z0-9_]*)=(.*)", re.DOTALL)


def clean(text: str, most: int) -> str:
    """A stranger's text without control characters and without characters that nobody sees, and no longer than `most`.

    Line ends and tabs stay. What is left out at the end is said.
    """
    kept = "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in _UNSEEN).strip()
    return kept if len(kept) <= most else f"{kept[:most]}\n[{len(kept) - most:,} more characters are left out]"


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Control and format characters, halves of pairs, private and unassigned ones: terminals obey some, models read others
that a person does not see."""


def one_line(text: str, most: int = 200) -> str:
    """The same in one line, for messages."""
    line = " ".join(clean(text[: 10 * most], 10 * most).split())
    return line if len(line) <= most else f"{line[:most]}..."


@dataclass(frozen=True)
class ServerAddress:
    """A server as it was named: an address, or the words of a command that speaks over stdin and stdout.

    `name` is the word before the `=`; empty where the server's own is to be taken.
    """

    name: str
    url: str = ""
    command: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """Address or command without its secrets, as the manifest and messages have it."""
        # Word by word: a shell's quotes would take a secret apart.
        return redact(self.url) or shlex.join(map(redact, self.command))


def read_address(written: str) -> ServerAddress:
    """A value of `--mcp`: `URL`, `COMMAND`, or either after `NAME=`; http and https are addresses.

    Raises:
        UsageError: nothing is there, it is no command line, or the address has no host.
    """
    named = _NAMED.fullmatch(written.strip())
    name, where = (word(named[1], LONGEST_PREFIX), named[2].strip()) if named else ("", written.strip())
    if re.match(r"https?://", where, re.IGNORECASE):
        try:
            host = urlsplit(where).hostname
        except ValueError:
            host = None
        if not host:
            raise UsageError(f"{OPTION}: the address names no host")
        return ServerAddress(name, url=where)
    try:
        command = tuple(shlex.split(where))
    except ValueError as error:
        raise UsageError(f"{OPTION}: a value is no command line: {error}") from error
    if not command:
        raise UsageError(f"{OPTION}: give an address (http://...) or a command")
    return ServerAddress(name, command=command)


def word(text: str, most: int) -> str:
    """A text as a word of lower-case letters, digits and underscores; empty where nothing of it can be one."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"[^a-z0-9]+", "_", apart.lower()).strip("_")[:most].strip("_")


@dataclass(frozen=True)
class Listed:
    """What a server says of one of its tools."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def code(self) -> str:
        """Hex sha256 of all of it: another tool when it says another thing."""
        facts = [self.name, self.description, self.schema]
        return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


@dataclass(frozen=True)
class ServerFacts:
    """What a server says of itself, and where it is; texts are clean."""

    prefix: str
    name: str
    version: str
    protocol: str
    address: str

    @property
    def backend(self) -> str:
        """What answers, as the manifest says it for each tool."""
        return f"{BACKEND}:{self.name} {self.version}".strip()

    def as_json(self) -> dict[str, Json]:
        """As the manifest has it."""
        facts = {"name": self.name, "version": self.version, "protocol": self.protocol, "address": self.address}
        return {"prefix": self.prefix, **facts}


@dataclass(frozen=True)
class ImageParameter:
    """An argument that takes an image, or several."""

    name: str
    sent_as: SentAs
    several: bool = False
    required: bool = True


@dataclass(frozen=True)
class SentImage:
    """An image as it goes out: base64 of a PNG or a JPEG."""

    base64: str
    media_type: str

    def written(self, sent_as: SentAs) -> Json:
        """The value of an argument."""
        if sent_as == "base64":
            return self.base64
        if sent_as == "object":
            return {"type": "image", "data": self.base64, "mimeType": self.media_type}
        return f"data:{self.media_type};base64,{self.base64}"

    @classmethod
    def of(cls, sent: StoredImage, data: bytes) -> SentImage:
        """The image whose base64 this is."""
        return cls(data.decode("ascii"), sent.media_type)


@dataclass(frozen=True)
class ForeignTool:
    """A tool of another server, under its name in a run."""

    prefix: str
    """Of its server."""
    called: str
    """What the server calls it."""
    tool: Tool
    images: tuple[ImageParameter, ...]
    """Those arguments that are filled in; none where it takes no image."""
    listed: str
    """Hex sha256 of what the server says of it."""
    told: str = ""
    """What a person said of its images (`--mcp-image`)."""

    @property
    def code(self) -> str:
        """Hex sha256 of what it is in a run: of what the server says of it, and a person of its images."""
        return hashlib.sha256(f"{self.listed} {self.told}".encode()).hexdigest() if self.told else self.listed

    @property
    def name(self) -> str:
        """Its name in a run."""
        return self.tool.card.name

    def arguments(self, images: Sequence[SentImage]) -> dict[str, Json]:
        """The images as arguments, in the order in which the card takes them."""
        if self.images and self.images[0].several:
            return {self.images[0].name: [image.written(self.images[0].sent_as) for image in images]}
        return {one.name: image.written(one.sent_as) for one, image in zip(self.images, images, strict=False)}


def foreign_tool(prefix: str, listed: Listed, told: str | None = None) -> ForeignTool:
    """A tool of a server as a tool of a run.

    Args:
        prefix: the word before its name.
        listed: what the server says of it.
        told: the value of `--mcp-image` for it: `PARAMETER[:data_url|base64|object]`, several with commas between.

    Raises:
        UsageError: it cannot be offered; the message says why, and begins with its name.
    """
    own = word(listed.name, LONGEST_NAME)
    name = f"{prefix}_{own}"[:LONGEST_NAME].strip("_")
    if not own:
        raise UsageError(f"{prefix}: {one_line(listed.name, 60)!r} is no name of a tool")
    properties = listed.schema.get("properties", {})
    if not isinstance(properties, Mapping) or len(properties) > MOST_ARGUMENTS:
        raise UsageError(f"{name}: more than {MOST_ARGUMENTS} arguments, or none that can be read")
    if odd := [key for key in properties if not _ARGUMENT.fullmatch(str(key))]:
        raise UsageError(f"{name}: {one_line(str(odd[0]), 60)!r} is no name of an argument")
    required = [key for key in _listed(listed.schema.get("required")) if key in properties]
    try:
        images = _chosen(told, listed.schema, required) if told else ()
        schema = _arguments_schema(listed.schema, required, {one.name for one in images})
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    summary = clean(listed.description, MOST_DESCRIPTION) or f"The tool {own} of the server {prefix}."
    card = Card(name, summary, "", (), _count(images))
    return ForeignTool(prefix, listed.name, Tool(card, _args_of(schema)), images, listed.code, told or "")


def _count(images: Sequence[ImageParameter]) -> tuple[int, int]:
    """Fewest and most images of one call."""
    if not images:
        return 0, 0
    if images[0].several:
        return 1, MOST_IMAGES
    return max(1, sum(one.required for one in images)), len(images)


def _chosen(told: str, schema: Mapping[str, Any], required: Sequence[str]) -> tuple[ImageParameter, ...]:
    """The arguments that a person named."""
    found = []
    for one in told.split(","):
        name, colon, how = one.strip().partition(":")
        sent_as = next((known for known in SENT_AS if how == known), None if colon else SENT_AS[0])
        if sent_as is None:
            raise UsageError(f"{IMAGE_OPTION}: {how!r:.40}: write {', '.join(SENT_AS)}")
        if name not in schema["properties"]:
            there = ", ".join(schema["properties"]) or "none"
            raise UsageError(f"{IMAGE_OPTION}: it has no argument {name!r:.60}; there are: {there}")
        several = _resolved(schema["properties"][name], schema).get("type") == "array"
        found.append(ImageParameter(name, sent_as, several, name in required))
    if len(found) > 1 and any(one.several for one in found):
        raise UsageError(f"{IMAGE_OPTION}: a list of images stands alone")
    return tuple(sorted(found, key=lambda one: not one.required))


def _arguments_schema(schema: Mapping[str, Any], required: Sequence[str], images: set[str]) -> dict[str, Any]:
    """The schema of the other arguments in the keywords that are kept. Raises `UsageError` for one of no use."""
    from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

    parts, arguments = count(1), schema.get("properties", {})
    fields = {name: _plain(node, schema, parts) for name, node in arguments.items() if name not in images}
    for name in (IMAGE, IMAGES):
        if name in fields:
            raise UsageError(f"its argument {name} has the name of our images: if it takes one, write {IMAGE_OPTION}")
    plain = {
        "type": "object",
        "properties": fields,
        "required": [name for name in required if name in fields],
        "additionalProperties": False,
    }
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
    kept = {key: node[key] for key in _KEPT if key in node}
    if isinstance(node.get("description"), str) and (said := clean(node["description"], MOST_WORDS)):
        kept["description"] = said
    kinds = [{"type": kind} for kind in _listed(node.get("type"))]
    kinds += [*_listed(node.get("anyOf")), *_listed(node.get("oneOf"))]
    if kinds:
        kept["anyOf"] = [_plain(kind, root, parts, depth + 1) for kind in kinds]
    elif "type" in node:
        kept["type"] = node["type"]
    if "items" in node:
        kept["items"] = _plain(node["items"], root, parts, depth + 1)
    if fields := _mapping(node.get("properties")):
        kept["properties"] = {name: _plain(field, root, parts, depth + 1) for name, field in fields.items()}
        kept["required"] = [name for name in _listed(node.get("required")) if name in fields]
    return kept


def _resolved(node: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node, or what its reference within the schema leads to; nothing for any other reference."""
    for _ in range(DEEPEST):
        here = _mapping(node)
        reference = here.get("$ref")
        if not isinstance(reference, str):
            return here
        found: Any = root if reference.startswith("#/") else {}
        for part in reference[2:].split("/"):
            found = _mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
        node = {**_mapping(found), **{key: value for key, value in here.items() if key != "$ref"}}
    return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: Any) -> list[Any]:
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
            said = (one_line(f"{place}: {message}" if place else message) for place, message in wrong[:3])
            raise ValueError("; ".join(said))
        return given

    return args_of_schema(schema, fit)


def _whole_pixels(given: Any, schema: Mapping[str, Any]) -> Any:
    """The same with every coordinate rounded whose schema wants a whole number: frames give fractions of pixels."""
    if isinstance(given, list | tuple):
        return [_whole_pixels(item, _mapping(schema.get("items"))) for item in given]
    if not isinstance(given, Mapping):
        return given
    fields = _mapping(schema.get("properties"))
    found = {key: _whole_pixels(value, _mapping(fields.get(key))) for key, value in given.items()}
    for key in COORDINATES.intersection(found):
        if isinstance(found[key], float) and _mapping(fields.get(key)).get("type") == "integer":
            found[key] = round(found[key])
    return found


@dataclass(frozen=True)
class ForeignServer:
    """A server of a run and its tools, as listed before the run."""

    facts: ServerFacts
    address: ServerAddress
    tools: tuple[ForeignTool, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    """By the name that a tool would have why it is not offered."""


@dataclass(frozen=True)
class ForeignTools:
    """The tools of all foreign servers of a run; empty without any."""

    servers: tuple[ForeignServer, ...] = ()

    @property
    def tools(self) -> dict[str, ForeignTool]:
        """By name, in the order in which their servers tell of them."""
        return {one.name: one for server in self.servers for one in server.tools}

    @property
    def left_out(self) -> dict[str, str]:
        """By name why a tool is not offered."""
        return {name: why for server in self.servers for name, why in server.left_out.items()}

    @property
    def backends(self) -> dict[str, str]:
        """By the name of a tool what answers for it."""
        return {one.name: server.facts.backend for server in self.servers for one in server.tools}

    def as_json(self, used: Iterable[str]) -> list[Json]:
        """The servers as the manifest has them, with the hash of each of these tools."""
        wanted = frozenset(used)
        found: list[Json] = []
        for server in self.servers:
            codes = {one.name: one.code for one in server.tools if one.name in wanted}
            if codes:
                found.append({**server.facts.as_json(), "tools": codes})
        return found


NOTHING_FOREIGN = ForeignTools()


def foreign_server(
    address: ServerAddress, facts: ServerFacts, listed: Sequence[Listed], told: Mapping[str, str], taken: Iterable[str]
) -> ForeignServer:
    """A server with those of its tools that can be offered.

    Args:
        address: of the server.
        facts: what it says of itself.
        listed: its tools.
        told: `--mcp-image`, by the name of the tool in the run.
        taken: names that other tools have.
    """
    tools: dict[str, ForeignTool] = {}
    left_out: dict[str, str] = {}
    names = set(taken)
    for one in listed:
        name = f"{facts.prefix}_{word(one.name, LONGEST_NAME)}"[:LONGEST_NAME].strip("_")
        if name in names or name in tools:
            left_out[name] = f"{name}: there is a tool of that name already"
            continue
        try:
            tools[name] = foreign_tool(facts.prefix, one, told.get(name))
        except UsageError as error:
            left_out[name] = str(error)
    return ForeignServer(facts, address, tuple(tools.values()), left_out)
