"""Recorded tool calls that answer a rule's calls: when two calls of a tool ask the same.

as_asked(call, {"labels": ["A", "B"]})         # the finding of the recorded call, or None
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from hybrid.answers.places import overlap
from hybrid.errors import NoBackend, ToolError, UsageError
from hybrid.registry import load
from hybrid.scoring.traces import TracedCall
from hybrid.tool import Tool
from hybrid.tool.rules import CallTool
from hybrid.types import Box, Finding, Json

# Overlap over union from which two boxes are one: a model writes coordinates with few digits.
SAME_BOX = 0.75

# The argument of a tool that looks for drawn letters, by their letters.
LABELS = "labels"

# The argument of a tool that looks for things, by their names: its findings carry these names.
NAMES = "names"


def recorded_tools(tools: Iterable[str], calls: Sequence[TracedCall]) -> CallTool:
    """Tools that return the findings of recorded calls, the last first; any other call raises `NoBackend`."""
    useful = [call for call in reversed(calls) if call.finding is not None and call.tool in tools]

    async def call(name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        for one in useful:
            if one.tool == name and one.images == tuple(images) and (finding := as_asked(one, args)) is not None:
                return finding
        raise NoBackend(f"{name} was not asked this")

    return call


def as_asked(call: TracedCall, args: Mapping[str, Json]) -> Finding | None:
    """The finding of a call as one about these arguments; None where the call asked something else.

    What the rule states must be the same, apart from case and spaces of words. What it leaves to the tool may have been
    chosen by the model, where that only says how to look: numbers, and where the things with these letters are.

    - `labels`: the same letters, wherever the call gives them (a list, or the labels of points and boxes), or none.
    - points that the rule does not give: any.
    - boxes: as many, each overlapping its own by `SAME_BOX`; the finding's text uses the rule's labels.
    - `names`: the rule's are among the call's.
    - words, a region, and boxes without letters that the rule does not give: none.
    """
    if call.finding is None or dict(call.args) == dict(args):
        return call.finding
    asked, given = _parsed(call.tool, args), _parsed(call.tool, call.args)
    if asked is None or given is None:
        return None
    boxes = _boxes(asked)
    renamed = _renamed(boxes, _boxes(given)) if boxes else {}
    if renamed is None:
        return None
    if not boxes:
        # The call is about the same letters, or leaves them to the tool.
        wanted, named = _letters(asked), _letters({**given, LABELS: ()})
        field, labels = _tool(call.tool).args.model_fields.get(LABELS), tuple(given.get(LABELS) or ())
        default = None if field is None else field.get_default(call_default_factory=True)
        named |= set() if labels == tuple(default or ()) else set(labels)
        if (named and named != wanted) if wanted else _boxes(given):
            return None
    if any(not _same(key, asked[key], given.get(key), stated=key in args) for key in asked):
        return None
    return replace(call.finding, data=_with_labels(call.finding.data, renamed)) if renamed else call.finding


def _parsed(name: str, args: Mapping[str, Json]) -> Mapping[str, Any] | None:
    """Arguments with every default filled in; None where the tool does not take them, or is not there any more."""
    try:
        dumped: dict[str, Any] = _tool(name).parse(args).model_dump(mode="json")
    except (ToolError, UsageError):
        return None
    return dumped


@cache
def _tool(name: str) -> Tool:
    tool: Tool = load("tools", name)
    return tool


def _same(key: str, asked: Any, given: Any, *, stated: bool) -> bool:
    """Whether one argument of two calls says the same; letters, points and boxes are compared elsewhere."""
    if key == LABELS or _are(_is_region, asked) or _are(_is_region, given):
        return True
    if any(_is_point(value) or _are(_is_point, value) for value in (asked, given)):
        return not stated or bool(asked == given)
    if key == NAMES and isinstance(asked, Sequence) and isinstance(given, Sequence):
        return {_plain(name) for name in asked} <= {_plain(name) for name in given}
    if isinstance(given, int | float) and not stated and not isinstance(given, bool):
        return True
    return bool(_plain(asked) == _plain(given))


def _plain(value: Any) -> Any:
    """Words without case and outer or double spaces, also in a list."""
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _is_point(value: Any) -> bool:
    return isinstance(value, Mapping) and "x" in value and "y" in value


def _is_region(value: Any) -> bool:
    """One box of its own, which a list of boxes is not: the part of the picture to look at."""
    return isinstance(value, Mapping) and "x0" in value


def _are(kind: Callable[[Any], bool], value: Any) -> bool:
    """Whether a value is a list of such things, at least one."""
    return isinstance(value, list | tuple) and bool(value) and all(map(kind, value))


def _listed(args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The points and boxes of a call, in order."""
    return [
        one
        for value in args.values()
        for one in (value if isinstance(value, list | tuple) else [value])
        if _is_point(one) or (_is_region(one) and isinstance(value, list | tuple))
    ]


def _boxes(args: Mapping[str, Any]) -> list[tuple[str, Box]]:
    """The listed boxes of a call, each with the name that a tool gives it: its label, else its number."""
    boxes = (one for one in _listed(args) if _is_region(one))
    named = ((str(one.get("label") or number), one) for number, one in enumerate(boxes, 1))
    return [(name, Box(*(one[end] for end in ("x0", "y0", "x1", "y1")))) for name, one in named]


def _letters(args: Mapping[str, Any]) -> set[str]:
    return {*(args.get(LABELS) or ()), *(str(one["label"]) for one in _listed(args) if one.get("label"))}


def _renamed(asked: Sequence[tuple[str, Box]], given: Sequence[tuple[str, Box]]) -> dict[str, str] | None:
    """By the name of each box of a call the name that the rule has for it; None where the boxes are others.

    Boxes are paired in order of how much they overlap, so that of two that lie on each other each finds its own.
    """
    if len(asked) != len(given):
        return None
    pairs = sorted(
        ((overlap(a, b), -abs(i - j), i, j) for i, (_, a) in enumerate(asked) for j, (_, b) in enumerate(given)),
        reverse=True,
    )
    matched: dict[int, int] = {}
    for share, _, i, j in pairs:
        if share >= SAME_BOX and i not in matched.values() and j not in matched:
            matched[j] = i
    if len(matched) < len(asked) or len({name for name, _ in given}) < len(given):
        return None
    return {given[j][0]: asked[i][0] for j, i in matched.items()}


def _with_labels(data: Any, renamed: Mapping[str, str]) -> Any:
    """The data with every text that is one of the names replaced by its new name."""
    if isinstance(data, Mapping):
        return {key: _with_labels(value, renamed) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_with_labels(value, renamed) for value in data]
    return renamed.get(data, data) if isinstance(data, str) else data
