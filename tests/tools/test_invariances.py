"""What changes of a picture change of an answer: for every tool with a backend that needs no weights.

`HOLDS` says of each tool what its answer means, `NOT_BY_NATURE` what a change alters by itself, with the reason: of
that nothing is claimed. `attributes`, `detection`, `relation`, `localization` and `semantic_correspondence` answer with
a network, or with what one found.
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
from hybrid.marks.drawing import draw_marks
from hybrid.registry import load
from hybrid.samples.backgrounds import background
from hybrid.tool import Evidence, Pixels, Request
from hybrid.types import Point


@dataclass(frozen=True)
class Change:
    """A change of a picture, and where its points and boxes then lie: `by` times, `off` px further, or mirrored."""

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
Box = tuple[float, float, float, float]
PLACE_PX = 4.0
"""How far a place may move; a box is compared by the share of its union that both have."""
SHARE = 0.8


class Asked(NamedTuple):
    """A call whose answer is known to be clear: pictures, points (x, y, label) and boxes by argument, further ones."""

    images: tuple[Pixels, ...]
    points: Mapping[str, Any] = {}
    boxes: Mapping[str, Any] = {}
    more: Mapping[str, Any] = {}


def answer(tool: str, asked: Asked, change: Change) -> Evidence:
    width = asked.images[0].shape[1]

    def point(one: Mapping[str, Any]) -> dict[str, Any]:
        x, y = change.there(one["x"], one["y"], width)
        return {**one, "x": x, "y": y}

    def box(one: Mapping[str, Any]) -> dict[str, Any]:
        (x0, y0), (x1, y1) = change.there(one["x0"], one["y0"], width), change.there(one["x1"], one["y1"], width)
        return {**one, "x0": min(x0, x1), "y0": y0, "x1": max(x0, x1), "y1": y1}

    def each(made: Callable[[Mapping[str, Any]], Any], value: Any) -> Any:
        return [made(one) for one in value] if isinstance(value, list) else made(value)

    args = {name: each(point, value) for name, value in asked.points.items()}
    args |= {name: each(box, value) for name, value in asked.boxes.items()}
    called, images = load("tools", tool), tuple(np.ascontiguousarray(change.make(one)) for one in asked.images)
    backend = called.backend("classical" if called.backend("classical") else "learned").make()
    backend.setup("cpu", None)
    return backend.run([Request(images, called.args.model_validate({**args, **asked.more}))])[0]


@cache
def views() -> tuple[Pixels, ...]:
    return tuple(one[::2, ::2].copy() for one in item("Multi-view_Reasoning", 0, 41).images)


@cache
def discs() -> Pixels:
    """A large red disc and a small grey one on a calm ground."""
    pixels = np.full((180, 240, 3), (150, 155, 150), np.uint8)
    pixels = cv2.add(pixels, np.random.default_rng(3).integers(0, 9, pixels.shape).astype(np.uint8))
    cv2.circle(pixels, (70, 90), 30, (200, 30, 30), -1, cv2.LINE_AA)
    cv2.circle(pixels, (180, 60), 9, (135, 140, 138), -1, cv2.LINE_AA)
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), 0.6), np.uint8)


@cache
def marked() -> Pixels:
    plain = background(np.random.default_rng(901), "blobs", 200, 260)
    return draw_marks(plain, [Point(60, 80, "A"), Point(180, 150, "B")])


def named(name: str, x: float, y: float) -> dict[str, Any]:
    return {"x": x, "y": y, "label": name}


def asked_of(tool: str) -> Asked:
    if tool == "markers":
        return Asked((marked(),), more={"labels": ("A", "B")})
    if tool == "motion":
        return Asked(views())
    if tool == "correspondence":
        made = item("Visual_Correspondence", 1, 41)
        spots = (made.facts.ref, *made.facts.candidates)
        ref, *others = (named(name, *place) for name, place in zip(("REF", *"ABCD"), spots, strict=True))
        return Asked(made.images, {"point": ref, "candidates": others})
    if tool == "depth":
        made = item("Relative_Depth", 1, 41)
        return Asked(made.images, {"points": [named(n, *p) for n, p in zip("AB", made.facts.points, strict=False)]})
    if tool == "jigsaw":
        return Asked(item("Jigsaw", 2, 41).images)
    if tool == "reflectance":
        made = item("Relative_Reflectance", 0, 41)
        return Asked(made.images, {"points": [named(n, *p) for n, p in zip("AB", made.facts.points, strict=True)]})
    if tool == "similarity":
        first, second = discs(), background(np.random.default_rng(5), "stripes", 180, 240)
        return Asked((first, second, np.asarray(cv2.convertScaleAbs(first, alpha=0.9), np.uint8)))
    around = [{"x0": 38, "y0": 58, "x1": 102, "y1": 122, "label": "A"}, {"x0": 168, "y0": 48, "x1": 192, "y1": 72}]
    if tool == "saliency":
        return Asked((discs(),), boxes={"boxes": [around[0], {**around[1], "label": "B"}]})
    if tool == "segmentation":
        return Asked((discs(),), boxes={"box": {name: around[0][name] for name in ("x0", "y0", "x1", "y1")}})
    if tool == "crop":
        return Asked((discs(),), boxes={"box": {name: around[0][name] for name in ("x0", "y0", "x1", "y1")}})
    if tool == "ocr":
        page = np.full((120, 320, 3), 245, np.uint8)
        cv2.putText(page, "Gate 27", (30, 70), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (20, 20, 20), 3, cv2.LINE_AA)
        return Asked((page,))
    return Asked((discs(),))


def meaning(tool: str, evidence: Evidence, change: Change, width: int) -> Any:
    """What is to stay the same: an answer, places and boxes in pixels of the first picture."""
    data: Any = evidence.data

    def box(corners: list[float]) -> Box:
        (x0, y0), (x1, y1) = change.back(*corners[:2], width), change.back(*corners[2:], width)
        return min(x0, x1), y0, max(x0, x1), y1

    if tool == "markers":
        return {one["label"]: change.back(one["x"], one["y"], width) for one in data["points_px"]}
    if tool == "motion":
        return data["moved"] and (data["moved"] == "left") != change.mirrored
    if tool == "segmentation":
        return box(data["box_px"])
    if tool == "crop":
        return box(data["crops"][0]["box_px"])
    if tool == "scanpath":
        return change.back(data["fixations"][1]["x_px"], data["fixations"][1]["y_px"], width)
    if tool == "forensics":
        return data["synthetic"]
    if tool == "ocr":
        return data["text"].split()
    names = {
        "correspondence": "best", "depth": "nearer", "jigsaw": "best", "reflectance": "darker",
        "saliency": "most_salient", "similarity": "best",
    }  # fmt: skip
    return data[names[tool]]


HOLDS = (
    "correspondence", "crop", "depth", "forensics", "jigsaw", "markers", "motion", "ocr", "reflectance", "saliency",
    "scanpath", "segmentation", "similarity",
)  # fmt: skip
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
def plainly(tool: str) -> tuple[Asked, Evidence]:
    asked = asked_of(tool)
    return asked, answer(tool, asked, SAME)


@pytest.mark.parametrize(("tool", "change"), [(t, c) for t in HOLDS for c in CHANGES if (t, c) not in NOT_BY_NATURE])
def test_an_answer_stays(tool: str, change: str) -> None:
    asked, plain = plainly(tool)
    width = asked.images[0].shape[1]
    before = meaning(tool, plain, SAME, width)
    after = meaning(tool, answer(tool, asked, CHANGES[change]), CHANGES[change], width)
    if tool in ("segmentation", "crop"):
        overlap = max(0, min(before[2], after[2]) - max(before[0], after[0]))
        overlap *= max(0, min(before[3], after[3]) - max(before[1], after[1]))
        areas = [(one[2] - one[0]) * (one[3] - one[1]) for one in (before, after)]
        assert overlap / (sum(areas) - overlap) >= SHARE, (before, after)
    elif tool == "scanpath":
        assert after == pytest.approx(before, abs=0.1 * width)
    elif tool == "markers":
        assert after == {name: pytest.approx(place, abs=PLACE_PX) for name, place in before.items()}
        assert set(before) == {"A", "B"}
    else:
        assert after == before
        assert tool == "forensics" or before is not None


def test_the_order_of_pictures_and_the_names_of_points_decide_nothing() -> None:
    (first, second, _), (points,) = asked_of("similarity").images, asked_of("depth").points.values()
    likeness = [
        answer("similarity", Asked(pair), SAME).data["candidates"] for pair in ((first, second), (second, first))
    ]
    assert likeness[0] == likeness[1]
    forward, back = (answer("forensics", Asked(pair), SAME).data for pair in ((first, second), (second, first)))
    assert forward["statistics"] == back["statistics"][::-1]
    first_view, second_view = views()
    assert answer("motion", Asked((second_view, first_view)), SAME).data["moved"] == "right"
    renamed = [{**one, "label": "BA"["AB".index(one["label"])]} for one in points]
    found = [
        answer("depth", asked_of("depth")._replace(points={"points": named_so}), SAME).data["nearer_index"]
        for named_so in (points, renamed, points[::-1])
    ]
    assert found[0] == found[1] == 1 - found[2]
