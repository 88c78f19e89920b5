"""Schemas for models match the arguments that a tool accepts: calls are made only from the schema.

Bounds are read from the descriptions, as a model has to do. `CROSS_FIELD` has rules that involve several arguments.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from hybrid.core.errors import ToolError
from hybrid.models.toolspec import IMAGE, IMAGES, spec
from hybrid.plugins.registry import load, names
from hybrid.tool import Tool

ROOT = Path(__file__).resolve().parents[2]
TOOLS = names("tools")

NUMBER = r"-?\d+(?:\.\d+)?"
WORDS = re.compile(
    rf"(?:between (?P<over>{NUMBER}) and (?P<under>{NUMBER})|above (?P<above>{NUMBER})|below (?P<below>{NUMBER})"
    rf"|at least (?P<least>{NUMBER})|at most (?P<most>{NUMBER})|(?P<low>{NUMBER})(?: to (?P<high>{NUMBER}))?)"
    r"(?: entries| names)?"
)
# Arguments that exclude or need each other, as the card states in words.
CROSS_FIELD: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "crop": lambda args: (
        sum(key in args for key in ("box", "point", "grid")) <= 1 and ("share" not in args or "point" in args)
    ),
    "segmentation": lambda args: bool(args.get("points") or "box" in args) != ("words" in args),
}
# Largest number of items to draw for a list whose schema gives no upper limit.
LONG = 2


def bounds(node: Mapping[str, Any]) -> dict[str, float]:
    """Return limits in words at the end of a description: `low` and `high` are accepted, `over` and `under` not."""
    text = node.get("description", "")
    message = text.rpartition("(")[2].removesuffix(")") if text.endswith(")") else text
    results: dict[str, float] = {}
    for piece in message.split(", "):
        match = WORDS.fullmatch(piece)
        for key, value in match.groupdict().items() if match else ():
            if value is not None:
                kind = {"above": "over", "below": "under", "least": "low", "most": "high"}.get(key, key)
                results[kind] = float(value)
    if "low" in results and re.fullmatch(rf"{NUMBER}(?: entries| names)?", message.split(", ")[0]):
        results["high"] = results["low"]
    return results


def numbers(node: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    limits = bounds(node)
    low, high = limits.get("low", limits.get("over", 0)), limits.get("high", limits.get("under", 500))
    if node["type"] == "integer":
        return st.sampled_from([int(low), int(high)]) | st.integers(int(low), int(high))
    ends = [limits[key] for key in ("low", "high") if key in limits]
    inside = st.floats(low, high, exclude_min="over" in limits, exclude_max="under" in limits, allow_subnormal=False)
    return st.sampled_from(ends) | inside if ends else inside


def objects(node: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    fields = node["properties"]
    label = st.just({}) | (st.just({"label": "A"}) if "label" in fields else st.nothing())
    if "x0" in fields:
        sides = st.tuples(st.integers(0, 200), st.integers(201, 400))
        return st.builds(
            lambda x, y, name: {"x0": x[0], "y0": y[0], "x1": x[1], "y1": y[1], **name}, sides, sides, label
        )
    if "x" in fields:
        place = st.builds(lambda x, y, name: {"x": x, "y": y, **name}, st.floats(0, 500), st.floats(0, 500), label)
        return place | st.just({"label": "REF"})
    return filled(node)


def values(node: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Return values that fit the schema of one argument."""
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if node["type"] in ("number", "integer"):
        return numbers(node)
    if node["type"] == "array":
        limits = bounds(node)
        return st.lists(
            values(node["items"]), min_size=int(limits.get("low", 0)), max_size=int(limits.get("high", LONG))
        )
    if node["type"] == "object":
        return objects(node)
    assert node["type"] == "string"
    return st.text("abc de-É犬", min_size=1, max_size=16).filter(str.strip)


def filled(node: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with the required fields and some of the others."""
    required = node.get("required", [])
    by_value = {name: values(field) for name, field in node["properties"].items()}
    return st.fixed_dictionaries(
        {name: by_value[name] for name in required},
        optional={name: by_value[name] for name in by_value if name not in required},
    )


def offered_schema(name: str) -> Mapping[str, Any]:
    parameters: Mapping[str, Any] = spec(load("tools", name))["function"]["parameters"]
    return parameters


def own(name: str) -> dict[str, Any]:
    """Return the parameters without those that name images."""
    parameters = offered_schema(name)
    fields = {key: node for key, node in parameters["properties"].items() if key not in (IMAGE, IMAGES)}
    return {"properties": fields, "required": [key for key in parameters["required"] if key in fields]}


def calls(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return filled(own(name)).filter(CROSS_FIELD.get(name, lambda args: True))


def refused(tool: Tool, args: Mapping[str, Any]) -> bool:
    try:
        tool.parse(args)
    except ToolError:
        return True
    return False


def places(node: Mapping[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every nested schema, with its path; the first item stands for those of an array."""
    for key, field in node.get("properties", {}).items():
        yield (*path, key), field
        yield from places(field, (*path, key))
    if "items" in node:
        yield (*path, 0), node["items"]
        yield from places(node["items"], (*path, 0))


def invalid_values(node: Mapping[str, Any]) -> list[Any]:
    """Return values that the schema of one argument, with its words, does not allow."""
    limits, out = bounds(node), [[[{}]]]
    if "enum" in node:
        out.append("something else")
    if node["type"] in ("number", "integer"):
        out += [limits[key] - 1 for key in ("low",) if key in limits] + [
            limits[key] + 1 for key in ("high",) if key in limits
        ]
        out += [limits[key] for key in ("over", "under") if key in limits] + ["much"]
        out += [0.5] if node["type"] == "integer" else []
    if node["type"] == "array" and "high" in limits:
        out += [["A"] * (int(limits["high"]) + 1), ["A"] * (int(limits["low"]) - 1)]
    if node["type"] == "object":
        out.append({"x0": 1})
    return out


def with_value(args: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """Return the arguments with another value at one position."""
    if not path:
        return value
    if isinstance(args, list):
        return [with_value(args[0], path[1:], value), *args[1:]]
    return {**args, path[0]: with_value(args[path[0]], path[1:], value)}


def example(node: Mapping[str, Any], key: str = "") -> Any:
    """Return one value with everything that the schema names."""
    if "enum" in node:
        return node["enum"][0]
    if node["type"] in ("number", "integer"):
        limits = bounds(node)
        low, high = limits.get("low", limits.get("over", 0)), limits.get("high", limits.get("under", 500))
        kind = int if node["type"] == "integer" else float
        return {"x0": 1, "y0": 1, "x1": 9, "y1": 9, "x": 3, "y": 4}.get(key, kind((low + high) / 2))
    if node["type"] == "array":
        return [example(node["items"])] * int(bounds(node).get("low", 1))
    if node["type"] == "object":
        return {name: example(field, name) for name, field in node["properties"].items()}
    return "A"


def alone(name: str, field: str) -> dict[str, Any]:
    """Return calls with one argument besides the required ones, with all properties that its schema names."""
    fields, needed = own(name)["properties"], {"share": ["point"], "away": ["points"]}
    keys = {*own(name)["required"], field, *needed.get(field, [])}
    return {key: example(node) for key, node in fields.items() if key in keys}


FIELDS = [(name, field) for name in TOOLS for field in own(name)["properties"]]


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_what_does_not_fit_the_schema_is_refused(name: str, field: str) -> None:
    tool, args = load("tools", name), alone(name, field)
    for path, node in places(own(name)):
        if path[0] == field:
            for value in invalid_values(node):
                assert refused(tool, with_value(args, path, value)), (path, value)


@pytest.mark.parametrize("name", TOOLS)
def test_what_is_missing_or_unknown_is_refused(name: str) -> None:
    tool = load("tools", name)
    required = own(name)["required"]
    by_key = {key: example(own(name)["properties"][key]) for key in required}
    assert refused(tool, {**by_key, "nothing_of_the_kind": 1})
    assert all(refused(tool, {key: value for key, value in by_key.items() if key != gone}) for gone in required)


def documented_calls() -> Iterator[tuple[str, str]]:
    """Yield every call of a tool in the documents and in the docstrings: its name and the JSON of its arguments."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in [*pages, *sorted((ROOT / "tools").rglob("*.py")), *sorted((ROOT / "hybrid" / "cli").glob("*.py"))]:
        text = path.read_text().replace("\\\n", " ")
        for match in re.finditer(r"tools run (\w+)[^\n`]*?--args ('[^'\n]*')", text):
            # Tools that a page makes itself; a separate test runs their calls.
            if match[1] not in ("tally",):
                yield match[1], shlex.split(match[2])[0]
        for match in re.finditer(r"--args '(\w+)=(\{[^'\n]*\})'", text):
            yield match[1], match[2]


WRITTEN = sorted(set(documented_calls()))


def test_the_documents_hold_calls() -> None:
    assert len(WRITTEN) >= 18
