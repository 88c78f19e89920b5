"""DIFT: dense features of the denoising network of Stable Diffusion (Tang et al. 2023), through diffusers, an extra.

The image is encoded, noised to step 261 and passed once through the
U-Net as far as its second upsampling block; the mean over eight draws of the noise is the feature map (section 4.1 and
appendix B of the paper, its values for semantic correspondence). The paper takes Stable Diffusion 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybrid.core.errors import WeightsError
from hybrid.tool import Pixels
from tools._shared.batches import on_host, together
from tools._shared.dense_features import MAX_ELONGATION, DenseFeatures, FeatureGrid, FeatureInput
from tools._shared.diffusers_parts import has_index, load_parts
from tools._shared.reading import check_elongation

PIPELINES = ("StableDiffusionPipeline",)
# Its way of adding noise, whichever scheduler the checkpoint generates with.
SCHEDULERS = ("DDIMScheduler",)
STEP = 261
# Upsampling blocks that are run: the paper's index 1 counts from 0.
BLOCKS = 2
DRAWS = 8
PROMPT = "a photo of a {thing}"


class DiffusionFeatures:
    """A verified Stable Diffusion checkpoint on a device, cut off where the features are read."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when diffusers or weights are absent, do not fit, or are of another pipeline."""
        from torch import nn

        parts = load_parts(weights, device, pipelines=PIPELINES, schedulers=SCHEDULERS)
        self._unet, self._vae = parts.unet, parts.vae
        if len(self._unet.up_blocks) <= BLOCKS:
            raise WeightsError(f"{weights}/unet has {len(self._unet.up_blocks)} upsampling blocks; more are wanted")
        # All tensors were checked; what comes after the features is not computed.
        self._unet.up_blocks = self._unet.up_blocks[:BLOCKS]
        self._unet.conv_norm_out, self._unet.conv_out = None, nn.Identity()
        self._vae.decoder = None
        self._text, self._tokenizer, self._scheduler = parts.text_encoder, parts.tokenizer, parts.scheduler
        # The side that it was trained at: 768 px for Stable Diffusion 2.1, which the paper takes, too.
        self._side = int(self._unet.config.sample_size) * 2 ** (len(self._vae.config.block_out_channels) - 1)
        self._device = device
        self.version = f"dift@{parts.sha256[:12]}"

    def prepare(self, pixels: Pixels, *, thing: str = "", seed: int = 0) -> FeatureInput:
        """As `DenseFeatures.prepare`; `thing` completes the prompt "a photo of a ...", the noise is drawn by `seed`."""
        import torch

        check_elongation("semantic_correspondence", pixels, MAX_ELONGATION)
        # The image (H, W, 3) as a square (3, side, side), -1..1: squeezed, so points keep their place.
        from PIL import Image

        square = Image.fromarray(pixels).resize((self._side, self._side), Image.Resampling.BICUBIC)
        normalised = np.ascontiguousarray((np.asarray(square, np.float32) / 127.5 - 1).transpose(2, 0, 1))
        values = torch.from_numpy(normalised)[None]
        return FeatureInput(values, (pixels.shape[0], pixels.shape[1]), thing, seed)

    def predict(self, images: Sequence[FeatureInput]) -> list[FeatureGrid]:
        """As `DenseFeatures.predict`: one pass an image, of its eight draws; every prompt is read once."""
        import torch

        # Embeddings (1, tokens, C) of the prompts, of an empty one without a thing.
        prompts: dict[str, Any] = {}
        length = min(self._tokenizer.model_max_length, int(self._text.config.max_position_embeddings))
        features = []
        with torch.inference_mode():
            for image in images:
                if image.thing not in prompts:
                    words = PROMPT.format(thing=image.thing) if image.thing else ""
                    read = self._tokenizer(
                        words, padding="max_length", max_length=length, truncation=True, return_tensors="pt"
                    )
                    prompts[image.thing] = self._text(read.input_ids.to(self._device))[0]
                # Drawn on the CPU, so that the noise does not depend on the device.
                generator = torch.Generator().manual_seed(image.seed)
                posterior = self._vae.encode(together([image.values], self._device)).latent_dist
                shape = (DRAWS, *posterior.mean.shape[1:])
                encoded, noise = (torch.randn(shape, generator=generator).to(self._device) for _ in range(2))
                latents = (posterior.mean + posterior.std * encoded) * self._vae.config.scaling_factor
                step = torch.tensor(STEP, device=self._device)
                noised = self._scheduler.add_noise(latents, noise, step)
                prompt = prompts[image.thing].expand(DRAWS, -1, -1)
                prediction = self._unet(noised, step, encoder_hidden_states=prompt).sample
                features.append(on_host(prediction.float().mean(dim=0).permute(1, 2, 0)))
        return features


# A network that makes feature maps of images.
FeatureModel = DenseFeatures | DiffusionFeatures


def feature_model(weights: str, device: str) -> FeatureModel:
    """Load: DIFT from diffusers' layout, else DINO. Raises `WeightsError`."""
    return DiffusionFeatures(weights, device) if has_index(weights) else DenseFeatures(weights, device)
