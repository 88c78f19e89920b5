"""Attributes: how well each of some descriptions fits an image or a region of it.

`hybrid tools run attributes photo.jpg --weights DIR --args '{"texts": ["a wooden chair", "a metal chair"]}'`

Learned only: SigLIP 2, SigLIP or CLIP compare the image with each text (`models.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, StringConstraints

from hybrid.errors import ToolError
from hybrid.tool import Args, Evidence, Picture, Pixels, Request, Tool
from hybrid.tool.backends import Learned
from hybrid.tool.card_file import tool_card
from hybrid.types import Box, Fault, Json
from tools._shared.args import RegionArg, read_boxes
from tools._shared.boxes import corners
from tools._shared.overlay import PALETTE, Overlay
from tools.attributes.checks import CHECKS
from tools.attributes.models import Comparison, TextScorer

# Score from which a single text counts as fitting.
FITS = 0.5
MOST_CERTAIN = 0.9
LISTED = 4

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


class AttributesArgs(Args):
    """Arguments of attributes."""

    texts: tuple[Text, ...] = Field(min_length=1, max_length=16, description="e.g. an empty street")
    box: RegionArg | None = Field(default=None, description="region, else the whole image")


class RegionInput(NamedTuple):
    """The texts of a request, the box it looks at (None: the whole image), and that region for the network."""

    texts: tuple[str, ...]
    box: Box | None
    image: Mapping[str, Any]


class LearnedAttributes(Learned[AttributesArgs, RegionInput, Comparison, TextScorer]):
    """The learned backend: an image-text model through transformers."""

    def __init__(self) -> None:
        super().__init__("attributes", LEARNED.version, TextScorer, LEARNED.weights)

    def prepare(self, request: Request[AttributesArgs]) -> RegionInput:
        """The region, its texts, and the region as the network takes it.

        Raises:
            ToolError: one text alone where the model only compares texts, a box outside, an elongated region.
        """
        model, pixels = self.model, request.images[0]
        texts = tuple(dict.fromkeys(request.args.texts))
        if model.compares and len(texts) < 2:
            raise ToolError("attributes: this model only compares texts; give at least two", Fault.BAD_ARGUMENTS)
        size = (pixels.shape[0], pixels.shape[1])
        box = next(iter(read_boxes("attributes", [request.args.box] if request.args.box else [], size)), None)
        region = pixels
        if box is not None:
            x0, y0 = int(box.x0), int(box.y0)
            region = pixels[y0 : max(y0 + 1, round(box.y1)), x0 : max(x0 + 1, round(box.x1))]
        return RegionInput(texts, box, model.prepare(region))

    def compute(self, prepared: Sequence[RegionInput]) -> list[Comparison]:
        """Every region compared with its texts; one pass, in which each text is read once."""
        return self.model.predict([one.image for one in prepared], [one.texts for one in prepared])

    def finish(self, request: Request[AttributesArgs], prepared: RegionInput, output: Comparison) -> Evidence:
        """Decide which text fits best. Raises `ToolError` for values that are not finite."""
        model, texts, box = self.model, prepared.texts, prepared.box
        scores, cosines = model.scores(output)
        evidence = judge(texts, scores, cosines, compares=model.compares, basis="a network of images and texts")

        def drawn() -> Pixels:
            canvas = Overlay(request.images[0])
            if box is not None:
                canvas.box(box, "region", PALETTE[0])
            best = max(range(len(texts)), key=lambda index: scores[index])
            canvas.legend(f"{texts[best][:60]}: {scores[best]:.2f} (score 0-1)")
            return canvas.pixels

        return Evidence(
            evidence.text, {**evidence.data, "box_px": corners(box)}, evidence.confidence, (Picture(drawn),)
        )


def judge(
    texts: Sequence[str], scores: Sequence[float], cosines: Sequence[float], *, compares: bool, basis: str
) -> Evidence:
    """Build the evidence from scores 0..1 and cosines -1..1; with `compares` the scores are shares among the texts.

    Returns:
        Evidence with data `{"scores": [{"text", "score_0_1", "cosine", "fits": bool or null}], "best": int,
        "compares": bool}`; `fits` is null where texts are only compared. The confidence is that `best` is the text
        that fits best.
    """
    order = sorted(range(len(texts)), key=lambda index: -scores[index])
    rows: list[Json] = [
        {"text": text, "score_0_1": score, "cosine": cosine, "fits": None if compares else score >= FITS}
        for text, score, cosine in zip(texts, scores, cosines, strict=True)
    ]
    data: dict[str, Json] = {"scores": rows, "best": order[0], "compares": compares}
    unit = "share among these texts" if compares else "0 = does not fit, 1 = fits"
    lines = [f'"{texts[index][:90]}": {scores[index]:.2f}.' for index in order[:LISTED]]
    head = f"Fit of {len(texts)} descriptions to image 1 ({unit}), best first; basis: {basis[:60]}."
    return Evidence("\n".join([head, *lines]), data, confidence(scores))


def confidence(scores: Sequence[float]) -> float:
    """Probability, 0..1, that the first text fits best (with one text, that its verdict is right).

    By argument: image-text networks were measured on whole images and captions alone, so it never exceeds
    `MOST_CERTAIN`.
    """
    ordered = sorted(scores, reverse=True)
    if len(ordered) == 1:
        return min(MOST_CERTAIN, max(ordered[0], 1 - ordered[0]))
    total = ordered[0] + ordered[1]
    return min(MOST_CERTAIN, ordered[0] / total) if total > 0 else 1 / len(ordered)


TOOL = Tool(
    card=tool_card(__file__, LearnedAttributes),
    args=AttributesArgs,
    checks=CHECKS,
)

LEARNED = TOOL.card.backends[0]
