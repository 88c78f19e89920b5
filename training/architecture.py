"""The network of the embedded model: a LLaVA with a CLIP vision tower and a Llama decoder, built small.

A picture of any shape becomes 96 x 96 pixels and 36 tokens; fractions of its sides stay the same.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from training.vocabulary import IMAGE, TEMPLATE

# Sizes of the vision tower and of the decoder, under transformers' names.
SIZES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
SIDE: Final = 96
PATCH: Final = 16
IMAGE_TOKENS: Final = (SIDE // PATCH) ** 2
MEAN: Final = (0.5, 0.5, 0.5)
SPREAD: Final = (0.25, 0.25, 0.25)
BACKS: Final = 3
# Bias of a head that looks back: with it the attention score drops by about 4 per token of distance from the target.
BACK: Final = 6.0
# Smallest rotation per token, in radians, with which a pair of channels distinguishes neighbouring positions.
SLOWEST: Final = 0.05
# Largest rotation per token, in radians, of a pair of channels that hardly rotates over a conversation.
FAR: Final = 0.02
LIKENESS: Final = 1.6
NOTED: Final = 0.2
# Scale of the copies of earlier tokens and of a matched token, relative to `EMBEDDING_SPREAD`.
FOUND: Final = 0.3
EMBEDDING_SPREAD: Final = 0.1
# Periods of the waves that initialise a number's token, by its number of decimals.
PERIODS: Final = {1: (2.0, 1.0, 0.5, 0.25), 2: (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03)}
# Share of a number token's norm that the waves have; the rest distinguishes the token from all others.
IN_WAVES: Final = 0.7


def processor_of(words: Any) -> Any:
    """Return a processor of images and texts that uses this tokenizer."""
    from transformers import CLIPImageProcessorPil, LlavaProcessor

    pictures = CLIPImageProcessorPil(
        size={"height": SIDE, "width": SIDE}, do_center_crop=False, image_mean=list(MEAN), image_std=list(SPREAD)
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
    """Return the network with weights drawn from a seed."""
    import torch
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    torch.manual_seed(seed)
    vision = CLIPVisionConfig(**SIZES["vision"], image_size=SIDE, patch_size=PATCH)
    ends = {"bos_token_id": None, "eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id}
    text = LlamaConfig(**SIZES["text"], vocab_size=len(words), **ends)
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
    prepare(model, words)
    model.generation_config.eos_token_id = words.eos_token_id
    model.generation_config.pad_token_id = words.pad_token_id
    model.generation_config.max_new_tokens = 400
    return model


def prepare(model: Any, words: Any) -> None:
    """Initialise the decoder with number tokens that it can compute with, and with heads that copy and look up.

    Decimal numbers are initialised as cosines and sines of their value, so that adding a constant is a rotation and
    close numbers are similar. In the first layer three heads look 1, 2 and 3 tokens back and copy those tokens into
    separate channels: the query has a bias, and the key has the same bias rotated by the angles of that distance, so
    that rotary positions make the score a sum of cos((distance - back) angle). In the third layer heads match these
    copies with each other and with the current token, and write the matched token or its predecessor (induction heads,
    Olsson et al. 2022). Training may change all of this.
    """
    import torch

    decoder = model.model.language_model
    config = decoder.config
    wide, size = config.hidden_size, config.hidden_size // config.num_attention_heads
    seen = torch.empty(size, wide)
    torch.nn.init.orthogonal_(seen)
    notes = [torch.eye(wide)[back * size : (back + 1) * size] for back in range(BACKS)]
    with torch.no_grad():
        decoder.embed_tokens.weight.mul_(EMBEDDING_SPREAD / config.initializer_range)
        _number(decoder.embed_tokens.weight, words, seen)
        first, third = decoder.layers[0].self_attn, decoder.layers[2].self_attn
        for head, note in enumerate(notes):
            _look_back(first, head, head + 1)
            _carry(first, head, seen, NOTED * note)
        item, two = notes[0], notes[1]
        # A copying head finds the position whose second-last token equals the current token. A look-up head reads the
        # token two positions before an equal token.
        for head, (query, key, value) in enumerate(
            ((item, two, seen), (seen, item, seen), (item, seen, two), (seen, seen, two), (two, item, seen))
        ):
            _match(third, head, query, key)
            _carry(third, head, value, FOUND * seen)


def _number(embedding: Any, words: Any, seen: Any) -> None:
    """Write the waves of decimal numbers into their tokens.

    Numbers with one decimal and those with two have separate channels, all among those that the heads copy.
    """
    import torch

    free = iter(seen)
    for decimals, periods in PERIODS.items():
        channels = torch.stack([next(free) for _ in range(2 * len(periods))])
        for step in range(10**decimals + 1):
            value = step / 10**decimals
            (token,) = words(f"{value:.{decimals}f}", add_special_tokens=False)["input_ids"]
            other_rotated = 2 * torch.pi * value / torch.tensor(periods)
            waves = torch.cat([other_rotated.cos(), other_rotated.sin()]) @ channels
            length = embedding[token].norm()
            mixed = IN_WAVES * waves / waves.norm() + (1 - IN_WAVES**2) ** 0.5 * embedding[token] / length
            embedding[token] = length * mixed / mixed.norm()


def _rows(attention: Any, head: int) -> slice:
    return slice(head * attention.head_dim, (head + 1) * attention.head_dim)


def _angles(size: int) -> Any:
    """Return the rotation per token of each pair of channels (k, k + size / 2), in radians."""
    import torch

    return 10000.0 ** (-torch.arange(0, size, 2).float() / size)


def _look_back(attention: Any, head: int, back: int) -> None:
    """Set a head to attend a fixed number of tokens back."""
    import torch

    angles, rows = _angles(attention.head_dim), _rows(attention, head)
    quick = (angles > SLOWEST).float()
    other_rotated = angles * back
    attention.q_proj.bias[rows] = BACK * torch.cat([quick, 0 * quick])
    attention.k_proj.bias[rows] = BACK * torch.cat([quick * other_rotated.cos(), quick * other_rotated.sin()])


def _match(attention: Any, head: int, query: Any, key: Any) -> None:
    """Set a head to attend to tokens whose `key` equals its `query`, at any distance: only slow channels are used."""
    import torch

    angles, rows = _angles(attention.head_dim), _rows(attention, head)
    slow = (torch.cat([angles, angles]) < FAR).float()[:, None]
    attention.q_proj.weight[rows] = LIKENESS * slow * query
    attention.k_proj.weight[rows] = LIKENESS * slow * key


def _carry(attention: Any, head: int, read: Any, text: Any) -> None:
    """Set a head to copy channels of the attended token into other channels."""
    rows = _rows(attention, head)
    attention.v_proj.weight[rows] = read
    attention.o_proj.weight[:, rows] = text.T
