"""Albedo from a diffusion model: Marigold IID (Ke et al. 2025) through diffusers, an optional extra.

A library of `tools/reflectance.py`: `IntrinsicModel(dir_or_id, "cpu").albedo(pixels, seed)`. The weights are a folder
in diffusers' layout (`model_index.json`, `unet/`, `vae/`, `text_encoder/`); every tensor of the two networks that
decide the prediction must come from the file.
"""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError, WeightsError
from hybrid.tool import Pixels
from hybrid.weights import find_weights
from tools._depth_cues import shrink

STEPS = 4
"""Denoising steps: the version 1.1 checkpoints are made for one to four."""
LONGEST_PX = 768
LEAST_PX = 16
GAMMA = 2.2
PARTS = ("unet", "vae", "text_encoder")


class IntrinsicModel:
    """A verified Marigold intrinsic decomposition pipeline on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when diffusers or the weights are absent, or tensors do not fit."""
        folder = find_weights(weights, download=False)
        if not (folder / "model_index.json").is_file():
            raise WeightsError(f"weights absent: {weights} has no model_index.json (a folder in diffusers' layout)")
        try:
            diffusers = importlib.import_module("diffusers")
        except ImportError as error:
            raise WeightsError(
                "the learned reflectance backend needs diffusers: pip install -e '.[diffusers]'"
            ) from error
        self._sha256 = _content(folder)
        self._device = device
        self._pipeline = _load(diffusers, folder, weights).to(device)
        self._pipeline.set_progress_bar_config(disable=True)

    @property
    def version(self) -> str:
        """Family and content of the weights."""
        return f"marigold-iid@{self._sha256[:12]}"

    def albedo(self, pixels: Pixels, seed: int) -> npt.NDArray[np.float32]:
        """Albedo 0..1 in linear light, (h, w, 3), long side at most 768 px, of an RGB image (H, W, 3).

        Raises:
            ToolError: the image is smaller than 16 px, or the network returned no finite number.
        """
        import torch
        from PIL import Image

        height, width = pixels.shape[:2]
        if min(height, width) < LEAST_PX:
            raise ToolError(f"reflectance: image 1 is {width} x {height} px; at least {LEAST_PX} px a side are needed")
        small = shrink(pixels, LONGEST_PX)
        result = self._pipeline(
            Image.fromarray(small),
            num_inference_steps=STEPS,
            ensemble_size=1,
            output_type="np",
            generator=torch.Generator(device=self._device).manual_seed(seed),
        )
        facts = self._pipeline.target_properties
        place = list(facts["target_names"]).index("albedo")
        # One prediction a target, (targets, h, w, 3).
        values = np.asarray(result.prediction, np.float32)[place]
        if not np.isfinite(values).all():
            raise ToolError("reflectance: the network returned values that are not finite")
        exponent = GAMMA if facts["albedo"]["prediction_space"] == "srgb" else 1.0
        return np.asarray(np.clip(values, 0, 1) ** exponent, np.float32)


def _load(diffusers: Any, folder: Path, weights: str) -> Any:
    import torch
    import transformers

    classes = (diffusers.UNet2DConditionModel, diffusers.AutoencoderKL, transformers.CLIPTextModel)
    try:
        parts = {}
        for name, kind in zip(PARTS, classes, strict=True):
            parts[name], info = kind.from_pretrained(
                folder / name, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
            _verify(info, f"{weights}/{name}")
        return diffusers.MarigoldIntrinsicsPipeline.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, torch_dtype=torch.float32, **parts
        )
    except (OSError, ValueError, TypeError, RuntimeError, KeyError) as error:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise WeightsError(f"{weights} cannot be loaded as a Marigold intrinsics pipeline: {line[:200]}") from error


def _verify(info: dict[str, Any], where: str) -> None:
    wrong = {what: info.get(f"{what}_keys") for what in ("missing", "mismatched")}
    found = [f"{len(keys)} {what} ({sorted(map(str, keys))[0]}, ...)" for what, keys in wrong.items() if keys]
    if found:
        raise WeightsError(f"{where} does not fit its architecture: tensors {'; '.join(found)}")


def _content(folder: Path) -> str:
    """One hash over all weight and configuration files, which lie in sub-folders here, by place and content."""
    total = hashlib.sha256()
    for path in sorted([*folder.rglob("*.safetensors"), *folder.rglob("*.json")]):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.relative_to(folder)}\x1f{digest}\x1e".encode())
    return total.hexdigest()
