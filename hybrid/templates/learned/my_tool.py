"""Which image is most like the first, by the features of a network: an example to be changed.

`hybrid tools run my_tool first.jpg second.jpg third.jpg --weights my_tool_tiny --path my_tools`
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.tool import (
    Args,
    BackendCard,
    Card,
    CheckCase,
    CheckSeries,
    Evidence,
    KnownAnswer,
    Pixels,
    Provenance,
    Request,
    Tool,
    ToolError,
    ToolOutput,
)
from hybrid.tool.backends import Learned
from hybrid.tool.checkpoint import load_verified
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, later_image

WEIGHTS = "facebook/dinov2-small"
"""Default weights, unless `--weights my_tool=DIR_OR_ID` names others."""
MAX_ELONGATION = 8.0
"""Processors scale by the short side, so a narrow strip would become millions of pixels."""


class MyToolArgs(Args):
    """No arguments."""


class MyToolOutput(ToolOutput):
    """The values for rules: the index of the most similar image, 0 for image 2, and the cosine of each image."""

    best: int
    cosine: list[float]


class Features:
    """A verified network with its processor on a device: one vector per image."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` where weights are absent, or a tensor is not in them."""
        self._loaded = load_verified("AutoModel", weights, device=device)
        self.version = self._loaded.version

    def prepare(self, pixels: Pixels) -> Any:
        """Convert an image (H, W, 3) with its processor to a tensor (1, 3, h, w)."""
        if max(pixels.shape[:2]) > MAX_ELONGATION * min(pixels.shape[:2]):
            raise ToolError(f"my_tool: an image is more elongated than {MAX_ELONGATION:g} : 1")
        # State the layout, because otherwise an image of 3 rows would be taken for one of 3 channels.
        inputs = self._loaded.processor(images=[pixels], return_tensors="pt", input_data_format="channels_last")
        return inputs["pixel_values"]

    def compute(self, tensors: Sequence[Any]) -> npt.NDArray[np.float32]:
        """Return one unit vector per tensor, computed in one batch."""
        import torch

        batch = torch.cat(list(tensors)).to(self._loaded.device)
        with torch.inference_mode():
            features = self._loaded.model(pixel_values=batch).pooler_output.flatten(1)
        vectors: npt.NDArray[np.float32] = features.float().cpu().numpy()
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


class Network(Learned[MyToolArgs, list[Any], npt.NDArray[np.float32], Features]):
    """The learned backend: the stages of a request; only `compute` needs the device."""

    def __init__(self) -> None:
        super().__init__("my_tool", "1", Features, WEIGHTS)

    def prepare(self, request: Request[MyToolArgs]) -> list[Any]:
        """Return the inputs of the network."""
        return [self.model.prepare(pixels) for pixels in request.images]

    def compute(self, prepared: Sequence[list[Any]]) -> list[npt.NDArray[np.float32]]:
        """Return the vectors of each request, computed in one batch."""
        vectors = self.model.compute([tensor for tensors in prepared for tensor in tensors])
        ends = np.cumsum([len(tensors) for tensors in prepared])
        return np.split(vectors, ends[:-1])

    def finish(self, request: Request[MyToolArgs], prepared: list[Any], output: npt.NDArray[np.float32]) -> Evidence:
        """Return the evidence: numbers for rules, and a short text for the model."""
        cosines = [round(float(vector @ output[0]), 4) for vector in output[1:]]
        best = int(np.argmax(cosines))
        text = f"Image {best + 2} is most like image 1 (cosine {cosines[best]:.2f})."
        return MyToolOutput(text, best=best, cosine=cosines, confidence=0.6).evidence


PERIOD_PX, SIDE_PX = 28, 224
DARK, BRIGHT, DIM_LIGHT = (80, 60, 40), (230, 210, 180), (0.6, 0.5, 0.35)
ENOUGH = CheckSeries("the same pattern in another light, which random weights miss", 5)


def _waves() -> list[npt.NDArray[np.float64]]:
    """Return six patterns: upright, lying and slanted stripes, plaid, checks, rings."""
    side = np.arange(-SIDE_PX / 2, SIDE_PX / 2) * 2 * np.pi / PERIOD_PX
    x, y = np.meshgrid(side, side)
    slanted = np.cos((x + y) / np.sqrt(2))
    return [np.cos(x), np.cos(y), slanted, np.cos(x) + np.cos(y), np.sin(x) * np.sin(y), np.cos(np.hypot(x, y))]


def _draw(wave: npt.NDArray[np.float64], light: Sequence[float] = (1, 1, 1)) -> Pixels:
    """Draw a pattern, half of it dark and half bright, in a given light."""
    colours = np.where((wave > np.median(wave))[..., None], BRIGHT, DARK)
    return np.asarray(colours * np.asarray(light), np.uint8)


def _same_pattern(number: int) -> CheckCase:
    """Return a pattern and three candidates: the same one upside down in dim light, and two others in its colours.

    A trained network knows the pattern; the features of random weights follow the colours, which are always wrong.
    """
    waves, place = _waves(), number % 3
    candidates = [_draw(waves[(number + step) % len(waves)]) for step in (1, 2)]
    candidates.insert(place, _draw(waves[number][::-1, ::-1], DIM_LIGHT))
    wrong = f"image {place + 2} has the pattern of image 1"
    return CheckCase((_draw(waves[number]), *candidates), {}, lambda it: None if it.data["best"] == place else wrong)


RULES = {"Jigsaw": OneCall("my_tool", later_image)}
"""Its answer without an MLLM (`--solver specialist`), by a question's route: the piece that is most like the picture.
An example whose questions can be generated; name the route of your own questions instead."""

TOOL = Tool(
    card=Card(
        name="my_tool",
        summary="Says which of the other images is most like image 1, with the likeness of each.",
        limits="Says nothing about why; images of one palette look alike to it.",
        backends=(
            BackendCard(
                name="learned",
                version="1",
                make=Network,
                summary="Cosine of the features of a vision transformer.",
                weights=WEIGHTS,
                provenances=(Provenance(WEIGHTS, "Apache-2.0", ()),),
                batch=8,
                learned_tolerance=1e-3,
            ),
        ),
        images=(2, 6),
    ),
    args=MyToolArgs,
    checks=tuple(KnownAnswer(f"pattern {n + 1}", partial(_same_pattern, n), ENOUGH) for n in range(6)),
    rules=RULES,
    output=schema_of(MyToolOutput),
)
