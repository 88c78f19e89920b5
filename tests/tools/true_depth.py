"""A replacement for a depth network: the true inverse depth of rendered scenes, as a map that may be changed."""

from collections.abc import Callable, Sequence

import cv2
import numpy as np

from hybrid.samples.item import Item
from hybrid.tool import Pixels
from tools.depth import LearnedDepth
from tools.depth.models import DepthInput, DepthValues


def thumbnail(pixels: Pixels) -> np.ndarray:
    return cv2.resize(pixels, (32, 32), interpolation=cv2.INTER_AREA).astype(float)


class TrueDepth:
    version, metric = "true", False

    def __init__(self, scenes: Sequence[Item], change: Callable[[DepthValues], DepthValues]) -> None:
        self._change = change
        self._scenes = [(thumbnail(scene.images[0]), scene.facts.depth_m) for scene in scenes]

    def prepare(self, pixels: Pixels) -> DepthInput:
        return DepthInput(pixels, (pixels.shape[0], pixels.shape[1]))

    def predict(self, images: Sequence[DepthInput]) -> list[DepthValues]:
        return [self._change(self._inverse(image.values)) for image in images]

    def _inverse(self, pixels: Pixels) -> DepthValues:
        """Return the depth of the scene that a picture shows, at any size."""
        text = thumbnail(pixels)
        _, depth = min(self._scenes, key=lambda item: float(np.abs(item[0] - text).mean()))
        size = (pixels.shape[1], pixels.shape[0])
        return np.asarray(cv2.resize((1 / np.minimum(depth, 1000.0)).astype(np.float32), size), np.float32)


class Rendered(LearnedDepth):
    """The learned backend with all its parts except the network."""

    def __init__(self, scenes: Sequence[Item], change: Callable[[DepthValues], DepthValues]) -> None:
        super().__init__()
        self._true = TrueDepth(scenes, change)

    def setup(self, device: str, weights: str | None) -> None:
        self._model = self._true
