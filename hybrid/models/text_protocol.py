"""Tool calls for models without native tool calling: requested as text, and read from the text of any model.

    reply = with_calls(await model.chat(as_text(messages, tools), (), call), tools, messages)

`--tool-calling text` requests calls in this way. The tools are described at the end of the system message or, without
one, before the question, so that the question stays next to the instructions for the answer, and all questions begin
alike. A call is one fenced block, and results are sent as user messages:

    ```json
    {"tool": "crop", "images": ["img:1"], "args": {"box": [0, 0, 50, 50]}}
    ```
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybrid.core.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    Part,
    SystemMessage,
    ToolMessage,
    UnreadableCall,
    UserMessage,
    images_of,
    parts_of,
)
from hybrid.core.thinking import without_thoughts
from hybrid.models.dialects import read
from hybrid.models.toolspec import COORDINATES, IMAGE, IMAGES, spec
from hybrid.tool import Tool

INTRODUCTION = """You can call tools that look at the images. To call one, write one block of this form for each call, \
and wait for the results before you answer:
```json
{"tool": "NAME", "images": ["img:1"], "args": {}}
```
The tools:"""


def describe(tools: Sequence[Tool]) -> str:
    """Return the introduction and, for each tool, its name, summary, number of images, and the type of `args`.

    The types are those of the schema (`toolspec`) in the notation of TypeScript, a third shorter than JSON:
    `{box: {x0: number, ...}, words?: string}`, with the description of an argument in a comment after it.
    """
    lines = [INTRODUCTION]
    for tool in tools:
        function = spec(tool)["function"]
        parameters = function["parameters"]
        arguments = {name: node for name, node in parameters["properties"].items() if name not in (IMAGE, IMAGES)}
        images = parameters["properties"].get(IMAGES, {}).get("description", "1 name")
        lines += [f"- {function['name']}: {function['description']}", f"  images: {images}"]
        lines.append("  args: {" if arguments else "  args: {}")
        for name, node in arguments.items():
            comment = f" // {node['description']}" if "description" in node else ""
            lines.append(f"    {_field(name, node, parameters['required'])},{comment}")
        lines += ["  }"] if arguments else []
    return "\n".join(lines)


def _field(name: str, node: Mapping[str, Any], required: Sequence[str]) -> str:
    return f"{name}{'' if name in required else '?'}: {_type(node)}"


def _type(node: Mapping[str, Any]) -> str:
    """Convert a schema to the notation of TypeScript, with a field's description in a comment after it."""
    if "enum" in node:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in node["enum"])
    if "anyOf" in node:
        return " | ".join(_type(kind) for kind in node["anyOf"])
    if node.get("type") == "array":
        item = _type(node.get("items", {}))
        return f"({item})[]" if " | " in item else f"{item}[]"
    if "properties" in node:
        # The schema lists no coordinate as required. Those of a box belong together, so none is marked as optional.
        required = [*node.get("required", ()), *(COORDINATES - {"x", "y"})]
        inner = [
            _field(name, field, required) + (f" /* {field['description']} */" if "description" in field else "")
            for name, field in node["properties"].items()
        ]
        return f"{{{', '.join(inner)}}}"
    return str(node.get("type", "any"))


def as_text(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """Convert the conversation to plain user and assistant messages.

    The results of one batch of calls, images included, become one user message.
    """
    out: list[Message] = []
    results: list[Part] = []
    prompt = list(messages)
    if tools and prompt:
        first, described = prompt[0], describe(tools)
        if isinstance(first, SystemMessage):
            prompt[0] = SystemMessage(f"{first.text}\n\n{described}")
        else:
            # Not every chat template accepts an additional system message.
            prompt[0] = UserMessage((described, *parts_of(first)))
    for message in prompt:
        if isinstance(message, ToolMessage):
            head = f"{'Error' if message.failed else 'Result'} of {message.name or 'the tool'}:\n{message.text}"
            results += [head, *map(ImagePart, images_of([message]))]
            continue
        if results:
            out.append(UserMessage(tuple(results)))
            results = []
        if isinstance(message, AssistantMessage):
            out.append(replace(message, text=_write_calls(message), calls=(), invalid=()))
        else:
            out.append(message)
    return [*out, UserMessage(tuple(results))] if results else out


def _write_calls(message: AssistantMessage) -> str:
    """Return the text of a reply, with its calls written as blocks again."""
    blocks = [message.text] if message.text else []
    for call in message.calls:
        args = {key: value for key, value in call.args.items() if key not in (IMAGE, IMAGES)}
        image_names = call.args.get(IMAGES, call.args.get(IMAGE, []))
        value = {
            "tool": call.name,
            "images": [image_names] if isinstance(image_names, str) else image_names,
            "args": args,
        }
        blocks.append(f"```json\n{json.dumps(value, ensure_ascii=False)}\n```")
    blocks += [f"```json\n{bad.written.strip()}\n```" for bad in message.invalid]
    return "\n".join(blocks)


# vLLM drops a call that begins in its parser's dialect and continues in another (`qwen3_xml`; streamed `hermes`).
DROPPED = "its server counts tokens that did not arrive: its call parser is probably that of another model"
# Largest number of tokens that a reply may have in addition to its text, such as ends of turns and of thoughts. Even
# the shortest call has more.
MAX_MARKS = 12


def with_calls(
    reply: AssistantMessage,
    tools: Sequence[Tool],
    messages: Sequence[Message],
    turn: int = 0,
    *,
    is_text_protocol: bool = False,
) -> AssistantMessage:
    """Return the reply with the calls that its text contains in any dialect; the same object if there are none.

    A reply with native calls is not searched, because its text may repeat them. `messages` are the conversation before
    the reply. `turn` is the number of the model's call, which is part of the ids. `is_text_protocol` says that calls in
    text were requested, so they are not reported as unusual.
    """
    if reply.calls or reply.invalid or reply.unreadable is not None or reply.is_withheld:
        return reply
    used = reply.usage
    if tools and used is not None and reply.finish_reason == "stop" and not without_thoughts(reply.text).strip():
        # The reply is empty except for thoughts, and ended normally. If its tokens outnumber its letters, a call was
        # dropped.
        thought = used.reasoning_tokens or len(reply.reasoning)
        if used.output_tokens > len(reply.text) + thought + MAX_MARKS:
            return replace(reply, unreadable=UnreadableCall("unknown", "", DROPPED))
    if not reply.text:
        return reply
    reading = read(reply.text, tools, messages, turn=turn, cut=reply.is_cut, is_text_protocol=is_text_protocol)
    if not reading.calls and reading.unreadable is None:
        return reply
    calls = tuple(
        replace(call, read_from="") if is_text_protocol and call.read_from == "JSON" else call for call in reading.calls
    )
    return replace(reply, text=reading.rest, calls=calls, unreadable=reading.unreadable)
