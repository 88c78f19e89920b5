"""Attributes: the text from scores, and SigLIP and CLIP through their processors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.core.errors import ToolError
from hybrid.tool import Evidence, Request
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools.attributes import TOOL, AttributesArgs, LearnedAttributes, confidence, judge

PIXELS = np.random.default_rng(0).integers(0, 256, (90, 120, 3)).astype(np.uint8)


def ask(backend: LearnedAttributes, *texts: str, pixels: np.ndarray = PIXELS, **more: object) -> Evidence:
    return backend.run([Request((pixels,), AttributesArgs(texts=texts, **more))])[0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=16), st.booleans())
def test_the_best_text_leads(scores: list[float], compares: bool):
    result = judge([f"text {n}" for n in range(len(scores))], scores, scores, compares=compares, basis="x")
    first, second = sorted([*scores, -1.0], reverse=True)[:2]
    if first - second < 1e-6:
        assert result.data["best"] is None
    else:
        assert scores[result.data["best"]] == first
    assert 0 <= result.confidence <= 0.9
    assert len(result.text.splitlines()) <= 6
    assert {row["fits"] for row in result.data["scores"]} <= ({None} if compares else {True, False})


def test_equal_scores_are_a_tie():
    for scores, best in (([0.4, 0.4], None), ([0.1, 0.4, 0.4], None), ([0.4, 0.4, 0.5], 2), ([0.4], 0)):
        texts = [f"text {n}" for n in range(len(scores))]
        assert judge(texts, scores, scores, compares=False, basis="x").data["best"] == best


def test_confidence_by_hand():
    assert confidence([0.6]) == 0.6
    assert confidence([0.2]) == 0.8
    assert confidence([0.3, 0.1]) == pytest.approx(0.75)
    assert confidence([0.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    assert confidence([1.0, 0.0]) == 0.9


def test_siglip_scores_each_text_by_itself(things_checkpoint: Checkpoints):
    backend = started("attributes", things_checkpoint("siglip"))
    output, alone = ask(backend, "a dog", "A Cat"), ask(backend, "a dog")
    assert output.data["scores"][0]["score_0_1"] == pytest.approx(alone.data["scores"][0]["score_0_1"], abs=1e-5)
    assert output.data == ask(backend, "a dog", "A Cat").data
    assert output.data["scores"][0]["score_0_1"] != output.data["scores"][1]["score_0_1"]
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+siglip@")
    region = ask(backend, "a dog", box={"x0": 10, "y0": 10, "x1": 60, "y1": 50})
    assert region.data["box_px"] == [10, 10, 60, 50]
    assert region.data["scores"][0]["score_0_1"] != alone.data["scores"][0]["score_0_1"]
    assert region.pictures[0].pixels.shape == PIXELS.shape


def test_clip_only_compares(things_checkpoint: Checkpoints):
    backend = started("attributes", things_checkpoint("clip"))
    output = ask(backend, "a dog", "a cat", "a dog")
    assert sum(row["score_0_1"] for row in output.data["scores"]) == pytest.approx(1)
    assert len(output.data["scores"]) == 2
    with pytest.raises(ToolError, match="give at least two"):
        ask(backend, "a dog")
    for size in ((1, 1), (2000, 1500)):
        blank = np.zeros((*size, 3), np.uint8)
        assert ask(backend, "a dog", "a cat", pixels=blank).pictures[0].pixels.shape == blank.shape
    with pytest.raises(ToolError, match="too elongated"):
        ask(backend, "a dog", "a cat", pixels=np.zeros((1, 90, 3), np.uint8))
    with pytest.raises(ToolError, match="outside the image"):
        ask(backend, "a dog", "a cat", box={"x0": 500, "y0": 0, "x1": 600, "y1": 50})


@pytest.mark.parametrize("texts", [(), ("",), tuple("abcdefghijklmnopqrs")])
def test_wrong_arguments_are_refused(texts: tuple[str, ...]):
    with pytest.raises(ValidationError):
        AttributesArgs(texts=texts)
