"""Forensics: which of several images is synthetic, and which is most likely a photograph.

`hybrid tools run forensics one.jpg two.jpg three.jpg four.jpg --weights DIR --args '{}'`

Only the learned backend decides: a supervised detector (`models.py`) scores every image and the highest score wins. The
weight-free one shows statistics of noise and spectrum and never decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import at, size_px
from hybrid.core.errors import ToolError
from hybrid.core.types import Json, Prompt
from hybrid.tool import Args, Claims, Evidence, Picture, Pixels, Request, Tool
from hybrid.tool.backends import Learned, WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.finding_data import number_of, whole_number
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import ORDINALS, Rule, RuleContext, SpecialistAnswer, asks, choose_matching, image_names
from tools._shared.overlay import Overlay, overlay
from tools._shared.picture_content import shows_something
from tools._shared.wording import wording_of
from tools.forensics.models import SyntheticDetector, scores

# Side of the central part of the image that is measured. The part is not scaled, because this would change the
# statistics.
WINDOW_PX = 512
MIN_SIDE_PX = 32

Spectrum = npt.NDArray[np.float64]


def measure(pixels: Pixels) -> dict[str, float]:
    """Measure statistics of the centre of an image (H, W, 3) of at least `MIN_SIDE_PX` per side; grey levels 0..255.

    `residual_std_grey`: standard deviation of the median residual. `residual_kurtosis`: its excess kurtosis.
    `spectrum_slope`: exponent of the radial power spectrum between 0.05 and 0.45 cycles per pixel. `high_share_0_1`:
    share of the power above 0.25 cycles per pixel, excluding the mean. `peak_ratio`: 99.9th percentile of the
    residual's power over its median.
    """
    import cv2

    full_grey = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)
    height, width = (min(side, WINDOW_PX) for side in full_grey.shape)
    y0, x0 = (full_grey.shape[0] - height) // 2, (full_grey.shape[1] - width) // 2
    grey = np.ascontiguousarray(full_grey[y0 : y0 + height, x0 : x0 + width])
    residual = grey.astype(np.float64) - cv2.medianBlur(grey, 3).astype(np.float64)
    deviation = float(residual.std())
    centred = residual - residual.mean()
    kurtosis = float((centred**4).mean() / deviation**4 - 3) if deviation > 1e-6 else 0.0
    # Radial frequency of each coefficient, cycles per pixel.
    down, across = (np.fft.fftfreq(side) for side in grey.shape)
    power, frequency = _power(grey.astype(np.float64)), np.hypot(down[:, None], across[None, :])
    total = float(power[frequency > 0].sum())
    peaks = _power(residual)[frequency > 0.05]
    # Exponent b of power ~ frequency^b by least squares over rings; 0 without any power.
    edges = np.geomspace(0.05, 0.45, 13)
    middles, levels = [], []
    for low, high in pairwise(edges):
        ring = power[(frequency >= low) & (frequency < high)]
        if ring.size and ring.mean() > 0:
            middles.append(np.log((low + high) / 2))
            levels.append(np.log(ring.mean()))
    return {
        "residual_std_grey": deviation,
        "residual_kurtosis": kurtosis,
        "spectrum_slope": float(np.polyfit(middles, levels, 1)[0]) if len(middles) > 1 else 0.0,
        "high_share_0_1": float(power[frequency > 0.25].sum() / total) if total > 0 else 0.0,
        "peak_ratio": float(np.percentile(peaks, 99.9) / max(np.median(peaks), 1e-9)) if deviation > 1e-6 else 1.0,
    }


def _power(values: Spectrum) -> Spectrum:
    # A window keeps the discontinuity at the borders from spreading over all frequencies.
    window = np.outer(np.hanning(values.shape[0]), np.hanning(values.shape[1]))
    return np.asarray(np.abs(np.fft.fft2((values - values.mean()) * window)) ** 2, np.float64)


Logits = npt.NDArray[np.float64]

# Minimum score at which a single image is called synthetic.
SYNTHETIC = 0.5
MAX_CERTAINTY = 0.85
# Confidence of a tool output that does not decide.
UNDECIDED = 0.25
# For each statistic, the central 90 % range over 67 photographs from the web (JPEG, at most 640 px); 81 to 97 % of 67
# other photographs are inside it (`python -m bench.forensics`).
PHOTOGRAPHS: Mapping[str, tuple[float, float]] = {
    "residual_std_grey": (2.47, 22.9),
    "residual_kurtosis": (7.2, 646.0),
    "spectrum_slope": (-3.61, -1.76),
    "high_share_0_1": (0.003, 0.174),
    "peak_ratio": (14.5, 114.0),
}
HEAD = "Evidence only: this does not say which image is synthetic. In brackets: 90 % of JPEG photographs of 640 px."
# For each statistic: the label in the text, the format, and the name in `data`.
SAID = (
    ("Noise, grey levels", ".1f", "residual_std_grey"),
    ("Exponent of the spectrum", ".2f", "spectrum_slope"),
    ("Power above 0.25 cycles/px", ".1%", "high_share_0_1"),
)
UNDECIDED_BETWEEN: Mapping[str, Json] = {"synthetic": None, "photograph": None, "photograph_confidence_0_1": None}


class ForensicsArgs(Args):
    """Forensics takes no arguments: give one image to judge it, or several to compare them."""


class SyntheticScore(TypedDict):
    """How synthetic the detector finds an image, in the order of the images."""

    score_0_1: float


class NoiseStatistics(TypedDict):
    """Statistics of an image, as `measure` defines them, in the order of the images."""

    residual_std_grey: Annotated[float, Field(description="standard deviation of the median residual")]
    residual_kurtosis: Annotated[float, Field(description="excess kurtosis of the median residual")]
    spectrum_slope: Annotated[float, Field(description="exponent of the radial power spectrum")]
    high_share_0_1: Annotated[float, Field(description="share of the power above 0.25 cycles per pixel")]
    peak_ratio: Annotated[float, Field(description="99.9th percentile of the residual's power over its median")]


@with_config(extra="forbid")
class ForensicsData(TypedDict):
    """Data of forensics: scores with a network, statistics without."""

    synthetic: Annotated[int | None, Field(description="index of the synthetic image, null if undecided")]
    photograph: Annotated[int | None, Field(description="index of the photograph, null if undecided")]
    photograph_confidence_0_1: float | None
    scores: list[SyntheticScore] | None
    statistics: list[NoiseStatistics] | None
    photographs: Annotated[
        dict[str, tuple[float, float]] | None, Field(description="range of each statistic in 90 % of photographs")
    ]


class NoiseEvidence(WeightFree[ForensicsArgs]):
    """The weight-free backend: statistics without a decision."""

    def answer(self, request: Request[ForensicsArgs]) -> Evidence:
        """Measure each image of a request. Raises `ToolError` for an image that is too small."""
        for number, pixels in enumerate(request.images, 1):
            if min(pixels.shape[:2]) < MIN_SIDE_PX:
                raise ToolError(
                    f"forensics: image {number} is {size_px(pixels.shape[1], pixels.shape[0], number)} px; "
                    f"statistics of noise need at least {at('width', MIN_SIDE_PX)} px a side"
                )
        rows = [measure(pixels) for pixels in request.images]
        data: dict[str, Json] = {
            **UNDECIDED_BETWEEN,
            "scores": None,
            "statistics": [dict(row) for row in rows],
            "photographs": {name: list(span) for name, span in PHOTOGRAPHS.items()},
        }
        pictures = tuple(Picture(partial(_residual, pixels), of=number) for number, pixels in enumerate(request.images))
        lines = [HEAD]
        for words, unit, name in SAID:
            # List a statistic of each image beside its range and flag values outside it.
            (low, high), numbers = PHOTOGRAPHS[name], []
            for number, value in enumerate((row[name] for row in rows), 1):
                note = " (below)" if value < low else " (above)" if value > high else ""
                numbers.append(f"{number}: {value:{unit}}{note}")
            lines.append(f"{words} [{low:{unit}} to {high:{unit}}], image {', '.join(numbers)}.")
        return Evidence("\n".join(lines), data, UNDECIDED, pictures)


def _residual(pixels: Pixels) -> Pixels:
    """Return the residual of an image at the image's size, with eightfold contrast and grey 128 for zero."""
    import cv2

    grey = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)
    residual = grey.astype(np.float64) - cv2.medianBlur(grey, 3).astype(np.float64)
    amplified = np.clip(128 + 8 * residual, 0, 255).astype(np.uint8)
    canvas = Overlay(np.asarray(cv2.cvtColor(amplified, cv2.COLOR_GRAY2RGB), np.uint8))
    canvas.legend("median residual x 8 (grey = none)")
    return canvas.pixels


class LearnedForensics(Learned[ForensicsArgs, Any, Logits, SyntheticDetector]):
    """The learned backend: a supervised detector from a directory."""

    load = SyntheticDetector

    def prepare(self, request: Request[ForensicsArgs]) -> Any:
        """Prepare all images as a batch (n, 3, h, w). Raises `ToolError` for an image that cannot be scored."""
        return self.model.prepare(request.images)

    def compute(self, prepared: Sequence[Any]) -> list[Logits]:
        """Compute the logits of each image in one pass."""
        import torch

        logits = self.model.predict(torch.cat(list(prepared)))
        return np.split(logits, np.cumsum([len(images) for images in prepared])[:-1])

    def finish(self, request: Request[ForensicsArgs], prepared: Any, output: Logits) -> Evidence:
        """Decide which image is synthetic. Raises `ToolError` for values that are not finite."""
        synthetic = scores(output)
        seen = any(map(shows_something, request.images))
        evidence = judge(synthetic, "a network trained to tell them apart", seen=seen)
        scored_images = enumerate(zip(request.images, synthetic, strict=True))
        pictures = (overlay(pixels, f"score synthetic {score:.2f} (0-1)", of=n) for n, (pixels, score) in scored_images)
        return replace(evidence, pictures=tuple(pictures))


def judge(scores: Sequence[float], basis: str, *, seen: bool = True) -> Evidence:
    """Build the tool output from detector scores 0..1, one per image; undecided unless an image shows something.

    Returns:
        Evidence with `ForensicsData` without statistics. Of several images, the one with the highest score is
        `synthetic` and the one with the lowest score is `photograph`; each is null for a tie. A single image is
        synthetic from a score of 0.5, else a photograph. The confidence is the probability that `synthetic` is right
        or, for a single image, that its verdict is right.
    """
    rows: list[Json] = [{"score_0_1": score} for score in scores]
    if not seen:
        synthetic, photograph, certainty, real_sure = None, None, UNDECIDED, UNDECIDED
        head = "Undecided: every image is one colour or noise."
    elif len(scores) == 1:
        is_synthetic = scores[0] >= SYNTHETIC
        synthetic, photograph = (0, None) if is_synthetic else (None, 0)
        certainty = real_sure = min(MAX_CERTAINTY, max(scores[0], 1 - scores[0]))
        head = f"Image 1 looks {'synthetic' if is_synthetic else 'like a photograph'} to the detector."
    else:
        synthetic, certainty = _foremost(scores)
        photograph, real_sure = _foremost([-score for score in scores])
        head = " ".join(
            f"Image {place + 1} {words} to the detector."
            for place, words in ((synthetic, "looks most synthetic"), (photograph, "looks most like a photograph"))
            if place is not None
        )
    values = ", ".join(f"image {number} {score:.2f}" for number, score in enumerate(scores, 1))
    head = head or "The detector does not tell the images apart."
    data: dict[str, Json] = {
        "synthetic": synthetic,
        "photograph": photograph,
        "photograph_confidence_0_1": None if photograph is None else real_sure,
        "scores": rows,
        "statistics": None,
        "photographs": None,
    }
    return Evidence(f"{head}\nScore (0 = camera, 1 = generator): {values}.\nBasis: {basis}.", data, certainty)


def _foremost(values: Sequence[float]) -> tuple[int | None, float]:
    """Return the index of the highest of at least two values and the confidence from its lead; None for a tie."""
    order = sorted(range(len(values)), key=lambda place: -values[place])
    lead, chance = values[order[0]] - values[order[1]], 1 / len(values)
    if lead <= 1e-6:
        return None, chance
    return order[0], min(MAX_CERTAINTY, chance + (1 - chance) * lead)


@asks("forensics")
async def real_photograph(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Choose the image that a supervised detector finds least synthetic.

    The confidence of the tool output, and the reliability on the tool's card, concern the most synthetic image, so this
    rule uses neither.
    """
    finding = await ctx.tool("forensics", image_names(prompt), {})
    place = whole_number(finding, "photograph", min(len(prompt.images), len(ORDINALS) - 1))
    confidence = number_of(finding.data, "photograph_confidence_0_1")
    if place is None or confidence is None:
        return None
    specialist_answer = choose_matching(prompt, "forensics", finding, rf"\b{ORDINALS[place]} image\b")
    return None if specialist_answer is None else replace(specialist_answer, sure=confidence, on_card=False)


# Rules by route.
RULES: Mapping[str, Rule] = {"Forensic_Detection": real_photograph}


CLAIMS = Claims(("synthetic", "photograph"))
TOOL = Tool(
    card=tool_card(__file__, LearnedForensics, NoiseEvidence),
    args=ForensicsArgs,
    claims=CLAIMS,
    rules=RULES,
    wording=wording_of(__file__),
    output=schema_of(ForensicsData),
)
