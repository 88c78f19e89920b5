"""Localization: which of two or more boxes drawn on an image fits a named object best.

`hybrid tools run localization picture.png --args '{"name": "motorcycle"}'`; without boxes it compares the drawn ones.

The learned backend calls `tools/detection/` for the object and chooses the box with the largest overlap. The
weight-free one segments the common area of the boxes by colour and chooses the box that fits this segment; it does not
understand the name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Corners, Fault, Json
from hybrid.marks.marks import Marks, remove_marks
from hybrid.marks.marks_json import Label, marks_from
from hybrid.tool import Args, CheckCase, Claims, Evidence, Pixels, Request, Tool
from hybrid.tool.backends import WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, Rule, drawn_labels, letter
from tools._shared.args import BoxArg, read_boxes
from tools._shared.boxes import corners, overlap, shared_area
from tools._shared.grabcut import cut, distinctness
from tools._shared.known_answers import box_arg
from tools._shared.overlay import PALETTE, overlay
from tools._shared.picture_content import is_patchwork, shows_something, support_by_size
from tools._shared.wording import wording_of
from tools.detection.rules import ThingName, seen_from

WORKING_PX = 480
MIN_SIDE_PX = 24
# Difference of overlaps at which the confidence has gained 63 % of its range; set on generated items, seeds 0 to 99.
CLEAR_MARGIN = 0.12
WEIGHT_FREE_CERTAIN = 0.65
LEARNED_CERTAIN = 0.95
# Confidence if fewer than two boxes were found: lower than for a guess between two.
NOTHING_COMPARED = 0.3
# An object whose overlap with every box is lower is not the object that the boxes enclose.
MIN_OVERLAP = 0.2
# A colour segment that stands out less is not an object. Set between generated solids (0.62 and more) and segments of
# noise with squares of 2 to 32 px (up to 0.61).
MIN_DISTINCT = 0.62


class LocalizationArgs(Args):
    """Arguments of localization."""

    name: ThingName = Field(description="e.g. motorcycle")
    boxes: tuple[BoxArg, ...] = Field(default=(), max_length=8, description="else those drawn")
    labels: tuple[Label, ...] = Field(default=(), max_length=4, description="drawn letters, if known")


class JudgedBox(TypedDict):
    """A candidate box."""

    label: str
    box_px: Annotated[Corners, Field(description="x0, y0, x1, y1")]
    overlap_0_1: Annotated[float, Field(description="intersection over union with the object")]


@with_config(extra="forbid")
class LocalizationData(TypedDict):
    """Data of localization."""

    best: Annotated[str | None, Field(description="label of the box that fits best")]
    best_index: Annotated[int | None, Field(description="index of the box that fits best, null if undecided")]
    boxes: list[JudgedBox]
    thing_px: Annotated[Corners | None, Field(description="the object as x0, y0, x1, y1, null if it was not found")]


class Candidate(NamedTuple):
    """A box to judge, in pixels; `confidence` (0..1) is the confidence in its position."""

    label: str
    box: Box
    confidence: float = 1.0


# A name and the box of the object.
Named = tuple[str, Box]


class Fit(NamedTuple):
    """The comparison of all candidates with the object found, and the confidence, 0..1, in the best one.

    `overlaps` has each candidate's overlap, 0..1, with the object. `best` is the best candidate's index; None if
    undecided.
    """

    overlaps: tuple[float, ...]
    best: int | None
    confidence: float


def candidates_of(request: Request[LocalizationArgs]) -> list[Candidate]:
    """Return the given boxes, else the drawn ones that were found, which may be fewer than two.

    Raises:
        ToolError: the arguments give a single box, or one outside the image.
    """
    args, size = request.args, (request.images[0].shape[0], request.images[0].shape[1])
    argument_boxes = read_boxes("localization", args.boxes, size)
    if len(argument_boxes) == 1:
        raise ToolError("localization: 1 box to compare; give at least two, or none", Fault.BAD_ARGUMENTS)
    labelled = [(arg.label, box, 1.0) for arg, box in zip(args.boxes, argument_boxes, strict=True)]
    if not labelled:
        marked = [(mark.label, mark.box_px, mark.confidence) for mark in drawn_marks(request).boxes]
        labelled = [mark for mark in marked if mark[0] is not None] or marked
    return [
        Candidate(label or f"box {number}", box, confidence)
        for number, (label, box, confidence) in enumerate(labelled, 1)
    ]


def drawn_marks(request: Request[LocalizationArgs]) -> Marks:
    """Return the marks that the markers tool found on the image; none if it was not called."""
    for finding in request.needs.get("markers", ())[:1]:
        return marks_from(finding.data)
    return Marks((), ())


def judge(overlaps: Sequence[float], candidates: Sequence[Candidate], most_certain: float) -> Fit:
    """Choose the candidate with the largest overlap; the confidence grows with its lead over the second."""
    if len(overlaps) < 2:
        return Fit(tuple(overlaps), None, NOTHING_COMPARED)
    order = sorted(range(len(overlaps)), key=lambda index: -overlaps[index])
    lead, chance = overlaps[order[0]] - overlaps[order[1]], 1 / len(overlaps)
    if overlaps[order[0]] < MIN_OVERLAP or lead <= 0:
        return Fit(tuple(overlaps), None, chance)
    placed = min(candidates[index].confidence for index in order[:2])
    gain = (1 - math.exp(-lead / CLEAR_MARGIN)) * placed
    return Fit(tuple(overlaps), order[0], chance + (most_certain - chance) * gain)


class BoxFit(WeightFree[LocalizationArgs]):
    """The weight-free backend: compares colours in the common area of the boxes with colours outside all of them."""

    def answer(self, request: Request[LocalizationArgs]) -> Evidence:
        """Judge the boxes of a request. Raises `ToolError` like `candidates_of`."""
        candidates, pixels = candidates_of(request), request.images[0]
        boxes = [candidate.box for candidate in candidates]
        common = cut_shared(remove_marks(pixels, drawn_marks(request)), boxes) if len(boxes) > 1 else None
        overlaps = [overlap(candidate.box, common) if common else 0.0 for candidate in candidates]
        chance = 1 / max(2, len(candidates))
        most_certain = chance + max(0.0, WEIGHT_FREE_CERTAIN - chance) * support_by_size(pixels)
        fit = judge(overlaps, candidates, most_certain)
        basis = "colours of what the boxes share; the name is not understood"
        return report(request, candidates, fit, [] if common is None else [("colour cut", common)], basis)


def cut_shared(pixels: Pixels, boxes: Sequence[Box]) -> Box | None:
    """Return the tight box (pixels) of the object in the common area of all boxes.

    Colours outside all boxes are the background. GrabCut segments the rest, and only the part of its mask connected to
    the common area is used. Returns None without a common area, in a picture that shows nothing or only flat
    patches, or if the mask stands out less than `MIN_DISTINCT`: GrabCut finds a mask in noise, too.
    """
    import cv2

    height, width = pixels.shape[:2]
    if min(height, width) < MIN_SIDE_PX or not shows_something(pixels) or is_patchwork(pixels):
        return None
    x0, y0, x1, y1 = zip(*((box.x0, box.y0, box.x1, box.y1) for box in boxes), strict=True)
    inner, outer = Box(max(x0), max(y0), min(x1), min(y1)), Box(min(x0), min(y0), max(x1), max(y1))
    if inner.x1 - inner.x0 < 2 or inner.y1 - inner.y0 < 2:
        return None
    scale = min(1.0, WORKING_PX / max(height, width))
    size = (max(2, round(width * scale)), max(2, round(height * scale)))
    small = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    parts = []
    for box in (inner, outer):
        # Rows and columns of the shrunk image, at least one of each.
        top = min(int(box.y0 * (size[1] / height)), size[1] - 1)
        x_start = min(int(box.x0 * (size[0] / width)), size[0] - 1)
        bottom, right = round(box.y1 * (size[1] / height)), round(box.x1 * (size[0] / width))
        parts.append((slice(top, max(top + 1, bottom)), slice(x_start, max(x_start + 1, right))))
    middle, all_of_it = parts
    seeds = np.full(small.shape[:2], cv2.GC_BGD, np.uint8)
    seeds[all_of_it] = cv2.GC_PR_BGD
    seeds[middle] = cv2.GC_PR_FGD
    # Remove thin bridges of similar colour, which would join neighbours.
    smoothed = cv2.morphologyEx(cut(small, seeds).astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    count, connected = cv2.connectedComponents(smoothed)
    shares = np.bincount(connected[middle].ravel(), minlength=count)
    shares[0] = 0
    # Keep the parts with at least a tenth of the largest part's share of the common area.
    mask = np.isin(connected, np.flatnonzero(shares >= max(1.0, 0.1 * shares.max())))
    if distinctness(small, mask, seeds == cv2.GC_BGD) < MIN_DISTINCT:
        return None
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    across, down = width / size[0], height / size[1]
    return Box(columns[0] * across, rows[0] * down, (columns[-1] + 1) * across, (rows[-1] + 1) * down)


class DetectedFit(WeightFree[LocalizationArgs]):
    """The learned backend: the overlap of each box with what the detection tool found for the name."""

    def answer(self, request: Request[LocalizationArgs]) -> Evidence:
        """Judge the boxes of a request. Raises `ToolError` like `candidates_of`."""
        candidates, findings = candidates_of(request), request.needs.get("detection", ())
        if len(candidates) > 1 and not findings:
            raise ToolError("localization: the detection tool was not asked")
        seen = seen_from(findings[0].data) if len(candidates) > 1 else []
        near = [detection for detection in seen if any(shared_area(detection.box, other.box) for other in candidates)]
        # Choose the object that the boxes enclose, even if an object of the same name elsewhere has a higher score.
        thing_found = max(
            near,
            key=lambda detection: detection.score * max(overlap(detection.box, other.box) for other in candidates),
            default=None,
        )
        overlaps = [overlap(candidate.box, thing_found.box) if thing_found else 0.0 for candidate in candidates]
        fit = judge(overlaps, candidates, LEARNED_CERTAIN * (thing_found.score**0.25 if thing_found else 0.0))
        basis = f"overlap with a detected {request.args.name[:40]}"
        matched = [(f"{thing_found.name} {thing_found.score:.2f}", thing_found.box)] if thing_found else []
        return report(request, candidates, fit, matched, basis)


def report(
    request: Request[LocalizationArgs],
    candidates: Sequence[Candidate],
    fit: Fit,
    matches: list[tuple[str, Box]],
    basis: str,
) -> Evidence:
    """Build the tool output from the fit.

    Returns:
        Evidence with `LocalizationData` and an overlay. The confidence is the probability that `best` is right.
    """
    boxes: list[Json] = [
        {"label": candidate.label, "box_px": corners(candidate.box), "overlap_0_1": value}
        for candidate, value in zip(candidates, fit.overlaps, strict=True)
    ]
    data: dict[str, Json] = {
        "best": None if fit.best is None else candidates[fit.best].label,
        "best_index": fit.best,
        "boxes": boxes,
        "thing_px": corners(matches[0][1] if matches else None),
    }
    labelled_boxes = [
        (candidate.box, f"{candidate.label}: {fit.overlaps[number]:.2f}", PALETTE[1 + number % (len(PALETTE) - 1)])
        for number, candidate in enumerate(candidates)
    ]
    labelled_boxes += [(box, name, PALETTE[0]) for name, box in matches]
    legend = "overlap of each box with the cyan one (0-1)" if matches else "nothing found to compare with"
    values = ", ".join([f"{candidate.label[:12]} {fit.overlaps[n]:.2f}" for n, candidate in enumerate(candidates[:6])])
    if fit.best is None:
        head = f"Undecided which box of image 1 fits the {request.args.name[:60]}."
    else:
        head = f"{candidates[fit.best].label} fits the {request.args.name[:60]} of image 1 best."
    text = f"{head}\nOverlap with what was found (0..1): {values}.\nBasis: {basis}."
    if len(candidates) < 2:
        text = (
            f"{head[:-1]}: {len(candidates)} of the drawn boxes were found, and two are needed.\n"
            "Give the boxes in pixels."
        )
    return Evidence(text, data, fit.confidence, (overlay(request.images[0], legend, boxes=labelled_boxes),))


def marker_arguments(args: LocalizationArgs) -> Mapping[str, Json]:
    """Return the markers tool's arguments, which request boxes with these letters."""
    # The marks are also needed if boxes are given, because drawn outlines would count as edges and colours of the
    # image.
    return {"labels": list(args.labels), "kind": "box"}


def detection_arguments(args: LocalizationArgs) -> Mapping[str, Json]:
    """Return the detection tool's arguments, which request the named object."""
    # Low threshold: the object is known to be there, only its position is unknown.
    return {"names": [args.name], "threshold": 0.05}


def boxed_thing(text: str) -> str | None:
    """Return the noun in a question about two boxes: "... encloses the red car more accurately?" gives "red car".

    LVIS' bracketed clarifications, as in "the tank top (clothing)", are left out.
    """
    match = re.search(
        r"\b(?:encloses?|locali[sz]es?|surrounds?|fits?|contains?) the (?P<name>[a-z][a-z' -]*?)"
        r"(?: \([a-z -]+\))?(?: (?:more|most|better|best)\b[a-z ]*)?\s*\?",
        text,
        re.IGNORECASE,
    )
    return match["name"] if match else None


# Rules by route.
RULES: Mapping[str, Rule] = {
    "Object_Localization": OneCall(
        "localization",
        letter(),
        # The name of the object in the boxes, and their letters.
        lambda prompt: {"name": name, **drawn_labels(prompt)} if (name := boxed_thing(prompt.text)) else None,
        ("no name", "the question names no object in a box"),
    )
}


CARD = tool_card(__file__, DetectedFit, detection_arguments, BoxFit, marker_arguments)


def two_boxes(draw: Callable[[int, int], Pixels]) -> CheckCase:
    """Make a question about two boxes that share their centre."""
    height, width = 240, 320
    boxes: list[Json] = [box_arg((80, 60, 240, 180), "A"), box_arg((100, 80, 290, 200), "B")]
    return CheckCase((draw(height, width),), {"name": "dog", "boxes": boxes}, lambda _: None)


TOOL = Tool(
    CARD,
    LocalizationArgs,
    claims=Claims(("best_index",), compares="boxes", pose=two_boxes),
    rules=RULES,
    wording=wording_of(__file__),
    output=schema_of(LocalizationData),
)
