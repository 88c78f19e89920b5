"""Shared code of commands that measure a tool on items: read them, ask, count right answers by group and confidence.

The lines that `bins` prints are the lines of `reliability` on the tool's card.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pydantic import BaseModel

from hybrid.core.types import Finding
from hybrid.display.tables import bounds
from hybrid.plugins.registry import load
from hybrid.stats import wilson
from hybrid.tool import Pixels, Request, Tool

# Lower ends of the bins of confidence in most cards.
EDGES = (0.0, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


class Bin(NamedTuple):
    """A bin of confidence from `low` to below `high`: number of answers, number of right answers, mean confidence."""

    low: float
    high: float
    right: float
    n: int
    confidence: float


def blink_rows(folder: Path, *tasks: str, columns: Sequence[str] | None = None, least: int = 1) -> list[dict[str, Any]]:
    """Return the rows of tasks in a folder of BLINK's layout. Raises `SystemExit` if there are fewer than `least`."""
    rows = [
        row
        for task in tasks
        for path in sorted((folder / task).glob("val-*.parquet"))
        for row in pq.read_table(path, columns=list(columns) if columns else None).to_pylist()
    ]
    if len(rows) < least:
        raise SystemExit(f"no items in {' and '.join(f'{folder}/{task}' for task in tasks)}")
    return rows


def finding_of(
    tool: Tool, backend: str, pixels: Pixels, args: BaseModel, needs: Mapping[str, Sequence[Finding]] | None = None
) -> Finding:
    """Return the weight-free backend's output for an image, in the form in which another tool gets it in a run."""
    card = tool.backend(backend)
    if card is None:
        raise SystemExit(f"{tool.card.name} has no backend {backend}")
    built = card.make()
    built.setup("cpu", None)
    (result,) = built.run([Request((pixels,), args, needs or {})])
    return Finding(result.text, result.data, result.confidence, card.name, card.version)


def marks_on(pixels: Pixels, **args: Any) -> Finding:
    """Return the marks that the markers tool finds in an image."""
    tool: Tool = load("tools", "markers")
    return finding_of(tool, "classical", pixels, tool.args.model_validate(args))


def by_confidence(answers: Iterable[tuple[float, float]], edges: Sequence[float] = EDGES) -> list[Bin]:
    """Return the bins that contain an answer; an answer is a pair of confidence and correctness, 0..1 each."""
    items, results = list(answers), []
    for low, high in zip(edges, (*edges[1:], 1.01), strict=True):
        inside = [item for item in items if low <= item[0] < high]
        if inside:
            n = len(inside)
            results.append(Bin(low, high, sum(right for _, right in inside), n, sum(text for text, _ in inside) / n))
    return results


def bins(answers: Iterable[tuple[float, float]], edges: Sequence[float] = EDGES) -> str:
    """Format the bins like the lines on a tool's card."""
    rows = by_confidence(answers, edges)
    return ", ".join(f"{{confidence = {row.low}, right = {round(row.right)}, n = {row.n}}}" for row in rows)


def format_share(right: int, n: int) -> str:
    """Format a share as `0.867 [0.70, 0.95] 26/30`, with the 95 % Wilson interval."""
    return f"{right / n:.3f} {bounds(wilson(right, n))} {right}/{n}" if n else "-"
