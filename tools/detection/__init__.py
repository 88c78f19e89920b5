"""Detection: boxes of named things in an image, and how many of each there are.

`hybrid tools run detection photo.jpg --weights DIR --args '{"names": ["dog", "red car"]}'`

There is no weight-free backend: without a network nothing here knows what a dog looks like. The families that load are
in `models.FAMILIES`; OWLv2 (Minderer et al. 2023) is the default, in which any name may be asked for.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import partial

from pydantic import Field

from hybrid.errors import ToolError
from hybrid.places import span_px
from hybrid.tool import Args, Evidence, Picture, Pixels, Request, Tool
from hybrid.tool.backends import Learned
from hybrid.tool.card_file import tool_card
from hybrid.types import Fault, Json
from tools._shared.boxes import corners
from tools._shared.finding_text import Lines
from tools._shared.overlay import PALETTE, Overlay
from tools.detection.checks import CHECKS, probe
from tools.detection.detection_json import ThingName
from tools.detection.models import Detection, DetectionInput, DetectionOutput, Detector
from tools.detection.rules import RULES

# Highest confidence in a count: no detector of this kind was measured here.
MOST_CERTAIN = 0.9
# Weight of one candidate whose score lies on the threshold; by argument, not measured.
DOUBT = 0.35
LISTED_NAMES = 5
# Of each name: as many as let the text of the finding fit.
LISTED_BOXES = (3, 2, 1, 0)


class DetectionArgs(Args):
    """Arguments of the detector."""

    names: tuple[ThingName, ...] = Field(min_length=1, max_length=12, description="in the singular, e.g. red car")
    threshold: float | None = Field(default=None, gt=0, lt=1, description="lowest score, else the model's own")


class LearnedDetection(Learned[DetectionArgs, DetectionInput, DetectionOutput, Detector]):
    """The learned backend: an open-vocabulary or a closed-set detector through transformers."""

    def __init__(self) -> None:
        super().__init__("detection", LEARNED.version, Detector, LEARNED.weights)

    def prepare(self, request: Request[DetectionArgs]) -> DetectionInput:
        """The image for the network and the names it knows. Raises `ToolError`: it knows none, or an odd image."""
        model, names = self.model, list(dict.fromkeys(request.args.names))
        known = [name for name in names if model.knows(name)]
        if not known:
            raise ToolError(
                f"detection: {', '.join(map(repr, names))} is not among the classes of this closed-set detector",
                Fault.BAD_ARGUMENTS,
            )
        return model.prepare(request.images[0], known)

    def alike(self, prepared: DetectionInput) -> Hashable:
        """As `Detector.alike`."""
        return self.model.alike(prepared)

    def compute(self, prepared: Sequence[DetectionInput]) -> list[DetectionOutput]:
        """Scores and boxes for each image; one pass for up to eight of one shape."""
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
    """Build the evidence of an image (H, W, 3) from candidates, best first and down to half the threshold.

    Returns:
        Evidence with data `{"boxes": [{"name", "score_0_1", "box_px": [x0, y0, x1, y1]}], "counts": {name: int},
        "unsupported": [name], "threshold_0_1"}` and an overlay. The confidence is that all counts are right.
    """
    kept = [one for one in candidates if one.score >= threshold]
    counts: dict[str, Json] = {name: sum(one.name == name for one in kept) for name in names}
    boxes: list[Json] = [{"name": one.name, "score_0_1": one.score, "box_px": corners(one.box)} for one in kept]
    data: dict[str, Json] = {
        "boxes": boxes,
        "counts": counts,
        "unsupported": list(unknown),
        "threshold_0_1": threshold,
    }
    # At most six lines and 450 characters for the model: the count of each name and its best boxes.
    return Evidence(
        Lines().fitting(_listed(names, kept, unknown, boxes) for boxes in LISTED_BOXES),
        data,
        confidence(candidates, threshold),
        (Picture(partial(draw, pixels, names, kept)),),
    )


def confidence(candidates: Sequence[Detection], threshold: float) -> float:
    """Probability, 0..1, that the counts are right: falls with every candidate whose score is near the threshold."""
    doubt = sum(max(0.0, 1 - abs(one.score - threshold) / threshold) for one in candidates)
    return MOST_CERTAIN * math.exp(-DOUBT * doubt)


def _listed(names: Sequence[str], kept: Sequence[Detection], unknown: Sequence[str], boxes: int) -> str:
    lines = []
    for name in names[:LISTED_NAMES]:
        detections = [one for one in kept if one.name == name]
        places = "; ".join(f"{span_px(one.box)} ({one.score:.2f})" for one in detections[:boxes])
        more = f"; {len(detections) - boxes} more" if boxes and len(detections) > boxes else ""
        lines.append(f"{len(detections)} x {name[:40]} in image 1" + (f": {places}{more}" if places else "") + ".")
    rest = [*names[LISTED_NAMES:], *(f"{name} (not among its classes)" for name in unknown)]
    if rest:
        lines.append(f"Also asked for: {', '.join(rest)}"[:160])
    return "\n".join(lines)


def draw(pixels: Pixels, names: Sequence[str], kept: Sequence[Detection]) -> Pixels:
    """The image with every box, its number within its name and its score."""
    canvas = Overlay(pixels)
    for place, name in enumerate(names):
        for number, one in enumerate((one for one in kept if one.name == name), 1):
            canvas.box(one.box, f"{name} {number}: {one.score:.2f}", PALETTE[place % len(PALETTE)])
    canvas.legend("boxes: name, number, score 0-1" if kept else "nothing found")
    return canvas.pixels


TOOL = Tool(
    card=tool_card(__file__, LearnedDetection),
    args=DetectionArgs,
    checks=CHECKS,
    probe=probe,
    rules=RULES,
)

LEARNED = TOOL.card.backends[0]
