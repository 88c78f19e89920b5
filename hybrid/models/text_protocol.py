"""Tool calls for models that have none of their own: asked for, and read, as text.

    reply = with_calls(await model.chat(as_text(messages, tools), (), call), call)

`--tool-calling text` chooses it. The tools are described at the end of the system message, or before the question where
there is none, so that the question stays next to what is asked of the answer, and all questions begin alike. A call is
one fenced block, and results come back as user messages:

    ```json
    {"tool": "crop", "images": ["img:1"], "args": {"box": [0, 0, 50, 50]}}
    ```
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybrid.messages import (
    AssistantMessage,
    ImagePart,
    InvalidCall,
    Message,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    images_of,
    parts_of,
)
from hybrid.models.base import CallKey
from hybrid.models.toolspec import COORDINATES, IMAGE, IMAGES, spec
from hybrid.tool import Tool

_KEYS = frozenset({"tool", "images", "args"})

INTRODUCTION = """You can call tools that look at the images. To call one, write one block of this form for each call, \
and wait for the results before you answer:
```json
{"tool": "NAME", "images": ["img:1"], "args": {}}
```
The tools:"""


def describe(tools: Sequence[Tool]) -> str:
    """The introduction and, for each tool, its name, what it does, how many images it takes, and the type of `args`.

    The types are those of the schema (`toolspec`) in the notation of TypeScript, a third shorter than JSON:
    `{box: {x0: number, ...}, words?: string}`, what is said of an argument as a comment behind it.
    """
    return "\n".join([INTRODUCTION, *map(_described, tools)])


def _described(tool: Tool) -> str:
    function = spec(tool)["function"]
    parameters = function["parameters"]
    named = {name: node for name, node in parameters["properties"].items() if name not in (IMAGE, IMAGES)}
    images = parameters["properties"].get(IMAGES, {}).get("description", "1 name")
    lines = [f"- {function['name']}: {function['description']}", f"  images: {images}"]
    if not named:
        return "\n".join([*lines, "  args: {}"])
    lines += ["  args: {"]
    for name, node in named.items():
        said = f" // {node['description']}" if "description" in node else ""
        lines.append(f"    {_field(name, node, parameters['required'])},{said}")
    return "\n".join([*lines, "  }"])


def _field(name: str, node: Mapping[str, Any], required: Sequence[str]) -> str:
    return f"{name}{'' if name in required else '?'}: {_type(node)}"


def _type(node: Mapping[str, Any]) -> str:
    """A schema in the notation of TypeScript; what is said of a field of an object stands in a comment behind it."""
    if "enum" in node:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in node["enum"])
    if "anyOf" in node:
        return " | ".join(_type(kind) for kind in node["anyOf"])
    if node.get("type") == "array":
        item = _type(node.get("items", {}))
        return f"({item})[]" if " | " in item else f"{item}[]"
    if "properties" in node:
        # Coordinates belong together, so that the schema does not list them as required.
        required = [*node.get("required", ()), *(COORDINATES - {"x", "y"})]
        inner = [
            _field(name, field, required) + (f" /* {field['description']} */" if "description" in field else "")
            for name, field in node["properties"].items()
        ]
        return f"{{{', '.join(inner)}}}"
    return str(node.get("type", "any"))


def parse(text: str, turn: int = 0) -> tuple[str, tuple[ToolCall, ...], tuple[InvalidCall, ...]]:
    """Calls in a reply: (text without the blocks that are calls, calls, invalid calls), in order.

    Strict: a block counts as a call when it is a JSON object with the key `tool`; it is invalid unless `tool` is a
    non-empty text, `images` a list of texts, `args` an object, and there is no other key. A block that is broken JSON
    but names `"tool"` is an invalid call too. Any other block is the reply's own text. Ids are `text_TURN_0`, ...
    """
    calls: list[ToolCall] = []
    invalid: list[InvalidCall] = []
    kept: list[str] = []
    end = 0
    for start, stop, block in _blocks(text):
        identity = f"text_{turn}_{len(calls) + len(invalid)}"
        call = _call(block, identity)
        if call is None:
            continue
        kept.append(text[end:start])
        end = stop
        if isinstance(call, ToolCall):
            calls.append(call)
        else:
            invalid.append(call)
    kept.append(text[end:])
    return ("".join(kept).strip() if end else text), tuple(calls), tuple(invalid)


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each block fenced by "```json" and "```" lines starts and ends, and its inside; in linear time."""
    start, inside, position = -1, 0, 0
    for line in text.split("\n"):
        mark, end = line.strip(" \t\r"), position + len(line)
        if start < 0 and mark == "```json":
            start, inside = position, end + 1
        elif start >= 0 and mark == "```":
            yield start, end, text[inside:position]
            start = -1
        position = end + 1


def _call(block: str, identity: str) -> ToolCall | InvalidCall | None:
    """A call, one that cannot be made, or None for a block that is no call."""
    try:
        value = json.loads(block)
    except (ValueError, RecursionError) as error:
        return InvalidCall(identity, None, block, f"not JSON: {error}") if '"tool"' in block else None
    if not isinstance(value, dict) or "tool" not in value:
        return None
    if wrong := _wrong(value):
        return InvalidCall(identity, None, block, wrong)
    return ToolCall(identity, value["tool"], {IMAGES: value.get("images", []), **value.get("args", {})})


def _wrong(value: Mapping[str, Any]) -> str | None:
    """The reason why a block that names a tool is no call, or None."""
    if extra := sorted(value.keys() - _KEYS):
        return f"unknown keys {', '.join(extra)}; a call has tool, images and args"
    images, args = value.get("images", []), value.get("args", {})
    if not isinstance(value["tool"], str) or not value["tool"]:
        return '"tool" must be the name of a tool'
    if not isinstance(images, list) or not all(isinstance(name, str) for name in images):
        return '"images" must be a list of image names'
    if not isinstance(args, dict):
        return '"args" must be an object'
    return '"images" is next to "args", not in it' if IMAGES in args else None


def as_text(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """The conversation in plain user and assistant messages.

    The results of one batch of calls, images included, are one user message.
    """
    out: list[Message] = []
    results: list[Part] = []
    for message in _introduced(messages, tools):
        if isinstance(message, ToolMessage):
            results += _result(message)
            continue
        if results:
            out.append(UserMessage(tuple(results)))
            results = []
        if isinstance(message, AssistantMessage):
            out.append(replace(message, text=_spoken(message), calls=(), invalid=()))
        else:
            out.append(message)
    return [*out, UserMessage(tuple(results))] if results else out


def _introduced(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """The messages with the tools described in the first of them, in front of a question."""
    if not tools or not messages:
        return list(messages)
    first, described = messages[0], describe(tools)
    if isinstance(first, SystemMessage):
        return [SystemMessage(f"{first.text}\n\n{described}"), *messages[1:]]
    # Not every chat template takes a system message that was not there.
    return [UserMessage((described, *parts_of(first))), *messages[1:]]


def _result(message: ToolMessage) -> list[Part]:
    head = f"{'Error' if message.failed else 'Result'} of {message.name or 'the tool'}:\n{message.text}"
    return [head, *map(ImagePart, images_of([message]))]


def _spoken(message: AssistantMessage) -> str:
    """The text of a reply, with its calls as blocks again."""
    blocks = [message.text] if message.text else []
    for call in message.calls:
        args = {key: value for key, value in call.args.items() if key not in (IMAGE, IMAGES)}
        named = call.args.get(IMAGES, call.args.get(IMAGE, []))
        value = {"tool": call.name, "images": [named] if isinstance(named, str) else named, "args": args}
        blocks.append(f"```json\n{json.dumps(value, ensure_ascii=False)}\n```")
    blocks += [f"```json\n{bad.written.strip()}\n```" for bad in message.invalid]
    return "\n".join(blocks)


def with_calls(reply: AssistantMessage, call: CallKey) -> AssistantMessage:
    """The reply with the calls that are in its text as blocks; the same object when there are none."""
    text, calls, invalid = parse(reply.text, call.call)
    if not calls and not invalid:
        return reply
    return replace(reply, text=text, calls=calls, invalid=invalid)
