"""Calls in the text of replies, in every dialect; the replies are rows of `dialects.toml`."""

import json
import re
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.messages import Message, ToolMessage, user_message
from hybrid.models import call_forms
from hybrid.models.dialects import Found, read, table
from hybrid.models.literals import read_object
from hybrid.registry import load
from hybrid.tool import Tool
from tests.tables import cases

ROWS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("dialects.toml").read_text())["reply"]


@pytest.fixture(scope="module")
def tools() -> tuple[Tool, ...]:
    return tuple(load("tools", name) for name in ("crop", "depth", "forensics", "localization"))


@pytest.mark.parametrize("row", ROWS, ids=[row["kind"] for row in ROWS])
def test_a_reply_is_read_as_its_row_says(tools: tuple[Tool, ...], row: dict[str, Any]) -> None:
    given: list[Message] = [user_message([row.get("given", "Which?")])]
    reply, cut = row["reply"], row.get("cut", False)
    found = read(reply, tools, given, cut=cut)
    calls = [[call.name, {k: "null" if v is None else v for k, v in call.args.items()}] for call in found.calls]
    assert calls == row.get("calls", [])
    assert {call.read_from for call in found.calls} == ({row["from"]} if calls else set())
    assert found.rest == (row.get("rest", "") if calls else reply)
    assert (found.unreadable and found.unreadable.dialect) == row.get("unreadable")
    if found.unreadable:
        assert row.get("error", "") in found.unreadable.error
        assert reply.endswith(found.unreadable.written) or found.unreadable.written in reply
    if "repairs" in row:
        assert [list(call.repairs) for call in found.calls] == [row["repairs"]]
    # Of a tool's result a call is as little a call as of a question.
    assert not read(reply, tools, [ToolMessage("c", "ocr", (reply,))], cut=cut).calls
    assert read(reply, (), given).rest == reply


def test_every_dialect_has_a_row() -> None:
    assert {row.name for row in table()} == {row["from"] for row in ROWS if "from" in row}


def hermes(name: str, args: dict[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': args})}\n</tool_call>"


def elements(opened: str, closed: str, one: str, name: str, args: dict[str, Any]) -> str:
    fields = (one.format(key, value if isinstance(value, str) else json.dumps(value)) for key, value in args.items())
    return opened.format(name) + "".join(fields) + closed


WRITERS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "Hermes": hermes,
    "Llama JSON": lambda n, a: f"<|python_tag|>{json.dumps({'name': n, 'parameters': a})}<|eom_id|>",
    "pythonic": lambda n, a: f"[{n}({', '.join(f'{key}={value!r}' for key, value in a.items())})]",
    "Mistral": lambda n, a: f"[TOOL_CALLS]{n}[ARGS]{json.dumps(a)}",
    "Kimi": lambda n, a: (
        f"<|tool_call_begin|>functions.{n}:0<|tool_call_argument_begin|>{json.dumps(a)}<|tool_call_end|>"
    ),
    "DeepSeek": lambda n, a: f"<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{json.dumps(a)}<｜tool▁call▁end｜>",
    "harmony": lambda n, a: (
        f"<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>{json.dumps(a)}<|call|>"
    ),
    "JSON": lambda n, a: f"```json\n{json.dumps({'tool': n, 'args': a})}\n```",
    "ReAct": lambda n, a: f"Action: {n}\nAction Input: {json.dumps(a)}",
    "Granite": lambda n, a: f"<|tool_call|>{json.dumps([{'name': n, 'arguments': a}])}",
    "Gemma": lambda n, a: f"<start_function_call>call:{n}{json.dumps(a)}<end_function_call>",
    "Qwen": lambda n, a: elements("<function={}>", "</function>", "<parameter={}>\n{}\n</parameter>", n, a),
    "GLM": lambda n, a: elements(
        "<tool_call>{}\n", "</tool_call>", "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>", n, a
    ),
    "invoke": lambda n, a: elements('<invoke name="{}">', "</invoke>", '<parameter name="{}">{}</parameter>', n, a),
}
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
# What models make of JSON: each has one meaning.
DEFORMED: dict[str, Callable[[str], str]] = {
    "HTML": lambda text: text.replace('"', "&quot;"),
    "HTML by number": lambda text: text.replace('"', "&#34;"),
    "HTML twice": lambda text: text.replace('"', "&amp;quot;"),
    "single": lambda text: text.replace('"', "'"),
    "escaped": lambda text: text.replace('"', '\\"'),
    "full width": lambda text: text.translate(str.maketrans('"{}[]:,', "＂｛｝［］：，")).replace("img：1", "img:1"),
    "low": lambda text: re.sub('"([^"]*)"', "„\\1“", text),
    "typographic": lambda text: re.sub('"([^"]*)"', "‘\\1’", text),
    "corners": lambda text: re.sub('"([^"]*)"', "「\\1」", text),
    "Python": lambda text: re.sub(r'\{"x0": ([^{}]*)\}', lambda box: f"dict({box[0][1:-1]})", text).replace(
        '": ', '" = '
    ),
    "commas": lambda text: re.sub(r"(?<![\[{])(?=[}\]])", ",", text),
    "comments": lambda text: text.replace(", ", ", // so\n").replace(": ", ": /* so */ "),
    "unseen": lambda text: text.replace(" ", "\u200b"),
    "no break": lambda text: text.replace(" ", "\u00a0"),
    "Windows": lambda text: text.replace(", ", ",\r\n"),
    "byte order": lambda text: f"\ufeff{text}",
    "fence": lambda text: f"```json\n{text}\n```",
}
prose = st.text(st.characters(codec="utf-8", categories=("L", "N", "Zs", "Po")), max_size=40).map(
    lambda text: text.replace('"', "").replace("'", "")
)


@given(st.sampled_from(sorted(WRITERS)), arguments, prose, prose)
def test_a_call_survives_every_dialect(dialect: str, args: dict[str, Any], before: str, after: str) -> None:
    reply = f"{before}\n\n{WRITERS[dialect]('localization', args)}\n\n{after}"
    found = read(reply, (load("tools", "localization"),))
    assert [(call.name, call.args, call.read_from) for call in found.calls] == [("localization", args, dialect)]
    assert found.rest.split() == [*before.split(), *after.split()]


@given(
    st.sampled_from(sorted(WRITERS.keys() - {"pythonic", "Granite", "Qwen", "GLM", "invoke"})),
    st.sampled_from(sorted(DEFORMED)),
    arguments,
)
def test_deformed_json_is_read_as_it_was_meant(dialect: str, deformed: str, args: dict[str, Any]) -> None:
    args["name"] = "dog"
    whole = WRITERS[dialect]("localization", args)
    begin, end = whole.index("{"), whole.rindex("}") + 1
    reply = whole[:begin] + DEFORMED[deformed](whole[begin:end]) + whole[end:]
    tools = (load("tools", "localization"),)
    found = read(reply, tools)
    assert [(call.name, call.args) for call in found.calls] == [("localization", args)]
    assert found.unreadable is None
    assert read(f"<think>{reply}</think>(A)", tools) == Found((), f"<think>{reply}</think>(A)")


KEYS: dict[str, list[str]] = tomllib.loads(Path(call_forms.__file__).with_suffix(".toml").read_text())


@pytest.mark.parametrize("key", KEYS["names"] + KEYS["weak_names"])
def test_a_tool_is_named_under_any_key_and_only_if_offered(key: str) -> None:
    tools, args = (load("tools", "depth"),), {"image": "img:1"}
    for given in KEYS["arguments"]:
        for call in ({key: "depth", given: args}, {key.title(): "depth", given.replace("_", " ").upper(): args}):
            found = read(f"```json\n{json.dumps(call)}\n```", tools)
            assert [(call.name, call.args) for call in found.calls] == [("depth", args)]
        other = f"```json\n{json.dumps({key: 'hammer', given: args})}\n```"
        assert read(other, tools) == Found((), other)


def test_a_tool_that_is_not_offered_is_called_where_calls_in_text_were_asked_for() -> None:
    asked = read('```json\n{"tool": "hammer", "args": {}}\n```', (load("tools", "depth"),), asked=True)
    assert [call.name for call in asked.calls] == ["hammer"]


@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(
            [row.sign for row in table() if row.sign] + ['{"name": "depth", ', "depth", "(", "{", "}", "\n"]
        )
    ).map("".join)
)
def test_any_text_is_read_or_kept(text: str) -> None:
    found = read(text, (load("tools", "depth"),))
    assert found.calls or found.rest == text
    assert len({call.id for call in found.calls}) == len(found.calls)


MILLION, QUARTER = 1_000_000, 250_000
LONG = {
    **{row.sign: row.sign * (QUARTER // len(row.sign)) for row in table() if row.sign},
    "nested": '<tool_call>{"name": "depth", "arguments": ' + '{"a":' * 10_000 + "1" + "}" * 10_000 + "}</tool_call>",
    "brackets": "<tool_call>" + "[" * QUARTER,
    "lines of brackets": "[\n" * (QUARTER // 2),
    "values": "[depth(" + "a=1," * (QUARTER // 4),
    "comments": "<tool_call>{/*" * (QUARTER // 14),
    "escapes": "<tool_call>{'" + "\\" * QUARTER,
    "names": '{"name": "depth", "arguments": {' * (QUARTER // 32),
    "thoughts": "<think>" * (QUARTER // 7),
    "ticks": "` " * (QUARTER // 2),
    "underscores": "_" * QUARTER,
    "actions": "Action: depth\n" * (QUARTER // 14),
    "HTML": "<tool_call>{" + "&quot;" * (QUARTER // 6),
    "escaped quotes": "<tool_call>{" + '\\"' * (QUARTER // 2),
    "backticks in a call": "<tool_call>{" + "` " * (QUARTER // 2),
    "inputs in YAML": ("Action: depth\nAction Input:\n" + "a: [\n" * 50) * (QUARTER // 300),
    "lines of YAML": "Action: depth\nAction Input:\n" + "a: 1\n" * (QUARTER // 5),
    "commands": '{"command": "depth", ' * (QUARTER // 21),
    "makers": "[depth(a=" + "dict(a=" * (QUARTER // 7),
    "attributes": '<depth image="' * (QUARTER // 14),
    "escaped marks": "&lt;tool_call&gt;{" * (QUARTER // 18),
    "fields": "<tool_call>depth" + "<arg_key>a</arg_key><arg_value>" * (QUARTER // 31),
}


@pytest.mark.parametrize("case", LONG)
def test_long_replies_are_read_in_linear_time_and_run_nothing(tools: tuple[Tool, ...], case: str) -> None:
    begun = time.process_time()
    found = read(LONG[case], tools)
    assert time.process_time() - begun < 0.5
    assert not found.calls


def test_the_calls_of_one_reply_are_bounded(tools: tuple[Tool, ...]) -> None:
    found = read(hermes("depth", {"image": "img:1"}) * 10_000, tools)
    assert len(found.calls) == 256
    assert found.unreadable is not None
    assert "256 calls" in found.unreadable.error


@pytest.mark.parametrize(*cases(__file__, "test_arguments_are_repaired_where_nothing_is_invented", list))
def test_arguments_are_repaired_where_nothing_is_invented(written: Any, read_as: Any, repairs: list[str]) -> None:
    args, error, made = read_object(written)
    assert (args, [*made]) == (read_as, repairs)
    assert bool(error) is (read_as is None)
