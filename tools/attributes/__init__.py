"""Attributes: how well each of several descriptions fits an image or a region of it.

`hybrid tools run attributes photo.jpg --weights DIR --args '{"texts": ["a wooden chair", "a metal chair"]}'`

There is only a learned backend: SigLIP 2, SigLIP or CLIP compare the image with each text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, StringConstraints, with_config
from typing_extensions import TypedDict

from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Corners, Fault, Json
from hybrid.tool import Args, CheckCase, CheckSeries, Claims, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.backends import Learned, check_finite
from hybrid.tool.card_file import tool_card
from hybrid.tool.checkpoint import INDICES, load_verified
from hybrid.tool.outputs import schema_of
from tools._shared.args import RegionArg, read_boxes
from tools._shared.batches import by_members, by_shape, doubles, together
from tools._shared.boxes import corners
from tools._shared.known_answers import expects
from tools._shared.overlay import PALETTE, overlay
from tools._shared.reading import check_elongation, shrink
from tools._shared.wording import wording_of

FAMILIES = ("siglip", "siglip2", "clip")
# Families whose scores are shares that sum to 1 over the texts.
COMPARES = ("clip",)
MAX_SIDE_PX = 1024
MAX_ELONGATION = 50.0


class TextComparison(NamedTuple):
    """Logits and cosines (n) of one image with each of its n texts."""

    logits: npt.NDArray[np.float64]
    cosines: npt.NDArray[np.float64]


class TextScorer:
    """A verified checkpoint of one of `FAMILIES` on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
        self._checkpoint = load_verified(
            "AutoModel",
            weights,
            device=device,
            processor_class="AutoProcessor",
            model_types=FAMILIES,
            harmless=INDICES,
        )
        self.version = self._checkpoint.version
        self.compares = self._checkpoint.model_type in COMPARES

    def prepare(self, pixels: Pixels) -> dict[str, Any]:
        """Prepare an image for the network: its inputs by name, each (1, ...).

        Raises:
            ToolError: the image is more elongated than 50 : 1.
        """
        from PIL import Image

        check_elongation("attributes", pixels, MAX_ELONGATION)
        reduced = Image.fromarray(shrink(pixels, MAX_SIDE_PX))
        return dict(self._checkpoint.process(images=[reduced]))

    def predict(self, images: Sequence[Mapping[str, Any]], texts: Sequence[Sequence[str]]) -> list[TextComparison]:
        """Compare every image with its own texts; images of one shape share a forward pass."""
        loaded, words = self._checkpoint, list(dict.fromkeys(text for group in texts for text in group))
        # SigLIP was trained on lower-case texts padded to a fixed length; CLIP has no such restriction.
        read = loaded.processor(
            text=words if self.compares else [text.lower() for text in words],
            padding=True if self.compares else "max_length",
            truncation=True,
            max_length=int(loaded.model.config.text_config.max_position_embeddings),
            return_tensors="pt",
        ).to(loaded.device)
        columns = [[words.index(text) for text in group] for group in texts]

        def run(members: Sequence[int]) -> list[TextComparison]:
            batch = {name: together([images[at][name] for at in members], loaded.device) for name in images[0]}
            outputs = loaded.model(**batch, **read)
            pictures, text_features = (
                vectors / vectors.norm(dim=-1, keepdim=True) for vectors in (outputs.image_embeds, outputs.text_embeds)
            )
            cosines = doubles(pictures @ text_features.T)
            logits = doubles(outputs.logits_per_image)
            return [
                TextComparison(logits[row, columns[at]], cosines[row, columns[at]]) for row, at in enumerate(members)
            ]

        return by_members(by_shape([image["pixel_values"] for image in images]), run)

    def scores(self, comparison: TextComparison) -> tuple[list[float], list[float]]:
        """Return each text's score (0..1; for CLIP a softmax over the texts) and its cosine with the image (-1..1).

        Raises:
            ToolError: a value is not finite.
        """
        check_finite("attributes", comparison.logits, comparison.cosines)
        shifted = np.exp(comparison.logits - comparison.logits.max())
        shares = shifted / shifted.sum() if self.compares else 1 / (1 + np.exp(-np.clip(comparison.logits, -60, 60)))
        return [float(share) for share in shares], [float(np.clip(cosine, -1, 1)) for cosine in comparison.cosines]


# Minimum score at which a single text counts as a match.
FITS = 0.5
MAX_CERTAINTY = 0.9
LISTED = 4

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


class AttributesArgs(Args):
    """Arguments of attributes."""

    texts: tuple[Text, ...] = Field(min_length=1, max_length=16, description="e.g. an empty street")
    box: RegionArg | None = Field(default=None, description="region, else the whole image")


class FittedText(TypedDict):
    """How well one text fits, in the order of the arguments."""

    text: str
    score_0_1: Annotated[float, Field(description="how well it fits, or its share among the texts if `compares`")]
    cosine: float
    fits: Annotated[bool | None, Field(description="null if the texts are only compared")]


@with_config(extra="forbid")
class AttributesData(TypedDict):
    """Data of attributes."""

    scores: list[FittedText]
    best: Annotated[int | None, Field(description="index of the text that fits best, null for a tie")]
    compares: Annotated[bool, Field(description="whether scores are shares among the texts")]
    box_px: Annotated[Corners | None, Field(description="region as x0, y0, x1, y1; null for the whole image")]


# The texts of a request, its box (None: the full image), and that region prepared for the network.
RegionInput = tuple[tuple[str, ...], Box | None, Mapping[str, Any]]


class LearnedAttributes(Learned[AttributesArgs, RegionInput, TextComparison, TextScorer]):
    """The learned backend: an image-text model through transformers."""

    load = TextScorer

    def prepare(self, request: Request[AttributesArgs]) -> RegionInput:
        """Return the texts, the box, and the region prepared for the network.

        Raises:
            ToolError: a single text for a model that only compares texts, a box outside the image, an elongated region.
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
        return texts, box, model.prepare(region)

    def compute(self, prepared: Sequence[RegionInput]) -> list[TextComparison]:
        """Compare every region with its texts in one pass that encodes each text once."""
        return self.model.predict([image for _, _, image in prepared], [texts for texts, _, _ in prepared])

    def finish(self, request: Request[AttributesArgs], prepared: RegionInput, output: TextComparison) -> Evidence:
        """Decide which text fits best. Raises `ToolError` for values that are not finite."""
        model, (texts, box, _) = self.model, prepared
        scores, cosines = model.scores(output)
        evidence = judge(texts, scores, cosines, compares=model.compares, basis="a network of images and texts")
        score, text = max(zip(scores, texts, strict=True), key=lambda scored: scored[0])
        region = [(box, "region", PALETTE[0])] if box else []
        picture = overlay(request.images[0], f"{text[:60]}: {score:.2f} (score 0-1)", boxes=region)
        return replace(evidence, data={**evidence.data, "box_px": corners(box)}, pictures=(picture,))


def judge(
    texts: Sequence[str], scores: Sequence[float], cosines: Sequence[float], *, compares: bool, basis: str
) -> Evidence:
    """Build the tool output from scores 0..1 and cosines -1..1; with `compares` the scores are shares among the texts.

    Returns:
        Evidence with `AttributesData` without `box_px`. The confidence is the probability that `best` is right.
    """
    order = sorted(range(len(texts)), key=lambda index: -scores[index])
    rows: list[Json] = [
        {"text": text, "score_0_1": score, "cosine": cosine, "fits": None if compares else score >= FITS}
        for text, score, cosine in zip(texts, scores, cosines, strict=True)
    ]
    tied = len(order) > 1 and scores[order[0]] - scores[order[1]] < TIE
    data: dict[str, Json] = {"scores": rows, "best": None if tied else order[0], "compares": compares}
    unit = "share among these texts" if compares else "0 = does not fit, 1 = fits"
    lines = [f'"{texts[index][:90]}": {scores[index]:.2f}.' for index in order[:LISTED]]
    head = f"Fit of {len(texts)} descriptions to image 1 ({unit}), best first; basis: {basis[:60]}."
    return Evidence("\n".join([head, *lines]), data, confidence(scores))


# Scores closer than this are equal up to rounding.
TIE = 1e-6


def confidence(scores: Sequence[float]) -> float:
    """Return the probability, 0..1, that the first text fits best (with one text, that its verdict is right).

    The cap `MAX_CERTAINTY` is an assumption: image-text networks were measured only on full images and captions.
    """
    ordered = sorted(scores, reverse=True)
    if len(ordered) == 1:
        return min(MAX_CERTAINTY, max(ordered[0], 1 - ordered[0]))
    total = ordered[0] + ordered[1]
    return min(MAX_CERTAINTY, ordered[0] / total) if total > 0 else 1 / len(ordered)


COLOURS = {"red": (220, 30, 30), "green": (30, 160, 60), "blue": (30, 60, 220), "yellow": (240, 215, 30)}
SHAPES = ("circle", "square")
SERIES = CheckSeries("the colour of a thing", 7)


def disc(colour: tuple[int, int, int]) -> Pixels:
    """Draw a disc of an RGB colour on grey, (320, 320, 3)."""
    import cv2

    canvas = np.full((320, 320, 3), 128, np.uint8)
    return np.asarray(cv2.circle(canvas, (160, 160), 110, colour, -1, cv2.LINE_AA), np.uint8)


def _thing(colour: str, shape: str) -> CheckCase:
    picture = disc(COLOURS[colour])
    if shape == "square":
        # Larger than the input of any network, so that it is shrunk first.
        picture = np.full((1280, 1280, 3), 235, np.uint8)
        picture[320:960, 320:960] = COLOURS[colour]
    texts = [f"a {name} {shape}" for name in COLOURS]
    return CheckCase((picture,), {"texts": texts}, expects("best", list(COLOURS).index(colour)))


CHECKS = tuple(
    KnownAnswer(f"a {colour} {shape}", partial(_thing, colour, shape), SERIES) for shape in SHAPES for colour in COLOURS
)


TOOL = Tool(
    card=tool_card(__file__, LearnedAttributes),
    args=AttributesArgs,
    checks=CHECKS,
    claims=Claims(()),
    wording=wording_of(__file__),
    output=schema_of(AttributesData),
)
