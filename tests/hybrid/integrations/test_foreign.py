"""A foreign server's descriptions in a run: texts are clean, schemas are bounded, and arguments for images are
recognised.
"""

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

from hybrid.core.errors import ToolError, UsageError
from hybrid.integrations.mcp.foreign import (
    MAX_DESCRIPTION,
    MAX_NAME_LENGTH,
    MAX_SCHEMA,
    McpTool,
    ServerAddress,
    clean,
    foreign_name,
    read_server,
)
from hybrid.integrations.mcp.foreign import foreign_tool as tool_of
from hybrid.models.toolspec import spec
from hybrid.plugins.discovery import is_word
from hybrid.serving.service import ForeignServer, ForeignTools
from tests.tables import cases

SENT = ("QUJD", "image/png")
ADDRESS = ServerAddress("it", ("http://127.0.0.1:1/mcp",))
IT = ForeignServer("it", str(ADDRESS), "It", "1")


def listed_tool(name: str, description: str, arguments: dict[str, Any]) -> protocol.Tool:
    return protocol.Tool(name=name, description=description, inputSchema=arguments)


def schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def foreign_tool(server: ForeignServer, listing: protocol.Tool, image_arguments: str = "") -> McpTool:
    return tool_of(ADDRESS, server, listing, image_arguments)


def tool(required: tuple[str, ...] = (), image_arguments: str = "", **properties: Any) -> Any:
    return foreign_tool(IT, listed_tool("look", "Looks.", schema(required, **properties)), image_arguments)


@pytest.mark.parametrize(*cases(__file__, "test_an_option_names_a_server_and_its_address_or_command"))
def test_an_option_names_a_server_and_its_address_or_command(option: str, name: str, words: tuple[str, ...]) -> None:
    if name:
        server = read_server(option)
        assert (server.name, server.words, server.is_url) == (name, words, "http" in option)
    else:
        with pytest.raises(UsageError, match="--mcp"):
            read_server(option)


TEXT = {"type": "string"}


@pytest.mark.parametrize(*cases(__file__, "test_what_cannot_be_told_leaves_the_tool_out", list))
def test_what_cannot_be_told_leaves_the_tool_out(properties: dict[str, Any], image_arguments: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tool(image_arguments=image_arguments, **properties)


def test_several_images_are_filled_in_their_order() -> None:
    two = tool(("b",), image_a=TEXT, b=TEXT, image_arguments="b:base64, image_a")
    assert list(two.images) == ["b", "image_a"]
    assert two.tool.card.images == (2, 2)
    assert two.arguments([SENT, SENT]) == {"b": "QUJD", "image_a": "data:image/png;base64,QUJD"}
    assert "b" not in spec(two.tool)["function"]["parameters"]["properties"]
    none = tool(("n",), n={"type": "integer"})
    assert (none.tool.card.images, none.arguments([])) == ((0, 0), {})
    assert spec(none.tool)["function"]["parameters"] == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }


def test_a_schema_that_unfolds_without_end_is_refused() -> None:
    twice = {"type": "object", "properties": {name: {"$ref": "#/$defs/B"} for name in "abcdefgh"}}
    payload = {**schema(a={"$ref": "#/$defs/B"}), "$defs": {"B": twice}}
    with pytest.raises(UsageError, match="can be shown to a model"):
        foreign_tool(IT, listed_tool("look", "", payload))
    levels = {f"L{n}": {"anyOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 4} for n in range(20)}
    with pytest.raises(UsageError, match="or 16 references"):
        foreign_tool(IT, listed_tool("look", "", {**schema(a={"$ref": "#/$defs/L0"}), "$defs": levels}))


def test_names_are_words_and_what_answers_stands_in_the_manifest() -> None:
    values = [listed_tool(name, "", schema()) for name in ("Do-It", "x" * 90)]
    tools = [foreign_tool(IT, item) for item in values]
    assert [entry.tool.card.name for entry in tools] == ["it_do_it", f"it_{'x' * 61}"]
    foreign_tools = ForeignTools((IT,), {value.tool.card.name: value for value in tools})
    assert foreign_tools.tools["it_do_it"].backend == "mcp:It 1"
    assert foreign_tools.as_json(["crop"]) == []
    (text,) = foreign_tools.as_json(["it_do_it", "crop"])
    facts = {"prefix": "it", "name": "It", "version": "1", "address": ADDRESS.words[0]}
    assert text == {**facts, "tools": {"it_do_it": tools[0].code}}


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


@pytest.mark.system
@given(mapping=st.dictionaries(KEYWORDS, JSON, max_size=6), name=st.text(max_size=80), message=st.text(max_size=40))
def test_whatever_a_server_says_is_a_tool_or_is_left_out(mapping: dict[str, Any], name: str, message: str) -> None:
    try:
        item = foreign_tool(IT, listed_tool(name, message, mapping))
    except UsageError:
        return
    assert is_word(item.tool.card.name)
    assert len(item.tool.card.name) <= MAX_NAME_LENGTH
    parameters = spec(item.tool)["function"]["parameters"]
    assert len(json.dumps(item.tool.args.model_json_schema())) <= 2 * MAX_SCHEMA
    jsonschema.Draft202012Validator.check_schema(parameters)
    with suppress(ToolError):
        item.tool.parse({"x": 1})


@given(st.text(max_size=300))
def test_a_cleaned_text_holds_nothing_that_nobody_sees(text: str) -> None:
    cleaned = clean(text, 100)
    seen = [char for char in cleaned if char not in "\n\t"]
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") for char in seen)
    assert len(cleaned) <= 100 or cleaned.endswith(" more characters are left out]")
    printable = "".join(char for char in text if char in string.printable and char not in "\r\x0b\x0c")
    assert clean(printable, 300) == printable.strip()
    assert clean("x" * (MAX_DESCRIPTION + 1), MAX_DESCRIPTION).endswith("[1 more characters are left out]")


@given(st.text())
def test_a_name_is_a_word(tool_name: str) -> None:
    name = foreign_name("it", tool_name)
    assert is_word(name)
    assert len(name) <= MAX_NAME_LENGTH
