"""Detection: boxes of named objects in an image, and the number of each.

`hybrid tools run detection photo.jpg --weights DIR --args '{"names": ["dog", "red car"]}'`

There is no weight-free backend: recognising a dog needs a network. The families that load are in `models.FAMILIES`;
the default is OWLv2 (Minderer et al. 2023), which accepts any name.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import astuple
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import span_px
from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Fault, Json
from hybrid.tool import Args, CheckCase, Claims, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.backends import Learned
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from tools._shared.boxes import corners, overlap
from tools._shared.finding_text import Lines
from tools._shared.known_answers import rows_of
from tools._shared.overlay import PALETTE, overlay
from tools._shared.wording import wording_of
from tools.detection.models import Detection, DetectionInput, DetectionOutput, Detector
from tools.detection.rules import RULES, DetectedBox, ThingName

# Highest confidence in a count: no detector of this kind has been measured for this tool.
MAX_CERTAINTY = 0.9
# The confidence in the counts is multiplied by exp(-DOUBT * d), where d sums the doubts about candidates (1 for a score
# at the threshold); an assumption, not measured.
DOUBT = 0.35
LISTED_NAMES = 5
# Numbers of boxes per name to try, in this order, until the text fits.
LISTED_BOXES = (3, 2, 1, 0)


class DetectionArgs(Args):
    """Arguments of the detector."""

    names: tuple[ThingName, ...] = Field(min_length=1, max_length=12, description="in the singular, e.g. red car")
    threshold: float | None = Field(default=None, gt=0, lt=1, description="lowest score, else the model's own")


@with_config(extra="forbid")
class DetectionData(TypedDict):
    """Data of detection."""

    boxes: list[DetectedBox]
    counts: Annotated[dict[str, int], Field(description="number of boxes of each name")]
    unsupported: Annotated[list[str], Field(description="names that are not among the classes of the detector")]
    threshold_0_1: Annotated[float, Field(description="lowest score of a box")]


class LearnedDetection(Learned[DetectionArgs, DetectionInput, DetectionOutput, Detector]):
    """The learned backend: an open-vocabulary or a closed-set detector through transformers."""

    load = Detector

    def prepare(self, request: Request[DetectionArgs]) -> DetectionInput:
        """Return the prepared image and known names.

        Raises `ToolError` if no name is known or the image is unsuitable.
        """
        model, names = self.model, list(dict.fromkeys(request.args.names))
        known_names = [name for name in names if model.knows(name)]
        if not known_names:
            raise ToolError(
                f"detection: {', '.join(map(repr, names))} is not among the classes of this closed-set detector",
                Fault.BAD_ARGUMENTS,
            )
        return model.prepare(request.images[0], known_names)

    def batch_key(self, prepared: DetectionInput) -> Hashable:
        """Return `Detector.batch_key`."""
        return self.model.batch_key(prepared)

    def compute(self, prepared: Sequence[DetectionInput]) -> list[DetectionOutput]:
        """Compute scores and boxes for each image; up to eight of one shape share a pass."""
        return self.model.predict(prepared)

    def finish(self, request: Request[DetectionArgs], prepared: DetectionInput, output: DetectionOutput) -> Evidence:
        """Return the detections. Raises `ToolError` for values that are not finite."""
        model, pixels = self.model, request.images[0]
        threshold = request.args.threshold or model.family.threshold
        candidates = model.detections(pixels, prepared.names, output, threshold / 2)
        unknown = [name for name in dict.fromkeys(request.args.names) if name not in prepared.names]
        return report(pixels, prepared.names, candidates, threshold, unknown)


def report(
    pixels: Pixels, names: Sequence[str], candidates: Sequence[Detection], threshold: float, unknown: Sequence[str] = ()
) -> Evidence:
    """Build the tool output for an image (H, W, 3) from candidates, best first, that score at least half the threshold.

    Returns:
        Evidence with `DetectionData` and an overlay. The confidence is the probability that all counts are right.
    """
    detections = [candidate for candidate in candidates if candidate.score >= threshold]
    counts: dict[str, Json] = {name: sum(detection.name == name for detection in detections) for name in names}
    boxes: list[Json] = [
        {"name": detection.name, "score_0_1": detection.score, "box_px": corners(detection.box)}
        for detection in detections
    ]
    data: dict[str, Json] = {"boxes": boxes, "counts": counts, "unsupported": list(unknown), "threshold_0_1": threshold}
    labelled_boxes = [
        (detection.box, f"{name} {number}: {detection.score:.2f}", PALETTE[place % len(PALETTE)])
        for place, name in enumerate(names)
        for number, detection in enumerate((detection for detection in detections if detection.name == name), 1)
    ]
    # At most six lines and 450 characters for the model: the count of each name and its best boxes.
    return Evidence(
        Lines().fitting(_list_detections(names, detections, unknown, most) for most in LISTED_BOXES),
        data,
        confidence(candidates, threshold),
        (overlay(pixels, "boxes: name, number, score 0-1" if detections else "nothing found", boxes=labelled_boxes),),
    )


def confidence(candidates: Sequence[Detection], threshold: float) -> float:
    """Return the probability, 0..1, that the counts are right; every candidate near the threshold lowers it."""
    doubt = sum(max(0.0, 1 - abs(candidate.score - threshold) / threshold) for candidate in candidates)
    return MAX_CERTAINTY * math.exp(-DOUBT * doubt)


def _list_detections(names: Sequence[str], selected: Sequence[Detection], unknown: Sequence[str], boxes: int) -> str:
    lines = []
    for name in names[:LISTED_NAMES]:
        detections = [detection for detection in selected if detection.name == name]
        places = "; ".join(f"{span_px(detection.box)} ({detection.score:.2f})" for detection in detections[:boxes])
        more = f"; {len(detections) - boxes} more" if boxes and len(detections) > boxes else ""
        lines.append(f"{len(detections)} x {name[:40]} in image 1" + (f": {places}{more}" if places else "") + ".")
    rest = [*names[LISTED_NAMES:], *(f"{name} (not among its classes)" for name in unknown)]
    if rest:
        lines.append(f"Also asked for: {', '.join(rest)}"[:160])
    return "\n".join(lines)


NAME = "stop sign"
# Everyday classes, at least one of which is in every closed set.
PROBE_NAMES = ("person", NAME)
# Minimum intersection over union at which a box matches a sign.
MIN_OVERLAP = 0.5
# Share of the signs of an image that must be found.
MIN_FOUND = 0.75
# Largest median offset and size error of the boxes, as fractions of the signs' sides: a network errs at single edges,
# but an error of scale or position affects all boxes.
NEAR = 0.035

# Centre x and y and radius of a sign, in pixels of an image of 640 x 480.
Sign = tuple[float, float, float]
SCENES: Sequence[tuple[str, float, Sequence[Sign]]] = (
    ("four signs", 1.0, ((110, 130, 62), (520, 120, 70), (300, 200, 84), (470, 330, 58))),
    ("four signs in a large picture", 2.4, ((130, 140, 66), (500, 140, 76), (330, 240, 60), (520, 320, 64))),
    ("a street without signs", 1.0, ()),
)


def street(scale: float, signs: Sequence[Sign]) -> tuple[Pixels, list[Box]]:
    """Draw signs on poles in front of a sky, houses and a road; return the image and the box of each sign."""
    import cv2

    width, height = round(640 * scale), round(480 * scale)
    down = np.linspace(0, 40, height)[:, None, None]
    canvas = np.tile((np.array((150, 185, 205)) + down).astype(np.uint8), (1, width, 1))
    road = round(0.8 * height)
    canvas[road:] = (92, 92, 96)
    for number in range(5):
        x0, y0 = round(number * width / 5), round((0.35 + 0.06 * (number % 3)) * height)
        wall = (168 - 12 * number, 150 - 6 * number, 132)
        cv2.rectangle(canvas, (x0, y0), (x0 + width // 5 - 4, road), wall, -1)
    boxes = []
    for x, y, radius in signs:
        centre, reach = (x * scale, y * scale), radius * scale
        middle, pole = round(centre[0]), round(0.06 * reach)
        start, end = (middle - pole, round(centre[1])), (middle + pole, round(0.9 * height))
        cv2.rectangle(canvas, start, end, (120, 122, 125), -1)
        # Eight corners, with a horizontal side on top.
        angles = np.pi / 8 + np.arange(8) * np.pi / 4
        octagon = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        for share, colour in ((1.0, (245, 245, 245)), (0.97, (190, 22, 30))):
            corners_px = np.rint(np.array(centre) + share * reach * octagon).astype(np.int32)
            cv2.fillPoly(canvas, [corners_px], colour, cv2.LINE_AA)
        font, size, line = cv2.FONT_HERSHEY_SIMPLEX, reach / 50, max(2, round(reach / 14))
        (across, high), _ = cv2.getTextSize("STOP", font, size, 1)
        corner = (round(centre[0] - across / 2), round(centre[1] + high / 2))
        cv2.putText(canvas, "STOP", corner, font, size, (250, 250, 250), line, cv2.LINE_AA)
        edge = reach * np.cos(np.pi / 8)
        boxes.append(Box(centre[0] - edge, centre[1] - edge, centre[0] + edge, centre[1] + edge))
    grain = np.random.default_rng(len(signs)).normal(0, 1, canvas.shape).astype(np.float32)
    noise = cv2.GaussianBlur(grain, (0, 0), 1.2)
    return np.clip(canvas + 8 * noise, 0, 255).astype(np.uint8), boxes


def _signs(scale: float, signs: Sequence[Sign]) -> CheckCase:
    picture, boxes = street(scale, signs)

    def validation_error(evidence: Evidence) -> str | None:
        seen = [Box(*np.array(row["box_px"], np.float64).tolist()) for row in rows_of(evidence, "boxes")]
        if not boxes:
            return f"{len(seen)} signs were found where there is none" if seen else None
        pairs = [(box, max(seen, key=lambda candidate: overlap(candidate, box))) for box in boxes] if seen else []
        pairs = [(box, detected) for box, detected in pairs if overlap(box, detected) >= MIN_OVERLAP]
        if len(pairs) < MIN_FOUND * len(boxes):
            return f"{len(pairs)} of {len(boxes)} signs were found"
        if len(seen) > 2 * len(boxes):
            return f"{len(seen)} boxes for {len(boxes)} signs"
        # Offsets of the edges of each detected box, positive to the right and down, relative to the sign's width.
        off = np.array([(np.array(astuple(detected)) - astuple(box)) / (box.x1 - box.x0) for box, detected in pairs])
        x_min, y_min, x_max, y_max = off.T
        offsets = np.median([(x_min + x_max) / 2, (y_min + y_max) / 2, x_max - x_min, y_max - y_min], axis=1)
        for phrase, value in zip(("to the right of", "below", "wider than", "higher than"), offsets, strict=True):
            if abs(value) > NEAR:
                return f"boxes are {value:.1%} {phrase} their signs"
        return None

    return CheckCase((picture,), {"names": [NAME]}, validation_error)


def probe(picture: Pixels) -> CheckCase:
    """Make a question about any image; at least one of its names is in every set of classes."""
    return CheckCase((picture,), {"names": list(PROBE_NAMES)}, lambda _: None)


CHECKS = tuple(KnownAnswer(name, partial(_signs, scale, signs)) for name, scale, signs in SCENES)


TOOL = Tool(
    card=tool_card(__file__, LearnedDetection),
    args=DetectionArgs,
    checks=CHECKS,
    probe=probe,
    claims=Claims(("boxes",)),
    rules=RULES,
    wording=wording_of(__file__),
    output=schema_of(DetectionData),
)
