"""Initial weights of training: tokens of numbers are waves, and some attention heads look at earlier tokens."""

from typing import Any

import pytest

from training.architecture import BACKS, untrained
from training.vocabulary import tokenizer

# transformers takes seconds to load in each process.
pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def words() -> Any:
    return tokenizer(["Which box is it?"], 1200)


@pytest.fixture(scope="module")
def network(words: Any) -> Any:
    return untrained(words, 0)


def test_heads_of_the_first_layer_look_one_two_and_three_tokens_back(network: Any) -> None:
    import torch

    ids = torch.arange(20, 50)[None]
    with torch.no_grad():
        network.set_attn_implementation("eager")
        result = network.model.language_model(input_ids=ids, output_attentions=True).attentions[0][0]
    for head in range(BACKS):
        looked = result[head].argmax(-1)
        assert looked[10:].tolist() == [place - head - 1 for place in range(10, 30)]


def test_the_same_seed_gives_the_same_weights(network: Any, words: Any) -> None:
    import torch

    second = untrained(words, 0)
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), second.parameters(), strict=True))
