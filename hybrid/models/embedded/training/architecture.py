"""The network of the embedded model: a LLaVA with a CLIP vision tower and a Llama decoder, built small.

A picture becomes 96 x 96 pixels, whatever its shape, so that fractions of its sides stay what they are, and 36 tokens.
"""

from __future__ import annotations

from typing import Any, Final

from hybrid.models.embedded.training.vocabulary import IMAGE, TEMPLATE

SIDE: Final = 96
PATCH: Final = 16
IMAGE_TOKENS: Final = (SIDE // PATCH) ** 2
MEAN: Final = (0.5, 0.5, 0.5)
SPREAD: Final = (0.25, 0.25, 0.25)


def processor_of(words: Any) -> Any:
    """The processor around a tokenizer."""
    from transformers import CLIPImageProcessorPil, LlavaProcessor

    pictures = CLIPImageProcessorPil(
        size={"height": SIDE, "width": SIDE},
        do_center_crop=False,
        image_mean=list(MEAN),
        image_std=list(SPREAD),
    )
    return LlavaProcessor(
        image_processor=pictures,
        tokenizer=words,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token=IMAGE,
        chat_template=TEMPLATE,
    )


def untrained(words: Any, seed: int) -> Any:
    """The network with weights drawn from a seed."""
    import torch
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    torch.manual_seed(seed)
    vision = CLIPVisionConfig(
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        image_size=SIDE,
        patch_size=PATCH,
        projection_dim=128,
    )
    text = LlamaConfig(
        vocab_size=len(words),
        hidden_size=160,
        intermediate_size=448,
        num_hidden_layers=5,
        num_attention_heads=5,
        num_key_value_heads=5,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=words.convert_tokens_to_ids(IMAGE),
        image_seq_length=IMAGE_TOKENS,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        tie_word_embeddings=True,
    )
    model = LlavaForConditionalGeneration(config)
    model.generation_config.eos_token_id = words.eos_token_id
    model.generation_config.pad_token_id = words.pad_token_id
    model.generation_config.max_new_tokens = 400
    return model
