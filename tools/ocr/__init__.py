"""OCR: the lines of text in an image, each with its box.

`hybrid tools run ocr sign.jpg --weights DIR --args '{}'` with PP-OCR checkpoints in DIR/det and DIR/rec; without
weights it uses the package `rapidocr` if installed. There is no weight-free backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import span_px
from hybrid.core.types import Box, Corners, Json
from hybrid.tool import Args, CheckCase, Claims, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.backends import Learned
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from tools._shared.args import RegionArg, read_boxes
from tools._shared.boxes import corners
from tools._shared.finding_text import Lines
from tools._shared.known_answers import rows_of
from tools._shared.overlay import PALETTE, overlay
from tools._shared.wording import wording_of
from tools.ocr.models import Reader, TextLine, drop_repeats, open_reader, reading_order

# Lines with a lower score are dropped, as in PP-OCR's own pipeline.
MIN_SCORE = 0.5
# Pairs of the lowest line score and the probability that the full text is right, set by hand on rendered lines
# (`bench/ocr.py`, seeds 1 and 2): 168 of the 171 lines with a score of at least 0.95 were right, and 4 of the 19 lines
# with a lower score.
MIN_LINE = ((0.8, 0.05), (0.9, 0.35), (0.97, 0.98))
NOTHING_READ = 0.5
LISTED = 5
# Numbers of characters per line to try, in this order, until the text fits.
SHOWN_CHARACTERS = (80, 40, 24)


class OcrArgs(Args):
    """Arguments of OCR."""

    box: RegionArg | None = Field(default=None, description="region, else the whole image")
    least_score: float = Field(default=MIN_SCORE, ge=0, le=1, description="leaves out less sure lines")


class LineRow(TypedDict):
    """A line of text, in reading order."""

    text: str
    score_0_1: float
    box_px: Annotated[Corners, Field(description="x0, y0, x1, y1")]


@with_config(extra="forbid")
class OcrData(TypedDict):
    """Data of OCR."""

    lines: list[LineRow]
    text: Annotated[str, Field(description="all lines, one below the other")]


class LearnedOcr(Learned[OcrArgs, Pixels, list[TextLine], Reader]):
    """The learned backend: PP-OCR from a directory, else the rapidocr package."""

    load = staticmethod(open_reader)

    def prepare(self, request: Request[OcrArgs]) -> Pixels:
        """Return the region to read. Raises `ToolError` for a box outside the image."""
        pixels, box = request.images[0], _region(request)
        return pixels if box is None else pixels[int(box.y0) : round(box.y1), int(box.x0) : round(box.x1)]

    def compute(self, prepared: Sequence[Pixels]) -> list[list[TextLine]]:
        """Read the lines of each region, in its own pixels. Raises `ToolError` for an image that cannot be read."""
        return [self.model.read(region) for region in prepared]

    def finish(self, request: Request[OcrArgs], prepared: Pixels, output: list[TextLine]) -> Evidence:
        """Return the lines with a sufficient score, in pixels of the full image."""
        box = _region(request)
        x0, y0 = (int(box.x0), int(box.y0)) if box else (0, 0)
        lines = [
            line._replace(box=Box(line.box.x0 + x0, line.box.y0 + y0, line.box.x1 + x0, line.box.y1 + y0))
            for line in output
            if line.score >= request.args.least_score
        ]
        return report(request.images[0], drop_repeats(reading_order(lines)), "a reading network")


def _region(request: Request[OcrArgs]) -> Box | None:
    size, box = (request.images[0].shape[0], request.images[0].shape[1]), request.args.box
    return next(iter(read_boxes("ocr", [box] if box else [], size)), None)


def report(pixels: Pixels, lines: Sequence[TextLine], basis: str) -> Evidence:
    """Build the tool output from the lines of an image (H, W, 3), in reading order.

    Returns:
        Evidence with `OcrData` and an overlay. The confidence is the probability that the full text is right.
    """
    rows: list[Json] = [{"text": line.text, "score_0_1": line.score, "box_px": corners(line.box)} for line in lines]
    legend = f"{len(lines)} {'line' if len(lines) == 1 else 'lines'} of text, numbered in reading order"
    boxes = [(line.box, str(number), PALETTE[0]) for number, line in enumerate(lines, 1)]
    full_text = "\n".join(line.text for line in lines)
    text = f"No text was read in image 1; basis: {basis[:80]}."
    if lines:
        text = Lines().fitting(_list_lines(lines, length) for length in SHOWN_CHARACTERS)
    return Evidence(
        text, {"lines": rows, "text": full_text}, confidence(lines), (overlay(pixels, legend, boxes=boxes),)
    )


def confidence(lines: Sequence[TextLine]) -> float:
    """Return the probability, 0..1, that all text is right, from its lowest line score; 0.5 if nothing was read."""
    if not lines:
        return NOTHING_READ
    scores, chances = zip(*MIN_LINE, strict=True)
    return float(np.interp(min(line.score for line in lines), scores, chances))


def _list_lines(lines: Sequence[TextLine], length: int) -> str:
    rows = [
        f'{number}. "{line.text[:length]}" ({line.score:.2f}) at {span_px(line.box)}'
        for number, line in enumerate(lines[:LISTED], 1)
    ]
    more = f"{len(lines) - LISTED} more: " + " | ".join(line.text for line in lines[LISTED:]) if lines[LISTED:] else ""
    return "\n".join([*rows, *([more[: 2 * length]] if more else [])])


# A text and the left end of its baseline in pixels.
Line = tuple[str, tuple[int, int]]
# Largest distance between the centres of a box and its letters: detectors leave equal margins around a line.
NEAR_PX = 5.0
# Colours of letters and background.
INK: Mapping[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    "dark on light": ((20, 20, 20), (245, 245, 245)),
    "light on blue": ((240, 240, 225), (30, 60, 140)),
}


def _page(size: tuple[int, int], lines: Sequence[Line], ink: str, height: float) -> CheckCase:
    """Draw lines on a page (H, W), with capitals about 22 * `height` px high."""
    letters, ground = INK[ink]
    canvas = np.full((*size, 3), ground, np.uint8)
    import cv2

    places, thick = [], max(2, round(2 * height))
    for text, corner in lines:
        alone = np.zeros(size, np.uint8)
        cv2.putText(alone, text, corner, cv2.FONT_HERSHEY_SIMPLEX, height, 255, thick, cv2.LINE_AA)
        cv2.putText(canvas, text, corner, cv2.FONT_HERSHEY_SIMPLEX, height, letters, thick, cv2.LINE_AA)
        rows, columns = np.flatnonzero(alone.any(axis=1)), np.flatnonzero(alone.any(axis=0))
        # The centre (x, y) of the line's letters.
        places.append(np.array([(columns[0] + columns[-1]) / 2, (rows[0] + rows[-1]) / 2]))

    def validation_error(evidence: Evidence) -> str | None:
        rows = rows_of(evidence, "lines")
        for (text, _), place in zip(lines, places, strict=True):
            row = next((entry for entry in rows if _letters(text) in _letters(str(entry["text"]))), None)
            if row is None:
                return f"{text!r} is not among what it read, {str(evidence.data['text'])[:60]!r}"
            x0, y0, x1, y1 = np.array(row["box_px"], np.float64)
            middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
            off = np.hypot(*(middle - place))
            if off > NEAR_PX:
                return f"the box of {text!r} is {off:.0f} px beside it"
        return None

    return CheckCase((canvas,), {}, validation_error)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.upper() if letter.isalnum())


CHECKS = (
    KnownAnswer("the word STREET", partial(_page, (300, 480), [("STREET", (40, 170))], "dark on light", 2.0)),
    KnownAnswer("the words 27 APRIL", partial(_page, (300, 480), [("27 APRIL", (40, 170))], "dark on light", 2.0)),
    KnownAnswer(
        "three lines and their places",
        partial(
            _page,
            (480, 640),
            [("MARKET", (60, 90)), ("GARDEN 52", (300, 260)), ("NO ENTRY", (90, 430))],
            "light on blue",
            1.6,
        ),
    ),
    KnownAnswer(
        "two lines of a large picture",
        partial(_page, (1000, 2800), [("HARBOUR", (1900, 220)), ("TICKETS", (200, 860))], "dark on light", 4.0),
    ),
)


TOOL = Tool(
    card=tool_card(__file__, LearnedOcr),
    args=OcrArgs,
    checks=CHECKS,
    claims=Claims(("lines",)),
    probe=lambda picture: CheckCase((picture,), {}, lambda _: None),
    wording=wording_of(__file__),
    output=schema_of(OcrData),
)
