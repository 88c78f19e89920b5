"""Saliency: where people look first, which objects stand out and in which order, and the number of objects.

    hybrid tools run saliency photo.jpg
    hybrid tools run saliency photo.jpg --args '{"boxes": [{"x0": 10, "y0": 20, "x1": 90, "y1": 110, "label": "A"}]}'
    hybrid tools run saliency divided.jpg --args '{"columns": 2, "rows": 2}'

The weight-free backend marks the regions that are not connected with the border (`background.py`); the learned one
reads the attention of a DINO transformer (`models.py`) over the same regions. `bench/saliency.py` prints how well
artificially salient objects are ranked and counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import length, size_px, span_px
from hybrid.core.types import Box, Corners, Json
from hybrid.tool import Args, CheckCase, CheckSeries, Claims, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.backends import Learned, WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from tools._shared.args import BoxArg, read_boxes
from tools._shared.batches import shape
from tools._shared.boxes import corners
from tools._shared.dense_features import FeatureInput
from tools._shared.finding_text import Lines
from tools._shared.known_answers import box_arg, coloured, expects, pattern
from tools._shared.overlay import PALETTE, WHITE, overlay
from tools._shared.picture_content import is_patchwork, shows_something, support_by_size
from tools._shared.wording import wording_of
from tools.saliency.background import over, superpixels
from tools.saliency.cues import SaliencyMap, stretch, without_lines
from tools.saliency.models import Attention, contrasted
from tools.saliency.objects import Region, in_box, object_map, salient_objects
from tools.saliency.outline import tighten
from tools.saliency.rules import RULES, TIE

MAX_OBJECTS = 12
# Largest number of boxes: the number of letters, because HVSBench's Q1 names each box by a letter.
MAX_BOXES = 26
MAX_PARTS = 8
# Largest number of objects that the text describes.
LISTED = 4
# Prominence of the second object relative to the first. Up to the lower value, the order was right in 95 % of the
# generated images 0 to 59; at the upper value, the order is a guess.
CLEAR_RATIO, EQUAL_RATIO = 0.7, 1.0
# Upper bound of every confidence. Artificially salient regions are ranked better, but agreement with people on
# photographs was never measured, and the two kinds of images are not distinguished.
MAX_CERTAINTY = 0.6
# Mean saliency, 0..1, below which a box does not stand out.
LEAST_SALIENCY = 0.02
# Confidence if nothing ranks first.
UNDECIDED = 0.3
# Confidence in a single object, which has no second one to compare with.
LONE = 0.55
LEGEND = "violet 0, yellow 1: relative saliency\nboxes: rank"


class SaliencyArgs(Args):
    """Arguments of the saliency tool."""

    boxes: tuple[BoxArg, ...] = Field(default=(), max_length=MAX_BOXES, description="to rank")
    columns: int = Field(default=1, ge=1, le=MAX_PARTS, description="of panels that drawn lines divide")
    rows: int = Field(default=1, ge=1, le=MAX_PARTS, description="of panels")


class SalientObject(TypedDict):
    """An object or a given box, the most salient first; at most 12 objects."""

    rank: Annotated[int, Field(description="from 1")]
    label: Annotated[str, Field(description="of a given box, else the rank")]
    box_px: Annotated[Corners, Field(description="x0, y0, x1, y1")]
    outlined: Annotated[bool, Field(description="whether the box was found at full resolution, not on the map's grid")]
    saliency_0_1: Annotated[float, Field(description="relative to the first")]
    mean_saliency_0_1: float


class MapSummary(TypedDict):
    """The map in numbers."""

    peak_px: Annotated[
        tuple[float, float] | None, Field(description="x, y of the most salient place; null if the map is empty")
    ]
    mean_0_1: float
    above_half_0_1: Annotated[float, Field(description="share of the image above a half")]


@with_config(extra="forbid")
class SaliencyData(TypedDict):
    """Data of saliency."""

    objects: list[SalientObject]
    count: Annotated[int | None, Field(description="of all objects, null if boxes were given")]
    most_salient: Annotated[str | None, Field(description="label of the first, null if undecided")]
    map: MapSummary


class Ranked(NamedTuple):
    """An object or a given box, in px, with its rank from 1.

    `relative` is its prominence relative to that of the first, and `mean` is its mean saliency. `outlined` is False for
    a box read from the map's coarse grid.
    """

    rank: int
    name: str
    box: Box
    relative: float
    mean: float
    outlined: bool = True


def outline_region(pixels: Pixels, region: Region) -> tuple[Box, bool]:
    """Return an object's box in px of an image (H, W, 3), and whether its outline was found at full resolution."""
    height, width = pixels.shape[:2]
    box = region.box_0_1
    coarse = Box(round(box.x0 * width), round(box.y0 * height), round(box.x1 * width), round(box.y1 * height))
    tight = tighten(pixels, coarse)
    if tight is None:
        return coarse, False
    return Box(round(tight.x0), round(tight.y0), round(tight.x1), round(tight.y1)), True


def rank_boxes(
    boxes: Sequence[Box], names: Sequence[str], regions: Sequence[Region], outlined: Sequence[bool]
) -> list[Ranked]:
    """Rank boxes by decreasing prominence; equal ones keep their order."""
    order = sorted(range(len(regions)), key=lambda place: -regions[place].prominence)
    best = max(regions[order[0]].prominence, 1e-9) if order else 1.0
    return [
        Ranked(rank, names[place], boxes[place], regions[place].prominence / best, regions[place].mean, outlined[place])
        for rank, place in enumerate(order, 1)
    ]


def decides(ranked: Sequence[Ranked]) -> bool:
    """Return whether the first object is clear: it stands out, and leads the second by more than `TIE`."""
    if not ranked or ranked[0].mean < LEAST_SALIENCY:
        return False
    return len(ranked) == 1 or 1 - ranked[1].relative > TIE


def confidence(ranked: Sequence[Ranked]) -> float:
    """Return the probability that the first of a ranking is the most salient, from its lead over the second."""
    if not decides(ranked):
        return UNDECIDED
    if len(ranked) == 1:
        return LONE
    ratio = min(max(ranked[1].relative, CLEAR_RATIO), EQUAL_RATIO)
    share = (EQUAL_RATIO - ratio) / (EQUAL_RATIO - CLEAR_RATIO)
    return 0.5 + (MAX_CERTAINTY - 0.5) * share


def evidence_of(original: Pixels, seen: Pixels, saliency: SaliencyMap, args: SaliencyArgs, basis: str) -> Evidence:
    """Build the tool output for an image from a map of regions (h, w) in 0..1.

    Args:
        original: the image (H, W, 3), for the overlay.
        seen: the image without drawn lines, from which the map was computed.
        saliency: the map.
        args: the arguments of the call.
        basis: description of the map's source, for the text.

    Returns:
        Evidence with `SaliencyData` and an overlay.

    Raises:
        ToolError: a given box is outside the image.
    """
    size = (seen.shape[0], seen.shape[1])
    argument_boxes = read_boxes("saliency", args.boxes, size)
    if not has_ground(seen):
        saliency = np.zeros_like(saliency)
    if argument_boxes:
        names = [box.label or str(number) for number, box in enumerate(args.boxes, 1)]
        regions, count = [in_box(saliency, box, size) for box in argument_boxes], None
        ranked = rank_boxes(argument_boxes, names, regions, [True] * len(argument_boxes))
    else:
        regions = salient_objects(saliency)
        regions, count = regions[:MAX_OBJECTS], len(regions)
        outlines = [outline_region(seen, region) for region in regions]
        names = [str(number) for number in range(1, len(regions) + 1)]
        ranked = rank_boxes([box for box, _ in outlines], names, regions, [clear for _, clear in outlines])
    certainty = UNDECIDED + (confidence(ranked) - UNDECIDED) * support_by_size(seen)
    text, data = describe(ranked, size, basis, certainty, count), _data(ranked, saliency, size, count)
    # Draw the most salient last, on top.
    labelled_boxes = [
        (
            item.box,
            item.name if item.name == str(item.rank) else f"{item.rank}: {item.name}",
            PALETTE[1] if item.rank == 1 and decides(ranked) else WHITE,
        )
        for item in reversed(ranked)
    ]
    return Evidence(text, data, certainty, (overlay(original, LEGEND, boxes=labelled_boxes, values=saliency),))


def has_ground(pixels: Pixels) -> bool:
    """Return whether an image (H, W, 3) shows something, and not only patches of which none stands out."""
    return shows_something(pixels) and not is_patchwork(pixels)


def _data(ranked: Sequence[Ranked], saliency: SaliencyMap, size: tuple[int, int], count: int | None) -> dict[str, Json]:
    row, column = np.unravel_index(int(np.argmax(saliency)), saliency.shape)
    places = zip((column, row), size[::-1], saliency.shape[::-1], strict=True)
    return {
        "objects": [
            {
                "rank": item.rank,
                "label": item.name,
                "box_px": corners(item.box),
                "outlined": item.outlined,
                "saliency_0_1": round(item.relative, 4),
                "mean_saliency_0_1": round(item.mean, 4),
            }
            for item in ranked
        ],
        "count": count,
        "most_salient": ranked[0].name if decides(ranked) else None,
        "map": {
            "peak_px": [round(float((cell + 0.5) * side / cells), 1) for cell, side, cells in places]
            if saliency.any()
            else None,
            "mean_0_1": round(float(saliency.mean()), 4),
            "above_half_0_1": round(float((saliency > 0.5).mean()), 4),
        },
    }


def describe(ranked: Sequence[Ranked], size: tuple[int, int], basis: str, certainty: float, count: int | None) -> str:
    """Describe the ranking in at most 450 characters for the model.

    Args:
        ranked: the ranking.
        size: (H, W) of the image.
        basis: how the ranking was computed.
        certainty: the confidence, 0..1.
        count: number of objects, None if the boxes were given.
    """
    head, ground = f"Image 1 ({size_px(size[1], size[0])} px): ", f"Basis: {basis}."
    if not ranked:
        return f"{head}nothing stands out from its surroundings.\n{ground}"
    if count is None:
        first = f"box {ranked[0].name} is the most salient, confidence {certainty:.2f}."
        head += first if decides(ranked) else "undecided which box is the most salient: none stands out more."
        # List all boxes in order or, if they exceed `room` characters, the first few and their total.
        room = Lines().most - length(head) - len(ground) - 2
        words = [f"{item.name} {item.relative:.2f}" for item in ranked]
        full_order = f"Order, with the share of the first's saliency: {', '.join(words)}."
        fewer = range(len(words) - 1, 0, -1)
        parts = (
            f"Order, first {count_shown} of {len(words)}: {', '.join(words[:count_shown])}." for count_shown in fewer
        )
        order = Lines(most=room).fitting((full_order, *parts))
        return f"{head}\n{order}\n{ground}"
    first = (
        f"number 1 is the most salient, confidence {certainty:.2f}." if decides(ranked) else "two are equally salient."
    )
    head += f"{count} salient object{'s' if count > 1 else ''}; {first}"
    head += f" The first {LISTED}:" if count > LISTED else ""
    rows = [
        f"{item.name}: saliency {item.relative:.2f}, {'' if item.outlined else 'about '}{span_px(item.box, to=' to ')}"
        for item in ranked[:LISTED]
    ]
    return "\n".join((head, *rows, ground))


class SaliencyCues(WeightFree[SaliencyArgs]):
    """The weight-free backend."""

    def answer(self, request: Request[SaliencyArgs]) -> Evidence:
        """Rank the objects of a request. Raises `ToolError` for a box outside the image."""
        basis = "regions whose colour sets them off from what the border shows; no model of people"
        seen = without_lines(request.images[0], request.args.columns, request.args.rows)
        return evidence_of(request.images[0], seen, object_map(seen), request.args, basis)

    def predict_map(self, request: Request[SaliencyArgs]) -> SaliencyMap:
        """Return the map (h, w) in 0..1 from which the answer follows; 0 for a picture that shows nothing."""
        seen = without_lines(request.images[0], request.args.columns, request.args.rows)
        values = object_map(seen)
        return values if has_ground(seen) else np.zeros_like(values)


# The image without drawn lines, and the network's input.
SeenImage = tuple[Pixels, FeatureInput]


class AttentionSaliency(Learned[SaliencyArgs, SeenImage, SaliencyMap, Attention]):
    """The learned backend: attention of a self-supervised transformer."""

    load = Attention

    def prepare(self, request: Request[SaliencyArgs]) -> SeenImage:
        """Return the image without drawn lines, and the network's input. Raises `ToolError` if it is too elongated."""
        seen = without_lines(request.images[0], request.args.columns, request.args.rows)
        return seen, self.model.prepare(seen)

    def batch_key(self, prepared: SeenImage) -> Hashable:
        """Return the shape of the image."""
        return shape(prepared[1].values)

    def compute(self, prepared: Sequence[SeenImage]) -> list[SaliencyMap]:
        """Compute the attention to each patch; up to four images per pass."""
        return self.model.predict([patches for _, patches in prepared])

    def finish(self, request: Request[SaliencyArgs], prepared: SeenImage, output: SaliencyMap) -> Evidence:
        """Build the tool output from the map. Raises `ToolError` for a box outside the image or values not finite."""
        basis = "attention of a network, not trained on people's eyes"
        return evidence_of(request.images[0], prepared[0], over_regions(prepared[0], output), request.args, basis)

    def predict_map(self, request: Request[SaliencyArgs]) -> SaliencyMap:
        """Return the map (h, w) in 0..1 from which the answer follows.

        Raises `ToolError` if the image is too elongated.
        """
        prepared = self.prepare(request)
        return over_regions(prepared[0], self.compute([prepared])[0])


def over_regions(seen: Pixels, output: SaliencyMap) -> SaliencyMap:
    """Average the patches' map over regions of the image, so that objects keep their outlines."""
    return stretch(over(superpixels(seen), contrasted(output)))


HEIGHT, WIDTH, RADIUS, PERIOD = 360, 480, 62, 24
LOOKS: tuple[tuple[str, str], ...] = (("dark", "bright"), ("red", "green"), ("stripes", "grey"), ("blue", "yellow"))
COLOURS = {
    "dark": (45, 45, 50),
    "bright": (215, 210, 205),
    "red": (185, 50, 45),
    "green": (50, 120, 60),
    "blue": (40, 60, 170),
    "yellow": (225, 195, 60),
}
GREY, LOW, HIGH = (130, 125, 120), (60, 55, 50), (200, 195, 190)
PLACES = ((170, 200), (300, 150), (310, 215), (165, 150))
BESIDE = ((64, 64), (416, 64), (64, 296), (416, 296))
SERIES = CheckSeries("the thing on the ground", 6)


def _look(name: str) -> npt.NDArray[np.float32]:
    if name in COLOURS or name == "grey":
        return np.full((HEIGHT, WIDTH, 3), COLOURS.get(name, GREY), np.float32)
    return coloured(pattern(name, HEIGHT, WIDTH, period=PERIOD, angle=0.3), LOW, HIGH)


def _thing(figure: str, ground: str, number: int) -> CheckCase:
    import cv2

    (x, y), zoom = PLACES[number % len(PLACES)], 3 if number == 0 else 1
    disc = cv2.circle(np.zeros((HEIGHT, WIDTH), np.float32), (x, y), RADIUS, 1.0, -1, cv2.LINE_AA)[..., None]
    picture = np.asarray(disc * _look(figure) + (1 - disc) * _look(ground), np.uint8)
    picture = np.asarray(cv2.resize(picture, (WIDTH * zoom, HEIGHT * zoom), interpolation=cv2.INTER_CUBIC), np.uint8)
    half = RADIUS - 4
    boxes: list[Json] = [
        box_arg([zoom * side for side in (cx - half, cy - half, cx + half, cy + half)], label)
        for (cx, cy), label in zip(
            (*BESIDE, (x, y)), ("ground 1", "ground 2", "ground 3", "ground 4", "thing"), strict=True
        )
    ]
    # The object has a different index in the list each time.
    boxes = boxes[number % 5 :] + boxes[: number % 5]
    return CheckCase((picture,), {"boxes": boxes}, expects("most_salient", "thing"))


CHECKS = tuple(
    KnownAnswer(f"{figure} on {ground}", partial(_thing, figure, ground, 2 * number + turn), SERIES)
    for number, looks in enumerate(LOOKS)
    for turn, (figure, ground) in enumerate((looks, looks[::-1]))
)


TOOL = Tool(
    card=tool_card(__file__, AttentionSaliency, SaliencyCues),
    args=SaliencyArgs,
    checks=CHECKS,
    claims=Claims(("most_salient",), compares="boxes"),
    rules=RULES,
    gaze="map",
    wording=wording_of(__file__),
    output=schema_of(SaliencyData),
)
