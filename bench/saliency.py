"""Measure the weight-free saliency tool on generated pictures with things that stand out in a known order.

    python -m bench.saliency [--items 100] [--seed 1000]

Prints the rank correlation (Spearman) with the known order, how often the first box is the most salient thing by
confidence (the bins of the card), how often the number of things is right, and how often counting would answer BLINK's
generated Counting questions. Size and contrast fall together in these pictures; `area` is what size alone scores.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence

import cv2
import numpy as np
from scipy.stats import spearmanr

from hybrid.benchmarks.blink.sample import item
from hybrid.samples.pop_out import Scene, pop_out
from hybrid.samples.seeds import generator
from hybrid.tool import Evidence, Pixels, Request
from tools._shared.args import BoxArg
from tools.saliency import SaliencyArgs, SaliencyCues

EDGES = (0.0, 0.55, 0.65, 0.75, 0.85)


def ask(pixels: Pixels, args: SaliencyArgs) -> Evidence:
    """What the tool finds."""
    return SaliencyCues().run([Request((pixels,), args)])[0]


def ranks_of(found: Evidence) -> list[int]:
    """The rank of each box in the order given, from boxes labelled by their place."""
    objects = found.data["objects"]
    if not isinstance(objects, Sequence) or isinstance(objects, str):
        raise SystemExit("saliency gives no list of objects")
    rows = sorted((int(str(entry["label"])), int(str(entry["rank"]))) for entry in objects if isinstance(entry, dict))
    return [rank for _, rank in rows]


def scenes(items: int, seed: int) -> list[Scene]:
    """Scenes with three to six things."""
    found = []
    for index in range(items):
        rng = generator("evaluate", seed, index)
        found.append(pop_out(rng, int(rng.integers(3, 7))))
    return found


def report(items: int, seed: int) -> None:
    """Print ranks, bins and counts."""
    correlations, firsts, counts = [], [], []
    started = time.perf_counter()
    for scene in scenes(items, seed):
        pixels = scene.draw()
        order = np.random.default_rng(scene.seed).permutation(len(scene.things))
        boxes = [
            BoxArg(**dict(zip(("x0", "y0", "x1", "y1"), scene.things[rank].box, strict=True)), label=str(place))
            for place, rank in enumerate(order)
        ]
        found = ask(pixels, SaliencyArgs(boxes=tuple(boxes)))
        ranks = ranks_of(found)
        correlations.append(float(spearmanr(ranks, order).statistic))
        firsts.append((found.confidence, int(order[ranks.index(1)]) == 0))
        counts.append((len(scene.things), ask(pixels, SaliencyArgs()).data["count"]))
    ms = 1000 * (time.perf_counter() - started) / (2 * items)
    print(f"{items} pictures, seed {seed}: {ms:.0f} ms a call")
    print(f"  rank correlation {np.mean(correlations):.3f}, first right {np.mean([right for _, right in firsts]):.3f}")
    print(f"  number right {np.mean([truth == said for truth, said in counts]):.3f}")
    for low, high in zip(EDGES, (*EDGES[1:], 1.01), strict=True):
        inside = [right for sure, right in firsts if low <= sure < high]
        if inside:
            print(f"  Bin({low}, {sum(inside)}, {len(inside)}),")


def counting(items: int, seed: int) -> None:
    """Print how often the number of salient objects is the right choice of a Counting question."""
    right = offered = 0
    for index in range(items):
        made = item("Counting", index, seed)
        count = ask(made.images[0], SaliencyArgs()).data["count"]
        numbers = [int(found[0]) for choice in made.choices if (found := re.search(r"\d+", choice))]
        offered += count in numbers
        right += count == numbers[made.answer]
    print(f"Counting: {items} questions, number among the choices {offered / items:.3f}, right {right / items:.3f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    report(options.items, options.seed)
    counting(min(60, options.items), options.seed)


if __name__ == "__main__":
    main()
