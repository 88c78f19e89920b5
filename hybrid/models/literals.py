"""Reads JSON as models write it: with single quotes, Python literals, comments, trailing commas, or text after it.

    read_object("{'zoom': 3,}</tool_call>")  ->  {"zoom": 3}, "", ("loose JSON", "text behind")

Only unambiguous text is read, in linear time. Nothing is completed: a value that ends early is an error.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

from hybrid.core.messages import MAX_CHARACTERS, MAX_DEPTH, replace_surrogates_in

# Largest number of characters in which a value may be written: with escapes and blanks it can be longer than the
# `MAX_CHARACTERS` of the value itself.
MAX_WRITTEN = 2 * MAX_CHARACTERS

LOOSE, BEHIND, FENCE, TWICE = "loose JSON", "text behind", "fence", "encoded twice"  # Kinds of repairs.

_GAP = re.compile(r"(?:[\s\u200b\u2060\ufeff]+|&nbsp;|//[^\n]*|#[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
# HTML entities of quotation marks, escaped once or more often.
_HTML = r"&(?:amp;)*(?:quot|apos|#0*34|#0*39|#x0*22|#x0*27);"
# Quotation marks that begin a text, including those escaped in HTML; used in the patterns of calls.
QUOTES = rf"""(?:\\{{0,3}}["'“”„«»‘’‚`「」＂]|{_HTML}|&(?:amp;)*[lrb]dquo;)"""
_TEXT = re.compile(
    r'"""(?P<triple>.*?)"""|'
    r""""(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|'(?P<single>[^'\\]*(?:\\.[^'\\]*)*)'"""
    r"""|<\|"\|>(?P<token>.*?)<\|"\|>|<escape>(?P<escape>.*?)<escape>"""
    r"""|[“”„＂](?P<curly>[^“”„＂]*?)(?:[“”＂]|"(?=\s*[:,}\]：，]))|[‘’‚](?P<bent>[^‘’‚]*)[‘’]"""
    r"""|«(?P<angular>[^«»]*)»|「(?P<corner>[^「」]*)」|`(?P<tick>[^`\n]+)`(?!`)|\\"(?P<escaped>.*?)(?<!\\)\\\""""
    rf"""|(?P<mark>{_HTML})(?P<html>.*?)(?<!\\)(?P=mark)|&(?:amp;)*[lb]dquo;(?P<bowed>.*?)&(?:amp;)*rdquo;""",
    re.DOTALL,
)
_ESCAPED = re.compile(r'\\(?:x(?P<x>[0-9a-fA-F]{2})|U(?P<U>[0-9a-fA-F]{8})|.)|"', re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[^\W\d][\w.-]*")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_IMAGE = re.compile(r"img:[1-9]\d{0,5}(?:\.[1-9]\d{0,5}){0,9}(?![\w:])")  # The name of an image, without its quotes.
# A prefix of a Python string, which does not change the value here.
_PREFIX = re.compile(r"""[rRbBuUfF]{1,2}(?=(?P<quote>["'])[^"'\\{}\n]*(?P=quote))""")
_MADE = re.compile(r"(?:[^\W\d]\w{0,99}\.)*(?P<name>[^\W\d]\w{0,99})[(（]")
# Python constructors that are evaluated; none of them runs code.
_KINDS: tuple[Callable[..., Any], ...] = (dict, list, str, int, float)
_MAKERS = {kind.__name__: kind for kind in _KINDS} | {"tuple": list, "set": list}
# Argument types that each constructor accepts. `list("text")` and `str([...])` are not evaluated: nested in each other,
# they would multiply the size by five at every level.
_CONVERTED: dict[str, tuple[type, ...]] = {"dict": (dict, list), "list": (list,), "tuple": (list,), "set": (list,)}
_SCALARS = (str, int, float)
_ENTITY = re.compile(r"&(?:amp;)*(?:quot|apos|lt|gt|amp|nbsp|[lr][sd]quo|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_FENCED = re.compile(r"```[\w-]*(.*)```[^`]*", re.DOTALL)
# JSON inside a JSON string that has lost its quotation marks.
_UNQUOTED = re.compile(r'\A[{\[]\s*\\".*', re.DOTALL)
_HEAD = re.compile(r"(?:```)?json\s+([{\[\"].*)", re.DOTALL)  # The head of a code fence whose backticks are lost.


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


_STRICT = json.JSONDecoder(strict=False, parse_constant=_refuse)


def read_value(text: str, at: int = 0) -> tuple[Any, int, tuple[str, ...]]:
    """Read the value at position `at`; return the value, its end, and the repairs made. Raises `ValueError`.

    At most `MAX_WRITTEN` characters are read.
    """
    # No call may be longer. Without this limit, each of hundreds of values in a reply could be read to the reply's end.
    text = text[: at + MAX_WRITTEN]
    at = _gap(text, at)
    try:
        value, end = _STRICT.raw_decode(text, at)
        return replace_surrogates_in(value), end, ()
    except (ValueError, RecursionError) as error:
        try:
            value, end = _loose(text[: at + MAX_CHARACTERS], at, 1)
        except ValueError as cause:
            raise ValueError(f"{error if isinstance(error, ValueError) else cause}"[:200]) from None
    return replace_surrogates_in(value), end, (LOOSE,)


def _gap(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def sign_at(text: str, at: int) -> str:
    """Return the character at a position; a full-width character, as in Chinese text, is converted to ASCII."""
    sign = text[at : at + 1]
    return chr(ord(sign) - 0xFEE0) if "！" <= sign <= "～" else sign


def without_entities(text: str) -> str:
    """Unescape the HTML entities in a text, escaped once or twice."""
    return _ENTITY.sub(lambda entity: html.unescape(re.sub("&(?:amp;)+(?!$)", "&", entity[0])), text)


def _loose(text: str, at: int, depth: int) -> tuple[Any, int]:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    if closing := {"{": "}", "[": "]", "(": ")"}.get(opening := sign_at(text, at)):
        values, keywords, end = read_entries(text, at + 1, closing, depth)
        if values and (keywords or opening == "{"):
            raise ValueError(f"values with and without names at character {at}: {text[at : at + 20]!r}")
        if opening == "(" and len(values) == 1 and sign_at(text, end - 2) != ",":
            return values[0], end
        return keywords if opening == "{" else values, end
    if prefix := _PREFIX.match(text, at):
        at = prefix.end()
    if match := _TEXT.match(text, at):
        return _string(match), match.end()
    if match := _NUMBER.match(text, at):
        number = match[0].lstrip("+")
        return (float(number) if re.search("[.eE]", number) else int(number)), match.end()
    if match := _IMAGE.match(text, at):
        return match[0], match.end()
    if match := _MADE.match(text, at):
        return _construct(match["name"], *read_entries(text, match.end(), ")", depth))
    if (match := _WORD.match(text, at)) and match[0] in _WORDS:
        return _WORDS[match[0]], match.end()
    raise ValueError(f"no value at character {at}: {text[at : at + 20]!r}")


def _construct(name: str, values: list[Any], keywords: dict[str, Any], end: int) -> tuple[Any, int]:
    """Evaluate a Python constructor: `dict(x=1)`, `list([1])`, or an object of a class `Box(x=1)`."""
    if name not in _MAKERS and name[:1].isupper() and not values:
        return keywords, end
    if not all(isinstance(value, _CONVERTED.get(name, _SCALARS)) for value in values):
        raise ValueError(f"{name}(...) is not a value")
    try:
        result = _MAKERS[name](*values, **keywords)
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"{name}(...) is not a value") from error
    if isinstance(result, dict) and not all(isinstance(key, str) for key in result):
        raise ValueError(f"{name}(...) is not a JSON value")
    return result, end


def _string(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    if kind not in ("double", "single", "escaped", "html"):
        return match[kind]
    text = without_entities(match[kind]) if kind == "html" else match[kind]
    value: str = json.loads(f'"{_ESCAPED.sub(_as_json, text)}"', strict=False)
    return value


def _as_json(escaped: re.Match[str]) -> str:
    """Convert an escape sequence of Python, or a quotation mark, to its form in JSON."""
    if code := escaped["x"] or escaped["U"]:
        return json.dumps(chr(int(code, 16)))[1:-1]
    return {'"': '\\"', "\\'": "'"}.get(escaped[0], escaped[0])


def read_entries(text: str, at: int, closing: str, depth: int = 1) -> tuple[list[Any], dict[str, Any], int]:
    """Read values and named values; return them and the position after the closing bracket.

    Raises `ValueError` for other syntax.

    This is the syntax of objects, lists and call arguments: `"a": 1`, `a: 1`, `a=1`, `**{"a": 1}`, `1`.
    """
    values, keywords = list[Any](), dict[str, Any]()
    while sign_at(text, at := _gap(text, at)) != closing:
        if text.startswith("**", at):
            spread, at = _loose(text, _gap(text, at + 2), depth + 1)
            if not isinstance(spread, dict):
                raise ValueError(f"no names at character {at}")
            keywords |= spread
        elif closing != "]" and (key := _key(text, at)):
            keywords[key[0]], at = _loose(text, _gap(text, key[1]), depth + 1)
        else:
            value, at = _loose(text, at, depth + 1)
            values.append(value)
        at = _gap(text, at)
        if sign_at(text, at) == ",":
            at += 1
        elif sign_at(text, at) != closing and not (closing == ")" and _key(text, at)):
            raise ValueError(f"no comma at character {at}: {text[at : at + 20]!r}")
    return values, keywords, at + 1


def _key(text: str, at: int) -> tuple[str, int] | None:
    """Return the name at a position and the start of its value, or None."""
    key = _TEXT.match(text, at) or _WORD.match(text, at)
    if key is None or sign_at(text, end := _gap(text, key.end())) not in (":", "="):
        return None
    return _string(key) if key.re is _TEXT else key[0], end + 1


def _without_fence(source: str, repairs: list[str]) -> str:
    """Remove a code fence around a text, and record this repair. Raises `ValueError` if the text is too long."""
    if len(source) > MAX_WRITTEN:
        raise ValueError(f"more than {MAX_WRITTEN:,} characters")
    text = source.strip()
    if fenced := _FENCED.fullmatch(text) or _HEAD.fullmatch(text):
        text = fenced[1].strip()
        repairs.append(FENCE)
    return _UNQUOTED.sub(r'"\g<0>"', text)


def read_object(raw: Any) -> tuple[dict[str, Any] | None, str, tuple[str, ...]]:
    """Return the arguments as an object, "" and the repairs. If they cannot be read, return None, the error and ().

    Empty text gives an empty object. Two objects are an error, because it is unclear which one is meant; but an empty
    first object is ignored.
    """
    repairs: list[str] = []
    for _ in range(4):
        if not isinstance(raw, str):
            break
        try:
            text = _without_fence(raw, repairs)
            if not text:
                return {}, "", tuple(repairs)
            raw, end, loose = read_value(text)
        except ValueError as error:
            return None, f"not JSON: {error}", ()
        repairs += loose
        rest = text[end:].strip()
        if rest:
            repairs.append(BEHIND)
        if "{" in rest and raw != {}:
            return None, "more than one JSON object", ()
        if "{" in rest:
            raw = rest
        elif isinstance(raw, str):
            repairs.append(TWICE)
    if raw is None:
        return {}, "", tuple(repairs)
    if not isinstance(raw, dict):
        return None, "the arguments must be a JSON object", ()
    return raw, "", tuple(dict.fromkeys(repairs))
