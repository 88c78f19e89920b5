"""Measure the weight-free saliency tool on generated pictures with things that stand out in a known order.

    python -m bench.saliency [--items 100] [--seed 1000] [--json FILE]

Prints the rank correlation (Spearman) with the known order, how often the first box is the most salient thing, how
often the number of things is right, and how often it answers BLINK's generated Counting questions. In these pictures
size and contrast decrease together; the results say nothing about people.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scipy.stats import spearmanr

from bench._frame import options, write_json
from hybrid.benchmarks.blink.sample import item
from hybrid.samples.pop_out import pop_out
from hybrid.samples.seeds import generator
from hybrid.tool import Evidence, Pixels, Request
from tools._shared.args import BoxArg
from tools.saliency import SaliencyArgs, SaliencyCues


def ask(pixels: Pixels, args: SaliencyArgs) -> Evidence:
    """Return the tool's output."""
    return SaliencyCues().run([Request((pixels,), args)])[0]


def ranked_and_counted(items: int, seed: int) -> dict[str, float]:
    """Measure ranks of boxes and counts of objects on `items` generated scenes: shares right, and ms per call."""
    correlations, firsts, beyond = list[float](), list[bool](), list[int]()
    started = time.perf_counter()
    for index in range(items):
        rng = generator("evaluate", seed, index)
        scene = pop_out(rng, int(rng.integers(3, 7)))
        pixels = scene.draw()
        order = np.random.default_rng(scene.seed).permutation(len(scene.objects))
        boxes = [
            BoxArg(**dict(zip(("x0", "y0", "x1", "y1"), scene.objects[rank].box, strict=True)), label=str(place))
            for place, rank in enumerate(order)
        ]
        objects: Any = ask(pixels, SaliencyArgs(boxes=tuple(boxes))).data["objects"]
        # Boxes are labelled by their index.
        ranks = [int(entry["rank"]) for entry in sorted(objects, key=lambda value: int(value["label"]))]
        correlations.append(float(spearmanr(ranks, order).statistic))
        firsts.append(bool(order[ranks.index(1)] == 0))
        beyond.append(int(str(ask(pixels, SaliencyArgs()).data["count"])) - len(scene.objects))
    ms, off = 1000 * (time.perf_counter() - started) / (2 * items), np.array(beyond)
    shares = {"rank_correlation": correlations, "first_right": firsts, "number_right": off == 0}
    shares["number_too_small"] = off < 0
    return {"items": items, "ms": ms, **{name: float(np.mean(values)) for name, values in shares.items()}}


def counting(items: int, seed: int) -> dict[str, float]:
    """Count the Counting questions whose choices include the number of salient objects, and those answered right."""
    right = offers = 0
    for index in range(items):
        drawn_item = item("Counting", index, seed)
        count = ask(drawn_item.images[0], SaliencyArgs()).data["count"]
        numbers = [int(match[0]) for choice in drawn_item.choices if (match := re.search(r"\d+", choice))]
        offers += count in numbers
        right += count == numbers[drawn_item.answer]
    return {"items": items, "offered": offers / items, "right": right / items}


def main() -> None:
    """Print the tables."""
    flags = options(__doc__, {"--items": 100, "--seed": 1000, "--json": Path})
    cv2.setNumThreads(1)
    result = ranked_and_counted(flags.items, flags.seed)
    counts = counting(min(60, flags.items), flags.seed)
    for name, numbers in (("generated", result), ("counting", counts)):
        text = ", ".join(f"{key.replace('_', ' ')} {value:.3f}" for key, value in numbers.items() if key != "items")
        print(f"{name}, {numbers['items']} items, seed {flags.seed}: {text}")
    write_json(flags.json, {"generated": result, "counting": counts})


if __name__ == "__main__":
    main()
