"""Images with known answers for the tools that load weights: rendered when asked for, easy for any sound network.

A library of the tools' `checks`; `hybrid tools check depth` runs those of one tool. What a check must catch is a sign
that is flipped, colours in the wrong order, coordinates that are swapped or a wrong normalisation; it measures nothing.
Every tool with two sides has checks with both answers, so that a constant answer fails, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hybrid.tool import Evidence, KnownAnswer, Posed
from hybrid.types import LETTERS, Json

if TYPE_CHECKING:
    from hybrid.samples.pop_out import Scene
    from hybrid.tool import Pixels

SEED = 7000
"""Of the generated items; neither tuning (0 to 99) nor measuring (1000) uses it."""
DEPTH_ITEMS = (1, 5, 8, 10, 11)
"""Their two points differ in depth by a factor of at least 2.2; A is nearer in two, three have both on one row."""
LEAST_OVERLAP = 0.7
AREA_OFF = 0.3
"""Largest relative error of a mask's area on a plain shape."""
GREY = 128
THINGS = ("a red ball", "a blue cube")


def depth_checks() -> tuple[KnownAnswer, ...]:
    """The nearer of two points of rendered scenes must have the larger relative depth."""
    return tuple(KnownAnswer(f"nearer point, scene {index}", partial(_depth, index)) for index in DEPTH_ITEMS)


def _depth(index: int) -> Posed:
    from hybrid.benchmarks.blink.sample import item
    from hybrid.samples.item import DepthFacts

    made = item("Relative_Depth", index, SEED)
    assert isinstance(made.facts, DepthFacts)  # noqa: S101 - what this task makes
    nearer = made.answer

    def wrong(found: Evidence) -> str | None:
        values = [_float(point, "depth_0_1") for point in _rows(found, "points")]
        if values[nearer] > values[1 - nearer]:
            return None
        return f"the nearer point has relative depth {values[nearer]:.2f}, the farther one {values[1 - nearer]:.2f}"

    return Posed(made.images, {"points": _points(made.facts.points)}, wrong)


def correspondence_checks() -> tuple[KnownAnswer, ...]:
    """The candidate that shows the same place of a surface must be chosen."""
    return tuple(KnownAnswer(f"same place, pair {index}", partial(_same_place, index)) for index in (0, 1))


def _same_place(index: int) -> Posed:
    from hybrid.benchmarks.blink.sample import item
    from hybrid.samples.item import CorrespondenceFacts

    made = item("Visual_Correspondence", index, SEED)
    assert isinstance(made.facts, CorrespondenceFacts)  # noqa: S101 - what this task makes
    facts = made.facts
    args: dict[str, Json] = {"point": _points([facts.ref])[0], "candidates": _points(facts.candidates)}
    return Posed(made.images, args, _expects("best_index", made.answer))


def motion_checks() -> tuple[KnownAnswer, ...]:
    """The camera goes to its left in one pair of views and to its right in the other."""
    return tuple(KnownAnswer(f"camera's side, pair {index}", partial(_side, index)) for index in (0, 1))


def _side(index: int) -> Posed:
    from hybrid.benchmarks.blink.sample import item

    made = item("Multi-view_Reasoning", index, SEED)
    return Posed(made.images, {}, _expects("moved", ("left", "right")[made.answer]))


def saliency_checks() -> tuple[KnownAnswer, ...]:
    """The one coloured thing among grey ones must rank first, wherever it stands in the list."""
    return tuple(KnownAnswer(f"pop-out, scene {number}", partial(_pop_out, number)) for number in (1, 2))


def _pop_out(number: int) -> Posed:
    made = _scene(number, 1)
    boxes = [_box_arg(box, f"grey {place}") for place, box in enumerate(made.greys[:4], 1)]
    boxes.insert(number, _box_arg(made.things[0].box, "coloured"))
    return Posed((made.draw(),), {"boxes": boxes}, _expects("most_salient", "coloured"))


def segmentation_checks() -> tuple[KnownAnswer, ...]:
    """The mask from the box around a plain coloured shape must have its extent and area; that from words lie on it."""
    placed = (KnownAnswer(f"coloured shape, scene {number}", partial(_shape, number)) for number in (3, 4))
    named = (KnownAnswer(f"{thing}, named", partial(_named, thing)) for thing in THINGS)
    return (*placed, *named)


def _shape(number: int) -> Posed:
    made = _scene(number, 2)
    thing = made.things[0]
    x0, y0, x1, y1 = thing.box
    area = (x1 - x0) * (y1 - y0) * (np.pi / 4 if thing.name.shape == "circle" else 1.0)

    def wrong(found: Evidence) -> str | None:
        box = found.data["box_px"]
        if not isinstance(box, list):
            return "nothing was found"
        overlap = _overlap([float(value) for value in box], [x0, y0, x1, y1])
        if overlap < LEAST_OVERLAP:
            return f"the mask's box overlaps the {thing.name.shape} by {overlap:.2f} (intersection over union)"
        ratio = _float(found.data, "area_px") / area
        return None if abs(ratio - 1) <= AREA_OFF else f"the mask has {ratio:.2f} of the {thing.name.shape}'s area"

    return Posed((made.draw(),), {"box": _box_arg(thing.box, None)}, wrong)


def _named(thing: str) -> Posed:
    picture, boxes = _ball_and_cube()
    x0, y0, x1, y1 = boxes[thing]

    def wrong(found: Evidence) -> str | None:
        outline = found.data["outline_px"]
        if not isinstance(outline, list) or not outline:
            return "nothing was found"
        x, y = np.mean(np.array(outline, float), axis=0)
        if x0 <= x < x1 and y0 <= y < y1:
            return None
        return (
            f"the mask's largest part is about ({x:.0f}, {y:.0f}) px, {thing} at {x0:.0f}-{x1:.0f}, {y0:.0f}-{y1:.0f}"
        )

    return Posed((picture,), {"words": thing}, wrong)


def scanpath_checks() -> tuple[KnownAnswer, ...]:
    """Of two things the one that is searched for must be looked at first, whichever it is."""
    return tuple(KnownAnswer(f"search for {thing}", partial(_sought, thing)) for thing in THINGS)


def _sought(thing: str) -> Posed:
    picture, boxes = _ball_and_cube()

    def wrong(found: Evidence) -> str | None:
        for fixation in _rows(found, "fixations"):
            x, y = _float(fixation, "x_px"), _float(fixation, "y_px")
            seen = [name for name, (x0, y0, x1, y1) in boxes.items() if x0 <= x < x1 and y0 <= y < y1]
            if seen:
                return None if seen == [thing] else f"{seen[0]} is looked at first"
        return "neither thing is looked at"

    return Posed((picture,), {"target": thing, "fixations": 4}, wrong)


def _ball_and_cube() -> tuple[Pixels, dict[str, tuple[float, float, float, float]]]:
    """A shaded red ball and a blue cube on a light floor, and the box (x0, y0, x1, y1) of each, pixels."""
    import cv2

    height, width, radius = 360, 480, 70
    down = np.linspace(0.75, 1.0, height, dtype=np.float32)[:, None, None]
    canvas = np.array((205, 200, 192), np.float32) * np.broadcast_to(down, (height, width, 1))
    cv2.ellipse(canvas, (118, 278), (85, 16), 0, 0, 360, (120, 116, 110), -1, cv2.LINE_AA)
    y, x = np.mgrid[:height, :width]
    across, up = (x - 110) / radius, (y - 210) / radius
    inside = across**2 + up**2 < 1
    lit = np.sqrt(np.clip(1 - across**2 - up**2, 0, 1)) * 0.6 + 0.4 - 0.25 * (across + up)
    canvas[inside] = np.array((205, 30, 35), np.float32) * np.clip(lit, 0.3, 1.15)[inside][:, None]
    for corners, shade in (
        (((310, 130), (400, 130), (400, 280), (310, 280)), 1.0),
        (((400, 130), (440, 105), (440, 245), (400, 280)), 0.65),
        (((310, 130), (350, 105), (440, 105), (400, 130)), 1.25),
    ):
        colour = (35 * shade, 75 * shade, 190 * shade)
        cv2.fillPoly(canvas, [np.array(corners, np.int32)], colour, cv2.LINE_AA)
    boxes = {THINGS[0]: (40.0, 140.0, 180.0, 280.0), THINGS[1]: (310.0, 105.0, 440.0, 280.0)}
    return np.clip(canvas, 0, 255).astype(np.uint8), boxes


def reflectance_checks() -> tuple[KnownAnswer, ...]:
    """Of a dark and a light paint under the same soft light the dark one is darker, whichever point comes first."""
    return tuple(KnownAnswer(f"dark paint at point {'AB'[place]}", partial(_paints, place)) for place in (0, 1))


def _paints(place: int) -> Posed:
    import cv2

    canvas = np.full((320, 440, 3), (150, 145, 138), np.float32)
    centres = ((120, 160), (320, 160))
    for centre, colour in zip(centres, ((60, 38, 34), (232, 214, 150)), strict=True):
        cv2.circle(canvas, centre, 80, colour, -1, cv2.LINE_AA)
    light = np.linspace(1.05, 0.85, canvas.shape[0], dtype=np.float32)[:, None, None]
    picture = np.clip(canvas * light, 0, 255).astype(np.uint8)
    return Posed((picture,), {"points": _points(centres[:: -1 if place else 1])}, _expects("darker_index", place))


def ocr_checks() -> tuple[KnownAnswer, ...]:
    """A plain word in capitals must be read."""
    return tuple(KnownAnswer(f"the word {word}", partial(_word, word)) for word in ("STREET", "27 APRIL"))


def _word(word: str) -> Posed:
    import cv2

    canvas = np.full((300, 480, 3), 245, np.uint8)
    cv2.putText(canvas, word, (40, 170), cv2.FONT_HERSHEY_SIMPLEX, 2.0, (20, 20, 20), 4, cv2.LINE_AA)

    def wrong(found: Evidence) -> str | None:
        read = str(found.data["text"])
        return None if _letters(word) in _letters(read) else f"it read {read[:60]!r}"

    return Posed((canvas,), {}, wrong)


def jigsaw_checks() -> tuple[KnownAnswer, ...]:
    """The piece that goes on; of two with the same painted edge, which no seam tells apart, that with the pattern."""
    plain = (KnownAnswer(f"puzzle {index}", partial(_puzzle, index)) for index in (0, 1))
    edged = (KnownAnswer(f"pattern behind an edge, piece {place + 2}", partial(_edged, place)) for place in (0, 1))
    return (*plain, *edged)


def _puzzle(index: int) -> Posed:
    from hybrid.benchmarks.blink.sample import item

    made = item("Jigsaw", index, SEED)
    return Posed(made.images, {}, _expects("best", made.answer))


def _edged(place: int) -> Posed:
    """Warm blobs with a dark line round the hole; one piece has blobs behind its line, the other blue stripes."""
    import cv2

    side, line = 160, 3
    rng = np.random.default_rng((SEED, place))
    whole = np.full((2 * side, 2 * side, 3), (225, 190, 120), np.uint8)
    for x, y in rng.integers(0, 2 * side, (160, 2)):
        cv2.circle(whole, (int(x), int(y)), 9, (150, 60, 30), -1, cv2.LINE_AA)
    other = np.full((side, side, 3), (60, 110, 200), np.uint8)
    other[:, (np.arange(side) // 8) % 2 == 0] = (235, 240, 250)
    pieces = [whole[side:, side:].copy(), other]
    for piece in pieces:
        piece[:line], piece[:, :line] = 40, 40
    reference = whole.copy()
    reference[side - line :, side - line :] = 40
    reference[side:, side:] = 0
    return Posed((reference, *(pieces[:: -1 if place else 1])), {}, _expects("best", place))


def attributes_checks() -> tuple[KnownAnswer, ...]:
    """A red disc is red and a blue one is blue: colours in the wrong order do not pass."""
    return tuple(KnownAnswer(f"a {colour} disc", partial(_disc, colour)) for colour in ("red", "blue"))


def _disc(colour: str) -> Posed:
    import cv2

    canvas = np.full((320, 320, 3), GREY, np.uint8)
    cv2.circle(canvas, (160, 160), 110, (220, 30, 30) if colour == "red" else (30, 30, 220), -1, cv2.LINE_AA)
    texts = ("a red circle", "a blue circle")
    return Posed((canvas,), {"texts": texts}, _expects("best", texts.index(f"a {colour} circle")))


def similarity_checks() -> tuple[KnownAnswer, ...]:
    """A darker copy of a picture is more like it than another picture, in either order."""
    return tuple(KnownAnswer(f"darker copy at place {place + 2}", partial(_alike, place)) for place in (0, 1))


def _alike(place: int) -> Posed:
    from hybrid.benchmarks.blink.sample import item

    picture, other = (item("Relative_Depth", index, SEED).images[0] for index in DEPTH_ITEMS[:2])
    candidates = [_darker(picture), other]
    return Posed((picture, *(candidates[:: -1 if place else 1])), {"aspect": "all"}, _expects("best", place))


def semantic_checks() -> tuple[KnownAnswer, ...]:
    """The same thing in a darker copy must be chosen among three: swapped coordinates do not pass."""
    return tuple(KnownAnswer(f"the same thing, thing {place + 1}", partial(_same_thing, place)) for place in range(3))


def _same_thing(place: int) -> Posed:
    made = _scene(5, 3)
    centres = [((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in (thing.box for thing in made.things)]
    args: dict[str, Json] = {"point": _points(centres)[place], "candidates": _points(centres)}
    picture = made.draw()
    return Posed((picture, _darker(picture)), args, _expects("best_index", place))


def _scene(number: int, things: int) -> Scene:
    from hybrid.samples.pop_out import pop_out

    return pop_out(np.random.default_rng((SEED, number)), things)


def _darker(pixels: Pixels) -> Pixels:
    return np.asarray(pixels * 0.85, np.uint8)


def _expects(key: str, value: str | int) -> Callable[[Evidence], str | None]:
    def wrong(found: Evidence) -> str | None:
        return None if found.data[key] == value else f"{key} is {found.data[key]!r}, expected {value!r}"

    return wrong


def _rows(found: Evidence, key: str) -> list[Mapping[str, Json]]:
    rows = found.data[key]
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _float(row: Mapping[str, Json], key: str) -> float:
    value = row[key]
    if not isinstance(value, int | float):
        raise TypeError(f"{key} is {value!r}, not a number")
    return float(value)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.upper() if letter.isalnum())


def _points(places: Sequence[tuple[float, float]]) -> list[Json]:
    return [{"x": x, "y": y, "label": LETTERS[number]} for number, (x, y) in enumerate(places)]


def _box_arg(box: tuple[float, float, float, float], label: str | None) -> dict[str, Json]:
    return {**dict(zip(("x0", "y0", "x1", "y1"), map(float, box), strict=True)), "label": label}


def _overlap(one: list[float], two: list[float]) -> float:
    width = max(0.0, min(one[2], two[2]) - max(one[0], two[0]))
    height = max(0.0, min(one[3], two[3]) - max(one[1], two[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, two)]
    return width * height / (sum(areas) - width * height)
