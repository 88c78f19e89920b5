"""JSON as models write it: with single quotes, words of Python, comments, a comma too many, or text behind it.

    read_object("{'zoom': 3,}</tool_call>")  ->  {"zoom": 3}, "", ("loose JSON", "text behind")

Only what has one meaning is read, in linear time. Nothing is completed: a value that ends early is an error.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hybrid.messages import MAX_CHARACTERS, MAX_DEPTH, whole_value

LOOSE, BEHIND, FENCE, TWICE = "loose JSON", "text behind", "fence", "encoded twice"  # Kinds of repairs.

_GAP = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_TEXT = re.compile(
    r""""(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|'(?P<single>[^'\\]*(?:\\.[^'\\]*)*)'"""
    r"""|<\|"\|>(?P<token>.*?)<\|"\|>|<escape>(?P<escape>.*?)<escape>|“(?P<curly>[^“”]*)”""",
    re.DOTALL,
)
_ESCAPED = re.compile(r'\\(?:x(?P<x>[0-9a-fA-F]{2})|U(?P<U>[0-9a-fA-F]{8})|.)|"', re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[^\W\d][\w.-]*")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_FENCED = re.compile(r"```[\w-]*(.*)```[^`]*", re.DOTALL)
# JSON in a text of JSON that has lost the quotation marks around it.
_UNQUOTED = re.compile(r'\A[{\[]\s*\\".*', re.DOTALL)
_HEAD = re.compile(r"(?:```)?json\s+([{\[\"].*)", re.DOTALL)  # The head of a fence whose marks are lost.


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


_STRICT = json.JSONDecoder(strict=False, parse_constant=_refuse)


def read_value(text: str, at: int = 0) -> tuple[Any, int, tuple[str, ...]]:
    """The value that begins at `at`, where it ends, and the repairs that it took. Raises `ValueError`."""
    at = _gap(text, at)
    try:
        value, end = _STRICT.raw_decode(text, at)
        return whole_value(value), end, ()
    except (ValueError, RecursionError) as error:
        try:
            # No call may hold more.
            value, end = _loose(text[: at + MAX_CHARACTERS], at, 1)
        except ValueError as found:
            raise ValueError(f"{error if isinstance(error, ValueError) else found}"[:200]) from None
    return whole_value(value), end, (LOOSE,)


def _gap(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _loose(text: str, at: int, depth: int) -> tuple[Any, int]:
    opening = text[at : at + 1]
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    if opening == "{":
        return _object(text, at + 1, depth)
    if opening and opening in "[(":
        return _list(text, at + 1, "]" if opening == "[" else ")", depth)
    if match := _TEXT.match(text, at):
        return _string(match), match.end()
    if match := _NUMBER.match(text, at):
        number = match[0].lstrip("+")
        return (float(number) if re.search("[.eE]", number) else int(number)), match.end()
    if (match := _WORD.match(text, at)) and match[0] in _WORDS:
        return _WORDS[match[0]], match.end()
    raise ValueError(f"no value at character {at}: {text[at : at + 20]!r}")


def _string(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    if kind not in ("double", "single"):
        return match[kind]
    value: str = json.loads(f'"{_ESCAPED.sub(_as_json, match[kind])}"', strict=False)
    return value


def _as_json(escaped: re.Match[str]) -> str:
    """An escape of Python, or a quote, as JSON writes it."""
    if code := escaped["x"] or escaped["U"]:
        return json.dumps(chr(int(code, 16)))[1:-1]
    return {'"': '\\"', "\\'": "'"}.get(escaped[0], escaped[0])


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    value: dict[str, Any] = {}
    while True:
        at = _gap(text, at)
        if text[at : at + 1] == "}":
            return value, at + 1
        key = _TEXT.match(text, at) or _WORD.match(text, at)
        if key is None:
            raise ValueError(f"no name at character {at}: {text[at : at + 20]!r}")
        at = _gap(text, key.end())
        if text[at : at + 1] not in (":", "："):
            raise ValueError(f"no colon at character {at}: {text[at : at + 20]!r}")
        value[_string(key) if key.re is _TEXT else key[0]], at = _loose(text, _gap(text, at + 1), depth + 1)
        at = _comma(text, at, "}")


def _list(text: str, at: int, closing: str, depth: int) -> tuple[list[Any], int]:
    value: list[Any] = []
    while True:
        at = _gap(text, at)
        if text[at : at + 1] == closing:
            return value, at + 1
        item, at = _loose(text, at, depth + 1)
        value.append(item)
        at = _comma(text, at, closing)


def _comma(text: str, at: int, closing: str) -> int:
    """Behind the comma, or at the closing bracket."""
    at = _gap(text, at)
    if text[at : at + 1] in (",", "，"):
        return at + 1
    if text[at : at + 1] == closing:
        return at
    raise ValueError(f"no comma at character {at}: {text[at : at + 20]!r}")


def read_object(written: Any) -> tuple[dict[str, Any] | None, str, tuple[str, ...]]:
    """Arguments as an object, "" and the repairs; or None, what is wrong, and none. Nothing written is an empty object.

    A second object behind the first has two meanings, and is an error; an empty one before it has none.
    """
    repairs: list[str] = []
    for _ in range(4):
        if not isinstance(written, str):
            break
        text = written.strip()
        if fenced := _FENCED.fullmatch(text) or _HEAD.fullmatch(text):
            text = fenced[1].strip()
            repairs.append(FENCE)
        if not text:
            return {}, "", tuple(repairs)
        text = _UNQUOTED.sub(r'"\g<0>"', text)
        try:
            written, end, loose = read_value(text)
        except ValueError as error:
            return None, f"not JSON: {error}", ()
        repairs += loose
        behind = text[end:].strip()
        if behind:
            repairs.append(BEHIND)
        if "{" in behind and written != {}:
            return None, "more than one JSON object", ()
        if "{" in behind:
            written = behind
        elif isinstance(written, str):
            repairs.append(TWICE)
    if written is None:
        return {}, "", tuple(repairs)
    if not isinstance(written, dict):
        return None, "the arguments must be a JSON object", ()
    return written, "", tuple(dict.fromkeys(repairs))
