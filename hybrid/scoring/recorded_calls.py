"""Matches a rule's tool calls to recorded calls with equivalent arguments.

as_asked(call, {"labels": ["A", "B"]})         # the output of the recorded call, or None
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from hybrid.answers.places import overlap
from hybrid.core.errors import NoBackend, ToolError, UsageError
from hybrid.core.types import Box, Finding, Json
from hybrid.plugins.registry import load
from hybrid.scoring.attempt_facts import TracedCall
from hybrid.solving.solver import AskTool
from hybrid.tool import Tool, json_of_args

if TYPE_CHECKING:
    from hybrid.tool import Args

# Minimum intersection over union of two boxes that count as the same box; a model writes coordinates with few digits.
SAME_BOX = 0.75

# The argument of tools that look for drawn letters.
LABELS = "labels"

# The argument of tools that look for named things; their output uses these names.
NAMES = "names"


def recorded_tools(calls: Sequence[TracedCall]) -> AskTool:
    """Return a caller that answers from recorded calls, preferring the latest; any other call raises `NoBackend`."""

    async def call(name: str, images: Sequence[str], args: Mapping[str, Json] | Args) -> Finding:
        fields = json_of_args(args)
        for recorded in reversed(calls):
            if (
                recorded.tool == name
                and recorded.images == tuple(images)
                and (finding := as_asked(recorded, fields)) is not None
            ):
                return finding
        raise NoBackend(f"{name} was not asked this")

    return call


def as_asked(call: TracedCall, args: Mapping[str, Json]) -> Finding | None:
    """Return the output of a call if the call matches these arguments; None otherwise.

    The arguments that the rule sets must be equal, apart from case and spaces. The model may also have set arguments
    that the rule leaves to the tool, but only those that affect where or how closely the tool examines the image:
    numbers, and the positions of lettered objects. If boxes match, the output has the rule's labels.

    - `labels`: the call has the same letters (in a list, or as labels of points and boxes), or none.
    - points that the rule does not set: the call may have any.
    - boxes: the call has the same number, and each overlaps its counterpart by at least `SAME_BOX`.
    - `names`: the call has all the rule's names.
    - words, a region, and boxes without letters: the call has none that the rule does not set.
    """
    if call.finding is None or dict(call.args) == dict(args):
        return call.finding
    rule_args, call_args = _parsed(call.tool, args), _parsed(call.tool, call.args)
    if rule_args is None or call_args is None:
        return None
    boxes = _boxes(rule_args)
    renamed = _renamed(boxes, _boxes(call_args)) if boxes else {}
    if renamed is None:
        return None
    if not boxes:
        # The call must use the same letters, or leave them to the tool.
        rule_letters, call_letters = _letters(rule_args), _letters({**call_args, LABELS: ()})
        field, labels = _tool(call.tool).args.model_fields.get(LABELS), tuple(call_args.get(LABELS) or ())
        default = None if field is None else field.get_default(call_default_factory=True)
        call_letters |= set() if labels == tuple(default or ()) else set(labels)
        if (call_letters and call_letters != rule_letters) if rule_letters else _boxes(call_args):
            return None
    if any(not _same(key, rule_args[key], call_args.get(key), stated=key in args) for key in rule_args):
        return None
    return replace(call.finding, data=_with_labels(call.finding.data, renamed))


def _parsed(name: str, args: Mapping[str, Json]) -> Mapping[str, Any] | None:
    """Return arguments as JSON with defaults filled in; None if the tool rejects them or no longer exists."""
    try:
        dumped: dict[str, Any] = _tool(name).parse(args).model_dump(mode="json")
    except (ToolError, UsageError):
        return None
    return dumped


@cache
def _tool(name: str) -> Tool:
    tool: Tool = load("tools", name)
    return tool


def _same(key: str, rule_value: Any, call_value: Any, *, stated: bool) -> bool:
    """Return whether two calls agree in an argument; letters, points and boxes are compared elsewhere."""
    if key == LABELS or _are(_is_region, call_value):
        return True
    if any(_is_point(value) or _are(_is_point, value) for value in (rule_value, call_value)):
        return not stated or bool(rule_value == call_value)
    if key == NAMES and isinstance(rule_value, list) and isinstance(call_value, list):
        return {_plain(name) for name in rule_value} <= {_plain(name) for name in call_value}
    if isinstance(call_value, int | float) and not stated and not isinstance(call_value, bool):
        return True
    return bool(_plain(rule_value) == _plain(call_value))


def _plain(value: Any) -> Any:
    """Normalise case and spaces of words, also in a list."""
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _is_point(value: Any) -> bool:
    return isinstance(value, Mapping) and {"x", "y"} <= value.keys()


def _is_region(value: Any) -> bool:
    """Return whether a value is a single box, the part of the image to look at; a list of boxes is not."""
    return isinstance(value, Mapping) and "x0" in value


def _are(kind: Callable[[Any], bool], value: Any) -> bool:
    """Return whether a value is a non-empty list of items of this kind."""
    return isinstance(value, list) and bool(value) and all(map(kind, value))


def _list_shapes(args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the points and boxes of a call, in order."""
    return [
        item
        for value in args.values()
        for item in (value if isinstance(value, list) else [value])
        if _is_point(item) or _is_region(item)
    ]


def _boxes(args: Mapping[str, Any]) -> list[tuple[str, Box]]:
    """Return the listed boxes of a call, each with the name that a tool gives it: its label, else its number."""
    boxes = (box for box in _list_shapes(args) if _is_region(box))
    named_boxes = ((str(box.get("label") or number), box) for number, box in enumerate(boxes, 1))
    return [(name, Box(*(box[end] for end in ("x0", "y0", "x1", "y1")))) for name, box in named_boxes]


def _letters(args: Mapping[str, Any]) -> set[str]:
    return {*(args.get(LABELS) or ()), *(str(item["label"]) for item in _list_shapes(args) if item.get("label"))}


def _renamed(rule_boxes: Sequence[tuple[str, Box]], call_boxes: Sequence[tuple[str, Box]]) -> dict[str, str] | None:
    """Map the name of each box of a call to the rule's name; None if the boxes do not match.

    Pairs are formed in descending order of overlap, so overlapping boxes find their own counterparts.
    """
    if len(rule_boxes) != len(call_boxes):
        return None
    pairs = sorted(
        (
            (overlap(a, b), -abs(i - j), i, j)
            for i, (_, a) in enumerate(rule_boxes)
            for j, (_, b) in enumerate(call_boxes)
        ),
        reverse=True,
    )
    matched: dict[int, int] = {}
    for share, _, i, j in pairs:
        if share >= SAME_BOX and i not in matched.values() and j not in matched:
            matched[j] = i
    if len(matched) < len(rule_boxes) or len({name for name, _ in call_boxes}) < len(call_boxes):
        return None
    return {call_boxes[j][0]: rule_boxes[i][0] for j, i in matched.items()}


def _with_labels(data: Any, renamed: Mapping[str, str]) -> Any:
    """Return the data with every text that equals an old name replaced by the new name."""
    if isinstance(data, Mapping):
        return {key: _with_labels(value, renamed) for key, value in data.items()}
    if isinstance(data, list):
        return [_with_labels(value, renamed) for value in data]
    return renamed.get(data, data)
