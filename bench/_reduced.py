"""Changes of tools' answers at lower precision than float32, on the tools' own generated questions.

    python bench/tools.py --dtypes bfloat16 --items 8 [--network NAME]... [--device cuda]

Networks have their real size, with trained weights if an installed package contains them (`_networks.py`), else random
ones. A decision is everything in the `data` of a tool output except measured numbers: words, booleans, chosen indices,
counts of things, lengths of lists. The rows are those of `BackendCard.reduced`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench._known_questions import KNOWN, Question
from bench._networks import NETWORKS, Network
from bench._throughput import machine
from hybrid.config import FLOAT32, ServiceOptions
from hybrid.core.errors import ToolError
from hybrid.core.images import ImageStore
from hybrid.core.types import ImageRef, Json
from hybrid.display.tables import Column, Table
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import ReducedPrecision, Tool

# Fields whose integers are decisions. Other integers count evidence (matches, votes) and are left out, unless they
# are pixels; fractions are measurements.
CHOSEN = ("best", "best_index", "nearer_index", "darker_index", "count", "counts")
# Arguments for networks that the generated questions of their tool do not exercise.
WORDS: Mapping[str, dict[str, Json]] = {
    "clipseg": {"words": "a coloured shape"},
    "clipseg_search": {"target": "a coloured shape"},
}


@dataclass(frozen=True)
class Comparison:
    """Which networks are compared, in which precisions, on which device and questions."""

    networks: tuple[str, ...]
    dtypes: tuple[Any, ...]
    device: str
    real: bool
    items: int
    seed: int


def differences(item: Json, other: Json, path: str = "", key: str = "") -> Iterator[tuple[str, float | None]]:
    """Yield, field by field, how far the data of two tool outputs are apart; None if a decision differs."""
    if isinstance(item, Mapping) and isinstance(other, Mapping) and item.keys() == other.keys():
        for name in item:
            # Counts are keyed by the name of the thing.
            yield from differences(item[name], other[name], f"{path}.{name}", "counts" if key == "counts" else name)
    elif isinstance(item, list | tuple) and isinstance(other, list | tuple) and len(item) == len(other):
        for first, second in zip(item, other, strict=True):
            yield from differences(first, second, path, key)
    elif _measured(item, key) and _measured(other, key):
        is_instance = isinstance(item, int) and isinstance(other, int) and "_px" not in path
        yield path.removeprefix("."), 0.0 if is_instance else abs(float(str(item)) - float(str(other)))
    elif item != other:
        yield path.removeprefix("."), None


def _measured(value: Json, key: str) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and key not in CHOSEN


def compared(name: str, setting: Comparison) -> list[ReducedPrecision]:
    """Run a network in each precision, and compare it with float32."""
    network, title = NETWORKS[name], "random"
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "checkpoint"
        checkpoint.mkdir()
        network.build(checkpoint, setting.real, setting.device)
        trained = bool(network.trained) and setting.real and _installed(network.trained)
        title = network.trained if trained else f"random, of {network.title}"
        values = [KNOWN[network.tool].make(index, setting.seed) for index in range(setting.items)]
        if name in WORDS:
            values = [replace(item, args=WORDS[name]) for item in values]
        exact = asyncio.run(_data(network, checkpoint, values, FLOAT32, setting.device))
        rows = []
        for dtype in setting.dtypes:
            reduced = asyncio.run(_data(network, checkpoint, values, dtype, setting.device))
            rows.append(_row(exact, reduced, ReducedPrecision(dtype, 0, 0, 0.0, "", title, trained, setting.device)))
        return rows


def _installed(package: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _row(exact: Sequence[Json], reduced: Sequence[Json], row: ReducedPrecision) -> ReducedPrecision:
    """Return the row of counts; a question that failed in float32 is not counted."""
    for item, other in zip(exact, reduced, strict=True):
        if item is None:
            continue
        items = list(differences(item, other))
        if any(value is None for _, value in items):
            row = replace(row, changed=row.changed + 1, questions=row.questions + 1)
            continue
        of, largest = max(((path, value or 0.0) for path, value in items), key=lambda pair: pair[1], default=("", 0.0))
        row = replace(row, questions=row.questions + 1)
        row = replace(row, largest=largest, of=of) if largest > row.largest else row
    return row


async def _data(
    network: Network, checkpoint: Path, questions: Sequence[Question], dtype: Any, device: str
) -> list[Json]:
    """Return the `data` of each tool output; None if the tool failed."""
    tool: Tool = load("tools", network.tool)
    with tempfile.TemporaryDirectory() as folder:
        store = ImageStore(Path(folder) / "images")
        options = ServiceOptions(
            "auto", {network.tool: str(checkpoint)}, device, unchecked=True, dtype=dtype, timeout_s=3600.0
        )
        service = CachedTools(store, FindingCache(Path(folder) / "findings", store), options)
        try:
            return await asyncio.gather(*(_one(service, tool, question) for question in questions))
        finally:
            service.close()


async def _one(service: CachedTools, tool: Tool, question: Question) -> Json:
    refs = [ImageRef(f"img:{place}", service.store.put(data, "made")) for place, data in enumerate(question.files, 1)]
    try:
        return dict((await service.call(tool, tool.parse(question.args), refs)).data)
    except ToolError as error:
        print(f"{tool.card.name}: {error}", file=sys.stderr)
        return None


def table(setting: Comparison) -> Table:
    """Return a row per network and precision. Raises `UsageError` for a missing device."""
    heads = ("network", "tool", "weights", "precision", "decisions changed", "largest difference", "of")
    columns = tuple(Column(head, "right" if place in {4, 5} else "left") for place, head in enumerate(heads))
    rows = []
    for name in setting.networks:
        for item in compared(name, setting):
            difference = f"{item.largest:.2g}" if item.questions > item.changed else "-"
            values = (item.weights, item.dtype, f"{item.changed} of {item.questions}", difference, item.of or "-")
            rows.append((NETWORKS[name].title, NETWORKS[name].tool, *values))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    size = "real size" if setting.real else "tiny"
    title = f"Answers in fewer bits than float32: networks of {size}, seed {setting.seed}, {machine(setting.device)}"
    return Table(title, columns, tuple(rows))
