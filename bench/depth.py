"""Measure the depth tool on BLINK items or on generated scenes: all, by row, by confidence, and each cue alone.

    python -m bench.depth --data DIR           DIR has BLINK's layout (`DIR/Relative_Depth/val-*.parquet`)
    python -m bench.depth --generated 200
    python -m bench.depth --data DIR --weights DIR_OR_ID [--device cuda]     the learned backend

An undecided item counts one half. Points come from the markers tool, as in a run.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq

from hybrid.benchmarks.blink.sample import row
from hybrid.images import decode
from hybrid.registry import load
from hybrid.tool import Backend, Evidence, Pixels, Request, Tool
from hybrid.types import Finding
from tools.depth import SAME_ROW, TOOL, DepthArgs, clean_image, spots_of
from tools.depth.cues import APPEARANCE, measure

Item = tuple[str, Pixels, str]
"""Id, image with its marks, letter of the nearer point."""
Case = Request[DepthArgs]


@dataclass(frozen=True)
class Answer:
    """What an item gave: 1 right, 0 wrong, 0.5 undecided."""

    score: float
    confidence: float
    same_row: bool


def read_items(folder: Path) -> list[Item]:
    """The items of `folder/Relative_Depth/val-*.parquet`."""
    rows = [
        entry
        for path in sorted((folder / "Relative_Depth").glob("val-*.parquet"))
        for entry in pq.read_table(path).to_pylist()
    ]
    if not rows:
        raise SystemExit(f"no items in {folder}/Relative_Depth")
    return [(entry["idx"], decode(entry["image_1"]["bytes"], entry["idx"]), entry["answer"][1]) for entry in rows]


def generated(number: int, seed: int) -> list[Item]:
    """Rendered scenes with known depth and marks drawn as BLINK draws them."""
    made = (row("Relative_Depth", index, seed) for index in range(number))
    return [(entry.idx, decode(entry.images[0], entry.idx), entry.answer[1]) for entry in made]


def with_marks(items: Sequence[Item]) -> list[Case]:
    """Each image as a request with what the markers tool finds on it."""
    tool: Tool = load("tools", "markers")
    card = tool.backend("classical")
    if card is None:
        raise SystemExit("the markers tool has no weight-free backend")
    backend = card.make()
    backend.setup("cpu", None)
    arguments = tool.args.model_validate({"labels": ["A", "B"], "kind": "point"})
    requests = []
    for _, pixels, _ in items:
        (found,) = backend.run([Request((pixels,), arguments)])
        finding = Finding(found.text, found.data, found.confidence, card.name, card.version)
        requests.append(Request((pixels,), DepthArgs(labels=("A", "B")), {"markers": (finding,)}))
    return requests


def judge(item: Item, evidence: Evidence) -> Answer:
    """Compare the evidence with the letter of the item."""
    nearer, rows = evidence.data["nearer"], evidence.data["rows_differ_px"]
    same_row = isinstance(rows, (int, float)) and rows <= SAME_ROW * item[1].shape[0]
    return Answer(0.5 if nearer is None else float(nearer == item[2]), evidence.confidence, same_row)


def report(items: Sequence[Item], requests: Sequence[Case], backend: Backend[DepthArgs]) -> None:
    """Print accuracy by row and by confidence."""
    started = time.perf_counter()
    answers = [judge(item, backend.run([request])[0]) for item, request in zip(items, requests, strict=True)]
    ms = 1000 * (time.perf_counter() - started) / len(items)
    print(f"{ms:.0f} ms an item; undecided items count one half")
    line("all", answers)
    line("same row", [answer for answer in answers if answer.same_row])
    line("other rows", [answer for answer in answers if not answer.same_row])
    for low, high in itertools.pairwise((0.0, 0.51, 0.55, 0.6, 0.7, 0.8, 0.87, 1.01)):
        line(f"confidence {low:.2f}-{high:.2f}", [answer for answer in answers if low <= answer.confidence < high])


def line(title: str, answers: Sequence[Answer]) -> None:
    """Print one group of answers; nothing for an empty one."""
    if not answers:
        return
    scores = np.array([answer.score for answer in answers])
    mean = float(np.mean([answer.confidence for answer in answers]))
    undecided = int((scores == 0.5).sum())
    print(
        f"  {title:22s} {scores.mean():.3f} of {len(scores):3d}, undecided {undecided:2d}, mean confidence {mean:.2f}"
    )


def cue_table(items: Sequence[Item], requests: Sequence[Case]) -> None:
    """Print what each cue scores alone, with the sign and scale that the tool fixes."""
    differences: dict[str, list[tuple[float, bool]]] = {name: [] for name in ("position", *APPEARANCE)}
    for item, request in zip(items, requests, strict=True):
        spots = {spot.label: spot for spot in spots_of(request)}
        if not {"A", "B"} <= set(spots):
            continue
        maps, size = measure(clean_image(request)), (item[1].shape[0], item[1].shape[1])
        first, second = (maps.at(spots[label].x, spots[label].y, size) for label in ("A", "B"))
        same = abs(spots["A"].y - spots["B"].y) <= SAME_ROW * size[0]
        sign = 1 if item[2] == "A" else -1
        for name, values in differences.items():
            values.append((sign * (first[name] - second[name]), same))
    print("cue alone: all / same row / other rows")
    for name, values in differences.items():
        print(f"  {name:9s} {share(values):.3f} / {share(values, same=True):.3f} / {share(values, same=False):.3f}")


def share(values: Iterable[tuple[float, bool]], *, same: bool | None = None) -> float:
    """Share of positive differences, ties one half, NaN without any."""
    chosen = np.array([value for value, on_row in values if same is None or on_row == same])
    return float(((chosen > 0) + 0.5 * (chosen == 0)).mean()) if chosen.size else float("nan")


def run(title: str, items: Sequence[Item], options: Mapping[str, str | None]) -> None:
    """Print the tables of one set of items."""
    requests = with_marks(items)
    found = sum({"A", "B"} <= {spot.label for spot in spots_of(request)} for request in requests)
    print(f"{title}: {len(items)} items, both marks found on {found}")
    card = TOOL.backend("learned" if options["weights"] else "classical")
    if card is None:
        raise SystemExit("the depth tool lacks this backend")
    backend = card.make()
    backend.setup(options["device"] or "cpu", options["weights"])
    report(items, requests, backend)
    if not options["weights"]:
        cue_table(items, requests)


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of BLINK's layout")
    parser.add_argument("--generated", type=int, default=0, help="number of generated scenes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights", help="directory or hub id: measure the learned backend")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    chosen = {"weights": options.weights, "device": options.device}
    if options.data is not None:
        run("BLINK", read_items(options.data), chosen)
    if options.generated:
        run("generated", generated(options.generated, options.seed), chosen)


if __name__ == "__main__":
    main()
