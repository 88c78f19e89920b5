"""What is taken over of what a foreign server says: clean texts, bounded schemas, and which arguments take an image."""

import json
import string
import unicodedata
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("mcp")

import jsonschema
import mcp.types as protocol

from hybrid.errors import ToolError, UsageError
from hybrid.integrations.mcp.foreign import (
    LONGEST_NAME,
    MOST_DESCRIPTION,
    ForeignTools,
    ServerAddress,
    foreign_server,
    foreign_tool,
    read_address,
    word,
)
from hybrid.integrations.mcp.schemas import MOST_SCHEMA, clean
from hybrid.models.toolspec import spec
from hybrid.registry import is_word

SENT = ("QUJD", "image/png")
ADDRESS = ServerAddress("it", "http://127.0.0.1:1/mcp")
GREETING = protocol.InitializeResult(
    protocolVersion="2025-06-18",
    capabilities=protocol.ServerCapabilities(),
    serverInfo=protocol.Implementation(name="It", version="1"),
)


def listed_tool(name: str, description: str, arguments: dict[str, Any]) -> protocol.Tool:
    return protocol.Tool(name=name, description=description, inputSchema=arguments)


def schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def tool(required: tuple[str, ...] = (), told: str = "", **properties: Any) -> Any:
    return foreign_tool("it", listed_tool("look", "Looks.", schema(required, **properties)), told)


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("http://127.0.0.1:1/mcp", ServerAddress("", "http://127.0.0.1:1/mcp")),
        ("HTTPS://host/mcp?a=b", ServerAddress("", "HTTPS://host/mcp?a=b")),
        ("depth=https://host", ServerAddress("depth", "https://host")),
        ("python -m x --a=b", ServerAddress("", command=("python", "-m", "x", "--a=b"))),
        ("x=python 'a b.py'", ServerAddress("x", command=("python", "a b.py"))),
        ("env KEY=1 x", ServerAddress("", command=("env", "KEY=1", "x"))),
        ("KEY=1", ServerAddress("", command=("KEY=1",))),
    ],
)
def test_an_address_or_a_command_with_or_without_a_name(written: str, address: ServerAddress) -> None:
    assert read_address(written) == address


@pytest.mark.parametrize("written", ["", "x= ", "http://", "x=http:///a", "'", "http://[::1"])
def test_what_is_neither_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="--mcp"):
        read_address(written)


TEXT = {"type": "string"}
LIST = {"type": "array", "items": {"type": "string", "format": "data-url"}}


@pytest.mark.parametrize(
    ("properties", "told", "words"),
    [
        ({"image": TEXT}, "", "it_look: its argument image has the name of our images: if it takes one, write"),
        ({"images": LIST, "image_url": TEXT}, "images,image_url", "a list of images stands alone"),
        ({"a": {"type": 3}}, "", "its arguments are no JSON schema"),
        ({"a": TEXT}, "b", "has no argument 'b'; there are: a"),
        ({"a": TEXT}, "a:path", "write data_url, base64, object"),
        ({"a b": TEXT}, "", "no name of an argument"),
        ({f"a{place}": TEXT for place in range(40)}, "", "more than 32 arguments"),
        ({"a": {"enum": ["x" * 300] * 90}}, "", "characters to describe"),
    ],
)
def test_what_cannot_be_told_leaves_the_tool_out(properties: dict[str, Any], told: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tool(told=told, **properties)


def test_several_images_are_filled_in_their_order() -> None:
    two = tool(("b",), image_a=TEXT, b=TEXT, told="b:base64,image_a:object")
    assert [one.name for one in two.images] == ["b", "image_a"]
    assert two.tool.card.images == (1, 2)
    assert two.arguments([SENT]) == {"b": "QUJD"}
    assert two.arguments([SENT, SENT])["image_a"] == {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    assert "b" not in spec(two.tool)["function"]["parameters"]["properties"]
    many = tool(images=LIST, told="images")
    assert many.arguments([SENT, SENT]) == {"images": ["data:image/png;base64,QUJD"] * 2}
    assert many.tool.card.images == (1, 8)
    none = tool(("n",), n={"type": "integer"})
    assert (none.tool.card.images, none.arguments([])) == ((0, 0), {})
    assert spec(none.tool)["function"]["parameters"] == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }


def test_arguments_are_checked_by_the_schema_and_coordinates_rounded() -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number"}}, "required": ["x"]}
    said = schema(("at",), at={"type": "array", "items": {"$ref": "#/$defs/P"}}, kind={"enum": ["a", "b"]})
    looks = foreign_tool("it", listed_tool("look", "", {**said, "$defs": {"P": point}}))
    read = looks.tool.parse({"at": [{"x": 3.6, "y": 1.5}], "kind": "a"})
    assert read.model_dump(mode="json", exclude_none=True) == {"at": [{"x": 4, "y": 1.5}], "kind": "a"}
    for wrong, words in (
        ({}, "'at' is a required property"),
        ({"at": [{"y": 1}]}, "at.0: 'x' is a required property"),
        ({"at": [], "kind": "c"}, "kind: 'c' is not one of"),
        ({"at": [], "image": "x"}, "Additional properties"),
    ):
        with pytest.raises(ToolError, match=words):
            looks.tool.parse(wrong)
    assert looks.tool.card.summary == "The tool look of the server it."


def test_a_schema_that_unfolds_without_end_is_refused() -> None:
    twice = {"type": "object", "properties": {name: {"$ref": "#/$defs/B"} for name in "abcdefgh"}}
    listed = {**schema(a={"$ref": "#/$defs/B"}), "$defs": {"B": twice}}
    with pytest.raises(UsageError, match="more than 500 parts"):
        foreign_tool("it", listed_tool("look", "", listed))
    circle = {**schema(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert foreign_tool("it", listed_tool("look", "", circle)).tool.args.model_json_schema()["properties"] == {"a": {}}
    for elsewhere in ("http://127.0.0.1:1/schema.json", "file:///etc/passwd", "#/properties/a/none"):
        one = foreign_tool("it", listed_tool("look", "", schema(a={"$ref": elsewhere, "pattern": "(a+)+$"})))
        assert one.tool.args.model_json_schema()["properties"] == {"a": {}}


def test_names_are_words_that_are_there_once() -> None:
    listed = [listed_tool(name, "", schema()) for name in ("Do-It", "doIt", "crop", "...", "x" * 90)]
    server = foreign_server(ADDRESS, GREETING, listed, {}, ["it_crop"])
    assert [one.name for one in server.tools] == ["it_do_it", f"it_{'x' * 61}"]
    assert set(server.left_out) == {"it_do_it", "it_crop", "it"}
    assert "there is a tool of that name already" in server.left_out["it_crop"]
    tools_offered = ForeignTools((server,))
    assert tools_offered.backends["it_do_it"] == "mcp:It 1"
    assert tools_offered.as_json(["crop"]) == []
    (told,) = tools_offered.as_json(["it_do_it", "crop"])
    facts = {"prefix": "it", "name": "It", "version": "1", "protocol": "2025-06-18", "address": ADDRESS.url}
    assert told == {**facts, "tools": {"it_do_it": server.tools[0].code}}


def test_whatever_it_says_of_a_tool_or_a_person_of_its_images_makes_it_another() -> None:
    said = [
        *(foreign_tool("it", listed_tool(*one)) for one in (("a", "b", {}), ("a", "c", {}), ("b", "b", {}))),
        foreign_tool("it", listed_tool("a", "b", schema(x=TEXT))),
        foreign_tool("it", listed_tool("a", "b", schema(x=TEXT)), "x"),
        foreign_tool("it", listed_tool("a", "b", schema(x=TEXT)), "x:base64"),
    ]
    assert len({one.code for one in said}) == len(said)
    assert foreign_tool("other", listed_tool("a", "b", {})).code == said[0].code


WORDS = (
    "type properties required items anyOf oneOf $ref enum const description default minimum maxItems minLength pattern "
    "image images photo_base64 x data format $defs"
)
KEYWORDS = st.sampled_from(WORDS.split())
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
TYPES = st.sampled_from(["string", "object", "array", "number", "integer", "#/properties/x", "#/$defs/x", "data-url"])
JSON = st.recursive(
    VALUES | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=5),
    max_leaves=20,
)


@given(listed=st.dictionaries(KEYWORDS, JSON, max_size=6), name=st.text(max_size=80), said=st.text(max_size=40))
def test_whatever_a_server_says_is_a_tool_or_is_left_out(listed: dict[str, Any], name: str, said: str) -> None:
    try:
        one = foreign_tool("it", listed_tool(name, said, listed))
    except UsageError:
        return
    assert is_word(one.name)
    assert len(one.name) <= LONGEST_NAME
    parameters = spec(one.tool)["function"]["parameters"]
    assert len(json.dumps(one.tool.args.model_json_schema())) <= MOST_SCHEMA
    jsonschema.Draft202012Validator.check_schema(parameters)
    with suppress(ToolError):
        one.tool.parse({"x": 1})


@given(st.text(max_size=300))
def test_a_cleaned_text_holds_nothing_that_nobody_sees(text: str) -> None:
    cleaned = clean(text, 100)
    seen = [char for char in cleaned if char not in "\n\t"]
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") for char in seen)
    assert len(cleaned) <= 100 or cleaned.endswith(" more characters are left out]")
    printable = "".join(char for char in text if char in string.printable and char not in "\r\x0b\x0c")
    assert clean(printable, 300) == printable.strip()
    assert clean("x" * (MOST_DESCRIPTION + 1), MOST_DESCRIPTION).endswith("[1 more characters are left out]")


@given(st.text())
def test_a_word_is_one(text: str) -> None:
    found = word(text, 20)
    assert not found or is_word(f"a{found}")
    assert len(found) <= 20
