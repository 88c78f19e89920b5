"""Measure the `ocr` tool on rendered lines of known text: exact lines, character error rate, bins for the card.

    uv run python -m bench.ocr [--items 300] [--seed 1000] [--weights DIR] [--picture OUT.png]

Five faces (those of Pillow and OpenCV), letters of 9 to 48 px, plain, shaded, textured and crowded backgrounds, light
on dark and dark on light; one image in eight has no text. The confidence of the tool was set on seeds 1 and 2; the
card's numbers are from `--items 240 --seed 1000`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bench._accuracy import bins
from bench._frame import options
from hybrid.samples.seeds import generator
from hybrid.tool import Pixels, Request
from tools.ocr import LearnedOcr, OcrArgs

SIZE = (200, 640)
# Every eighth image has no text.
EMPTY = 8
FACES = ("aileron", "sans", "italic", "simplex", "complex")
HERSHEY = {"simplex": cv2.FONT_HERSHEY_SIMPLEX, "complex": cv2.FONT_HERSHEY_COMPLEX}
# Height of capital letters.
HEIGHTS_PX = (9, 12, 18, 28, 48)
GROUNDS = ("plain", "shaded", "texture", "crowded")
WORDS = (
    *("street", "exit", "open", "closed", "market", "garden", "bridge", "coffee", "river", "north"),
    *("platform", "museum", "library", "water", "danger", "parking", "station", "bakery", "private", "summer"),
    *("orange", "window", "travel", "machine", "second", "quiet", "yellow", "school", "dinner", "animal"),
)
EDGES = (0.0, 0.1, 0.4, 0.5, 0.6, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Rendered:
    """An image (H, W, 3) with one line of text or none, and the parameters of its generation."""

    pixels: Pixels
    text: str
    face: str
    height_px: int
    ground: str


@dataclass(frozen=True)
class Read:
    """The tool's text for a rendered line, joined into one row, and its confidence 0..1."""

    rendered: Rendered
    text: str
    confidence: float

    @property
    def exact(self) -> bool:
        """Whether the text is exactly right, with runs of spaces counted as one."""
        return self.text == self.rendered.text


def render(index: int, seed: int) -> Rendered:
    """Render the line with this index and seed, always the same way."""
    rng = generator("evaluate", seed, index)
    face, ground = FACES[index % len(FACES)], GROUNDS[(index // len(FACES)) % len(GROUNDS)]
    height = HEIGHTS_PX[(index // (len(FACES) * len(GROUNDS))) % len(HEIGHTS_PX)]
    text = "" if index % EMPTY == EMPTY - 1 else _text(rng, 12 if height >= 48 else 24)
    dark = bool(rng.random() < 0.5)
    canvas = _ground(rng, ground, dark=dark)
    levels = rng.integers(0, 60, 3) if not dark else rng.integers(205, 256, 3)
    ink = (int(levels[0]), int(levels[1]), int(levels[2]))
    at = (int(rng.integers(8, 40)), int(rng.integers(height + 30, SIZE[0] - height - 10)))
    return Rendered(_write(canvas, text, at, face, height, ink), text, face, height, ground)


def _text(rng: np.random.Generator, longest: int) -> str:
    """Return words, a number, a price, a time or a code, of at most `longest` characters."""
    words = [str(word) for word in rng.choice(WORDS, 3)]
    style = int(rng.integers(0, 3))
    words = [word.upper() if style == 0 else word.capitalize() if style == 1 else word for word in words]
    number = int(rng.integers(1, 1000))
    code = "".join(rng.choice(list("ABCDEFGHJKLMNPRSTUVWXYZ23456789"), 6))
    kinds = (
        " ".join(words[:2]),
        " ".join(words),
        f"{words[0]} {number}",
        f"{words[0]} ${number}.{int(rng.integers(10, 100))}",
        f"{int(rng.integers(10, 24))}:{int(rng.integers(10, 60))} {words[0]}",
        code,
    )
    fitting = [kind for kind in kinds if len(kind) <= longest]
    return fitting[int(rng.integers(0, len(fitting)))]


def _ground(rng: np.random.Generator, kind: str, *, dark: bool) -> Pixels:
    base = rng.integers(0, 70, 3) if dark else rng.integers(185, 256, 3)
    canvas = np.broadcast_to(base.astype(np.float32), (*SIZE, 3)).copy()
    sign = 1 if dark else -1
    if kind == "shaded":
        canvas += sign * np.linspace(0, 60, SIZE[1], dtype=np.float32)[None, :, None]
    elif kind == "texture":
        canvas += cv2.GaussianBlur(rng.normal(0, 60, (*SIZE, 3)).astype(np.float32), (0, 0), 1.5)
    elif kind == "crowded":
        # Triangles, because discs are correctly read as the letter O.
        for _ in range(12):
            corners = rng.integers(-40, SIZE[1] + 40, (3, 2)) * (1.0, SIZE[0] / SIZE[1])
            shade = canvas[0, 0] + sign * rng.uniform(0, 70, 3)
            cv2.fillPoly(canvas, [corners.astype(np.int32)], tuple(map(float, shade)), cv2.LINE_AA)
    return np.clip(canvas, 0, 255).astype(np.uint8)


def _write(canvas: Pixels, text: str, at: tuple[int, int], face: str, height: int, ink: tuple[int, int, int]) -> Pixels:
    """Draw the text with its baseline at `at` and capitals `height` px high."""
    if face == "aileron":
        picture = Image.fromarray(canvas)
        ImageDraw.Draw(picture).text(at, text, fill=ink, font=ImageFont.load_default(height / 0.71), anchor="ls")
        return np.asarray(picture)
    if face in HERSHEY:
        cv2.putText(canvas, text, at, HERSHEY[face], height / 22, ink, max(1, round(height / 12)), cv2.LINE_AA)
    else:
        cv2.putText(canvas, text, at, ink, cv2.FontFace(face), round(height / 0.7))
    return canvas


def distance(first: str, second: str) -> int:
    """Return the Levenshtein distance: the minimum number of characters to insert, remove or replace."""
    row = list(range(len(second) + 1))
    for place, letter in enumerate(first, 1):
        previous, row[0] = row[0], place
        for other, expected in enumerate(second, 1):
            previous, row[other] = row[other], min(row[other] + 1, row[other - 1] + 1, previous + (letter != expected))
    return row[-1]


def measure(items: int, seed: int, backend: LearnedOcr) -> list[Read]:
    """Return the tool's readings of `items` rendered lines."""
    readings = []
    for index in range(items):
        text = render(index, seed)
        (evidence,) = backend.run([Request((text.pixels,), OcrArgs())])
        message = " ".join(str(evidence.data["text"]).split())
        readings.append(Read(text, message, evidence.confidence))
    return readings


def lines(readings: Sequence[Read]) -> list[str]:
    """Return the accuracy over all lines and by face, height and background, and the bins of the card."""
    text = [_row("all", readings)]
    groups: tuple[Callable[[Read], str], ...] = (
        lambda item: "with text" if item.rendered.text else "empty",
        lambda value: value.rendered.face,
        lambda first_item: f"{first_item.rendered.height_px} px",
        lambda item_value: item_value.rendered.ground,
    )
    for name in groups:
        parts: dict[str, list[Read]] = defaultdict(list)
        for reading in readings:
            parts[name(reading)].append(reading)
        text += [_row(key, part) for key, part in parts.items()]
    return [*text, f"  {bins(((entry.confidence, entry.exact) for entry in readings), EDGES)}"]


def _row(name: str, readings: Sequence[Read]) -> str:
    exact = sum(reading.exact for reading in readings)
    letters = sum(item.text.replace(" ", "") == item.rendered.text.replace(" ", "") for item in readings)
    errors = sum(distance(entry.text, entry.rendered.text) for entry in readings)
    total = sum(len(value.rendered.text) for value in readings)
    rate = f"character error rate {errors / total:.4f}" if total else f"{errors} characters read"
    share, aside = exact / len(readings), letters / len(readings)
    return f"{name:10} exact {exact}/{len(readings)} ({share:.3f}), ignoring spaces {aside:.3f}, {rate}"


def main() -> None:
    """Print the table."""
    flags = options(__doc__, {"--items": 300, "--seed": 1000, "--weights": str, "--picture": Path})
    if flags.picture:
        rows = [render(index * 7, flags.seed).pixels for index in range(10)]
        Image.fromarray(np.vstack(rows)).save(flags.picture)
    backend = LearnedOcr()
    backend.setup("cpu", flags.weights)
    started = time.perf_counter()
    readings = measure(flags.items, flags.seed, backend)
    seconds = (time.perf_counter() - started) / max(1, flags.items)
    print(f"{backend.version}, {flags.items} lines, seed {flags.seed}: {seconds:.2f} s each, rendering included")
    print("\n".join(lines(readings)))
    for entry in [reading for reading in readings if not reading.exact][:12]:
        line = entry.rendered
        print(f"  {line.text!r} read {entry.text!r}, {line.face}, {line.height_px} px, {entry.confidence:.2f}")


if __name__ == "__main__":
    main()
