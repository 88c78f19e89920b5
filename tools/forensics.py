"""Forensics: which of some images was made by a generator.

`hybrid tools run forensics one.jpg two.jpg three.jpg four.jpg --weights DIR --args '{}'`

Only the learned backend decides: a supervised detector (`_synthetic_detectors.py`) scores every image and the highest
score wins. The weight-free one shows statistics of noise and spectrum (`_forensic_cues.py`) and never decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError
from hybrid.stages import Stages
from hybrid.tool import Args, BackendCard, Card, Evidence, Picture, Provenance, Request, Tool
from hybrid.types import Json
from tools._forensic_cues import LEAST_PX, NoiseStatistics, measure, residual_picture
from tools._overlay import Overlay
from tools._synthetic_detectors import SyntheticDetector, scores

Logits = npt.NDArray[np.float64]

SYNTHETIC = 0.5
"""Score from which a single image is called synthetic."""
MOST_CERTAIN = 0.85
UNDECIDED = 0.25
"""Confidence of evidence that does not decide: nothing is claimed to be right."""


class ForensicsArgs(Args):
    """Forensics takes no arguments: give one image to judge it, or several to find the synthetic one."""


class NoiseEvidence:
    """The weight-free backend: statistics, no decision."""

    def setup(self, device: str, weights: str | None) -> None:
        """Nothing is loaded."""

    def run(self, requests: Sequence[Request[ForensicsArgs]]) -> list[Evidence]:
        """One evidence a request. Raises `ToolError` for an image too small to have statistics."""
        return [self._one(request) for request in requests]

    def _one(self, request: Request[ForensicsArgs]) -> Evidence:
        for number, pixels in enumerate(request.images, 1):
            if min(pixels.shape[:2]) < LEAST_PX:
                raise ToolError(
                    f"forensics: image {number} is {pixels.shape[1]} x {pixels.shape[0]} px; "
                    f"statistics of noise need at least {LEAST_PX} px a side"
                )
        found = [measure(pixels) for pixels in request.images]
        rows: list[Json] = [
            {
                "residual_std_grey": one.residual_std,
                "residual_kurtosis": one.residual_kurtosis,
                "spectrum_slope": one.spectrum_slope,
                "high_share_0_1": one.high_share_0_1,
                "peak_ratio": one.peak_ratio,
            }
            for one in found
        ]
        data: dict[str, Json] = {"synthetic": None, "scores": None, "statistics": rows}
        pictures = []
        for number, pixels in enumerate(request.images):
            canvas = Overlay(residual_picture(pixels))
            canvas.legend("median residual x 8 (grey = none)")
            pictures.append(Picture(canvas.pixels, of=number))
        lines = [_say(number, one) for number, one in enumerate(found, 1)]
        head = "Noise and spectrum of each image; this is evidence only and does not say which is synthetic."
        return Evidence("\n".join([head, *lines]), data, UNDECIDED, tuple(pictures))


def _say(number: int, one: NoiseStatistics) -> str:
    return (
        f"Image {number}: noise {one.residual_std:.1f} grey levels, kurtosis {one.residual_kurtosis:.1f}, "
        f"spectrum slope {one.spectrum_slope:.2f}, share above 0.25/px {one.high_share_0_1:.2%}, "
        f"peak ratio {one.peak_ratio:.0f}."
    )


class LearnedForensics(Stages[ForensicsArgs, Any, Logits]):
    """The learned backend: a supervised detector from a directory."""

    def __init__(self) -> None:
        self._model: SyntheticDetector | None = None

    @property
    def version(self) -> str:
        """Version of this code, backbone and content of the checkpoint; raises `ToolError` before `setup`."""
        return f"{VERSION}+{self._loaded().version}"

    def setup(self, device: str, weights: str | None) -> None:
        """Load and verify the checkpoint. Raises `WeightsError`."""
        self._model = SyntheticDetector(weights or WEIGHTS, device)

    def prepare(self, request: Request[ForensicsArgs]) -> Any:
        """All images as the network takes them, (n, 3, h, w). Raises `ToolError` for one that cannot be scored."""
        return self._loaded().prepare(request.images)

    def compute(self, prepared: Sequence[Any]) -> list[Logits]:
        """The logits of each image; one pass for all of them."""
        import torch

        logits = self._loaded().predict(torch.cat(list(prepared)))
        ends = np.cumsum([len(images) for images in prepared])
        return np.split(logits, ends[:-1])

    def finish(self, request: Request[ForensicsArgs], prepared: Any, output: Logits) -> Evidence:
        """Which image is synthetic. Raises `ToolError` for values that are not finite."""
        found = scores(output)
        evidence = judge(found, self._loaded().version)
        pictures = []
        for number, pixels in enumerate(request.images):
            canvas = Overlay(pixels)
            canvas.legend(f"score synthetic {found[number]:.2f} (0-1)")
            pictures.append(Picture(canvas.pixels, of=number))
        return Evidence(evidence.text, evidence.data, evidence.confidence, tuple(pictures))

    def _loaded(self) -> SyntheticDetector:
        if self._model is None:
            raise ToolError("forensics: the learned backend was asked before its weights were loaded")
        return self._model


def judge(scores: Sequence[float], basis: str) -> Evidence:
    """What detector scores 0..1 say, one an image.

    Returns:
        Evidence with data `{"synthetic": index from 0 or null, "scores": [{"score_0_1"}], "statistics": null}`. Of
        several images the highest score is the synthetic one, null for a tie; a single image is one from a score of
        a half on, else null. The confidence is that this is right.
    """
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    rows: list[Json] = [{"score_0_1": score} for score in scores]
    first, chance = order[0], 1 / max(2, len(scores))
    if len(scores) == 1:
        chosen = 0 if scores[0] >= SYNTHETIC else None
        sure = min(MOST_CERTAIN, max(scores[0], 1 - scores[0]))
        head = f"Image 1 looks {'synthetic' if chosen == 0 else 'like a photograph'} to the detector."
    else:
        lead = scores[first] - scores[order[1]]
        chosen = first if lead > 1e-6 else None
        sure = chance if chosen is None else min(MOST_CERTAIN, chance + (1 - chance) * lead)
        head = "The detector does not tell the images apart."
        if chosen is not None:
            head = f"Image {first + 1} is the one that looks most synthetic to the detector."
    values = ", ".join(f"image {number} {score:.2f}" for number, score in enumerate(scores, 1))
    text = f"{head}\nScore (0 = camera, 1 = generator): {values}.\nBasis: {basis}."
    return Evidence(text, {"synthetic": chosen, "scores": rows, "statistics": None}, sure)


VERSION = "forensics-1"
WEIGHTS = "OwensLab/commfor-model-384"

PROVENANCES = tuple(
    # Park and Owens 2025 (Community Forensics), section 3: images of about 4,800 generators, and real ones.
    Provenance(f"OwensLab/commfor-model-{side}", "MIT", ("Community Forensics",))
    for side in ("384", "224")
)

TOOL = Tool(
    card=Card(
        name="forensics",
        summary=(
            "Scores each of 1 to 4 images as made by a generator or by a camera and names the most synthetic one; "
            "without weights it only lists statistics of noise and spectrum."
        ),
        limits=(
            "Only the learned backend decides. Detectors fail on generators, scalings and compressions that they were "
            "not trained on. The classical statistics are changed by JPEG, resizing and denoising at least as much as "
            "by the origin of an image: they are evidence, never an answer. The published detector was not run here; "
            "loading was checked with random weights."
        ),
        backends=(
            BackendCard(
                name="learned",
                version=VERSION,
                make=LearnedForensics,
                summary="A timm backbone with one logit: Community Forensics or timm layout, from a directory.",
                weights=WEIGHTS,
                provenances=PROVENANCES,
                batch=8,
                learned_tolerance=1e-3,
            ),
            BackendCard(
                name="classical",
                version="noise-1",
                make=NoiseEvidence,
                summary="Residual noise and spectrum of each image; never decides.",
            ),
        ),
        images=(1, 4),
    ),
    args=ForensicsArgs,
)
