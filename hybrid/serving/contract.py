"""The contract of every tool, built-in or plug-in, checked by `hybrid tools check NAME --contract`.

    breaches("brightness", load("tools", "brightness"), ServiceOptions("classical"))       # () if nothing is breached

The card is complete. The same question gives the same output, byte for byte. Unusual images (one pixel, grey,
transparent, 16 bits per channel, very wide, rotated by EXIF), empty and repeated arguments, and places outside the
image give an output or a clear refusal. The text is short, the confidence is in 0..1, and every number in `data` is
finite and has its unit in a key on its path (`UNITS`). Numbers without a unit are counts and indices (`COUNTS`, or a
name that ends in `_count` or `_index`; integers only) or pure numbers (`PURE`: ratios, cosines, scores, logarithms).
Text and booleans need no unit. The data have the keys and types that the tool declares (`Tool.output`).
"""

from __future__ import annotations

import asyncio
import functools
import io
import json
import math
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.config import ServiceOptions
from hybrid.core.errors import HybridError, ToolError, did_you_mean
from hybrid.core.images import ImageStore
from hybrid.core.types import Finding, ImageRef, Json
from hybrid.plugins.discovery import TOOLS
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import Pixels, Tool
from hybrid.tool.output_schema import UNITS, data_mismatch

MEASURED_ENDS = tuple(UNITS)
# Suffixes of names, besides those in `COUNTS`, of counts and indices.
COUNT_ENDS = ("_count", "_index")
COUNTS = frozenset(
    {"inliers", "off_plane", "matches", "rank", "count", "counts", "parts", "image", "best", "synthetic", "votes"}
    | {"photograph", "best_index", "nearer_index", "darker_index", "returns"}
)
PURE = frozenset({"cosine", "ncc", "confidence", "scale", "cues", "descriptor_distance", "log_reflectance"})
PURE_ENDS = ("_ratio", "_score", "_slope", "_kurtosis")
MAX_LINES = 6
MAX_LINE_LENGTH = 160
# Maximum number of characters of an output's text, because a model reads several texts before it answers.
MAX_TEXT_LENGTH = 450
FAR_PX = 50_000
# Prefixes of the service's messages about a tool that crashed instead of refusing.
WRAPPED = ("the tool failed", "the tool could not be run")


def numbers(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield every number in a JSON value with the keys on its path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from numbers(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from numbers(inner, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def text_complaints(text: str) -> list[str]:
    """Return how an output's text breaches the contract, one sentence each."""
    wrong = []
    lines = text.splitlines()
    if not lines or len(lines) > MAX_LINES or max(map(len, lines)) > MAX_LINE_LENGTH:
        wrong.append(f"text of {len(lines)} lines, the longest of {max(map(len, lines), default=0)} characters")
    if len(text) > MAX_TEXT_LENGTH:
        wrong.append(f"text of {len(text)} characters")
    return wrong


def complaints(finding: Finding, refs: Sequence[ImageRef]) -> list[str]:
    """Return how an output about these images breaches the contract, one sentence each."""
    wrong = text_complaints(finding.text)
    if not 0 <= finding.confidence <= 1:
        wrong.append(f"confidence {finding.confidence}")
    wrong += [f"{'.'.join(path)} is {value}" for path, value in numbers(finding.data) if not math.isfinite(value)]
    for path, value in numbers(finding.data):
        measures = any(key.endswith(MEASURED_ENDS) or key in PURE or key.endswith(PURE_ENDS) for key in path)
        counts = isinstance(value, int) and any(key in COUNTS or key.endswith(COUNT_ENDS) for key in path)
        wrong += [] if measures or counts else [f"{'.'.join(path)} has no unit: {_unit_hint(path[-1], value)}"]
    if not wrong:
        json.dumps(finding.data, allow_nan=False)
    sizes = {ref.name: (ref.image.width, ref.image.height) for ref in refs}
    for picture in finding.images:
        if picture.parent not in sizes:
            wrong.append(f"picture of {picture.parent!r}")
        elif picture.box is None and (picture.image.width, picture.image.height) != sizes[picture.parent]:
            wrong.append(f"overlay of {picture.image.width} x {picture.image.height} px on {sizes[picture.parent]}")
    return wrong


def _unit_hint(key: str, value: float) -> str:
    """Return how to rename a number without a unit."""
    if key in COUNTS or key.endswith(COUNT_ENDS):
        return "a count or an index must be a whole number"
    ends = ", ".join(MEASURED_ENDS)
    count_hint = f", a count or an index {key}_count or {key}_index" if isinstance(value, int) else ""
    return f"end its name in one of {ends} (such as {key}_px){count_hint}, a pure number {key}_ratio or {key}_score"


def card_complaints(name: str, tool: Tool) -> list[str]:
    """Return how the card of the tool of that name breaches the contract, one sentence each."""
    card = tool.card
    fewest, most = card.images
    owed = {
        f"the card has the name {card.name!r}, not {name!r}": card.name == name,
        f"summary of {len(card.summary)} characters, at least 30 are needed": len(card.summary) >= 30,
        f"limits of {len(card.limits)} characters, at least 30 are needed": len(card.limits) >= 30,
        "no backend": bool(card.backends),
        "two backends of one name": len({backend.name for backend in card.backends}) == len(card.backends),
        f"from {fewest} to {most} images": 0 <= fewest <= most,
        "two known answers of one name": len({check.name for check in tool.checks}) == len(tool.checks),
    }
    for backend in card.backends:
        of = f"{backend.name} backend:"
        starts = [bin_.confidence for bin_ in backend.reliability]
        owed |= {
            f"{of} no version": bool(backend.version),
            f"{of} a summary of less than 20 characters": len(backend.summary) >= 20,
            f"{of} the bins of its reliability are out of order": starts == sorted(set(starts)),
            f"{of} a reliability without the data on which it was counted": bool(backend.counted_on) or not starts,
            f"{of} weights, but it is not the learned backend": not backend.weights or backend.name == "learned",
            f"{of} no facts on the card about its default weights {backend.weights}": not backend.weights
            or backend.weights in {provenance.weights for provenance in backend.provenances},
        }
    owed |= dict.fromkeys(_need_complaints(tool), False)
    owed |= dict.fromkeys(_claim_complaints(tool), False)
    for field, schema in tool.args.model_json_schema().get("properties", {}).items():
        owed[f"the argument {field} has no description for the model"] = bool(schema.get("description"))
    return [complaint for complaint, is_met in owed.items() if not is_met]


def _claim_complaints(tool: Tool) -> Iterator[str]:
    """Yield a complaint for each claim that names a field missing in the tool's declared output."""
    output: Mapping[str, Any] | None = tool.output
    if tool.claims is None or output is None:
        return
    declared = list(output.get("properties", {}))
    for field in tool.claims.fields:
        if field not in declared:
            yield f"the claim {field!r} is not in the output's schema{did_you_mean(field, declared)}"


def _need_complaints(tool: Tool) -> Iterator[str]:
    """Yield a complaint for each value that a tool reads from another tool's output, which does not declare it."""
    needed: Mapping[str, Mapping[str, Any]] = getattr(tool, "needed", {})
    for name, expected in needed.items():
        declared = load(TOOLS, name).output
        available = [] if declared is None else list(declared.get("properties", {}))
        for key in expected.get("properties", {}) if declared is not None else ():
            if key not in available:
                hint = did_you_mean(key, available)
                yield f"{name} has no value {key!r}{hint}; it has: {', '.join(available)}"


def scene(width: int, height: int) -> Pixels:
    """Return a picture of coloured patches, which are visible at every size and cheap to make and decode."""
    from PIL import Image

    rng = np.random.default_rng(7)
    small = rng.integers(0, 255, (max(1, height // 25), max(1, width // 25), 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def encoded(pixels: Any, mode: str | None = None, **options: Any) -> bytes:
    """Encode an array as PNG, in its own Pillow mode or in another mode."""
    from PIL import Image

    buffer = io.BytesIO()
    picture = Image.fromarray(pixels)
    (picture if mode is None else picture.convert(mode)).save(buffer, "PNG", **options)
    return buffer.getvalue()


def _rotated() -> bytes:
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(scene(160, 120), exif=exif)


# Alpha of a transparent image, increasing from left to right.
ALPHA = np.tile(np.linspace(0, 255, 160).astype(np.uint8), (120, 1))
# Image files that a tool must accept or refuse, by what is unusual about them.
ODD: Mapping[str, Callable[[], bytes]] = {
    "grey": lambda: encoded(scene(160, 120), "L"),
    "rgba": lambda: encoded(np.dstack([scene(160, 120), ALPHA])),
    "16-bit": lambda: encoded(scene(160, 120)[..., 0].astype(np.uint16) * 257),
    "one pixel": lambda: encoded(np.full((1, 1, 3), (9, 8, 7), np.uint8)),
    "two pixels": lambda: encoded(scene(2, 1)),
    "black": lambda: encoded(np.zeros((120, 160, 3), np.uint8)),
    "wide": lambda: encoded(scene(8000, 24)),
    "high": lambda: encoded(scene(24, 8000)),
    # Larger than any built-in tool's working size (2,560 px), and less elongated than the limit of one tool (8 : 1).
    # Cached, because compressing takes longer than most tools.
    "large": functools.cache(lambda: encoded(scene(2600, 330), compress_level=1)),
    "rotated": _rotated,
}


def moved(args: Mapping[str, Json], to: float) -> dict[str, Json]:
    """Return the arguments with every number shifted, so that coordinates are outside the image."""

    def shifted(value: Json) -> Json:
        if isinstance(value, Mapping):
            return {key: at + to if isinstance(at, int | float) else at for key, at in value.items()}
        return [shifted(inner) for inner in value] if isinstance(value, list | tuple) else value

    return {key: shifted(value) for key, value in args.items()}


def empty_or_repeated(args: Mapping[str, Json]) -> tuple[dict[str, Json], ...]:
    """Return variants: no arguments, empty values, every list twice in a row, and only its first item, twice."""
    return (
        {},
        {key: [] if isinstance(value, list | tuple) else "" for key, value in args.items()},
        {key: [*value, *value] if isinstance(value, list | tuple) else value for key, value in args.items()},
        {key: [*value[:1]] * 2 if isinstance(value, list | tuple) else value for key, value in args.items()},
    )


def breaches(name: str, tool: Tool, options: ServiceOptions, args: Mapping[str, Json] | None = None) -> tuple[str, ...]:
    """Return a tool's breaches of the contract, one line each.

    Args:
        name: the name under which the tool is requested.
        tool: the tool; its active backend is loaded as needed.
        options: the permitted backend and weights.
        args: arguments of a plain call. By default those of the tool's first known answer, with its images; no
            arguments if it has no known answers.

    Raises:
        NoBackend: no backend can answer.
        UsageError: unusable weights.
    """
    wrong = card_complaints(name, tool)
    with tempfile.TemporaryDirectory() as folder:
        store = ImageStore(Path(folder))
        service = CachedTools(store, FindingCache(None, store), replace(options, isolated=False))
        try:
            wrong += asyncio.run(_Probe(tool, service).all(args))
        finally:
            service.close()
    return tuple(dict.fromkeys(wrong))


@dataclass(frozen=True)
class _Probe:
    """Sends many requests to a tool."""

    tool: Tool
    service: CachedTools

    async def all(self, args: Mapping[str, Json] | None) -> list[str]:
        """Return all breaches in the tool's outputs and refusals."""
        count, store = max(1, self.tool.card.images[0]), self.service.store
        posed = self.tool.checks[0].pose() if args is None and self.tool.checks else None
        pixels = posed.images if posed else [scene(160 + 8 * place, 120) for place in range(count)]
        refs, args = _refs([store.put_pixels(array) for array in pixels]), posed.args if posed else args or {}
        first, wrong = await self._one(refs, args, "a plain call")
        if isinstance(first, HybridError):
            sizes = ", ".join(f"{array.shape[1]} x {array.shape[0]} px" for array in pixels)
            hint = "" if posed else "; its pictures and arguments are those of the first known answer, if it has one"
            refused = f"with {len(pixels)} pictures ({sizes}) and the arguments {json.dumps(dict(args))}"
            return [*wrong, f"a plain call {refused} is refused: {first}{hint}"]
        second, _ = await self._one(refs, args, "a plain call")
        if first != second:
            wrong.append("the same question has two different outputs")
        seen = {line.partition(": ")[2] for line in wrong}
        for odd, make in ODD.items():
            image = store.put(make(), odd)
            wrong += (await self._one(_refs([image] * count), args, f"image: {odd}", seen))[1]
        for arguments in empty_or_repeated(args):
            wrong += (await self._one(refs, arguments, f"arguments {json.dumps(arguments)}", seen))[1]
        # Check coordinates only if the arguments contain points or boxes.
        if '"x' in json.dumps(args):
            answer, broken = await self._one(refs, moved(args, FAR_PX), "places outside the image")
            wrong += broken
            if isinstance(answer, Finding) or "outside" not in str(answer):
                text = answer.text if isinstance(answer, Finding) else str(answer)
                wrong.append(f"places outside the image are not refused with a message that says so: {text}")
        return wrong

    async def _one(
        self, refs: list[ImageRef], args: Mapping[str, Json], about: str, seen: Collection[str] = ()
    ) -> tuple[Finding | HybridError, list[str]]:
        """Return the output or the refusal, and its breaches of the contract that a plain call did not have."""
        try:
            finding = await self.service.call(self.tool, self.tool.parse(args), refs)
        except ToolError as error:
            broke = any(words in str(error) for words in WRAPPED)
            return error, [f"{about}: {error}"] if broke else []
        mismatch = None if self.tool.output is None else data_mismatch(self.tool.output, finding.data)
        all_wrong = [*complaints(finding, refs), *filter(None, [mismatch])]
        return finding, [f"{about}: {wrong}" for wrong in all_wrong if wrong not in seen]


def _refs(images: Sequence[Any]) -> list[ImageRef]:
    return [ImageRef(f"img:{place}", image) for place, image in enumerate(images, 1)]
