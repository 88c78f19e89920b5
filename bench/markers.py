"""Measure the mark finder on generated scenes, and on BLINK's Relative_Depth images where they are.

    python -m bench.markers --scenes 400 --seed 50000              letters asked for, as the benchmark's questions do
    python -m bench.markers --scenes 400 --seed 60000 --unasked    nobody says which letters there are
    python -m bench.markers --data DIR                             how often both letters are found on real images

A mark is right when its letter is and its centre is within 3 px; a box when letter and colour are and every side is
within 3 px. The font "opencv" is in no template, so its row is the held-out one. The last table is the card's
reliability: how often everything in a finding was right, by the finding's confidence.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq

from hybrid.images import decode
from hybrid.samples.marked_scenes import MarkedScene, boxed_scene, marked_scene
from hybrid.types import Box
from tools._marks import Marks
from tools._marks_json import marks_from
from tools.markers import MarkersArgs, locate

EDGES = (0.0, 0.3, 0.5, 0.7, 0.9, 0.97, 1.01)
TOLERANCE_PX = 3.0


def rights(scene: MarkedScene, marks: Marks) -> list[bool]:
    """For each drawn mark whether it was found in its place with its letter."""
    points = {mark.label: mark for mark in marks.points}
    boxes = {mark.label: mark for mark in marks.boxes}
    found = []
    for point in scene.points:
        near = points.get(point.label)
        found.append(near is not None and float(np.hypot(near.x - point.x, near.y - point.y)) <= TOLERANCE_PX)
    for drawn in scene.boxes:
        outline = boxes.get(drawn.label)
        found.append(outline is not None and outline.color == drawn.color and _off(outline.box_px, drawn.box) <= 3)
    return found


def _off(a: Box, b: Box) -> float:
    return max(abs(a.x0 - b.x0), abs(a.y0 - b.y0), abs(a.x1 - b.x1), abs(a.y1 - b.y1))


def measure(scenes: Sequence[MarkedScene], asked: bool, title: str) -> None:
    """Print marks found by what was drawn, and how often findings were right by confidence."""
    table: dict[str, list[bool]] = defaultdict(list)
    findings: list[tuple[float, bool]] = []
    more, seconds = 0, 0.0
    for scene in scenes:
        labels = tuple([str(point.label) for point in scene.points] + [drawn.label for drawn in scene.boxes])
        args = MarkersArgs.model_validate({"labels": labels if asked else ()})
        started = time.perf_counter()
        evidence = locate(scene.pixels, args)
        seconds += time.perf_counter() - started
        marks = marks_from(evidence.data)
        found = rights(scene, marks)
        extra = len(marks.points) + len(marks.boxes) > len(labels)
        more += extra
        findings.append((evidence.confidence, all(found) and not extra))
        style = scene.style
        keys = ["all", f"on {scene.background}", f"font {style.font}", f"line {style.stroke_px} px"]
        keys += [f"color {style.color}", f"radius {style.radius_px // 4 * 4}+ px"] if scene.points else []
        for key in keys:
            table[key].extend(found)
    print(f"{title}: {1000 * seconds / len(scenes):.0f} ms an image, surplus marks in {more}/{len(scenes)} images")
    for key, values in sorted(table.items()):
        print(f"  {key:18s} {sum(values):5d}/{len(values):<5d} {sum(values) / len(values):.4f}")
    reliability(findings)


def reliability(findings: Sequence[tuple[float, bool]]) -> None:
    """Print right / all by confidence."""
    for low, high in itertools.pairwise(EDGES):
        inside = [right for confidence, right in findings if low <= confidence < high]
        print(f"  confidence {low:.2f}-{high:.2f}: right {sum(inside)}/{len(inside)}")


def real(folder: Path) -> None:
    """Print on how many real images both letters were found, and the least sure of them."""
    rows = [
        row
        for path in sorted((folder / "Relative_Depth").glob("val-*.parquet"))
        for row in pq.read_table(path, columns=["idx", "image_1"]).to_pylist()
    ]
    if not rows:
        raise SystemExit(f"no items in {folder}/Relative_Depth")
    images = [(row["idx"], decode(row["image_1"]["bytes"], row["idx"])) for row in rows]
    started = time.perf_counter()
    found = [(locate(pixels, MarkersArgs(labels=("A", "B"))), name) for name, pixels in images]
    ms = 1000 * (time.perf_counter() - started) / len(rows)
    both = sum({mark.label for mark in marks_from(evidence.data).points} == {"A", "B"} for evidence, _ in found)
    least = sorted((round(evidence.confidence, 2), name) for evidence, name in found)[:5]
    print(f"Relative_Depth: both letters on {both}/{len(rows)} images, {ms:.0f} ms an image; least sure: {least}")


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of BLINK's layout")
    parser.add_argument("--scenes", type=int, default=0, help="number of generated scenes of each kind")
    parser.add_argument("--seed", type=int, default=50000)
    parser.add_argument("--unasked", action="store_true", help="leave the expected letters out")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    if options.scenes:
        seeds = range(options.seed, options.seed + options.scenes)
        measure([marked_scene(np.random.default_rng(seed)) for seed in seeds], not options.unasked, "points")
        measure([boxed_scene(np.random.default_rng(seed)) for seed in seeds], not options.unasked, "boxes")
    if options.data is not None:
        real(options.data)


if __name__ == "__main__":
    main()
