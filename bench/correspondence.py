"""Measure the correspondence tool on generated pairs: planar ones of three levels, and BLINK-like items.

    python -m bench.correspondence [--pairs 120] [--seed 1000] [--level hard]... [--photos DIR]
    python -m bench.correspondence --weights DIR_OR_ID [--device cuda]     the learned backend

Pairs are rendered scenes, or the photographs (*.jpg, *.png) of `--photos`, seen as a flat picture under a homography;
`blink` are the items of `hybrid.benchmarks.blink.sample` (half flat, half orbits). Marks are drawn and found again, as
in a run. Constants of the tool were set with seeds below 100.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np

from bench.planar_pairs import LEVELS, Level, planar_pair
from hybrid.benchmarks.blink.sample import item
from hybrid.images import decode
from hybrid.registry import load
from hybrid.samples.item import Item
from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import render
from hybrid.samples.seeds import generator
from hybrid.tool import Args, Backend, Evidence, Pixels, Request, Tool
from hybrid.types import Finding
from tools._shared.reading import shrink
from tools.correspondence import TOOL, CorrespondenceArgs

SIZE = (500, 375)
"""Width and height of rendered pictures; photographs are reduced to this width."""
EDGES = (0.0, 0.55, 0.9, 0.96)


def backend_of(tool: Tool, name: str, device: str, weights: str | None) -> Backend[Args]:
    """A backend, set up."""
    card = tool.backend("learned" if name == "learned" else "classical")
    if card is None:
        raise SystemExit(f"{tool.card.name} has no {name} backend")
    made: Backend[Args] = card.make()
    made.setup(device, weights)
    return made


def pictures(folder: Path | None, number: int, key: Sequence[int]) -> Pixels:
    """A picture: a photograph of the folder, else a rendered scene."""
    if folder is not None:
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
        if not paths:
            raise SystemExit(f"no photographs in {folder}")
        path = paths[number % len(paths)]
        return shrink(decode(path.read_bytes(), str(path)), SIZE[0])
    rng = generator("evaluate", *key, number)
    return render(random_scene(rng), random_camera(rng, *SIZE), rng).rgb


def pairs(level: str, number: int, seed: int, folder: Path | None) -> Iterator[Item]:
    """The first `number` items of a level, or of the BLINK-like task."""
    for index in range(number):
        if level == "blink":
            yield item("Visual_Correspondence", index, seed)
            continue
        kind: Level = next(one for one in LEVELS if one == level)
        key = (seed, LEVELS.index(kind))
        pixels = pictures(folder, index, key)
        yield planar_pair(generator("evaluate", *key, index, 1), pixels, kind, index % 4)


def ask(made: Item, markers: Backend[Args], backend: Backend[Args]) -> Evidence:
    """What the tool says to an item, its marks found first."""
    arguments = load("tools", "markers").args(kind="point")
    found = [markers.run([Request((pixels,), arguments)])[0] for pixels in made.images]
    needs = {"markers": tuple(Finding(one.text, one.data, one.confidence, "classical", "") for one in found)}
    return backend.run([Request(made.images, CorrespondenceArgs(), needs)])[0]


def report(title: str, cases: Sequence[tuple[str, Evidence]], seconds: float) -> None:
    """Print accuracy, by method and by confidence."""
    right = [evidence.data["best"] == letter for letter, evidence in cases]
    print(f"{title}: {sum(right)}/{len(right)} = {np.mean(right):.3f}, {seconds / len(cases):.2f} s a pair")
    methods = sorted({str(evidence.data["method"]) for _, evidence in cases})
    for method in methods:
        chosen = [ok for ok, (_, evidence) in zip(right, cases, strict=True) if evidence.data["method"] == method]
        print(f"  {method:14s} {sum(chosen)}/{len(chosen)}")
    for low, high in zip(EDGES, (*EDGES[1:], 1.01), strict=True):
        chosen = [ok for ok, (_, evidence) in zip(right, cases, strict=True) if low <= evidence.confidence < high]
        if chosen:
            print(f"  confidence {low:.2f} and more: {sum(chosen)}/{len(chosen)}")


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--level", action="append", choices=(*LEVELS, "blink"))
    parser.add_argument("--photos", type=Path, help="folder of photographs to warp")
    parser.add_argument("--weights", help="directory or hub id: measure the learned backend")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    markers = backend_of(load("tools", "markers"), "classical", "cpu", None)
    backend = backend_of(TOOL, "learned" if options.weights else "classical", options.device, options.weights)
    for level in options.level or (*LEVELS, "blink"):
        made = list(pairs(level, options.pairs, options.seed, options.photos))
        started = time.perf_counter()
        cases = [("ABCD"[one.answer], ask(one, markers, backend)) for one in made]
        report(level, cases, time.perf_counter() - started)


if __name__ == "__main__":
    main()
