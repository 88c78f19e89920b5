"""Reads the tool calls that models write in the text of a reply: one row of `dialects.toml` per dialect.

    found = read('<tool_call>{"name": "crop", "arguments": {"image": "img:1"}}</tool_call>', tools, messages)
    found.calls, found.rest, found.unreadable       # crop(image="img:1"), "", None

Every reader takes time linear in the length of the reply. Thoughts and quotations are not read.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from heapq import merge
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from hybrid.core.messages import Message, ToolCall, ToolMessage, UnreadableCall, UserMessage, replace_surrogates
from hybrid.core.thinking import thoughts
from hybrid.models.call_forms import (
    FORMS,
    MAX_CALLS,
    UNCLOSED,
    AnswerError,
    RawCall,
    Typed,
    named_at,
    names_in_objects,
    pattern,
)
from hybrid.models.literals import read_object, read_value, without_entities
from hybrid.models.toolspec import argument_schemas, tool_named
from hybrid.tool import Tool

MAX_READ = 1_000_000  # Maximum characters of a reply that are searched for calls; this takes half a second.
MAX_ERRORS = 8  # Maximum number of unreadable calls per reply; reading stops there.
MAX_ANSWERS = 32  # Maximum number of objects per reply that give an answer and might have been calls.
CUT = "the reply ended inside the call, at the token limit"
# Keys of images and positions that models write for any tool.
PLACE_KEYS = ("image", "images", "bbox", "bbox_2d", "box", "point", "point_2d", "x0", "x")
SHOWN = 400  # Characters of an unreadable call that are shown.


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to write calls, recognised by its mark."""

    name: str
    mark: re.Pattern[str]  # Matches the beginning of a call; the group `name`, if any, matches the tool's name.
    form: str  # Key in `FORMS` of the function that reads this form.
    has: tuple[str, ...]  # Lower-case substrings: every such call contains one. A fast test before the regex.
    sign: str = ""  # Text that occurs in a reply only because of a call.
    parser: str = ""  # The value of vLLM's `--tool-call-parser` for this dialect.
    sure: bool = True  # Whether the mark alone identifies a call; if not, an offered tool must be named.


@dataclass(frozen=True, slots=True)
class ReadCalls:
    """The calls of a reply, its text without them, and a part that looks like a call but cannot be read."""

    calls: tuple[ToolCall, ...] = ()
    rest: str = ""
    unreadable: UnreadableCall | None = None


@cache
def _data() -> tuple[tuple[Dialect, ...], Mapping[str, re.Pattern[str]]]:
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    rows = (row | {"mark": pattern(row["mark"]), "has": tuple(row["has"])} for row in data["dialect"])
    return tuple(Dialect(**row) for row in rows), {
        name: pattern(template) for name, template in data["pattern"].items()
    }


def table() -> tuple[Dialect, ...]:
    """Return the rows of `dialects.toml`."""
    return _data()[0]


def _at(name: str) -> re.Pattern[str]:
    return _data()[1][name]


def remedy(dialect: str) -> str:
    """Return advice on unreadable calls of a dialect."""
    parser = next((row.parser for row in table() if row.name == dialect and row.parser), "NAME")
    return (
        f"start the server with a parser (vllm serve --enable-auto-tool-choice --tool-call-parser {parser}), or run "
        "with --tool-calling text"
    )


_JOINTS = re.compile(r"[\s_-]")


@cache
def _signs() -> tuple[Mapping[str, Dialect], re.Pattern[str]]:
    signs = {_JOINTS.sub("", row.sign).lower(): row for row in table() if row.sign}
    alternatives = "|".join(map(re.escape, sorted((row.sign for row in signs.values()), key=len, reverse=True)))
    # Other spellings count only at the beginning of a line or a sentence: `[args]` occurs in many usage texts.
    return signs, re.compile(
        rf"{alternatives}|(?:^[ \t]{{0,20}}|(?<=[.:!?]\s))(?i:{alternatives.replace('_', '[_ -]?')})", re.MULTILINE
    )


# A reply that contains neither a match of this pattern nor the name of a tool contains no call.
_MAY_CALL = re.compile(r"""[<✿]|\[TOOL_CALLS\]|\[ARGS\]|functools|to=functions|["']tool["']""")
_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "「": "」", "„": "“"}


def read(
    text: str,
    tools: Sequence[Tool],
    messages: Sequence[Message] = (),
    *,
    turn: int = 0,
    cut: bool = False,
    is_text_protocol: bool = False,
) -> ReadCalls:
    """Read the calls in a reply to which tools were offered.

    Args:
        text: the reply.
        tools: the offered tools; if there are none, nothing is read.
        messages: the conversation so far: text repeated from a question or a tool's output is not a call.
        turn: the model's turn, from 0; ids of calls contain it.
        cut: whether the reply ended at a limit of tokens.
        is_text_protocol: whether the prompt asked for calls as text: then calls of tools that were not offered count,
            too.
    """
    lower_text = text.lower().replace(" ", "_").replace("-", "_")
    if not tools or not (_MAY_CALL.search(text) or any(tool.card.name in lower_text for tool in tools)):
        return ReadCalls((), text)
    plain_text = without_entities(text) if _at("escaped_mark").search(text) else text
    reading = _Reading(plain_text[:MAX_READ], tools, messages, turn, cut, is_text_protocol).read_calls()
    return replace(reading, rest=reading.rest + plain_text[MAX_READ:] if reading.calls else text)


class _Reading:
    """Reads one reply: finds the spans of calls, and hidden spans without calls, such as quotations."""

    def __init__(
        self,
        text: str,
        tools: Sequence[Tool],
        messages: Sequence[Message],
        turn: int,
        cut: bool,
        is_text_protocol: bool,
    ) -> None:
        self._text, self._tools, self._messages = text, tools, messages
        self._turn, self._cut, self._asked = turn, cut, is_text_protocol
        self._hidden: list[tuple[int, int]] = []
        alone = text.strip() if text.lstrip().startswith("`") else ""  # Code that is the full reply is not a quotation.
        # If the backticks on a line are unbalanced, text between two of them need not be a quotation.
        lines = text.split("\n")
        begins, odd = [0, *accumulate(len(line) + 1 for line in lines)], [line.count("`") % 2 for line in lines]
        quotations = (
            (quotation, odd[bisect_right(begins, quotation.start()) - 1]) for quotation in _at("quoted").finditer(text)
        )
        paired = (quotation for quotation, is_odd in quotations if quotation[0][0] != "`" or not is_odd)
        quoted = (match.span() for match in paired if match[0] != alone)
        for span in merge(thoughts(text), quoted):
            if not self._hidden or span[0] >= self._hidden[-1][1]:
                self._hidden.append(span)

    def read_calls(self) -> ReadCalls:
        calls, spans, wrong = list[ToolCall](), list[tuple[int, int]](), list[tuple[int, Dialect, str]]()
        at = answers = 0
        low = self._text.lower()
        rows = ((place, row) for place, row in enumerate(table()) if any(hint in low for hint in row.has))
        for start, place, mark in merge(*(_marks(place, row, self._text) for place, row in rows)):
            row = table()[place]
            if start < at or self._is_hidden(start) or not (row.sure or self._is_meant(mark, row)):
                continue
            try:
                end, raw_calls = FORMS[row.form](self._text, mark)
                new_calls = self._calls(raw_calls, row, len(calls))
            except (ValueError, RecursionError) as error:
                if isinstance(error, AnswerError) and not row.sure and answers < MAX_ANSWERS:
                    # Count objects that only give an answer, because each may extend to the end of the reply.
                    answers += 1
                    continue
                wrong.append((start, row, str(error)))
                if len(wrong) == MAX_ERRORS:
                    break
                continue
            lead_in = _at("before").search(self._text, max(at, start - 200), start)
            begin = lead_in.start() if lead_in else start
            after = lead_out.end() if (lead_out := _at("after").match(self._text, end)) else end
            closing = _PAIRS.get(self._text[begin - 1 : begin])
            in_marks = closing is not None and self._text.startswith(closing, after)
            is_example = not row.sure and _at("example").search(self._text, max(at, begin - 200), begin)
            # Hide a span that is quoted, given as an example or repeated from the model's input.
            if in_marks or is_example or _at("ignored").sub("", self._text[start:end]) in self._earlier_text:
                insort(self._hidden, (begin, after))
                at = after
                continue
            at, calls = after, calls + new_calls
            if _at("result").match(self._text, after):
                # The model made up the tool's result, and the text after the result depends on it.
                spans.append((begin, len(self._text)))
                break
            spans.append((begin, at))
            if len(calls) > MAX_CALLS:
                wrong.append((at, row, f"a reply may contain at most {MAX_CALLS} calls"))
                break
        edges = [0, *(edge for span in spans for edge in span), len(self._text)]
        rest = "".join(self._text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
        unreadable = self._unreadable(spans, wrong)
        return ReadCalls(tuple(calls[:MAX_CALLS]), rest.strip() if spans else self._text, unreadable)

    def _is_hidden(self, at: int) -> bool:
        place = bisect_right(self._hidden, (at, len(self._text) + 1)) - 1
        return place >= 0 and at < self._hidden[place][1]

    def _is_meant(self, mark: re.Match[str], row: Dialect) -> bool:
        """Return whether an offered tool is named where a call would name it."""
        if row.form == "objects":
            place = bisect_left(self._naming, mark.end())
            if place == len(self._naming) or self._naming[place] >= mark.end() + SHOWN:
                return False
            # The name must be inside the object that begins at the mark, not in one after it.
            between = self._text[mark.end() : self._naming[place]].lstrip('"\\')
            return all(accumulate((character in "{[｛") - (character in "}]｝") for character in between))
        name = named_at(self._text, mark, row.form)
        return name is not None and tool_named(name, self._tools) is not None

    @cached_property
    def _naming(self) -> list[int]:
        """Positions where objects name an offered tool."""
        find_tool, places = cache(lambda name: tool_named(name, self._tools)), list[int]()
        for at, name, argument, is_ours in names_in_objects(self._text, is_text_protocol=self._asked):
            tool = find_tool(name)
            if is_ours or (tool and (argument is None or argument in {*PLACE_KEYS, *argument_schemas(tool.args)})):
                places.append(at)
        return places

    def _calls(self, raw_calls: Sequence[RawCall], row: Dialect, count: int) -> list[ToolCall]:
        if not (row.sure or self._asked or any(tool_named(name, self._tools) for name, *_ in raw_calls)):
            raise ValueError("there is no offered tool with that name")
        return [self._call(raw_call, row, count + number) for number, raw_call in enumerate(raw_calls)]

    def _call(self, raw_call: RawCall, row: Dialect, number: int) -> ToolCall:
        name, value, repairs = raw_call
        args, error, more = read_object(value)
        if args is None or (self._cut and UNCLOSED in repairs):
            raise ValueError(error or CUT)
        tool = tool_named(name, self._tools)
        schemas = argument_schemas(tool.args) if tool else {}
        typed = {key: _typed(item, schemas.get(key, {})) for key, item in args.items()}
        # Nine letters and digits: some servers accept no other id.
        identity = f"text{self._turn % 100:02d}{number % 1000:03d}"
        return ToolCall(
            identity, tool.card.name if tool else name, typed, row.name, tuple(dict.fromkeys(repairs + more))
        )

    @cached_property
    def _earlier_text(self) -> str:
        texts = (message.text for message in self._messages if isinstance(message, UserMessage | ToolMessage))
        text = "\n".join(texts)
        return _at("ignored").sub("", text + (without_entities(text) if "&" in text else ""))

    def _unreadable(
        self, spans: Sequence[tuple[int, int]], wrong: Sequence[tuple[int, Dialect, str]]
    ) -> UnreadableCall | None:
        """Return the first mark or sign of a call outside the calls that were read."""
        rows, signs = _signs()
        seen = (
            (sign.start(), rows[_JOINTS.sub("", sign[0]).lower()], "its form is unknown")
            for sign in islice(signs.finditer(self._text), MAX_CALLS + MAX_ERRORS)
        )
        for start, row, error in (*wrong, *seen):
            place = bisect_right(spans, (start, len(self._text) + 1)) - 1
            excerpt = self._text[start : start + SHOWN]
            gap = self._text[start : spans[place + 1][0]] if place + 1 < len(spans) else "{"
            # A mark shortly before a call, with no brace in between, is an unknown part of that call.
            inside = (place >= 0 and start < spans[place][1]) or (len(gap) < SHOWN and "{" not in gap)
            if (
                not inside
                and not self._is_hidden(start)
                and _at("ignored").sub("", excerpt[:60]) not in self._earlier_text
            ):
                return UnreadableCall(row.name, replace_surrogates(excerpt), CUT if self._cut else error)
        return None


def _marks(place: int, row: Dialect, text: str) -> Iterator[tuple[int, int, re.Match[str]]]:
    return ((mark.start(), place, mark) for mark in row.mark.finditer(text))


def _typed(value: Any, schema: Mapping[str, Any]) -> Any:
    """Convert each `Typed` text in a value to the type in its argument's schema."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {key: _typed(item, properties.get(key, {})) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item, schema.get("items", {})) for item in value]
    if type(value) is not Typed:
        return value
    with suppress(ValueError):
        if "string" not in {kind.get("type") for kind in (schema, *schema.get("anyOf", ()))}:
            read, end, _ = read_value(value)
            return str(value) if value[end:].strip() else read
    return str(value)
