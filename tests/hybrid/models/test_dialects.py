"""Calls in every dialect are read from the text of replies; the replies are rows of `dialects.toml`."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.messages import Message, ToolMessage, user_message
from hybrid.models import call_forms
from hybrid.models.dialects import ReadCalls, read, table
from hybrid.models.literals import read_object
from hybrid.plugins.registry import load
from hybrid.tool import Tool
from tests.steps import assert_grows_linearly
from tests.tables import cases

DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("dialects.toml").read_text())
ROWS: list[dict[str, Any]] = DATA["reply"]


@pytest.fixture(scope="module")
def tools() -> tuple[Tool, ...]:
    return tuple(load("tools", name) for name in ("crop", "depth", "forensics", "localization"))


@pytest.mark.parametrize("row", ROWS, ids=[row["kind"] for row in ROWS])
def test_a_reply_is_read_as_its_row_says(tools: tuple[Tool, ...], row: dict[str, Any]) -> None:
    messages: list[Message] = [user_message([row.get("given", "Which?")])]
    reply, cut = row["reply"], row.get("cut", False)
    parsed = read(reply, tools, messages, cut=cut, is_text_protocol=row.get("asked", False))
    calls = [[call.name, {k: "null" if v is None else v for k, v in call.args.items()}] for call in parsed.calls]
    assert calls == row.get("calls", [])
    assert {call.read_from for call in parsed.calls} == ({row["from"]} if calls else set())
    assert parsed.rest == (row.get("rest", "") if calls else reply)
    assert (parsed.unreadable and parsed.unreadable.dialect) == row.get("unreadable")
    if parsed.unreadable:
        assert row.get("error", "") in parsed.unreadable.error
        assert reply.endswith(parsed.unreadable.written) or parsed.unreadable.written in reply
    if "repairs" in row:
        assert [list(call.repairs) for call in parsed.calls] == [row["repairs"]]
    # Like text in a question, text in a tool's result is not a call.
    assert not read(reply, tools, [ToolMessage("c", "ocr", (reply,))], cut=cut).calls
    assert read(reply, (), messages).rest == reply


def test_every_dialect_has_a_row() -> None:
    assert {row.name for row in table()} == {row["from"] for row in ROWS if "from" in row}


def write_call(dialect: str, name: str, args: dict[str, Any]) -> str:
    opening, field, closed = DATA["written"][dialect]
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in args.items()}
    fields = (field.format(key=key, text=text, json=json.dumps(args[key])) for key, text in texts.items())
    return str(opening.replace("NAME", name) + ("".join(fields) if field else json.dumps(args)) + closed)


words = st.text(st.characters(codec="utf-8", exclude_characters="<>`\r\x85"), max_size=12).filter(
    lambda text: text == text.strip("\n") and "[/" not in text
)
numbers = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
arguments = st.fixed_dictionaries(
    {"image": st.just("img:1"), "name": words},
    optional={
        "boxes": st.lists(st.fixed_dictionaries(dict.fromkeys(("x0", "y0", "x1", "y1"), numbers)), max_size=3),
        "labels": st.lists(st.sampled_from("ABCD"), max_size=3),
    },
)
prose = st.text(st.characters(codec="utf-8", categories=("L", "N", "Zs", "Po")), max_size=40).map(
    lambda text: text.replace('"', "").replace("'", "")
)


@pytest.mark.system
@given(st.sampled_from(sorted(DATA["written"])), arguments, prose, prose)
def test_a_call_survives_every_dialect(dialect: str, args: dict[str, Any], text_before: str, text_after: str) -> None:
    reply = f"{text_before}\n\n{write_call(dialect, 'localization', args)}\n\n{text_after}"
    parsed = read(reply, (load("tools", "localization"),))
    assert [(call.name, call.args, call.read_from) for call in parsed.calls] == [("localization", args, dialect)]
    assert parsed.rest.split() == [*text_before.split(), *text_after.split()]


@given(
    st.sampled_from(sorted(name for name, (_, field, _) in DATA["written"].items() if not field and name != "Granite")),
    st.sampled_from(sorted(DATA["deformed"])),
    arguments,
)
def test_deformed_json_is_read_as_it_was_meant(dialect: str, deformed: str, args: dict[str, Any]) -> None:
    args["name"] = "dog"
    full = write_call(dialect, "localization", args)
    begin, end = full.index("{"), full.rindex("}") + 1
    inner = full[begin:end]
    for pattern, other in DATA["deformed"][deformed]:
        inner = re.sub(pattern, other, inner)
    reply = full[:begin] + inner + full[end:]
    tools = (load("tools", "localization"),)
    parsed = read(reply, tools)
    assert [(call.name, call.args) for call in parsed.calls] == [("localization", args)]
    assert parsed.unreadable is None
    assert read(f"<think>{reply}</think>(A)", tools) == ReadCalls((), f"<think>{reply}</think>(A)")


KEYS: dict[str, list[str]] = tomllib.loads(Path(call_forms.__file__).with_suffix(".toml").read_text())


@pytest.mark.parametrize("key", KEYS["names"] + KEYS["weak_names"])
def test_a_tool_is_named_under_any_key_and_only_if_offered(key: str) -> None:
    tools, args = (load("tools", "depth"),), {"image": "img:1"}
    for under in KEYS["arguments"]:
        for call in ({key: "depth", under: args}, {key.title(): "depth", under.replace("_", " ").upper(): args}):
            parsed = read(f"```json\n{json.dumps(call)}\n```", tools)
            assert [(call.name, call.args) for call in parsed.calls] == [("depth", args)]
        other = f"```json\n{json.dumps({key: 'hammer', under: args})}\n```"
        assert read(other, tools) == ReadCalls((), other)


@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(
            [row.sign for row in table() if row.sign] + ['{"name": "depth", ', "depth", "(", "{", "}", "\n"]
        )
    ).map("".join)
)
def test_any_text_is_read_or_kept(text: str) -> None:
    parsed = read(text, (load("tools", "depth"),))
    assert parsed.calls or parsed.rest == text
    assert len({call.id for call in parsed.calls}) == len(parsed.calls)


SIZE = 120_000
# Pairs of the beginning of a long reply and the text that the reply repeats.
LONG: dict[str, tuple[str, str]] = {
    **{row.sign: ("", row.sign) for row in table() if row.sign},
    "nested": ('<tool_call>{"name": "depth", "arguments": ', '{"a":'),
    **DATA["long"],
}


@pytest.mark.parametrize("case", LONG)
def test_long_replies_are_read_in_linear_time_and_run_nothing(tools: tuple[Tool, ...], case: str) -> None:
    begin, second = LONG[case]
    assert not read(begin + second * (SIZE // len(second)), tools).calls
    assert_grows_linearly(lambda text: read(text, tools), lambda size: begin + second * (size // len(second)), SIZE)


def test_the_calls_of_one_reply_are_bounded(tools: tuple[Tool, ...]) -> None:
    parsed = read(write_call("Hermes", "depth", {"image": "img:1"}) * 10_000, tools)
    assert len(parsed.calls) == 256
    assert parsed.unreadable is not None
    assert "256 calls" in parsed.unreadable.error


@pytest.mark.parametrize(*cases(__file__, "test_arguments_are_repaired_where_nothing_is_invented", list))
def test_arguments_are_repaired_where_nothing_is_invented(arguments: Any, expected: Any, repairs: list[str]) -> None:
    args, error, built = read_object(arguments)
    assert (args, [*built]) == (expected, repairs)
    assert bool(error) is (expected is None)
