"""`hybrid tools show NAME`: a tool's card as text, with everything needed to judge its reliability."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli import _options as shared
from hybrid.cli._options import check_name_conflict, path_option

if TYPE_CHECKING:
    from hybrid.tool import BackendCard, Need, Provenance, Tool

WIDTH = 100
# Width of the names in a list of facts.
LABEL = 12
PLACES = (
    "Coordinates are pixels of the image, origin at the top left, x to the right, y down; x1 and y1 of a box are "
    "exclusive. A point is x and y, or only the label that is drawn beside it."
)
UNKNOWN = "their training data and licence are unknown; a run with such weights says so"


@click.command("show")
@shared.tool_name
@path_option
def show(name: str) -> int:
    """Print the card of a tool: its summary and limits, its arguments and its backends.

    For each backend: its weights and whether they are on disk, licence, training data, the tools that it calls first,
    the batch size, how much batching or lower precision changes results, and how often it was right.

    \b
    Example:
      hybrid tools show depth
    """
    from hybrid.plugins.registry import load

    check_name_conflict("tools", name)
    tool: Tool = load("tools", name)
    click.echo("\n".join(_card(tool)))
    return 0


def _card(tool: Tool) -> Iterator[str]:
    from hybrid.models.toolspec import COORDINATES, IMAGE, IMAGES, spec

    card = tool.card
    fewest, most = card.images
    yield from _filled(f"{card.name}: {card.summary}")
    yield ""
    yield from _filled(f"Limits: {card.limits}")
    yield ""
    yield from _filled(f"Measured: {card.measured or 'nothing except the counts below'}")
    yield ""
    yield from fact("images", str(fewest) if fewest == most else f"{fewest} to {most}")
    if card.needs:
        yield from fact("asks first", _needed(card.needs))
    if tool.checks:
        # Known answers of a series are listed by series, with the number that must be right.
        sizes = Counter(check.series for check in tool.checks)
        check_names = dict.fromkeys(
            f"{check.series.name} ({check.series.least} of {sizes[check.series]})" if check.series else check.name
            for check in tool.checks
        )
        yield from fact("known images", f"{'; '.join(check_names)} (hybrid tools check {card.name})")
    yield ""
    fields = spec(tool, full=True)["function"]["parameters"]
    parameters = {name: node for name, node in fields["properties"].items() if name not in (IMAGE, IMAGES)}
    yield "Arguments (--args JSON)" if parameters else "Arguments: none"
    if any(COORDINATES.intersection((_object(node) or {}).get("properties", {})) for node in parameters.values()):
        yield from _filled(PLACES, "  ")
    yield from _fields(parameters, fields["required"], "  ")
    yield ""
    yield from _output(tool)
    for backend in card.backends:
        yield ""
        yield from _backend(tool, backend)


def _output(tool: Tool) -> Iterator[str]:
    """Yield a line for each value of the tool's data: type, unit and description.

    Nested values are below their object.
    """
    if tool.output is None:
        yield "Output: the tool does not declare the values of its data"
        return
    yield "Output (data)" if tool.output.get("properties") else "Output (data): none"
    yield from _values(tool.output, tool.output, "  ")


def _values(
    node: Mapping[str, Any], root: Mapping[str, Any], indent: str, above: tuple[Mapping[str, Any], ...] = ()
) -> Iterator[str]:
    from hybrid.tool.output_schema import describe_kind, inner_object, unit_of

    for name, value in node.get("properties", {}).items():
        unit = f", {unit}" if (unit := unit_of(name)) else ""
        sometimes = "" if name in node.get("required", ()) else ", optional"
        about = f": {value['description']}" if "description" in value else ""
        yield from fact(name, f"{describe_kind(value, root)}{unit}{sometimes}{about}", indent)
        inner = inner_object(value, root)
        # An object may contain other objects of its own kind.
        if inner is not None and inner not in (node, *above):
            yield from _values(inner, root, indent + "    ", (node, *above))


def _backend(tool: Tool, backend: BackendCard) -> Iterator[str]:
    from hybrid.plugins.registry import is_outside
    from hybrid.plugins.weights import missing_library

    yield f"{backend.name} backend, version {backend.version}"
    yield from _filled(backend.summary, "  ")
    if backend.name == "learned":
        yield from fact("weights", _weights(tool, backend), "  ")
        yield from fact("here", _here(tool, backend), "  ")
    elif reason := missing_library([tool.card]):
        yield from fact("here", f"no ({reason})", "  ")
    yield from _known_weights(backend, own_code=not is_outside("tools", tool.card.name))
    if backend.needs:
        yield from fact("asks first", _needed(backend.needs), "  ")
    batches = f"of up to {backend.batch}" if backend.batch > 1 else "none, one request at a time"
    if backend.learned_tolerance:
        batches += f"; numbers differ by at most {backend.learned_tolerance:g} from those of a request alone"
    elif backend.batch > 1:
        batches += "; the numbers are the same as for a single request"
    yield from fact("batches", batches, "  ")
    if backend.weights or backend.reduced:
        # The precision that `--tool-dtype auto` uses on CUDA, and a line for each measured lower precision.
        harmless = [reduced.weights for reduced in backend.reduced if reduced.dtype == "bfloat16" and reduced.harmless]
        auto = f"float32; on CUDA TF32{''.join(f', bfloat16 with {name}' for name in harmless)} (--tool-dtype)"
        yield from fact("precision", auto, "  ")
        for reduced in backend.reduced:
            numbers = f", numbers by at most {reduced.largest:.2g} ({reduced.of})" if reduced.of else ""
            line = (
                f"{reduced.dtype} changed {reduced.changed} of {reduced.questions} decisions{numbers}, "
                f"weights: {reduced.weights}{'' if reduced.trained else ', which says little about trained ones'} "
                f"({reduced.device})"
            )
            yield from fact("", line, "  ")
        if not backend.reduced:
            yield from fact("", "lower precision was not measured", "  ")
    yield from fact("right", _reliability(backend), "  ")


def _known_weights(backend: BackendCard, *, own_code: bool) -> Iterator[str]:
    """Yield licence and training images of the default weights and other weights on the card, or that nothing is known.

    Weights with the same licence and images share a line.
    """
    if backend.name == "classical":
        yield from fact("licence", "that of this project, Apache-2.0" if own_code else "not stated", "  ")
        return
    if not backend.provenances:
        yield from fact("trained on", "no data of its own" if backend.needs else UNKNOWN, "  ")
        return
    default = (backend.weights, backend.package)
    first = next((provenance for provenance in backend.provenances if provenance.weights in default), None)
    if first is not None:
        yield from fact("licence", licence(first), "  ")
        yield from fact("trained on", trained_on(first), "  ")
    groups: dict[tuple[str, str], list[str]] = {}
    for provenance in backend.provenances:
        if provenance is not first:
            groups.setdefault((licence(provenance), trained_on(provenance)), []).append(provenance.weights)
    for (terms, trained), names in groups.items():
        same = first is not None and trained == trained_on(first)
        images = "the same images" if same else trained
        yield from fact("also known", f"{', '.join(names)}: licence {terms}; trained on {images}", "  ")
    yield from fact("all others", UNKNOWN, "  ")


def licence(provenance: Provenance) -> str:
    return provenance.licence + (
        ", not for commercial use (--allow non-commercial)" if provenance.non_commercial else ""
    )


def trained_on(provenance: Provenance) -> str:
    """List the collections, and those that may contain any published picture."""
    from hybrid.running.permissions import crawled

    if not provenance.trained_on:
        return "unknown images"
    open_ended = crawled(provenance.trained_on)
    doubt = f" (from the web, so overlap cannot be ruled out: {', '.join(open_ended)})" if open_ended else ""
    return ", ".join(provenance.trained_on) + doubt


def _weights(tool: Tool, backend: BackendCard) -> str:
    name = tool.card.name
    others = f"others with --weights {name}=DIR_OR_ID"
    if backend.package:
        absent = f"; {backend.weights} where it is not installed" if backend.weights else ""
        return f"those in the package {backend.package}{absent}; {others}"
    if backend.weights:
        return f"{backend.weights} by default; {others}"
    return "those of the tools that it uses" if backend.needs else f"none by default: --weights {name}=DIR_OR_ID"


def _here(tool: Tool, backend: BackendCard) -> str:
    """Return whether the default weights on this machine can be loaded, as text."""
    # Download nothing here.
    from hybrid.core.errors import WeightsError
    from hybrid.plugins.weights import missing_library, weights_of

    other = tool.backend("classical") and not missing_library([tool.card])
    instead = "the classical backend answers instead" if other else "without them the tool does not answer"
    try:
        folder = weights_of(tool, backend, {}, download=False)
    except WeightsError as error:
        return f"no ({error}); {instead}"
    return f"yes, {folder}" if folder else "yes"


def _needed(needs: Sequence[Need]) -> str:
    return ", ".join(dict.fromkeys(need.tool for need in needs))


def _reliability(backend: BackendCard) -> str:
    """Return a line for each bin of a backend's reliability."""
    bins = backend.reliability
    if not bins:
        return "not measured"
    ends = [*(bin_.confidence for bin_ in bins[1:]), 1.0]
    rows = [
        f"{bin_.confidence:.2f} to {end:.2f} {f'{bin_.right}/{bin_.n}':>9}  {bin_.right / bin_.n:.2f}"
        for bin_, end in zip(bins, ends, strict=True)
        if bin_.n
    ]
    return "\n".join([f"on {backend.counted_on}, by the stated confidence:", *rows])


def _fields(properties: Mapping[str, Any], required: Sequence[str], indent: str) -> Iterator[str]:
    for name, node in properties.items():
        must = ", required" if name in required else ""
        text = f"{_kind(node)}{must}"
        if description := node.get("description"):
            text += f": {description}"
        yield from fact(name, text, indent)
        inner = _object(node)
        if inner is not None:
            yield from _fields(inner["properties"], inner.get("required", ()), indent + "    ")


def _kind(node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return " | ".join(str(value) for value in node["enum"])
    if "anyOf" in node:
        return " or ".join(_kind(other) for other in node["anyOf"] if other.get("type") != "null")
    if node.get("type") == "array":
        items = node.get("items", {})
        return f"list of {_kind(items)}" + ("" if "enum" in items or "anyOf" in items else "s")
    return str(node.get("type", "anything"))


def _object(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the object schema of a node: the node itself, or the schema of its list items or of an alternative."""
    if "properties" in node:
        return node
    inner = [node["items"]] if "items" in node else node.get("anyOf", [])
    return next((schema_object for other in inner if (schema_object := _object(other)) is not None), None)


def fact(name: str, text: str, indent: str = "") -> Iterator[str]:
    """Yield a name with the text to its right, continued on further lines."""
    first, *rest = text.split("\n")
    head = f"{indent}{name:{LABEL}} "
    below = " " * len(f"{indent}{'':{LABEL}} ")
    yield from textwrap.wrap(
        first, WIDTH, initial_indent=head, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )
    yield from (f"{below}{line}" for line in rest)


def _filled(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
