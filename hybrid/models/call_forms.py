"""The forms of calls in text: JSON objects, a name and an object, elements, Python.

    end, calls = FORMS["objects"](text, mark)       # from the match of a dialect's mark

Each is linear in the length of the text, and bounded in the number of calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from hybrid.messages import MAX_CHARACTERS
from hybrid.models.literals import read_object, read_value
from hybrid.models.toolspec import IMAGE, IMAGES

MAX_CALLS = 256  # Of one reply.
# A kind of repair, of a reply that did not end at a limit: some servers keep back the tag that they stop at.
UNCLOSED = "not closed"

# The name of a tool, its arguments (an object, or text that should hold one), and the repairs of reading it.
Written = tuple[str, Any, tuple[str, ...]]
# From the match of a mark to where the calls end, and the calls. Raises `ValueError`.
Reader = Callable[[str, "re.Match[str]"], tuple[int, list[Written]]]

_NAMES = ("tool", "name", "tool_name", "function", "function_name", "action", "recipient_name")
ARGUMENTS = ("args", "arguments", "parameters", "params", "input", "tool_input", "action_input", "tool_args", "kwargs")
_BESIDE = frozenset({"type", "id", "index", "tool_call_id", "call_id", "thought", "thoughts", "reasoning"})
_NAMED = re.compile(
    r"""["'“]?(?P<key>(?i:tool|name|tool_name|function|function_name|action|recipient_name))["'”]?\s{0,9}[:：]\s{0,9}"""
    r"""["'“](?P<name>[^"'“”\n]{0,100})["'”]"""
    r"""(?P<ours>\s{0,9},\s{0,9}["'](?:args|images)["'])?|\{\s{0,9}["']tool["']\s{0,9}:\s{0,9}(?=[{\[])"""
    r"""|\{\s{0,9}["'](?P<only>\w{1,100})["']\s{0,9}:\s{0,9}(?=\{\s{0,9}["']images?["'])"""
)
_INPUT = re.compile(
    r"""[ *`"']{0,4}\s{1,4}[ \t>*#-]{0,8}(?:(?:Action|行动|动作)(?: \d{1,2})?[ _]?)?"""
    r"""(?:Input|输入|Arguments|Args|Parameters)(?: \d{1,2})?[ *`]{0,4}(?:[:：]|(?=\r?\n))"""
    r"""\s{0,2}[ *]{0,4}(?:`(?!`))?""",
    re.IGNORECASE,
)
_IMAGE_ALONE = re.compile(r"\[?\s{0,9}(?P<image>img:[1-9][0-9.]{0,20}?)\s{0,9}\]?[ .`*]{0,4}$", re.MULTILINE)
_TOKEN = re.compile(r"\[/?[A-Z]")
_BETWEEN = re.compile(r"[\s,;]*(?:```\w*\s*)?")
_CALLED = re.compile(r"(?:print\()?(?P<name>[^\W\d][\w.]{0,99})\(")
_KEYWORD = re.compile(r"[\s,]*(?P<key>[^\W\d]\w{0,99})\s*=\s*")
_FIELD = re.compile(
    r"<[^<>=\s]{0,20}parameter\s{0,3}(?:=|\sname=)\s?[\"']?(?P<key>[^\"'<>\s]{1,100})[\"']?[^<>]{0,40}>"
    r"|<(?:longcat_)?arg_key>\s*(?P<arg>[^<>\s]{1,100})\s*</(?:longcat_)?arg_key>\s*<(?:longcat_)?arg_value>"
    r"|<(?P<tag>[^\W\d]\w{0,99})>"
    r'|<\|open\|>argument key="(?P<opened>[^"<>\s]{1,100})"[^<>]{0,40}<\|sep\|>'
)
_FIELD_ENDS = re.compile(
    r"</[^<>\s]{0,20}parameter>|</(?:longcat_)?arg_value>|<\|close\|>argument<\|sep\|>|(?=<parameter=)"
    r"|(?=<(?:longcat_)?arg_key>)"
)
_CLOSED = re.compile(r"</[\w:]{1,30}>|<\|[\w▁/]{1,40}\|>|<｜[\w▁]{1,40}｜>")
_LINE_END = re.compile(r"\A\r?\n|\r?\n\Z")
_ELEMENT_ENDS = re.compile(
    r"</[^<>\s]{0,20}(?:function|invoke|tool_call|tool|call_record)>|<\|close\|>call<\|sep\|>"
    r"|(?=<tool_call>)|(?=<function=)"
)


def named_at(text: str, mark: re.Match[str], form: str) -> str | None:
    """The name of a tool at the mark of a call that is no object; None where there is none."""
    if "name" in mark.re.groupindex:
        return mark["name"]
    call = _CALLED.match(text, _between(text, mark.end())) if form == "calls" else None
    return call["name"] if call else None


def names_in_objects(text: str) -> Iterator[tuple[int, str, bool]]:
    """Where an object may name a tool, the name, and whether in the form that `as_text` asks for."""
    for named in _NAMED.finditer(text):
        yield (
            named.start(),
            named["name"] or named["only"] or "",
            named.lastgroup is None or (named["key"] == "tool" and named["ours"] is not None),
        )


def _objects(text: str, mark: re.Match[str]) -> tuple[int, list[Written]]:
    """JSON objects, or lists of them, that hold a name and arguments."""
    end, found = mark.end(), list[Written]()
    while len(found) <= MAX_CALLS:
        at = _between(text, end)
        if text[at : at + 1] not in ("{", "[", '"') or (found and (text[at] == '"' or _TOKEN.match(text, at))):
            break
        # Some templates teach both braces of their own.
        value, end, loose = _value(text, at + text.startswith("{{", at))
        value = read_object(value)[0] if isinstance(value, str) else value
        if isinstance(value, dict) and isinstance(inner := _only(value), list):
            # `tool_calls`, `actions`, `tool_uses`.
            value = inner
        found += [_object(item, loose) for item in (value if isinstance(value, list) else [value])]
    if not found:
        raise ValueError("no JSON object")
    return end, found


def _between(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int) -> tuple[Any, int, tuple[str, ...]]:
    """The value there; where a closing tag says that it was complete, a brace may be missing before that."""
    try:
        return read_value(text, at)
    except ValueError:
        if (closing := _CLOSED.search(text, at, at + MAX_CHARACTERS)) is None:
            raise
        for braces in ("}", "}}"):
            written = text[at : closing.start()].rstrip() + braces
            with suppress(ValueError):
                value, end, loose = read_value(written)
                if end == len(written):
                    return value, closing.start(), (*loose, UNCLOSED)
        raise


def _only(value: Mapping[str, Any]) -> Any:
    """The only thing that an object holds beside thoughts and ids; None where there are several."""
    held = [item for key, item in value.items() if key not in _BESIDE]
    return held[0] if len(held) == 1 else None


def _object(value: Any, repairs: tuple[str, ...]) -> Written:
    if not isinstance(value, dict) or not value:
        raise ValueError("no JSON object with the name of a tool")
    if not value.keys() & {*_NAMES, *ARGUMENTS}:
        value = {key.lower(): item for key, item in value.items()} if {*map(str.lower, value)} & {*_NAMES} else value
    if isinstance(inner := value.get("function"), dict):
        return _object(inner, repairs)
    name = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    if name is None and isinstance(inner := _only(value), dict):
        # `function_call`, `functionCall`, `action`; or the name of a tool.
        is_call = any(isinstance(inner.get(key), str) for key in _NAMES) and any(key in inner for key in ARGUMENTS)
        only = next(key for key in value if key not in _BESIDE)
        return _object(inner, repairs) if is_call else (only, inner, repairs)
    if name is None or not value[name]:
        raise ValueError("no name of a tool")
    given = next((key for key in ARGUMENTS if key in value and key != name), None)
    beside = {key: item for key, item in value.items() if key not in (name, given) and key not in _BESIDE}
    if given is None:
        return value[name], beside, repairs
    if extra := sorted(beside.keys() - {IMAGE, IMAGES}):
        raise ValueError(f"unknown keys {', '.join(extra)[:100]}")
    args, error, more = read_object(value[given])
    if args is None:
        raise ValueError(error)
    if args.keys() & beside:
        raise ValueError("images are named twice")
    return value[name], beside | args, repairs + more


def _named(text: str, mark: re.Match[str]) -> tuple[int, list[Written]]:
    """The name of a tool, and a JSON object behind it."""
    value, end, loose = _value(text, _between(text, mark.end()))
    return end, [(mark["name"], value, loose)]


def _actions(text: str, mark: re.Match[str]) -> tuple[int, list[Written]]:
    """The name of a tool, and its input on the next line or in brackets."""
    if text[mark.end() : mark.end() + 1] == "(":
        return _calls(text, mark)
    given = _INPUT.match(text, mark.end())
    # `Action: depth[img:1]`, or the name alone behind `Action Input:`, for a tool that needs no more.
    if alone := _IMAGE_ALONE.match(text, given.end() if given else mark.end()):
        return alone.end(), [(mark["name"], {IMAGE: alone["image"]}, ("image name",))]
    if given is None and not text[mark.end() :].lstrip(" *`").startswith("{"):
        raise ValueError("no input of the action")
    at = _between(text, given.end() if given else mark.end())
    args, end = _keywords(text, at)
    if args:
        return end, [(mark["name"], args, ())]
    value, end, loose = read_value(text, at)
    return end + (given is not None and given[0].endswith("`")), [(mark["name"], value, loose)]


def _elements(text: str, mark: re.Match[str]) -> tuple[int, list[Written]]:
    """Elements, one an argument, or a JSON object in their place; values are text."""
    at, name = _between(text, mark.end()), mark["name"]
    if text.startswith("{", at):
        value, end, loose = _value(text, at)
        return end, [(name, value, loose)]
    own = re.compile(rf"</{re.escape(name)}>") if mark[0] == f"<{name}>" else _ELEMENT_ENDS
    closing = own.search(text, mark.end())
    body = text[mark.end() : closing.start() if closing else len(text)]
    fields, at = dict[str, Any](), 0
    while begin := _FIELD.search(body, at):
        if closing is None and body[at : begin.start()].strip():
            break
        ends = re.compile(rf"</{begin['tag']}>") if begin["tag"] else _FIELD_ENDS
        closed = ends.search(body, begin.end())
        if closed is closing is None:
            raise ValueError("the call does not end")
        # The last one is often not closed.
        value = body[begin.end() : closed.start() if closed else len(body)]
        fields[begin[begin.lastgroup or 0]] = Typed(_LINE_END.sub("", value))
        at = closed.end() if closed else len(body)
    if closing is None and not fields:
        raise ValueError("the call does not end")
    return (closing.end(), [(name, fields, ())]) if closing else (mark.end() + at, [(name, fields, (UNCLOSED,))])


class Typed(str):
    """The text of an element, whose type only the tool's schema tells."""

    __slots__ = ()


def _calls(text: str, mark: re.Match[str]) -> tuple[int, list[Written]]:
    """Calls as Python writes them, with keywords."""
    end, found = mark.start("name") if "name" in mark.re.groupindex else mark.end(), list[Written]()
    while (call := _CALLED.match(text, _between(text, end))) and len(found) <= MAX_CALLS:
        if call["name"] == "print":
            # Of what the code before it set.
            break
        args, end = dict[str, Any](), call.end()
        if text[end : end + 1] == "{":
            args, end, _ = read_value(text, end)
        more, end = _keywords(text, end)
        args |= more
        closing = re.compile(r"[\s,]*\)" + (r"\s*\)" if call[0].startswith("print") else "")).match(text, end)
        if closing is None:
            raise ValueError("arguments need names, and the call a closing bracket")
        end = closing.end()
        found.append((call["name"], args, ()))
    if not found or (mark[0].endswith("[") and not re.match(r"[\s,]{0,20}\]", text[end:])):
        raise ValueError("the list of calls does not end")
    return end + (mark[0].endswith("[") and text[end:].index("]") + 1), found


def _keywords(text: str, at: int) -> tuple[dict[str, Any], int]:
    """Arguments as Python writes them, `image="img:1", zoom=2`, and where they end."""
    args = dict[str, Any]()
    while keyword := _KEYWORD.match(text, at):
        args[keyword["key"]], at, _ = read_value(text, keyword.end())
    return args, at


FORMS: Mapping[str, Reader] = {
    "objects": _objects,
    "named": _named,
    "actions": _actions,
    "elements": _elements,
    "calls": _calls,
}
