"""Measure the weight-free reflectance tool on generated three-way questions, or fit the weights of its cues.

    python -m bench.reflectance [--items 160] [--seed 1000]     accuracy, confusion, bins for the card
    python -m bench.reflectance --fit [--items 160]             the weights in `tools/reflectance/`, no sample seen
    python -m bench.reflectance --spread [--data BLINK]         how colourful generated pictures and photographs are

Points come from the markers tool when measuring, as in a run, and from the generator when fitting.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from scipy.optimize import minimize

from bench._accuracy import bins, format_share, marks_on
from bench._frame import options
from hybrid.benchmarks.blink.sample import item, letter, row
from hybrid.core.images import decode
from hybrid.samples.item import ReflectanceFacts
from hybrid.samples.seeds import Purpose
from hybrid.tool import Pixels, Request
from tools._shared.reading import shrink
from tools.reflectance import PaintCues, ReflectanceArgs, clean_image
from tools.reflectance.cues import WORK_PX, chromaticity, compare, segment

TASK = "Relative_Reflectance"
FIT_SEEDS = range(7)
PENALTY = 1.0
MIN_SEGMENTS = 5
EDGES = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8)

Matrix = npt.NDArray[np.float64]


def marked(pixels: Pixels) -> Request[ReflectanceArgs]:
    """Make a request of a picture with the markers tool's output for it."""
    labels = ("A", "B")
    return Request(
        (pixels,), ReflectanceArgs(labels=labels), {"markers": (marks_on(pixels, labels=labels, kind="point"),)}
    )


@dataclass(frozen=True)
class Answer:
    """One item: the right letter, the given letter with its confidence, and measures of difficulty.

    `tint` is the larger of the picture's two standard deviations of chromaticity; `misleads` says whether the
    brightness at the points contradicts the truth.
    """

    truth: str
    letter: str
    confidence: float
    tint: float
    misleads: bool

    @property
    def right(self) -> bool:
        """Whether the given letter is the right one."""
        return self.truth == self.letter


def answer(index: int, seed: int) -> Answer:
    """Ask the weight-free backend about one generated picture."""
    built, facts = row(TASK, index, seed), facts_of(index, seed)
    pixels = decode(built.images[0], built.idx)
    (finding,) = PaintCues().run([marked(pixels)])
    text = "C" if finding.data["same"] else str(finding.data["darker"])
    sent = [albedo * light for albedo, light in zip(facts.albedos, facts.lights, strict=True)]
    misleads = built.answer[1] == "C" or (sent[0] < sent[1]) != (facts.albedos[0] < facts.albedos[1])
    return Answer(built.answer[1], text, finding.confidence, max(spread(pixels) or (0.0,)), misleads)


def facts_of(index: int, seed: int, purpose: Purpose = "sample") -> ReflectanceFacts:
    """Return the true answer for one generated picture. Raises `SystemExit` if the generator gives something else."""
    facts = item(TASK, index, seed, purpose).facts
    if not isinstance(facts, ReflectanceFacts):
        raise SystemExit(f"{TASK} item {index} has no reflectances")
    return facts


def measure(items: int, seed: int) -> None:
    """Print accuracy over all pictures and over groups of them, seconds, and the bins of the card."""
    started = time.perf_counter()
    answers = [answer(index, seed) for index in range(items)]
    value = 1000 * (time.perf_counter() - started) / items
    print(f"{items} items, seed {seed}: {value:.0f} ms each, rendering included")
    tints = np.quantile([result.tint for result in answers], (1 / 3, 2 / 3))
    parts = {
        "all": answers,
        "unequal, the brighter point is brighter": [a for a in answers if not a.misleads],
        "unequal, the brighter point is darker": [a for a in answers if a.misleads and a.truth != "C"],
        "the same paint in different light": [a for a in answers if a.truth == "C"],
        f"greyest third of the pictures (spread below {tints[0]:.2f})": [a for a in answers if a.tint < tints[0]],
        f"most colourful third (above {tints[1]:.2f})": [a for a in answers if a.tint >= tints[1]],
    }
    for name, part in parts.items():
        right = sum(output.right for output in part)
        print(f"  {name}: {format_share(right, len(part))}")
    for truth in "ABC":
        values = [other_answer.letter for other_answer in answers if other_answer.truth == truth]
        print(f"  {truth}: " + ", ".join(f"{letter} {values.count(letter)}" for letter in "ABC"))
    print(f"  {bins(((answer_value.confidence, answer_value.right) for answer_value in answers), EDGES)}")


def spread(pixels: Pixels) -> tuple[float, float] | None:
    """Return the standard deviations of log(red/green) and log(blue/green) over a picture's segments.

    A segment's weight is the root of its area.

    Return None for a picture with fewer than `MIN_SEGMENTS` segments that are neither over- nor underexposed.
    """
    parts = segment(shrink(pixels, WORK_PX))
    used = (parts.colour.max(axis=1) < 0.85) & (parts.colour.min(axis=1) > 0.004) & (parts.area > 200)
    if used.sum() < MIN_SEGMENTS:
        return None
    values, weight = chromaticity(parts)[used], np.sqrt(parts.area[used])
    mean = np.average(values, axis=0, weights=weight)
    red, blue = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))
    return float(red), float(blue)


def spreads(items: int, data: Path | None) -> None:
    """Print how much chromaticity spreads in generated pictures and in BLINK's photographs, if available."""
    pictures: dict[str, Iterable[Pixels]] = {
        "generated": (decode(row(TASK, i, FIT_SEEDS[0], "fit").images[0], TASK) for i in range(items))
    }
    for folder in sorted(data.iterdir()) if data else ():
        cells = (
            cell for file in sorted(folder.glob("*.parquet")) for cell in pq.read_table(file)["image_1"].to_pylist()
        )
        pictures[folder.name] = (decode(cell["bytes"], folder.name) for cell in islice(cells, items))
    for name, images in pictures.items():
        result = [values for pixels in images if (values := spread(pixels)) is not None]
        low, middle, high = np.quantile(result, (0.25, 0.5, 0.75), axis=0)
        text = ", ".join(
            f"log {pair} {middle[k]:.2f} ({low[k]:.2f} to {high[k]:.2f})" for k, pair in enumerate(("R/G", "B/G"))
        )
        print(f"{name}: median (quartiles) over {len(result)} pictures: {text}")


def fit(items: int) -> None:
    """Print the weights of both regressions, fitted on pictures of `FIT_SEEDS`, which no sample shows."""
    signed, unsigned, truth = [], [], []
    for seed in FIT_SEEDS:
        for index in range(items):
            parts = segment(clean_image(marked(decode(row(TASK, index, seed, "fit").images[0], TASK))))
            first, second = (parts.at(*point) for point in facts_of(index, seed, "fit").points)
            cues = compare(parts, first, second)
            signed.append(cues.signed)
            unsigned.append(cues.unsigned)
            truth.append(letter(TASK, index, seed, "fit"))
    answers = np.array(truth)
    differ = answers < 2
    print("DARKER_WEIGHTS =", regress(np.array(signed)[differ], np.where(answers[differ] == 0, 1.0, -1.0)))
    constant = np.ones((len(truth), 1))
    print("DIFFERENT_WEIGHTS =", regress(np.hstack([unsigned, constant]), np.where(differ, 1.0, -1.0)))


def regress(values: Matrix, sign: Matrix) -> tuple[float, ...]:
    """Fit the weights of a logistic regression of `sign` (-1, 1) with a quadratic penalty on standardised columns."""
    scale = np.sqrt((values**2).mean(axis=0))
    columns = values / scale

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        margin = sign * (columns @ weights)
        slope = -(columns.T @ (sign / (1 + np.exp(np.clip(margin, -50, 50)))))
        return float(np.logaddexp(0, -margin).sum() + PENALTY * weights @ weights), slope + 2 * PENALTY * weights

    fitted = minimize(loss, np.zeros(columns.shape[1]), jac=True, method="L-BFGS-B").x / scale
    return tuple(round(float(weight), 3) for weight in fitted)


def main() -> None:
    """Print the requested tables."""
    flags = options(__doc__, {"--items": 160, "--seed": 1000, "--fit": False, "--spread": False, "--data": Path})
    cv2.setNumThreads(1)
    if flags.fit:
        fit(flags.items)
    elif flags.spread:
        spreads(flags.items, flags.data)
    else:
        measure(flags.items, flags.seed)


if __name__ == "__main__":
    main()
