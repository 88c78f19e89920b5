"""Measure the weight-free reflectance tool on generated three-way questions, or fit the weights of its cues.

    python -m bench.reflectance [--items 160] [--seed 1000]     accuracy, confusion, calibration, bins for the card
    python -m bench.reflectance --fit [--items 160]             the weights in `tools/reflectance.py`, from seeds 0 to 6

Points come from the markers tool when measuring, as in a run, and from the generator when fitting.
"""

from __future__ import annotations

import argparse
import time

import cv2
import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from hybrid.images import decode
from hybrid.registry import load
from hybrid.samples.blink import item, row
from hybrid.samples.item import ReflectanceFacts
from hybrid.tool import Pixels, Request, Tool
from hybrid.types import Finding
from tools._reflectance_cues import compare, segment
from tools.reflectance import PaintCues, ReflectanceArgs, clean_image

TASK = "Relative_Reflectance"
FIT_SEEDS = range(7)
PENALTY = 1.0
EDGES = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8)

Matrix = npt.NDArray[np.float64]


def marked(pixels: Pixels) -> Request[ReflectanceArgs]:
    """A picture as a request with what the markers tool finds on it."""
    tool: Tool = load("tools", "markers")
    card = tool.card.backends[0]
    arguments = tool.args.model_validate({"labels": ["A", "B"], "kind": "point"})
    (found,) = card.make().run([Request((pixels,), arguments)])
    finding = Finding(found.text, found.data, found.confidence, card.name, card.version)
    return Request((pixels,), ReflectanceArgs(labels=("A", "B")), {"markers": (finding,)})


def measure(items: int, seed: int) -> None:
    """Print accuracy over all and by answer, seconds, and the bins of the card."""
    answers = []
    started = time.perf_counter()
    for index in range(items):
        made = row(TASK, index, seed)
        (found,) = PaintCues().run([marked(decode(made.images[0], made.idx))])
        darker = found.data["darker"]
        letter = "C" if found.data["same"] else darker
        answers.append((made.answer[1], letter, found.confidence))
    print(
        f"{items} items, seed {seed}: {1000 * (time.perf_counter() - started) / items:.0f} ms each, rendering included"
    )
    print(f"  right {np.mean([truth == said for truth, said, _ in answers]):.3f}")
    for truth in "ABC":
        said = [letter for right, letter, _ in answers if right == truth]
        print(f"  {truth}: " + ", ".join(f"{letter} {said.count(letter)}" for letter in ("A", "B", "C", None)))
    for low, high in zip(EDGES, (*EDGES[1:], 1.01), strict=True):
        inside = [truth == said for truth, said, sure in answers if low <= sure < high]
        if inside:
            print(f"  Bin({low}, {sum(inside)}, {len(inside)}),")


def fit(items: int) -> None:
    """Print the weights of both regressions, fitted on the generated pictures of `FIT_SEEDS`."""
    signed, unsigned, truth = [], [], []
    for seed in FIT_SEEDS:
        for index in range(items):
            made = item(TASK, index, seed)
            facts = made.facts
            if not isinstance(facts, ReflectanceFacts):
                raise SystemExit(f"{TASK} item {index} has no reflectances")
            parts = segment(clean_image(marked(decode(row(TASK, index, seed).images[0], TASK))))
            first, second = (parts.at(*point) for point in facts.points)
            cues = compare(parts, first, second)
            signed.append(cues.signed)
            unsigned.append(cues.unsigned)
            truth.append(made.answer)
    answers = np.array(truth)
    differ = answers < 2
    print("DARKER_WEIGHTS =", regress(np.array(signed)[differ], np.where(answers[differ] == 0, 1.0, -1.0)))
    constant = np.ones((len(truth), 1))
    print("DIFFERENT_WEIGHTS =", regress(np.hstack([unsigned, constant]), np.where(differ, 1.0, -1.0)))


def regress(values: Matrix, sign: Matrix) -> tuple[float, ...]:
    """Weights of a logistic regression of `sign` (-1, 1) with a quadratic penalty on standardised columns."""
    scale = np.sqrt((values**2).mean(axis=0))
    columns = values / scale

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        margin = sign * (columns @ weights)
        slope = -(columns.T @ (sign / (1 + np.exp(np.clip(margin, -50, 50)))))
        return float(np.logaddexp(0, -margin).sum() + PENALTY * weights @ weights), slope + 2 * PENALTY * weights

    found = minimize(loss, np.zeros(columns.shape[1]), jac=True, method="L-BFGS-B").x / scale
    return tuple(round(float(weight), 3) for weight in found)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=160)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    if options.fit:
        fit(options.items)
    else:
        measure(options.items, options.seed)


if __name__ == "__main__":
    main()
