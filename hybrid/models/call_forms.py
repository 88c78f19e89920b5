"""Parsers for the forms of tool calls in text: JSON objects, a name and an object, XML-like elements, Python syntax.

    end, calls = FORMS["objects"](text, mark)       # from the match of a dialect's mark

Each parser takes time linear in the length of the text, and reads a bounded number of calls.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

from hybrid.core.messages import MAX_CHARACTERS, replace_surrogates_in
from hybrid.models.literals import QUOTES, read_entries, read_object, read_value, sign_at, without_entities
from hybrid.models.toolspec import IMAGE, IMAGES
from hybrid.models.yaml_text import read_yaml

MAX_CALLS = 256  # Largest number of calls read in one reply.
# Name of the repair for a reply that lacks its last tag although no limit cut the reply: some servers drop the tag at
# which they stop.
UNCLOSED = "not closed"

# The name of a tool, its arguments (an object, or text that should contain one), and the repairs made while reading.
RawCall = tuple[str, Any, tuple[str, ...]]
# Takes a text and the match of a mark; returns the position after the calls, and the calls. Raises `ValueError`.
Reader = Callable[[str, "re.Match[str]"], tuple[int, list[RawCall]]]


class AnswerError(ValueError):
    """An object names a tool but also gives an answer, so it is a call only if the marks of a call enclose it."""


_DATA: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
ARGUMENTS = tuple(_DATA["arguments"])


def _bare(key: str) -> str:
    return re.sub(r"[\W_]", "", key).lower()


# Keys of JSON objects, which are compared without regard to case and word separators.
_NAMES, _WEAK_NAMES, _GIVEN = (tuple(map(_bare, _DATA[kind])) for kind in ("names", "weak_names", "arguments"))
_BESIDE, _WRAPPERS, _ANSWERS = (frozenset(map(_bare, _DATA[kind])) for kind in ("beside", "wrappers", "answers"))


_ALTERNATIVES = {kind: "|".join(_DATA[kind]).replace("_", "[_ -]?") for kind in ("names", "weak_names", "arguments")}
_LISTS = {f"%{kind.upper()}%": f"(?:{words})" for kind, words in _ALTERNATIVES.items()}
_WORDS = {**_DATA["word"], **_LISTS, "%QUOTE%": QUOTES}


def pattern(template: str) -> re.Pattern[str]:
    """Compile a template of the data file, with placeholders replaced by their patterns; the result ignores case."""
    expression = reduce(lambda text, word: text.replace(word, _WORDS[word]), _WORDS, template)
    return re.compile(expression, re.MULTILINE | re.IGNORECASE)


_AT: Mapping[str, re.Pattern[str]] = {name: pattern(template) for name, template in _DATA["pattern"].items()}


def named_at(text: str, mark: re.Match[str], form: str) -> str | None:
    """Return the name of the tool at the mark of a call that is not an object; None if there is no name."""
    if "name" in mark.re.groupindex:
        return mark["name"]
    call = _AT["called"].match(text, _between(text, mark.end())) if form == "calls" else None
    return call["name"] if call else None


def names_in_objects(text: str, *, is_text_protocol: bool) -> Iterator[tuple[int, str, str | None, bool]]:
    """Yield objects that may name a tool: position, name, an argument or None, and whether it is certainly a call.

    If an argument is yielded, an object that is not certainly a call counts only if the tool may have this argument.

    An object in the requested form is certainly a call. Under a key that is common in other objects too, a name counts
    only together with an argument.
    """
    for match in _AT["named"].finditer(text):
        name = match["name"] or match["only"] or match["weak"] or ""
        is_ours = (is_text_protocol or not name) and match["ours"] is not None and match["key"].lower() == "tool"
        yield match.start(), name, match["inner"] or match["next"], is_ours or match.lastgroup is None


def _read_objects(text: str, mark: re.Match[str]) -> tuple[int, list[RawCall]]:
    """Read JSON objects, or lists of them, that contain a name and arguments."""
    end, calls = mark.end(), list[RawCall]()
    while len(calls) <= MAX_CALLS:
        at = _between(text, end)
        if sign_at(text, at) not in ("{", "[", '"') or (calls and (text[at] == '"' or _AT["token"].match(text, at))):
            break
        try:
            # Some chat templates teach models to write double braces.
            value, end, loose = _value(text, at + text.startswith("{{", at))
        except ValueError:
            if calls:
                break
            raise
        value = read_object(value)[0] if isinstance(value, str) else value
        inner = only = _only(value) if isinstance(value, dict) else None
        while isinstance(inner, dict) and not _is_call(inner):
            inner = _only(inner)
        if isinstance(inner, list) and (inner is only or any(map(_is_call, inner))):
            # The list stands under a name such as `tool_calls`, `actions` or `tool_uses`.
            value = inner
        calls += [_object(item, loose) for item in (value if isinstance(value, list) else [value])]
    if not calls:
        raise ValueError("no JSON object")
    return end, calls


def _between(text: str, at: int) -> int:
    match = _AT["between"].match(text, at)
    return match.end() if match else at


def _value(text: str, at: int) -> tuple[Any, int, tuple[str, ...]]:
    """Read the value at a position; if a closing tag follows, missing braces are added before the tag."""
    try:
        return read_value(text, at)
    except ValueError:
        if (closing := _AT["closed"].search(text, at, at + MAX_CHARACTERS)) is None:
            raise
        for braces in ("}", "}}"):
            candidate = text[at : closing.start()].rstrip() + braces
            with suppress(ValueError):
                value, end, loose = read_value(candidate)
                if end == len(candidate):
                    return value, closing.start(), (*loose, UNCLOSED)
        raise


def _only(value: Mapping[str, Any]) -> Any:
    """Return the only value of an object, ignoring thoughts and ids; None if there are several."""
    contents = [item for key, item in value.items() if _bare(key) not in _BESIDE]
    return contents[0] if len(contents) == 1 else None


def _is_call(value: Any) -> bool:
    bare = {*map(_bare, value)} if isinstance(value, dict) else set[str]()
    return not bare.isdisjoint(_NAMES) and not bare.isdisjoint({*_GIVEN, "function"})


def _object(value: Any, repairs: tuple[str, ...]) -> RawCall:
    if not isinstance(value, dict) or not value:
        raise ValueError("there is no JSON object with the name of a tool")
    keys = {_bare(key): key for key in reversed(value)}
    if isinstance(inner := value.get(keys.get("function", "")), dict):
        return _object(inner, repairs)
    arguments_key = next((keys[key] for key in _GIVEN if key in keys), None)
    names = (keys[key] for key in _NAMES + _WEAK_NAMES if key in keys)
    name = next((key for key in names if isinstance(value[key], str) and key != arguments_key), None)
    if name is None and isinstance(inner := _only(value), dict):
        # The key is `function_call`, `functionCall` or `action`, or the name of a tool.
        only = next(key for key in value if _bare(key) not in _BESIDE)
        deeper = _is_call(inner) or _bare(only) in _NAMES + _WEAK_NAMES
        return _object(inner, repairs) if deeper else (only, inner, repairs)
    if arguments_key is None and not _ANSWERS.isdisjoint(keys):
        raise AnswerError("an answer, not a call")
    if name is None or not value[name]:
        raise ValueError("no name of a tool")
    other_args = {
        key: item for key, item in value.items() if key not in (name, arguments_key) and _bare(key) not in _BESIDE
    }
    if arguments_key is None:
        return value[name], other_args, repairs
    if extra := sorted(other_args.keys() - {IMAGE, IMAGES}):
        raise ValueError(f"unknown keys {', '.join(extra)[:100]}")
    args, error, more = read_object(value[arguments_key])
    if args is None:
        raise ValueError(error)
    if _bare(value[name]) in _WRAPPERS:
        return _object(args, repairs + more)
    if args.keys() & other_args:
        raise ValueError("images are named twice")
    return value[name], other_args | args, repairs + more


def _read_named(text: str, mark: re.Match[str]) -> tuple[int, list[RawCall]]:
    """Read the name of a tool, and a JSON object after it."""
    # Code fences may be nested.
    value, end, loose = _value(text, _between(text, _between(text, mark.end())))
    return end, [(mark["name"], value, loose)]


def _read_actions(text: str, mark: re.Match[str]) -> tuple[int, list[RawCall]]:
    """Read the name of a tool, and its input on the next line or in brackets."""
    if text[mark.end() : mark.end() + 1] == "(":
        return _read_calls(text, mark)
    input_match = _AT["input"].match(text, mark.end())
    # `Action: depth[img:1]`, or only the image's name after `Action Input:`, for a tool that needs no other argument.
    if alone := _AT["image_alone"].match(text, input_match.end() if input_match else mark.end()):
        return alone.end(), [(mark["name"], {IMAGE: alone["image"]}, ("image name",))]
    if input_match is None and not text[mark.end() :].lstrip(" *`").startswith("{"):
        raise ValueError("the action has no input")
    at = _between(text, input_match.end() if input_match else mark.end())
    line = text.rfind("\n", mark.end(), at) + 1
    # Keep the indentation of the first line.
    if lines := _AT["lines"].match(text, line if line and text[line:at].isspace() else at):
        if _AT["lines"].match(text, lines.end()):
            raise ValueError("the input has too many lines")
        repairs = () if _AT["keyword"].match(lines[0]) else ("YAML",)
        return lines.end(), [(mark["name"], _from_lines(lines[0]), repairs)]
    value, end, loose = read_value(text, at)
    return end + (input_match is not None and input_match[0].endswith("`")), [(mark["name"], value, loose)]


def _from_lines(lines: str) -> dict[str, Any]:
    """Parse the input of an action in YAML, as `key=value`, or as an object without braces. Raises `ValueError`."""
    if _AT["several"].search(lines):
        with suppress(ValueError):
            values, keywords, end = read_entries(f"{lines})", 0, ")")
            if not values and end > len(lines):
                return keywords
    if _AT["keyword"].match(lines):
        lines = re.sub(r"[ \t,]+(?=\w+=)", "\n", lines)
    document = _AT["line_tail"].sub("", _AT["line_begin"].sub(r"\1\2: ", lines))
    value = read_yaml(document)
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError("the input has no argument names")
    return {key: _as_typed(item) for part in parts for key, item in part.items()}


def _as_typed(value: Any) -> Any:
    """Mark every text in the value as `Typed`: only the tool's schema determines its type."""
    if isinstance(value, dict):
        return {key: _as_typed(item) for key, item in value.items()}
    return [_as_typed(item) for item in value] if isinstance(value, list) else Typed(value)


def _read_elements(text: str, mark: re.Match[str]) -> tuple[int, list[RawCall]]:
    """Read the arguments of a call: one element with text per argument, or a JSON object instead of the elements."""
    at, name = _between(text, mark.end()), mark["name"]
    if sign_at(text, at) == "{":
        value, end, loose = _value(text, at)
        return end, [(name, value, loose)]
    end_tag = re.compile(rf"</{re.escape(name)}>") if mark[0] == f"<{name}>" else _AT["element_ends"]
    closing = end_tag.search(text, mark.end())
    body = text[mark.end() : closing.start() if closing else len(text)]
    fields, at = dict[str, Any](), 0
    while begin := _AT["field"].search(body, at):
        if closing is None and body[at : begin.start()].strip():
            break
        ends = re.compile(rf"</{begin['tag']}>") if begin["tag"] else _AT["field_ends"]
        closed = ends.search(body, begin.end())
        if closed is closing is None:
            raise ValueError("the call does not end")
        # The last element is often not closed.
        value = body[begin.end() : closed.start() if closed else len(body)]
        fields[begin[begin.lastgroup or 0]] = Typed(without_entities(_AT["line_end"].sub("", value)))
        at = closed.end() if closed else len(body)
    if closing is None and not fields:
        raise ValueError("the call does not end")
    # Without elements, the text itself is the input, for example an object in quotes.
    call = (name, fields or body.strip(), () if closing else (UNCLOSED,))
    return closing.end() if closing else mark.end() + at, [call]


def _read_attributes(text: str, mark: re.Match[str]) -> tuple[int, list[RawCall]]:
    """Read an empty element with its arguments as attributes."""
    end = text.index("/>", mark.end())
    fields = {
        attribute["key"]: Typed(without_entities(attribute["value"]))
        for attribute in _AT["attribute"].finditer(text, mark.end(), end)
    }
    return end + len("/>"), [(mark["name"], fields, ())]


class Typed(str):
    """The text of an element; only the tool's schema determines its type."""

    __slots__ = ()


def _read_calls(text: str, mark: re.Match[str]) -> tuple[int, list[RawCall]]:
    """Read calls in Python syntax, with keyword arguments."""
    end, calls = mark.start("name") if "name" in mark.re.groupindex else mark.end(), list[RawCall]()
    while (call := _AT["called"].match(text, _between(text, end))) and len(calls) <= MAX_CALLS:
        if call["name"] == "print":
            # `print` shows the result of the code before it, so no calls follow.
            break
        values, args, end = read_entries(text, call.end(), ")")
        if len(values) == 1 and isinstance(values[0], dict) and not args:
            args = values[0]
        elif values:
            raise ValueError("arguments need names")
        if call[0].startswith("print"):
            end = _between(text, end) + 1
            if sign_at(text, end - 1) != ")":
                raise ValueError("the call needs a closing bracket")
        calls.append((call["name"], replace_surrogates_in(args), ()))
    if not calls or (mark[0].endswith("[") and not re.match(r"[\s,]{0,20}\]", text[end:])):
        raise ValueError("the list of calls does not end")
    return end + (mark[0].endswith("[") and text[end:].index("]") + 1), calls


FORMS: Mapping[str, Reader] = {
    "objects": _read_objects,
    "named": _read_named,
    "actions": _read_actions,
    "elements": _read_elements,
    "attributes": _read_attributes,
    "calls": _read_calls,
}
