"""How well our own mark finder reads BLINK's points when they are marked anew at other sizes and colours.

    python -m bench.mark_styles --data DIR [--limit 6]       DIR in BLINK's layout; real images of its marked tasks
    python -m bench.mark_styles --scenes 6                   generated pictures, if no data is at hand

First of how many pictures the marks can be redrawn, and on how many of these the finder sees none any more where they
were taken off. Then for each style of `--setting marks` on how many all letters are read again, each within 1 % of
the picture's height (at least 3 px) of where it was drawn. On BLINK's own images the places are those that the finder
itself reads first, so that its errors there are not seen here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from bench._accuracy import blink_rows
from bench._frame import options
from hybrid.benchmarks.blink import MARKED_POINTS
from hybrid.benchmarks.blink.marks import MIN_CONFIDENCE, TakenOff, drawn_again, read_restyle, taken_off
from hybrid.errors import DataError
from hybrid.images import decode
from hybrid.marks.drawing import draw_marks
from hybrid.marks.finding import find_marks
from hybrid.marks.marks import Marks
from hybrid.samples.backgrounds import BACKGROUNDS, background
from hybrid.samples.seeds import generator
from hybrid.stats import wilson
from hybrid.tool import Pixels
from hybrid.types import Point

# Those of the paper's Figure 7, and others on pictures of the size they have.
STYLES = (
    *(f"radius:{radius},color:{color},height:1024" for color in ("red", "gray") for radius in (5, 10, 15)),
    *(f"radius:{radius}" for radius in (5, 10, 15)),
    "color:gray",
    "color:white",
)
TOLERANCE = 0.01
MIN_TOLERANCE_PX = 3.0


@dataclass(frozen=True)
class Marked:
    """A picture with marks, and the letters on it."""

    pixels: Pixels
    labels: tuple[str, ...]


def real(folder: Path, limit: int) -> Iterator[Marked]:
    """So many pictures of each of BLINK's marked tasks that the folder has."""
    for task in MARKED_POINTS:
        rows = blink_rows(folder, task, least=0)
        for row in rows[:limit]:
            last = "image_2" if row.get("image_2") else "image_1"
            letters = tuple(m[1] for choice in row["choices"] if (m := re.search(r"\b([A-D])\b", choice)))
            yield Marked(decode(row[last]["bytes"], f"{task} {row['idx']}"), letters)


def generated(count: int) -> Iterator[Marked]:
    """Pictures with two red points as BLINK draws them."""
    for number in range(count):
        rng = generator("evaluate", number)
        ground = background(rng, BACKGROUNDS[number % len(BACKGROUNDS)], 360, 480)
        places = [(rng.uniform(60, 200), rng.uniform(80, 300)), (rng.uniform(280, 420), rng.uniform(80, 300))]
        points = [Point(x, y, label) for (x, y), label in zip(places, "AB", strict=True)]
        yield Marked(draw_marks(ground, points), ("A", "B"))


@dataclass(frozen=True, eq=False)
class Bared:
    """A picture whose marks were taken off, and whether the finder sees none of them any more."""

    taken: TakenOff
    clean: bool


def bared(picture: Marked) -> Bared | None:
    """The picture without its marks; None where they cannot be redrawn."""
    try:
        taken = taken_off(picture.pixels, picture.labels)
    except DataError:
        return None
    left = _named(find_marks(taken.pixels, picture.labels, "point"))
    # A mark that is seen elsewhere is chance, and none that was left.
    near = (np.hypot(x - mark.x, y - mark.y) <= 2 * mark.radius_px for mark in taken.marks for x, y in left.values())
    return Bared(taken, not any(near))


def is_read(picture: Bared, setting: str) -> bool:
    """Whether every letter, drawn anew in a style, is read again in its place."""
    again = drawn_again(picture.taken, read_restyle(setting))
    scale = again.shape[0] / picture.taken.pixels.shape[0]
    near = max(MIN_TOLERANCE_PX, TOLERANCE * again.shape[0])
    found = _named(find_marks(again, [str(mark.label) for mark in picture.taken.marks], "point"))
    return all(
        str(mark.label) in found
        and float(np.hypot(*(found[str(mark.label)] - (np.array([mark.x, mark.y]) + 0.5) * scale + 0.5))) <= near
        for mark in picture.taken.marks
    )


def _named(marks: Marks) -> dict[str, npt.NDArray[np.float64]]:
    """The places of the marks that are believed, by letter."""
    return {
        mark.label: np.array([mark.x, mark.y])
        for mark in marks.points
        if mark.label is not None and mark.confidence >= MIN_CONFIDENCE
    }


def table(pictures: Sequence[Marked], styles: Sequence[str] = STYLES) -> list[str]:
    """How many can be redrawn and are clean, and one line a style: those read again, with Wilson's 95 % interval."""
    bare = [one for picture in pictures if (one := bared(picture)) is not None]
    clean = sum(one.clean for one in bare)
    lines = [
        f"{len(bare)} of {len(pictures)} pictures can be redrawn; on {clean} of these no old mark is seen any more"
    ]
    for style in styles:
        right = sum(is_read(picture, style) for picture in bare)
        interval = wilson(right, len(bare))
        ends = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""
        lines.append(f"{style:34} {right}/{len(bare)}{ends}")
    return lines


def main() -> None:
    """Print the table."""
    given = options(__doc__, {"--data": Path, "--scenes": 0, "--limit": 6})
    cv2.setNumThreads(1)
    pictures = [*(real(given.data, given.limit) if given.data else ()), *generated(given.scenes)]
    started = time.monotonic()
    for line in table(pictures):
        print(line)
    print(f"{len(pictures)} pictures, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
