"""DIFT: dense features of the denoising network of Stable Diffusion (Tang et al. 2023), through diffusers, an extra.

The image is encoded, noised to step 261 and passed once through the U-Net up to its second upsampling block; the mean
over eight noise samples is the feature map (section 4.1 and appendix B of the paper, its values for semantic
correspondence). The paper uses Stable Diffusion 2.1.
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
# The paper's scheduler adds the noise, whichever scheduler the checkpoint uses for generation.
SCHEDULERS = ("DDIMScheduler",)
STEP = 261
# Number of upsampling blocks to run: the paper's index 1, counted from 0, is the second block.
BLOCKS = 2
DRAWS = 8
PROMPT = "a photo of a {thing}"


class DiffusionFeatures:
    """A verified Stable Diffusion checkpoint on a device, truncated where the features are read."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the parts. Raises `WeightsError` if diffusers or weights are missing or unsuitable."""
        from torch import nn

        parts = load_parts(weights, device, pipelines=PIPELINES, schedulers=SCHEDULERS)
        self._unet, self._vae = parts.unet, parts.vae
        if len(self._unet.up_blocks) <= BLOCKS:
            raise WeightsError(f"{weights}/unet has {len(self._unet.up_blocks)} upsampling blocks; more are wanted")
        # All tensors were verified; layers after the features are dropped.
        self._unet.up_blocks = self._unet.up_blocks[:BLOCKS]
        self._unet.conv_norm_out, self._unet.conv_out = None, nn.Identity()
        self._vae.decoder = None
        self._text, self._tokenizer, self._scheduler = parts.text_encoder, parts.tokenizer, parts.scheduler
        # Input side used in training: 768 px for Stable Diffusion 2.1, as in the paper.
        self._side = int(self._unet.config.sample_size) * 2 ** (len(self._vae.config.block_out_channels) - 1)
        self._device = device
        self.version = f"dift@{parts.sha256[:12]}"

    def prepare(self, pixels: Pixels, *, thing: str = "", seed: int = 0) -> FeatureInput:
        """Prepare an image like `DenseFeatures.prepare`.

        `thing` completes the prompt "a photo of a ...", and `seed` seeds the noise.
        """
        import torch

        check_elongation("semantic_correspondence", pixels, MAX_ELONGATION)
        # Resize the image (H, W, 3) to a square (3, side, side), -1..1, without cropping, so points keep their
        # position.
        from PIL import Image

        square = Image.fromarray(pixels).resize((self._side, self._side), Image.Resampling.BICUBIC)
        normalised = np.ascontiguousarray((np.asarray(square, np.float32) / 127.5 - 1).transpose(2, 0, 1))
        values = torch.from_numpy(normalised)[None]
        return FeatureInput(values, (pixels.shape[0], pixels.shape[1]), thing, seed)

    def predict(self, images: Sequence[FeatureInput]) -> list[FeatureGrid]:
        """Compute features like `DenseFeatures.predict`.

        Each image takes one pass for its eight samples; prompts are encoded once.
        """
        import torch

        # Embeddings (1, tokens, C) by object name; without a name, of an empty prompt.
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
                # Sampled on the CPU, so that the noise does not depend on the device.
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


# A network that computes feature maps of images.
FeatureModel = DenseFeatures | DiffusionFeatures


def feature_model(weights: str, device: str) -> FeatureModel:
    """Load DIFT from diffusers' layout, else DINO. Raises `WeightsError`."""
    return DiffusionFeatures(weights, device) if has_index(weights) else DenseFeatures(weights, device)
