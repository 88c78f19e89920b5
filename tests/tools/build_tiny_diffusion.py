"""Tiny checkpoints with random weights in diffusers' layout: Marigold IID and Stable Diffusion, as on the hub.

`BUILDERS["marigold_iid"](folder)` writes one; `conftest.py` makes each once a session. Networks have the published
classes, blocks and configuration, but few channels; the tokenizer has one token a letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

TARGETS: dict[str, Any] = {
    "target_names": ["albedo", "material"],
    "albedo": {"prediction_space": "srgb"},
    "material": {"prediction_space": "stack", "sub_target_names": ["roughness", "metallicity", None]},
    "roughness": {"prediction_space": "linear", "up_to_scale": False},
    "metallicity": {"prediction_space": "linear", "up_to_scale": False},
}
"""As in prs-eth/marigold-iid-appearance-v1-1 (config/train_marigold_iid_appearance.yaml of the authors' code)."""
LENGTH = 77


def _tokenizer() -> Any:
    import transformers
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    tokens = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=LENGTH)


def _parts(channels_in: int, channels_out: int) -> dict[str, Any]:
    """The five parts of Stable Diffusion 2.1, small; 128 px where the real one takes 768."""
    diffusers = pytest.importorskip("diffusers", reason="the extra `diffusers` is not installed")
    import transformers

    tokenizer = _tokenizer()
    text = transformers.CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=LENGTH,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    unet = diffusers.UNet2DConditionModel(
        sample_size=16,
        in_channels=channels_in,
        out_channels=channels_out,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        block_out_channels=(16, 16, 32, 32),
        layers_per_block=1,
        cross_attention_dim=32,
        attention_head_dim=(1, 1, 2, 2),
        norm_num_groups=8,
        use_linear_projection=True,
    )
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8, 8, 8, 8),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=1,
        norm_num_groups=4,
        latent_channels=4,
        sample_size=128,
    )
    return {"unet": unet, "vae": vae, "text_encoder": transformers.CLIPTextModel(text), "tokenizer": tokenizer}


def marigold_iid(folder: Path) -> None:
    diffusers = pytest.importorskip("diffusers", reason="the extra `diffusers` is not installed")

    scheduler = diffusers.DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        prediction_type="v_prediction",
        clip_sample=False,
        set_alpha_to_one=False,
        steps_offset=1,
        timestep_spacing="trailing",
        rescale_betas_zero_snr=True,
    )
    diffusers.MarigoldIntrinsicsPipeline(
        # One latent image goes in beside one a target; one a target comes out.
        **_parts(12, 8),
        scheduler=scheduler,
        prediction_type="intrinsics",
        target_properties=TARGETS,
        default_denoising_steps=4,
        default_processing_resolution=64,
    ).save_pretrained(folder)


def stable_diffusion(folder: Path) -> None:
    diffusers = pytest.importorskip("diffusers", reason="the extra `diffusers` is not installed")

    scheduler = diffusers.PNDMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        prediction_type="v_prediction",
        set_alpha_to_one=False,
        skip_prk_steps=True,
        steps_offset=1,
    )
    diffusers.StableDiffusionPipeline(
        **_parts(4, 4),
        scheduler=scheduler,
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder)


BUILDERS: Mapping[str, Callable[[Path], None]] = {
    builder.__name__: builder for builder in (marigold_iid, stable_diffusion)
}
