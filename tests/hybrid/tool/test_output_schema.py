"""The schema of a tool's data: differences inside of lists and objects, and their messages."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

import pytest
from click.testing import CliRunner
from pydantic import BaseModel, with_config
from typing_extensions import TypedDict

from hybrid.cli import cli
from hybrid.core.types import Corners
from hybrid.plugins.registry import load
from hybrid.tool.output_schema import data_mismatch, describe_kind, inner_object
from hybrid.tool.outputs import schema_of


class Row(TypedDict):
    label: str | None
    box_px: Corners
    depth_m: NotRequired[float]


class Tree(BaseModel):
    name: str
    parts: list[Tree] = []


@with_config(extra="forbid")
class Data(TypedDict):
    rows: list[Row]
    first: Row | None
    side: Literal["left", "right"] | None
    counts: dict[str, int]
    pairs: dict[str, tuple[float, float]]
    numbers: list[list[int]]
    pair: tuple[int, str]
    tree: NotRequired[Tree]


SCHEMA: dict[str, Any] = schema_of(Data)
ROW = {"label": "A", "box_px": [0, 0.5, 2, 3]}
GOOD: dict[str, Any] = {
    "rows": [ROW, {**ROW, "label": None, "depth_m": 1.5}],
    "first": None,
    "side": "left",
    "counts": {"dog": 2},
    "pairs": {"a": [1, 2]},
    "numbers": [[1, 2], []],
    "pair": [1, "a"],
}


@pytest.mark.parametrize("change", [{}, {"first": ROW}, {"side": None}, {"rows": [], "counts": {}, "numbers": []}])
def test_data_of_the_schema_fit_it(change: dict[str, Any]) -> None:
    assert data_mismatch(SCHEMA, GOOD | change) is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"rows": [ROW, {**ROW, "lable": "B"}]}, "'rows[1].lable' is not in the output's schema (did you mean 'label'"),
        ({"rows": [{"lable": "A", "box_px": [0, 0, 1, 1]}]}, "lacks the value 'rows[0].label' of its schema (did"),
        (
            {"rows": [{**ROW, "box_px": [0, 0, 1]}]},
            "'rows[0].box_px' is [0, 0, 1], but its schema requires list of 4 num",
        ),
        ({"rows": [{**ROW, "box_px": [0, 0, 1, "1"]}]}, "'rows[0].box_px[3]' is '1', but its schema requires number"),
        ({"rows": ROW}, "'rows' is {'label': 'A', 'box_px': [0, 0.5, 2, 3]}, but its schema requires list of objects"),
        ({"first": {"label": "A"}}, "lacks the value 'first.box_px' of its schema"),
        ({"first": [ROW]}, "but its schema requires object or null"),
        ({"side": "up"}, "'side' is 'up', but its schema requires left | right or null"),
        ({"counts": {"dog": 1.5}}, "'counts.dog' is 1.5, but its schema requires integer"),
        ({"counts": [1]}, "'counts' is [1], but its schema requires integers by name"),
        ({"pairs": {"a": [1]}}, "'pairs.a' is [1], but its schema requires list of 2 numbers"),
        ({"numbers": [[1], [None]]}, "'numbers[1][0]' is None, but its schema requires integer"),
        ({"pair": ["a", 1]}, "'pair[0]' is 'a', but its schema requires integer"),
        ({"tree": {"name": "a", "parts": [{"name": 1}]}}, "'tree.parts[0].name' is 1, but its schema requires string"),
    ],
)
def test_a_mismatch_is_named_where_it_is(change: dict[str, Any], fault: str) -> None:
    assert fault in str(data_mismatch(SCHEMA, GOOD | change))


def test_a_list_shorter_than_its_places_is_compared_as_far_as_it_goes() -> None:
    schema = {"properties": {"pair": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]}}}
    assert data_mismatch(schema, {"pair": [1]}) is None
    assert data_mismatch(schema, {"pair": [1, 2]}) == "the value 'pair[1]' is 2, but its schema requires string"


def test_types_read_as_words() -> None:
    kinds = {name: describe_kind(node, SCHEMA) for name, node in SCHEMA["properties"].items()}
    assert kinds == {
        "rows": "list of objects",
        "first": "object or null",
        "side": "left | right or null",
        "counts": "integers by name",
        "pairs": "lists of 2 numbers by name",
        "numbers": "list of lists of integers",
        "pair": "list of integer, string",
        "tree": "object",
    }
    assert list((inner_object(SCHEMA["properties"]["rows"], SCHEMA) or {})["properties"]) == [*ROW, "depth_m"]
    assert inner_object(SCHEMA["properties"]["counts"], SCHEMA) is None


def test_a_type_that_holds_itself_has_an_end() -> None:
    schema = {"$defs": {"Json": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/Json"}}]}}}
    node = {"$ref": "#/$defs/Json"}
    assert describe_kind(node, schema) == "Json"
    assert inner_object(node, schema) is None


def test_show_lists_the_values_of_a_tool_and_of_its_objects() -> None:
    output = CliRunner().invoke(cli, ["tools", "show", "depth"]).output
    assert "\n  points       list of objects\n      label        string or null\n" in output
    assert "\n      depth_m      number, metres, optional: from networks" in output
    assert "\n  nearer_index integer or null: index of the nearest point" in output


def test_show_ends_for_objects_that_hold_their_own_kind() -> None:
    from hybrid.cli._tool_card import _values

    lines = list(_values(SCHEMA, SCHEMA, ""))
    assert [line.split()[0] for line in lines[-3:]] == ["tree", "name", "parts"]


@pytest.mark.parametrize("name", ["detection", "relation"])
def test_tools_that_read_detections_name_the_same_box(name: str) -> None:
    output = load("tools", name).output or {}
    assert list(output["$defs"]["DetectedBox"]["properties"]) == ["name", "score_0_1", "box_px"]  # type: ignore[index, call-overload]
