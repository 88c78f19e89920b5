"""Supervised detectors of synthetic images: a timm backbone with one logit, loaded from a directory.

Two layouts of config.json are supported, each with one safetensors file: timm's (`architecture`, `num_classes`: 1,
`pretrained_cfg`) and that of Community Forensics (Park and Owens 2025: `model_size`, `input_size`, `patch_size`,
tensors under `vit.`). Every tensor must come from the file.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.errors import WeightsError
from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import content_hash, fill, find_checkpoint
from hybrid.tool.networks import normalised
from tools._shared.batches import on_host, together
from tools._shared.reading import check_elongation

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
# Short side to which Community Forensics scales an image before cropping the network's input from its centre, by the
# side of that input (`ViTClassifier.preprocess_input` in models.py of the authors' repository).
SHORT_SIDES: Mapping[int, int] = {224: 256, 384: 440}
SIZES = ("tiny", "small", "base", "large")
MAX_ELONGATION = 50.0


class Plan(NamedTuple):
    """The configured network.

    `architecture` is timm's name of the backbone, and `prefix` begins the names of its tensors. `side` is the side of
    its square input.
    """

    architecture: str
    side: int
    # Transform of the authors or of timm from a PIL image to the network's input, a tensor (3, side, side).
    look: Callable[[Any], Any]
    mean: tuple[float, ...]
    # Mean and standard deviation of each channel, in 0..1: `look` subtracts `mean` and divides by `deviation`.
    deviation: tuple[float, ...]
    prefix: str = ""


class SyntheticDetector:
    """A verified detector on a device; its logit is that of "synthetic"."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the detector. Raises `WeightsError` for missing or unsuitable weights or an unknown layout."""
        folder = find_checkpoint(weights)
        plan = read_plan(folder, weights)
        self._model = _load(folder, plan, weights).to(device).eval()
        self._plan = plan
        self._device = device
        self.version = f"{plan.architecture}@{content_hash(folder)[:12]}"

    def prepare(self, images: Sequence[Pixels]) -> Any:
        """Convert images (H, W, 3) to a batch (n, 3, side, side). Raises `ToolError` if one is too elongated."""
        import torch

        return torch.from_numpy(np.stack([prepare(pixels, self._plan) for pixels in images]))

    def predict(self, batch: Any) -> npt.NDArray[np.float64]:
        """Return logits (n) that each image is synthetic."""
        import torch

        with torch.inference_mode():
            logits = on_host(self._model(together([batch], self._device)))
        return np.asarray(logits, np.float64).reshape(-1)


def scores(logits: npt.NDArray[np.float64]) -> list[float]:
    """Convert logits to probabilities 0..1 that each image is synthetic.

    Raises:
        ToolError: the network returned values that are not finite.
    """
    check_finite("forensics", logits)
    return [float(value) for value in 1 / (1 + np.exp(-np.clip(logits, -60, 60)))]


def read_plan(folder: Path, weights: str) -> Plan:
    """Parse config.json. Raises `WeightsError` naming the missing or wrong field."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        if "architecture" in config:
            if (count := config.get("num_classes")) != 1:
                raise WeightsError(f"{weights}: config.json says num_classes {count!r}; a detector has 1")
            from timm.data import create_transform, resolve_data_config

            settings = {"input_size": (3, 224, 224), **config.get("pretrained_cfg", {})}
            details = resolve_data_config(pretrained_cfg=settings)
            side, mean, deviation = int(details["input_size"][-1]), tuple(details["mean"]), tuple(details["std"])
            return Plan(str(config["architecture"]), side, create_transform(**details), mean, deviation)
        return _community_plan(config, weights)
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{weights}: config.json is not that of a detector ({error!r})"[:200]) from error


def _community_plan(config: Mapping[str, Any], weights: str) -> Plan:
    transforms: Any = importlib.import_module("torchvision.transforms")
    size, side, patch = config["model_size"], int(config["input_size"]), int(config["patch_size"])
    if size not in SIZES:
        raise WeightsError(f"{weights}: config.json says model_size {size!r}; known are: {', '.join(SIZES)}")
    if side not in SHORT_SIDES:
        sizes = " and ".join(map(str, SHORT_SIDES))
        raise WeightsError(f"{weights}: config.json says input_size {side}; Community Forensics has {sizes}")
    look = transforms.Compose(
        [
            # Bilinear with antialiasing, as torchvision resizes a PIL image.
            transforms.Resize(SHORT_SIDES[side]),
            transforms.CenterCrop(side),
            transforms.ToTensor(),
            transforms.Normalize(*IMAGENET),
        ]
    )
    return Plan(f"vit_{size}_patch{patch}_{side}", side, look, *IMAGENET, prefix="vit.")


def _load(folder: Path, plan: Plan, weights: str) -> Any:
    import timm
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        model = timm.create_model(plan.architecture, pretrained=False, num_classes=1, img_size=plan.side)
    except TypeError:
        # Convolutional backbones accept any size, so they have no option for it.
        model = timm.create_model(plan.architecture, pretrained=False, num_classes=1)
    except RuntimeError as error:
        raise WeightsError(f"{weights}: timm knows no architecture {plan.architecture!r}") from error
    tensors: dict[str, Any] = {}
    try:
        for path in sorted(folder.glob("*.safetensors")):
            tensors |= load_file(path)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{weights} cannot be read: {str(error)[:150]}") from error
    renamed = {name.removeprefix(plan.prefix): tensor for name, tensor in tensors.items()}
    fill(model, renamed, weights, partial(normalised, plan.mean, plan.deviation))
    return model


def prepare(pixels: Pixels, plan: Plan) -> npt.NDArray[np.float32]:
    """Convert an image to network input (3, side, side): resize the short side, crop the centre, normalise.

    Raises:
        ToolError: the image is more elongated than 50 : 1.
    """
    from PIL import Image

    check_elongation("forensics", pixels, MAX_ELONGATION)
    return np.asarray(plan.look(Image.fromarray(np.ascontiguousarray(pixels))).numpy(), np.float32)
