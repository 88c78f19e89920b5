"""How changes of a picture change an answer, for every tool with a weight-free backend.

`HOLDS` lists the values of each tool's answer that must not change; `NOT_BY_NATURE` lists, with reasons, exceptions
that a change affects by definition. `attributes`, `detection`, `relation`, `localization` and `semantic_correspondence`
need a network, or the output of one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest

from bench.picture_changes import compressed, gamma, grey, padded, scaled
from hybrid.benchmarks.blink.sample import item
from hybrid.core.types import Box, Point
from hybrid.marks.drawing import draw_marks
from hybrid.plugins.registry import load
from hybrid.samples.backgrounds import background
from hybrid.samples.objects import share_of_union
from hybrid.tool import Evidence, Pixels, Request


@dataclass(frozen=True)
class Change:
    """A change of a picture, and the new positions of its points and boxes: multiplied by `by`, moved by `off` px, or
    mirrored.
    """

    make: Callable[[Pixels], Pixels]
    by: float = 1.0
    off: float = 0.0
    mirrored: bool = False

    def there(self, x: float, y: float, width: int) -> tuple[float, float]:
        across = width - 1 - x if self.mirrored else (x + 0.5) * self.by - 0.5 + self.off
        return across, (y + 0.5) * self.by - 0.5 + self.off

    def back(self, x: float, y: float, width: int) -> tuple[float, float]:
        across = width - 1 - x if self.mirrored else (x - self.off + 0.5) / self.by - 0.5
        return across, (y - self.off + 0.5) / self.by - 0.5


SAME = Change(lambda pixels: pixels)
CHANGES: Mapping[str, Change] = {
    "mirror": Change(lambda pixels: pixels[:, ::-1], mirrored=True),
    "half": Change(scaled(0.5), by=0.5),
    "twice": Change(scaled(2.0), by=2.0),
    "padded": Change(padded, off=20.0),
    "grey": Change(grey),
    "lighter": Change(gamma(0.5)),
    "jpeg": Change(compressed(50)),
}
# Largest distance of two equal positions, and minimum intersection over union of two equal boxes.
PLACE_PX, SHARE = 4.0, 0.8


class Asked(NamedTuple):
    """A call with a clear answer; its points {x, y} and boxes {x0, y0, x1, y1} are transformed with the picture."""

    images: tuple[Pixels, ...]
    args: Mapping[str, Any] = {}


def moved(value: Any, change: Change, width: int) -> Any:
    if isinstance(value, list):
        return [moved(entry, change, width) for entry in value]
    if isinstance(value, dict) and "x0" in value:
        (x0, y0), (x1, y1) = (change.there(value[f"x{n}"], value[f"y{n}"], width) for n in (0, 1))
        return {**value, "x0": min(x0, x1), "y0": y0, "x1": max(x0, x1), "y1": y1}
    if isinstance(value, dict) and "x" in value:
        return {**value, **dict(zip("xy", change.there(value["x"], value["y"], width), strict=True))}
    return value


def answer(tool: str, request: Asked, change: Change) -> Evidence:
    loaded, images = load("tools", tool), tuple(np.ascontiguousarray(change.make(image)) for image in request.images)
    backend = loaded.backend("classical" if loaded.backend("classical") else "learned").make()
    backend.setup("cpu", None)
    args = {name: moved(value, change, request.images[0].shape[1]) for name, value in request.args.items()}
    return backend.run([Request(images, loaded.args.model_validate(args))])[0]


@cache
def views() -> tuple[Pixels, ...]:
    return tuple(image[::2, ::2].copy() for image in item("Multi-view_Reasoning", 0, 41).images)


@cache
def discs() -> Pixels:
    """Return a large red disc and a small grey one on a calm ground."""
    pixels = np.full((180, 240, 3), (150, 155, 150), np.uint8)
    pixels = cv2.add(pixels, np.random.default_rng(3).integers(0, 9, pixels.shape).astype(np.uint8))
    cv2.circle(pixels, (70, 90), 30, (200, 30, 30), -1, cv2.LINE_AA)
    cv2.circle(pixels, (180, 60), 9, (135, 140, 138), -1, cv2.LINE_AA)
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), 0.6), np.uint8)


@cache
def marked() -> Pixels:
    plain = background(np.random.default_rng(901), "blobs", 200, 260)
    return draw_marks(plain, [Point(60, 80, "A"), Point(180, 150, "B")])


def named_points(names: str, *places: Any) -> list[Any]:
    return [{"x": x, "y": y, "label": name} for name, (x, y) in zip(names, places, strict=False)]


def generated(task: str, index: int) -> Asked:
    drawn_item = item(task, index, 41)
    if task != "Visual_Correspondence":
        return Asked(
            drawn_item.images, {"points": named_points("AB", *drawn_item.facts.points)} if task != "Jigsaw" else {}
        )
    (ref,) = named_points("R", drawn_item.facts.ref)
    return Asked(drawn_item.images, {"point": ref, "candidates": named_points("ABCD", *drawn_item.facts.candidates)})


@cache
def asked_of(tool: str) -> Asked:
    disc = {"x0": 38, "y0": 58, "x1": 102, "y1": 122}
    other = {"x0": 168, "y0": 48, "x1": 192, "y1": 72, "label": "B"}
    page = np.full((120, 320, 3), 245, np.uint8)
    cv2.putText(page, "Gate 27", (30, 70), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (20, 20, 20), 3, cv2.LINE_AA)
    stripes, darker = background(np.random.default_rng(5), "stripes", 180, 240), cv2.convertScaleAbs(discs(), alpha=0.9)
    calls: Mapping[str, Callable[[], Asked]] = {
        "correspondence": lambda: generated("Visual_Correspondence", 1),
        "crop": lambda: Asked((discs(),), {"box": disc}),
        "depth": lambda: generated("Relative_Depth", 1),
        "forensics": lambda: Asked((discs(),)),
        "jigsaw": lambda: generated("Jigsaw", 2),
        "markers": lambda: Asked((marked(),), {"labels": ("A", "B")}),
        "motion": lambda: Asked(views()),
        "ocr": lambda: Asked((page,)),
        "reflectance": lambda: generated("Relative_Reflectance", 0),
        "saliency": lambda: Asked((discs(),), {"boxes": [{**disc, "label": "A"}, other]}),
        "scanpath": lambda: Asked((discs(),)),
        "segmentation": lambda: Asked((discs(),), {"box": disc}),
        "similarity": lambda: Asked((discs(), stripes, np.asarray(darker, np.uint8))),
    }
    return calls[tool]()


def box_of(corners: list[float], change: Change, width: int) -> list[float]:
    (x0, y0), (x1, y1) = change.back(*corners[:2], width), change.back(*corners[2:], width)
    return [min(x0, x1), y0, max(x0, x1), y1]


# Values that must stay the same: an answer, or positions and boxes in pixels of the first picture.
HOLDS: Mapping[str, Callable[[Any, Change, int], Any]] = {
    "correspondence": lambda data, *_: data["best"],
    "crop": lambda data, *at: box_of(data["crops"][0]["box_px"], *at),
    "depth": lambda data, *_: data["nearer"],
    "forensics": lambda data, *_: data["synthetic"],
    "jigsaw": lambda data, *_: data["best"],
    "markers": lambda data, change, width: {
        entry["label"]: change.back(entry["x"], entry["y"], width) for entry in data["points_px"]
    },
    "motion": lambda data, change, _: data["moved"] and (data["moved"] == "left") != change.mirrored,
    "ocr": lambda data, *_: data["text"].split(),
    "reflectance": lambda data, *_: data["darker"],
    "saliency": lambda data, *_: data["most_salient"],
    "scanpath": lambda data, change, width: change.back(*(data["fixations"][1][f"{x}_px"] for x in "xy"), width),
    "segmentation": lambda data, *at: box_of(data["box_px"], *at),
    "similarity": lambda data, *_: data["best"],
}
NOT_BY_NATURE: Mapping[tuple[str, str], str] = {
    ("jigsaw", "mirror"): "the missing quarter is the lower right one; in a mirror it is the lower left one",
    ("jigsaw", "padded"): "a border between a piece and its place is no seam",
    ("markers", "mirror"): "mirrored letters are no letters",
    ("ocr", "mirror"): "mirrored letters are no letters",
    ("depth", "padded"): "a border moves the horizon away from where an upright camera has it",
    ("motion", "padded"): "a border moves the middle, which the camera is taken to look through",
    ("reflectance", "grey"): "paints of one hue are told from others by their hue",
    ("saliency", "grey"): "what stands out by colour does not stand out without it",
    ("scanpath", "grey"): "what stands out by colour is not looked at first without it",
    ("scanpath", "padded"): "a path starts in the middle, and a frame attracts the eye",
}


@cache
def plainly(tool: str) -> Any:
    request = asked_of(tool)
    return HOLDS[tool](answer(tool, request, SAME).data, SAME, request.images[0].shape[1])


@pytest.mark.system
@pytest.mark.parametrize(("tool", "change"), [(t, c) for t in HOLDS for c in CHANGES if (t, c) not in NOT_BY_NATURE])
def test_an_answer_stays(tool: str, change: str) -> None:
    request, previous = asked_of(tool), plainly(tool)
    after = HOLDS[tool](answer(tool, request, CHANGES[change]).data, CHANGES[change], request.images[0].shape[1])
    if tool in ("segmentation", "crop"):
        assert share_of_union(Box(*after), Box(*previous)) >= SHARE
    elif tool == "scanpath":
        assert after == pytest.approx(previous, abs=0.1 * request.images[0].shape[1])
    elif tool == "markers":
        assert after == {name: pytest.approx(previous[name], abs=PLACE_PX) for name in "AB"}
    else:
        assert after == previous
        assert (previous is None) == (tool == "forensics")


@pytest.mark.system
def test_the_order_of_pictures_and_the_names_of_points_decide_nothing() -> None:
    (first, second, _), (points,) = asked_of("similarity").images, asked_of("depth").args.values()
    likeness = [
        answer("similarity", Asked(pair), SAME).data["candidates"] for pair in ((first, second), (second, first))
    ]
    assert likeness[0] == likeness[1]
    forward, back = (answer("forensics", Asked(pair), SAME).data for pair in ((first, second), (second, first)))
    assert forward["statistics"] == back["statistics"][::-1]
    first_view, second_view = views()
    assert answer("motion", Asked((second_view, first_view)), SAME).data["moved"] == "right"
    renamed = [{**point, "label": "BA"["AB".index(point["label"])]} for point in points]
    nearer_indexes = [
        answer("depth", asked_of("depth")._replace(args={"points": named_so}), SAME).data["nearer_index"]
        for named_so in (points, renamed, points[::-1])
    ]
    assert nearer_indexes[0] == nearer_indexes[1] == 1 - nearer_indexes[2]
