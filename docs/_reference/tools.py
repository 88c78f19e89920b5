"""A page for each tool, from its card and the schema of its arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from _reference.markdown import Page, block, code, escaped, table
from hybrid.models.toolspec import IMAGE, IMAGES, spec
from hybrid.plugins.registry import load, names
from hybrid.running.permissions import crawled
from hybrid.tool import BackendCard, Need, Provenance, Tool
from hybrid.tool.output_schema import describe_kind, inner_object, unit_of

FOLDER = "reference/tools"
UNKNOWN = "their training data and licence are unknown; a run with such weights says so"


def pages() -> tuple[Page, ...]:
    """Return the overview, then a page for each tool, by name."""
    tools: dict[str, Tool] = {name: load("tools", name) for name in names("tools")}
    return (_overview(tools), *(_page(tool) for tool in tools.values()))


def _overview(tools: Mapping[str, Tool]) -> Page:
    rows = [
        (f"[{code(name)}]({name}.md)", ", ".join(card.name for card in tool.card.backends), escaped(tool.card.summary))
        for name, tool in tools.items()
    ]
    text = f"""# Tools

The cards of all specialists. `hybrid tools show NAME` prints the same, and whether its weights are on this
machine; `hybrid tools run NAME IMAGE` runs the tool. `classical` backends need no weights, `learned` ones load a
published checkpoint.

{table(("tool", "backends", "what it does"), rows)}
"""
    return Page(f"{FOLDER}/index.md", "Tools", text)


def _page(tool: Tool) -> Page:
    return Page(f"{FOLDER}/{tool.card.name}.md", tool.card.name, "\n\n".join(_sections(tool)) + "\n")


def _sections(tool: Tool) -> Iterator[str]:
    card = tool.card
    fewest, most = card.images
    yield f"# {card.name}"
    yield escaped(card.summary)
    yield f"**Limits.** {escaped(card.limits)}"
    yield f"**Measured.** {escaped(card.measured or 'Nothing except the counts below.')}"
    facts = [("images of a call", str(fewest) if fewest == most else f"{fewest} to {most}")]
    if card.needs:
        facts.append(("asks first", _needed(card.needs)))
    yield table(("", ""), facts)
    yield "## Arguments"
    rows = list(_arguments(tool))
    yield table(("name", "type", "range", "default", "what it is"), rows) if rows else "None."
    yield "## Output"
    yield table(("name", "type", "unit", "what it is"), list(_output(tool)))
    for backend in card.backends:
        yield from _backend(tool, backend)
    yield "## What a model reads"
    yield "The function in OpenAI's format; coordinates and names of images are explained once for all tools."
    yield block(json.dumps(spec(tool), indent=2, ensure_ascii=False), "json")


def _arguments(tool: Tool) -> Iterator[tuple[str, ...]]:
    """Return a row for each field; fields of a nested object follow it, prefixed with its name."""
    schema = tool.args.model_json_schema()
    yield from _fields(schema, schema.get("$defs", {}), "")


def _output(tool: Tool) -> Iterator[tuple[str, ...]]:
    """Return a row for each value of the tool's data; fields of a nested object follow it, prefixed with its name."""
    schema = tool.output or {}
    return _values(schema, schema, "")


def _values(node: Mapping[str, Any], root: Mapping[str, Any], before: str) -> Iterator[tuple[str, ...]]:
    for name, value in node.get("properties", {}).items():
        sometimes = "" if name in node.get("required", ()) else ", optional"
        kind = escaped(describe_kind(value, root)) + sometimes
        yield code(before + name), kind, unit_of(name), escaped(value.get("description", ""))
        if (inner := inner_object(value, root)) is not None:
            yield from _values(inner, root, f"{before}{name}.")


def _fields(schema: Mapping[str, Any], known: Mapping[str, Any], before: str) -> Iterator[tuple[str, ...]]:
    for name, node in schema.get("properties", {}).items():
        if not before and name in (IMAGE, IMAGES):
            continue
        default = "required" if name in schema.get("required", ()) else _default(node.get("default"))
        kind, inner = _kind(node, known)
        yield code(before + name), kind, _range(node), default, escaped(node.get("description", ""))
        if inner is not None:
            yield from _fields(inner, known, f"{before}{name}.")


def _kind(node: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """Return the type in words, and the object schema that the type is or contains."""
    if "$ref" in node:
        return _kind(known[node["$ref"].rpartition("/")[2]], known)
    if "enum" in node or "const" in node:
        return " or ".join(code(str(word)) for word in node.get("enum", [node.get("const")])), None
    if "anyOf" in node:
        found = [_kind(other, known) for other in node["anyOf"] if other.get("type") != "null"]
        return " or ".join(kind for kind, _ in found), next((inner for _, inner in found if inner is not None), None)
    if node.get("type") == "array":
        kinds = [_kind(item, known) for item in node.get("prefixItems", [node.get("items", {})])]
        return "list of " + " and ".join(dict.fromkeys(kind for kind, _ in kinds)), kinds[0][1]
    return str(node.get("type", "anything")), node if "properties" in node else None


def _default(value: Any) -> str:
    return "none" if value is None else code(json.dumps(value))


def _range(node: Mapping[str, Any]) -> str:
    """Return the bounds of a number, or of the length of a list or text."""
    nodes = [node, *node.get("anyOf", ())]
    found = {key: value for one in nodes for key, value in one.items()}
    bounds = []
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("exclusiveMinimum", "exclusiveMaximum", " (exclusive)"),
        ("minItems", "maxItems", " items"),
        ("minLength", "maxLength", " characters"),
    ):
        if low in found or high in found:
            ends = [str(found[low]) if low in found else "", str(found[high]) if high in found else ""]
            said = " to ".join(ends) if all(ends) else f"from {ends[0]}" if ends[0] else f"up to {ends[1]}"
            bounds.append(said + unit)
    return ", ".join(bounds)


def _backend(tool: Tool, backend: BackendCard) -> Iterator[str]:
    yield f"## Backend {backend.name}"
    yield escaped(backend.summary)
    facts = [("version", escaped(backend.version))]
    if backend.name == "learned":
        facts.append(("weights", _weights(tool, backend)))
    if backend.needs:
        facts.append(("asks first", _needed(backend.needs)))
    size = f"of up to {backend.batch}" if backend.batch > 1 else "one request at a time"
    differ = f"; numbers differ by at most {backend.learned_tolerance:g} from those of a request alone"
    facts.append(("batches", size + (differ if backend.learned_tolerance else "")))
    yield table(("", ""), facts)
    if backend.name == "learned":
        yield _provenances(backend)
    else:
        yield "Licence: that of this project, Apache-2.0; it has no trained weights."
    yield _reliability(backend)


def _weights(tool: Tool, backend: BackendCard) -> str:
    others = f"others with {code(f'--weights {tool.card.name}=DIR_OR_ID')}"
    if backend.package:
        absent = f"; {code(backend.weights)} where it is not installed" if backend.weights else ""
        return f"those in the package {code(backend.package)}{absent}; {others}"
    if backend.weights:
        return f"{code(backend.weights)}; {others}"
    return "those of the tools that it uses" if backend.needs else f"none by default; {others}"


def _provenances(backend: BackendCard) -> str:
    if not backend.provenances:
        return "Trained on: no data of its own." if backend.needs else f"Trained on: {UNKNOWN}."
    groups: dict[tuple[str, str], list[str]] = {}
    for known in backend.provenances:
        groups.setdefault((_licence(known), _trained_on(known)), []).append(code(known.weights))
    rows = [(", ".join(weights), licence, trained) for (licence, trained), weights in groups.items()]
    rows.append(("all others", "unknown", "unknown; a run with such weights says so"))
    return table(("weights", "licence", "trained on"), rows)


def _licence(known: Provenance) -> str:
    return escaped(known.licence) + (
        ", not for commercial use (`--allow non-commercial`)" if known.non_commercial else ""
    )


def _trained_on(known: Provenance) -> str:
    if not known.trained_on:
        return "unknown images"
    doubt = crawled(known.trained_on)
    more = f" (from the web, so overlap cannot be ruled out: {', '.join(doubt)})" if doubt else ""
    return escaped(", ".join(known.trained_on) + more)


def _needed(needs: Sequence[Need]) -> str:
    return ", ".join(f"[{code(name)}]({name}.md)" for name in dict.fromkeys(need.tool for need in needs))


def _reliability(backend: BackendCard) -> str:
    if not backend.reliability:
        return "How often it is right was not measured."
    ends = [*(one.confidence for one in backend.reliability[1:]), 1.0]
    rows = [
        (f"{one.confidence:.2f} to {end:.2f}", str(one.right), str(one.n), f"{one.right / one.n:.2f}")
        for one, end in zip(backend.reliability, ends, strict=True)
        if one.n
    ]
    heads = ("confidence that it states", "right", "of", "share")
    return f"How often it was right on {escaped(backend.counted_on)}:\n\n{table(heads, rows, right=(1, 2, 3))}"
