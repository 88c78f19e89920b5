"""Albedo from a diffusion model: Marigold IID (Ke et al. 2025) through diffusers, an optional extra.

`IntrinsicModel(dir_or_id, "cpu").albedo(pixels, seed)`. The weights are a folder in diffusers' layout, such as
prs-eth/marigold-iid-appearance-v1-1; see `_shared/diffusers_parts.py` for what is verified.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError, WeightsError
from hybrid.tool import Pixels
from tools._shared.batches import on_host
from tools._shared.diffusers_parts import load_parts
from tools._shared.reading import check_size, shrink

# Denoising steps where the checkpoint names no number: those of version 1.1 are made for one to four.
STEPS = 4
LONGEST_PX = 768
LEAST_PX = 16
GAMMA = 2.2
PIPELINES = ("MarigoldIntrinsicsPipeline",)
SCHEDULERS = ("DDIMScheduler", "LCMScheduler")
SPACES = ("srgb", "linear")
TARGET = "albedo"


class IntrinsicModel:
    """A verified Marigold intrinsic decomposition pipeline on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when diffusers or weights are absent, do not fit, or predict no albedo."""
        parts = load_parts(weights, device, pipelines=PIPELINES, schedulers=SCHEDULERS)
        properties = _properties(parts.index, weights)
        targets = len(properties["target_names"])
        latents = int(parts.vae.config.latent_channels)
        if int(parts.unet.config.out_channels) != targets * latents:
            raise WeightsError(
                f"{weights}: the network predicts {parts.unet.config.out_channels} channels, "
                f"model_index.json names {targets} targets of {latents}"
            )
        self._place = properties["target_names"].index(TARGET)
        self._exponent = GAMMA if properties[TARGET]["prediction_space"] == "srgb" else 1.0
        self._device = device
        self.version = f"marigold-iid@{parts.sha256[:12]}"
        # `load_parts` has raised an error if the package is absent.
        diffusers: Any = importlib.import_module("diffusers")
        self._pipeline = diffusers.MarigoldIntrinsicsPipeline(
            unet=parts.unet,
            vae=parts.vae,
            scheduler=parts.scheduler,
            text_encoder=parts.text_encoder,
            tokenizer=parts.tokenizer,
            prediction_type="intrinsics",
            target_properties=properties,
            default_denoising_steps=parts.index.get("default_denoising_steps") or STEPS,
            default_processing_resolution=parts.index.get("default_processing_resolution") or LONGEST_PX,
        )
        self._pipeline.set_progress_bar_config(disable=True)

    def albedo(self, pixels: Pixels, seed: int) -> npt.NDArray[np.float32]:
        """Albedo 0..1 in linear light, (h, w, 3), long side at most 768 px, of an RGB image (H, W, 3).

        Raises:
            ToolError: the image is smaller than 16 px, or the network returned no finite number.
        """
        import torch
        from PIL import Image

        check_size("reflectance", pixels, LEAST_PX)
        small = shrink(pixels, LONGEST_PX)
        result = self._pipeline(
            Image.fromarray(small),
            ensemble_size=1,
            output_type="pt",
            generator=torch.Generator(device=self._device).manual_seed(seed),
        )
        # One prediction a target, (targets, 3, h, w).
        values = on_host(result.prediction[self._place].permute(1, 2, 0))
        if not np.isfinite(values).all():
            raise ToolError("reflectance: the network returned values that are not finite")
        return np.asarray(np.clip(values, 0, 1) ** self._exponent, np.float32)


def _properties(index: Mapping[str, Any], weights: str) -> dict[str, Any]:
    """The predicted targets named in model_index.json. Raises `WeightsError` if albedo is not among them."""
    properties = index.get("target_properties") or {}
    names = properties.get("target_names") or []
    if TARGET not in names:
        raise WeightsError(f"{weights}: model_index.json names the targets {names}; {TARGET} is wanted")
    space = (properties.get(TARGET) or {}).get("prediction_space", "srgb")
    if space not in SPACES:
        raise WeightsError(
            f"{weights}: model_index.json gives albedo in {space!r}; expected one of {', '.join(SPACES)}"
        )
    return {**properties, TARGET: {**(properties.get(TARGET) or {}), "prediction_space": space}}
