"""Generated questions in ActiView's official layout: signs and small objects whose clues are in known parts.

Answers and clue views are known by construction. Pictures and wording are this project's own, so a score on them is
never an ActiView result. Item i of a task depends only on (seed, task, i).
Run: `hybrid run actiview --data sample`.
"""

from __future__ import annotations

import json
import tomllib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from hybrid.benchmarks._shared.samples import check_item, check_request, indices_to_draw
from hybrid.benchmarks.actiview.views import cut, lined, shrink_to_part
from hybrid.core.files import write_atomic
from hybrid.samples.backgrounds import BACKGROUNDS, background
from hybrid.samples.item import jpeg, pick, until
from hybrid.samples.layouts import apart
from hybrid.samples.seeds import Purpose, generator
from hybrid.tool import Pixels

WIDTH, HEIGHT = 960, 720
DISC_PX = 9
FONT = cv2.FONT_HERSHEY_SIMPLEX
FONT_SCALE = 0.62
MARGIN = 8

# x0, y0, x1, y1 in pixels, x1 and y1 exclusive.
Rect = tuple[int, int, int, int]

FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
COLOURS: Mapping[str, Sequence[int]] = FACTS["colours"]
COUNTRIES, PLACES = FACTS["countries"], FACTS["places"]
BORDER = "Which country does the border sign welcome visitors to?"
POINTS = {"north": (0, -1), "south": (0, 1), "west": (-1, 0), "east": (1, 0)}

ANSWER_KEYS = ("hard", "medium", "easy")


@dataclass(frozen=True, eq=False)
class ClueQuestion:
    """A question with its picture (H, W, 3) and the boxes of its clues; `answer` is an index of `options`."""

    question: str
    options: tuple[str, ...]
    answer: int
    pixels: Pixels
    clues: tuple[Rect, ...]


class Canvas:
    """A picture in progress, and the areas already used."""

    def __init__(self, rng: np.random.Generator) -> None:
        kind = BACKGROUNDS[pick(rng, len(BACKGROUNDS))]
        rough = background(rng, kind, HEIGHT // 4, WIDTH // 4).astype(np.float32) * 0.35 + 120
        calm = cv2.resize(rough, (WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR)
        self.rng = rng
        self.pixels: Pixels = np.clip(calm, 0, 255).astype(np.uint8)
        self._taken: list[Rect] = []

    def room(self, width: int, height: int) -> Rect:
        """Return a free area of that size at a random position. Raises `HybridError` if none is found."""

        def attempt() -> Rect | None:
            x = int(self.rng.integers(MARGIN, WIDTH - width - MARGIN))
            y = int(self.rng.integers(MARGIN, HEIGHT - height - MARGIN))
            rect = (x, y, x + width, y + height)
            return rect if apart(rect, self._taken, MARGIN) else None

        self._taken.append(until("free place", attempt))
        return self._taken[-1]

    def sign(self, text: str, colour: str) -> Rect:
        """Draw white text on a coloured board, about 14 pixels high; return its box."""
        (width, height), below = cv2.getTextSize(text, FONT, FONT_SCALE, 1)
        rect = self.room(width + 12, height + below + 10)
        x0, y0, x1, y1 = rect
        cv2.rectangle(self.pixels, (x0, y0), (x1 - 1, y1 - 1), COLOURS[colour], -1)
        cv2.putText(self.pixels, text, (x0 + 6, y0 + 5 + height), FONT, FONT_SCALE, (255, 255, 255), 1, cv2.LINE_AA)
        return rect

    def disc(self, colour: str) -> Rect:
        """Draw a small disc; return its box."""
        rect = self.room(2 * DISC_PX + 1, 2 * DISC_PX + 1)
        cv2.circle(self.pixels, (rect[0] + DISC_PX, rect[1] + DISC_PX), DISC_PX, COLOURS[colour], -1, cv2.LINE_AA)
        return rect

    def pair(self, left_color: str, right_color: str) -> Rect:
        """Draw two small discs side by side; return their box."""
        rect = self.room(4 * DISC_PX + 8, 2 * DISC_PX + 1)
        for x, colour in ((rect[0] + DISC_PX, left_color), (rect[2] - DISC_PX - 1, right_color)):
            cv2.circle(self.pixels, (x, rect[1] + DISC_PX), DISC_PX, COLOURS[colour], -1, cv2.LINE_AA)
        return rect

    def arrow(self, towards: tuple[int, int], colour: str) -> Rect:
        """Draw a small arrow on a white board; return its box."""
        rect = self.room(40, 40)
        x, y = rect[0] + 20, rect[1] + 20
        cv2.rectangle(self.pixels, (rect[0], rect[1]), (rect[2] - 1, rect[3] - 1), (250, 250, 250), -1)
        tail, head = (x - 15 * towards[0], y - 15 * towards[1]), (x + 15 * towards[0], y + 15 * towards[1])
        cv2.arrowedLine(self.pixels, tail, head, COLOURS[colour], 3, cv2.LINE_AA, tipLength=0.4)
        return rect


def _colours(rng: np.random.Generator) -> list[str]:
    return [str(name) for name in rng.permutation(list(COLOURS))]


def _options(rng: np.random.Generator, right: str, others: Sequence[str], count: int) -> tuple[tuple[str, ...], int]:
    wrong = [str(other) for other in rng.permutation([other for other in others if other != right])][: count - 1]
    order = [str(text) for text in rng.permutation([right, *wrong])]
    return tuple(order), order.index(right)


def _signs(
    question: str, prefix: tuple[str, str], names: Sequence[str], count: int, rng: np.random.Generator
) -> ClueQuestion:
    """Draw one sign of the right kind among signs of another kind or colour that name the wrong options."""
    canvas, colours = Canvas(rng), _colours(rng)
    right, *wrong = (str(name) for name in rng.permutation(list(names)))
    clue = canvas.sign(f"{prefix[0]}{right}", colours[0])
    for name in wrong[: count - 1]:
        canvas.sign(f"{prefix[1]}{name}", colours[1 + pick(rng, len(colours) - 1)])
    options, answer = _options(rng, right.capitalize(), [name.capitalize() for name in wrong[: count - 1]], count)
    return ClueQuestion(question.format(colour=colours[0]), options, answer, canvas.pixels, (clue,))


def orientation(rng: np.random.Generator) -> ClueQuestion:
    """Ask where an arrow of one colour points, with north at the top; other colours point elsewhere."""
    canvas, colours = Canvas(rng), _colours(rng)
    right, *others = (str(name) for name in rng.permutation(list(POINTS)))
    clue = canvas.arrow(POINTS[right], colours[0])
    for colour, name in zip(colours[1:4], others, strict=True):
        canvas.arrow(POINTS[name], colour)
    options, answer = _options(rng, right, list(POINTS), 4)
    question = f"North is at the top of the picture. Which way does the {colours[0]} arrow point?"
    return ClueQuestion(question, options, answer, canvas.pixels, (clue,))


def object_attr(rng: np.random.Generator) -> ClueQuestion:
    """Ask for the highest price on the signs of one colour (two clues); signs of another colour show higher prices."""
    canvas, colours = Canvas(rng), _colours(rng)
    prices = sorted(int(price) for price in rng.permutation(np.arange(11, 60))[:4])
    low, right, high, higher = (f"{price} EUR" for price in prices)
    clues = tuple(canvas.sign(price, colours[0]) for price in (low, right))
    for price in (high, higher):
        canvas.sign(price, colours[1])
    options, answer = _options(rng, right, (low, high, higher), 4)
    return ClueQuestion(f"What is the highest price on a {colours[0]} sign?", options, answer, canvas.pixels, clues)


def object_rel(rng: np.random.Generator) -> ClueQuestion:
    """Ask for the colour of the disc to the right of a disc of one colour; a second pair of discs is a distractor."""
    canvas, colours = Canvas(rng), _colours(rng)
    clue = canvas.pair(colours[0], colours[1])
    canvas.pair(colours[2], colours[3])
    options, answer = _options(rng, colours[1], colours[2:], 3)
    question = f"Which colour is the disc directly at the right of the {colours[0]} disc?"
    return ClueQuestion(question, options, answer, canvas.pixels, (clue,))


def counting(rng: np.random.Generator) -> ClueQuestion:
    """Ask for the number of discs of one colour (each is a clue), among discs of another colour."""
    canvas, colours = Canvas(rng), _colours(rng)
    count = int(rng.integers(1, 7))
    clues = tuple(canvas.disc(colours[0]) for _ in range(count))
    for _ in range(int(rng.integers(2, 6))):
        canvas.disc(colours[1])
    options, answer = _options(rng, str(count), [str(n) for n in range(1, 8)], 5)
    return ClueQuestion(f"How many {colours[0]} discs are in the picture?", options, answer, canvas.pixels, clues)


# Maps a task to its category string and the function that draws a question; "geo-loc(counrty)" is spelt as in the
# official file.
MAKERS: Mapping[str, tuple[str, Callable[[np.random.Generator], ClueQuestion]]] = {
    "geo_loc": ("geo-loc(counrty)", partial(_signs, BORDER, ("WELCOME TO ", "FLY TO "), COUNTRIES, 4)),
    "orientation": ("orientation", orientation),
    "daily_loc": ("daily loc", partial(_signs, "Which place does the {colour} sign stand for?", ("", ""), PLACES, 3)),
    "object_attr": ("object-attr", object_attr),
    "object_rel": ("object-rel", object_rel),
    "counting": ("counting", counting),
}


def item(task: str, index: int, seed: int, purpose: Purpose = "sample") -> ClueQuestion:
    """Make item `index` (from 0) of a task. Raises `UsageError` for an unknown task or a negative number."""
    check_item(task, MAKERS, index, seed)
    return MAKERS[task][1](generator(purpose, seed, zlib.crc32(task.encode()), index))


def flags(clues: Sequence[Rect]) -> list[int | str]:
    """Return `contains_bbox` of the four views: the number of complete clues, "partial" or "no".

    "partial" means that the view has cut clues only.
    """
    marks: list[int | str] = []
    half_w, half_h = WIDTH // 2, HEIGHT // 2
    for column, row in ((0, 0), (0, 1), (1, 0), (1, 1)):
        x0, y0 = column * half_w, row * half_h
        inside = [x0 <= a and c <= x0 + half_w and y0 <= b and d <= y0 + half_h for a, b, c, d in clues]
        touched = [a < x0 + half_w and c > x0 and b < y0 + half_h and d > y0 for a, b, c, d in clues]
        marks.append(sum(inside) or ("partial" if any(touched) else "no"))
    return marks


def levels(marks: Sequence[int | str]) -> dict[str, int]:
    """Return the first views, from 0, for hard, medium and easy, by the rule recovered from the official file.

    Hard: the first view without a clue. Medium: the first view with a part of a clue, else the view for hard. Easy: the
    first view with a complete clue, else the view for medium. If no view is of the required class, the next best view
    replaces it.
    """
    empty = next((place for place, mark in enumerate(marks) if mark == "no"), None)
    partial = next((place for place, mark in enumerate(marks) if mark == "partial"), None)
    entire = next((place for place, mark in enumerate(marks) if isinstance(mark, int)), None)
    order = {"hard": (empty, partial, entire), "medium": (partial, empty, entire), "easy": (entire, partial, empty)}
    return {name: next(place for place in order[name] if place is not None) for name in ANSWER_KEYS}


def write(
    folder: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: Purpose = "sample"
) -> tuple[Path, ...]:
    """Write `asset/*.json`, `images/` and `images_split/`; the same call gives the same bytes on one machine.

    Raises `UsageError` like `check_request`; nothing is written then.
    """
    check_request(tasks, MAKERS, per_task, seed)
    rows: list[dict[str, object]] = []
    views: list[list[int]] = []
    starts: dict[str, list[int]] = {name: [] for name in ANSWER_KEYS}
    for task in tasks:
        for index in indices_to_draw(task, per_task):
            question = item(task, index, seed, purpose)
            marks = flags(question.clues)
            identity, small = f"actiview{len(rows) + 1:04d}", shrink_to_part(question.pixels, 4)
            stem = f"./images_split/{identity}"
            upper_left, lower_left, upper_right, lower_right = cut(question.pixels, 4)
            pictures = {
                f"./images/{identity}.jpg": question.pixels,
                f"{stem}_resized.jpg": small,
                f"{stem}_resized_lines.jpg": lined(small, 4),
                f"{stem}_0_0.jpg": upper_left,
                f"{stem}_1_0.jpg": lower_left,
                f"{stem}_0_1.jpg": upper_right,
                f"{stem}_1_1.jpg": lower_right,
            }
            for name, pixels in pictures.items():
                write_atomic(folder / name, jpeg(pixels, 92))
            rows.append(
                {
                    "id": identity,
                    "question": question.question,
                    "options": list(question.options),
                    "answer": question.answer,
                    "images": list(pictures),
                    "category": MAKERS[task][0],
                    "distraction": 1,
                    "contains_bbox": marks,
                }
            )
            views.append([place + 1 for place, mark in enumerate(marks) if mark != "no"])
            for name, start in levels(marks).items():
                starts[name].append(start)
    data = {"meta": {"generated": True, "seed": seed}, "data": rows}
    contents = {"data.json": data, "groundtruth_views.json": views, "shifting_level.json": starts}
    for name, content in contents.items():
        write_atomic(folder / "asset" / name, (json.dumps(content, indent=1) + "\n").encode())
    return tuple(folder / "asset" / name for name in contents)
