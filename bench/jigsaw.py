"""Measure the jigsaw tool on BLINK items and on generated puzzles.

    python -m bench.jigsaw --data DIR        accuracy of the vote, of each cost, of the frame shortcut
    python -m bench.jigsaw --generated 300   how often each bin of confidence is right on generated puzzles

DIR has BLINK's layout (`DIR/Jigsaw/val-*.parquet`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from bench._accuracy import bins, blink_rows, by_confidence
from bench._frame import options
from hybrid.core.images import decode
from hybrid.samples.seeds import generator
from hybrid.tool import Pixels
from tools.jigsaw import decide, vote

EDGES = (0.0, 0.6, 0.7, 0.8, 0.9, 0.97)
# Id, images (reference first), index of the right candidate from 0.
Item = tuple[str, list[Pixels], int]


def read_items(folder: Path) -> list[Item]:
    """Return the puzzles of `folder/Jigsaw/val-*.parquet`."""
    items = []
    for row in blink_rows(folder, "Jigsaw"):
        cells = [row[f"image_{n}"] for n in range(1, 5)]
        images = [decode(cell["bytes"], row["idx"]) for cell in cells if cell is not None]
        items.append((row["idx"], images, "ABCD".index(row["answer"].strip("()"))))
    return items


def frame_step(piece: Pixels) -> float:
    """Return the largest mean step from the third line to the outermost one, over the four sides, in grey levels."""
    grey = cv2.cvtColor(piece, cv2.COLOR_RGB2GRAY).astype(np.float64)
    sides = ((grey[0], grey[2]), (grey[-1], grey[-3]), (grey[:, 0], grey[:, 2]), (grey[:, -1], grey[:, -3]))
    return max(float((outer - inner).mean()) for outer, inner in sides)


def table(items: Sequence[Item], trim_px: int, title: str) -> None:
    """Print the right answers of the vote and of each cost alone, and the accuracy by confidence."""
    started = time.perf_counter()
    fits = [[costs for _, _, costs in vote(images, trim_px)[0]] for _, images, _ in items]
    ms = 1000 * (time.perf_counter() - started) / len(items)
    rights = [right for _, _, right in items]
    verdicts = [decide(costs) for costs in fits]
    won = [verdict.best == right for verdict, right in zip(verdicts, rights, strict=True)]
    print(f"{title}: vote {sum(won)}/{len(items)}, {ms:.1f} ms an item")
    for column, name in enumerate(("l1", "ncc", "step_ratio")):
        choices = [int(np.argmin([fit.costs[column] for fit in costs])) for costs in fits]
        print(f"  {name:10s} {sum(c == r for c, r in zip(choices, rights, strict=True))}/{len(items)}")
    answers = [(verdict.confidence, ok) for verdict, ok in zip(verdicts, won, strict=True)]
    for item in by_confidence(answers, EDGES):
        text = f"mean {item.confidence:.2f}, right {item.right}/{item.n}"
        print(f"  confidence {item.low:.2f}-{item.high:.2f}: {text}")
    print(f"  reliability: {bins(answers)}")


def frame_rule(items: Sequence[Item], title: str) -> None:
    """Print the accuracy of rejecting the brightest frame, a shortcut in the data that ignores the seams."""
    hits = sum(int(np.argmin([frame_step(piece) for piece in images[1:]])) == right for _, images, right in items)
    print(f"frame-only rule, {title}: {hits}/{len(items)}")


def generated(number: int, seed: int) -> list[Item]:
    """Make puzzles from fractal noise with varying smoothness, gain, sensor noise and JPEG quality."""
    rng = generator("evaluate", seed)
    return [(f"generated_{n}", *_puzzle(rng)) for n in range(number)]


def _puzzle(rng: np.random.Generator) -> tuple[list[Pixels], int]:
    size = 2 * int(rng.integers(40, 120))
    exponent, gain, noise = rng.uniform(0.6, 2.2), rng.uniform(2, 40), rng.uniform(0, 30)
    count, half, side = int(rng.integers(2, 5)), size // 2, 3 * size
    # A fractal field: noise whose spectrum falls with a power of the frequency.
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None])
    frequency[0, 0] = 1.0
    spectrum = np.fft.fft2(rng.normal(size=(side, side, 3)), axes=(0, 1)) / frequency[..., None] ** exponent
    spectrum[0, 0] = 0
    plane = np.fft.ifft2(spectrum, axes=(0, 1)).real
    field = plane / plane.std() * gain + rng.uniform(60, 190, 3)
    full = field[:size, :size]
    spots = [(int(y), int(x)) for y, x in rng.integers(size // 4, 2 * size, (count, 2))]
    pieces = [field[y : y + half, x : x + half] for y, x in spots]
    right = int(rng.integers(count))
    pieces[right] = full[half:, half:]
    reference = _camera(rng, full, noise)
    reference[half:, half:] = 0
    return [reference, *(_camera(rng, piece, noise) for piece in pieces)], right


def _camera(rng: np.random.Generator, scene: npt.NDArray[np.float64], noise: float) -> Pixels:
    noisy = np.clip(scene + rng.normal(0, 1, scene.shape) * noise, 0, 255).astype(np.uint8)
    quality = int(rng.integers(40, 95))
    coded = cv2.imencode(".jpg", noisy, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)


def main() -> None:
    """Print the requested tables."""
    flags = options(__doc__, {"--data": Path, "--generated": 0, "--seed": 0})
    cv2.setNumThreads(1)
    if flags.data is not None:
        items = read_items(flags.data)
        table(items, 0, "plain")
        # All candidates are cropped by 2 px on every side.
        cut = [
            (name, [images[0], *(image[2:-2, 2:-2] for image in images[1:])], right) for name, images, right in items
        ]
        table(cut, 0, "candidates cut by 2 px before the tool sees them")
        table(items, 2, "trim_px=2")
        frame_rule(items, "plain")
        frame_rule(cut, "candidates cut by 2 px")
    if flags.generated:
        table(generated(flags.generated, flags.seed), 0, "generated")


if __name__ == "__main__":
    main()
