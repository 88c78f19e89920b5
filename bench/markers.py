"""Measure the mark finder on generated scenes, on BLINK's Relative_Depth images and on photographs without marks.

    python -m bench.markers --scenes 1000 --seed 200000              asked for letters, as in the benchmark's questions
    python -m bench.markers --scenes 300 --seed 300000 --unasked     without the letters as arguments
    python -m bench.markers --overlap 400 --seed 400000              two overlapping boxes, by kind and amount
    python -m bench.markers --data DIR                               how often both letters are found on real images
    python -m bench.markers --changed DIR [--scenes 60]              other sizes, grey, compressed: lost marks
    python -m bench.markers --unmarked DIR                           how often a mark is found where none is drawn

A mark is right if its letter is right and its centre is within 3 px; a box is right if letter and colour are right and
every side is within 3 px. Rows are kinds of mark with the 95 % Wilson interval; a row above 0.99 whose interval starts
lower has few marks. A pair of overlapping boxes is right if both boxes are; the finder was fitted on other pairs. The
font "opencv" is in no template, so its row is held out. The last table is the card's reliability: how often everything
in a tool output was right, by its confidence. `--fit` uses scenes for setting constants, which are never those measured
without it (`hybrid/samples/seeds.py`). `--changed` first draws marks at known positions on BLINK's Jigsaw and
Spatial_Relation photographs. Then it uses Relative_Depth, where a mark is off if it is not at its position in the
original image.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import cv2
import numpy as np

from bench._accuracy import blink_rows, by_confidence
from bench._frame import options
from bench.marked_scenes import MarkedScene, boxed_scene, marked_scene, meeting, overlapping_scene, scene_on
from bench.picture_changes import CHANGES
from hybrid.core.images import decode
from hybrid.core.types import Box, Point
from hybrid.marks.marks import Marks
from hybrid.marks.marks_json import marks_from
from hybrid.samples.objects import share_of_union
from hybrid.samples.seeds import Purpose, generator
from hybrid.stats import wilson
from hybrid.tool import Pixels
from tools._shared.reading import shrink
from tools.markers import UNSURE, MarkersArgs, all_marks, find_all, locate, marks_for_data, marks_for_text

EDGES = (0.0, 0.3, 0.5, 0.7, 0.9, 0.97)
TOLERANCE_PX = 3.0
# Number that separates the seeds of overlapping pairs from those of other scenes.
PAIRS = 14
# Number that separates the seeds of marks on photographs from those of other scenes.
PHOTOGRAPHS = 15


@dataclass(frozen=True)
class Judged:
    """A drawn mark: its kinds, whether it was found in its position with its letter, and a box's overlap, 0..1."""

    kinds: tuple[str, ...]
    right: bool
    overlap: float | None = None


def judge(scene: MarkedScene, marks: Marks) -> list[Judged]:
    """Judge every drawn mark of a scene."""
    points = {mark.label: mark for mark in marks.points}
    boxes = {mark.label: mark for mark in marks.boxes}
    style = scene.style
    shared = ("all", f"on {scene.background}", f"font {style.font}", f"line {style.stroke_px} px")
    judged = []
    for point in scene.points:
        near = points.get(point.label)
        right = near is not None and float(np.hypot(near.x - point.x, near.y - point.y)) <= TOLERANCE_PX
        # The region is a ring with the space for its letter above or below.
        radius, far = style.radius_px, style.radius_px + style.gap_px + round(1.4 * style.letter_px)
        reach = Box(point.x - radius, point.y - far, point.x + radius + 1, point.y + radius + 1)
        low = min(radius // 4 * 4, 16)
        band = f"{low:2d}-{low + 3 if low < 16 else 20} px"
        arguments = (f"color {style.color}", f"radius {band}", f"label {point.label}")
        judged.append(Judged((*shared, *arguments, _place(reach, scene)), right))
    for box in scene.boxes:
        value = boxes.get(box.label)
        right = value is not None and value.color == box.color
        if value is not None:
            off = np.subtract(astuple(value.box_px), astuple(box.box))
            right = right and bool(np.abs(off).max() <= TOLERANCE_PX)
        crossing = "crossing" if share_of_union(*(item.box for item in scene.boxes)) > 0 else "not crossing"
        kinds = (f"color {box.color}", f"label {box.label}", crossing, _place(box.box, scene))
        judged.append(
            Judged((*shared, *kinds), right, share_of_union(value.box_px, box.box) if value is not None else 0.0)
        )
    return judged


def _place(box: Box, scene: MarkedScene) -> str:
    height, width = scene.pixels.shape[:2]
    touches = box.x0 <= 0 or box.y0 <= 0 or box.x1 >= width or box.y1 >= height
    return "at the border" if touches else "inside"


def measure(
    make: Callable[[np.random.Generator], MarkedScene], seeds: range, is_asked: bool, title: str, purpose: Purpose
) -> None:
    """Print the found marks by what was drawn, and the accuracy of tool outputs by confidence."""
    table: dict[str, list[bool]] = defaultdict(list)
    findings: list[tuple[float, bool]] = []
    overlaps: list[float] = []
    more, seconds = 0, 0.0
    for seed in seeds:
        scene = make(generator(purpose, seed))
        labels = tuple([str(point.label) for point in scene.points] + [box.label for box in scene.boxes])
        args = MarkersArgs.model_validate({"labels": labels if is_asked else ()})
        started = time.perf_counter()
        evidence = locate(scene.pixels, args)
        seconds += time.perf_counter() - started
        marks = marks_from(evidence.data)
        judged = judge(scene, marks)
        extra = len(marks.points) + len(marks.boxes) > len(labels)
        more += extra
        findings.append((evidence.confidence, all(mark.right for mark in judged) and not extra))
        overlaps.extend(mark.overlap for mark in judged if mark.overlap is not None)
        for mark in judged:
            for kind in mark.kinds:
                table[kind].append(mark.right)
    print(f"{title}: {1000 * seconds / len(seeds):.0f} ms an image, surplus marks in {more}/{len(seeds)} images")
    for key, values in sorted(table.items()):
        print(f"  {key:18s} {_share(sum(values), len(values))}")
    if overlaps:
        print(
            f"  overlap with the true box: mean {np.mean(overlaps):.4f}, >= 0.9: "
            f"{_share(sum(value >= 0.9 for value in overlaps), len(overlaps))}"
        )
    reliability(findings)


def overlapping(seeds: range) -> None:
    """Print on how many images both of two overlapping boxes are right and passed on, and the confidence."""
    table: dict[str, list[bool]] = defaultdict(list)
    findings: list[tuple[float, bool]] = []
    seconds = 0.0
    for seed in seeds:
        scene = overlapping_scene(generator("evaluate", PAIRS, seed))
        started = time.perf_counter()
        evidence = locate(scene.pixels, MarkersArgs(labels=("A", "B"), kind="box"))
        seconds += time.perf_counter() - started
        right = all(mark.right for mark in judge(scene, marks_from(evidence.data)))
        findings.append((evidence.confidence, right))
        first, second = scene.boxes
        low = min(int(share_of_union(first.box, second.box) * 10) // 2 * 2, 6)
        mode = meeting(first.box, second.box)
        colors = "one colour" if first.color == second.color else "two colours"
        coded = "jpeg" if scene.jpeg_quality is not None else "not coded"
        shared, ground = f"0.{low}-0.{low + 2} shared", f"on {scene.background}"
        for kind in ("all", shared, mode, colors, f"{mode}, {colors}", ground, coded):
            table[kind].append(right)
    print(f"overlapping pairs: {1000 * seconds / len(seeds):.0f} ms an image")
    for key, values in sorted(table.items()):
        print(f"  {key:24s} {_share(sum(values), len(values))}")
    reliability(findings)


def _share(k: int, n: int) -> str:
    around = wilson(k, n)
    return f"{k:5d}/{n:<5d} {k / n:.4f}" + (f" [{around.low:.4f}, {around.high:.4f}]" if around is not None else "")


def reliability(findings: Sequence[tuple[float, bool]]) -> None:
    """Print the number of right answers and of all answers by confidence."""
    for item in by_confidence(findings, EDGES):
        print(f"  confidence {item.low:.2f}-{item.high:.2f}: right {item.right}/{item.n}")


def real(folder: Path) -> None:
    """Print on how many real images both letters were found, and the lowest confidence."""
    rows = blink_rows(folder, "Relative_Depth", columns=("idx", "image_1"))
    images = [(row["idx"], decode(row["image_1"]["bytes"], row["idx"])) for row in rows]
    started = time.perf_counter()
    findings = [(locate(pixels, MarkersArgs(labels=("A", "B"))), name) for name, pixels in images]
    ms = 1000 * (time.perf_counter() - started) / len(rows)
    total = sum({mark.label for mark in marks_from(evidence.data).points} == {"A", "B"} for evidence, _ in findings)
    least = sorted((round(evidence.confidence, 2), name) for evidence, name in findings)[:5]
    print(f"Relative_Depth: both letters on {total}/{len(rows)} images, {ms:.0f} ms an image; least sure: {least}")


def changed(folder: Path, seeds: range, purpose: Purpose) -> None:
    """Print, for each of `CHANGES`, on how many images a mark is not passed on, or is more than 3 px off."""
    rows = blink_rows(folder, "Jigsaw", "Spatial_Relation", columns=("idx", "image_1"))
    results = []
    for seed in seeds:
        rng = generator(purpose, PHOTOGRAPHS, seed)
        row = rows[int(rng.integers(len(rows)))]
        scene = scene_on(rng, shrink(decode(row["image_1"]["bytes"], row["idx"]), 500))
        results.append((scene.pixels, scene.points))
    _changed("marks on photographs", results)
    rows = blink_rows(folder, "Relative_Depth", columns=("idx", "image_1"))
    images = [decode(row["image_1"]["bytes"], row["idx"]) for row in rows]
    _changed("Relative_Depth", [(pixels, _points(pixels)) for pixels in images])


def _points(pixels: Pixels) -> tuple[Point, ...]:
    marks = marks_from(locate(pixels, MarkersArgs(labels=("A", "B"))).data)
    return tuple(Point(mark.x, mark.y, mark.label) for mark in marks.points)


def _changed(title: str, pictures: Sequence[tuple[Pixels, Sequence[Point]]]) -> None:
    for name, change in CHANGES.items():
        missing, off, started = 0, 0, time.perf_counter()
        for pixels, points in pictures:
            other = np.ascontiguousarray(change(pixels))
            by = other.shape[1] / pixels.shape[1]
            by_label = {point.label: point for point in _points(other)}
            missing += not {point.label for point in points} <= set(by_label)
            off += sum(
                float(
                    np.hypot((by_label[p.label].x + 0.5) / by - 0.5 - p.x, (by_label[p.label].y + 0.5) / by - 0.5 - p.y)
                )
                > TOLERANCE_PX
                for p in points
                if p.label in by_label
            )
        ms = 1000 * (time.perf_counter() - started) / max(1, len(pictures))
        print(
            f"{title}, {name:13s} a mark lost on {missing} of {len(pictures)}, {off} marks off, {ms:.0f} ms", flush=True
        )


def unmarked(folder: Path) -> None:
    """Print on how many photographs without marks (BLINK's Jigsaw and Spatial_Relation) a mark is reported."""
    rows = blink_rows(folder, "Jigsaw", "Spatial_Relation", columns=("idx", "image_1"))
    images = [decode(row["image_1"]["bytes"], row["idx"]) for row in rows]
    for labels in ((), ("A", "B"), ("A", "B", "C", "D"), ("REF",)):
        values = [find_all(pixels, MarkersArgs.model_validate({"labels": labels})) for pixels in images]
        passed = sum(bool(all_marks(marks_for_data(marks))) for marks in values)
        total = sum(bool(all_marks(marks_for_text(marks))) for marks in values)
        seen = [mark.confidence for marks in values for mark in all_marks(marks)]
        text = ", ".join(labels) or "nothing"
        print(
            f"asked for {text}: a mark of confidence >= {UNSURE} {_share(passed, len(values))}, "
            f"{len(seen)} less sure ones, the surest {max(seen, default=0.0):.2f}; a mark named to a model on {total}"
        )


def main() -> None:
    """Print the requested tables."""
    flags = {"--data": Path, "--unmarked": Path, "--changed": Path, "--scenes": 0, "--overlap": 0, "--seed": 200000}
    arguments = options(__doc__, {**flags, "--unasked": False, "--fit": False})
    cv2.setNumThreads(1)
    seeds = range(arguments.seed, arguments.seed + arguments.scenes)
    purpose: Purpose = "fit" if arguments.fit else "evaluate"
    if arguments.changed is not None:
        changed(arguments.changed, seeds, purpose)
    elif arguments.scenes:
        measure(marked_scene, seeds, not arguments.unasked, "points", purpose)
        measure(boxed_scene, seeds, not arguments.unasked, "boxes", purpose)
    if arguments.overlap:
        overlapping(range(arguments.seed, arguments.seed + arguments.overlap))
    if arguments.data is not None:
        real(arguments.data)
    if arguments.unmarked is not None:
        unmarked(arguments.unmarked)


if __name__ == "__main__":
    main()
