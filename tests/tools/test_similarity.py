"""Similarity: copies and changes of one picture, ties, odd images, the learned path, and the rules that read it."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import render
from hybrid.tool import Evidence, Pixels, Request
from tools.similarity import SimilarityArgs, Statistics, decide


@cache
def photo(seed: int) -> Pixels:
    """Return a rendered picture, drawn once for all tests; read-only."""
    rng = np.random.default_rng([9, seed])
    return render(random_scene(rng), random_camera(rng, 160, 120), rng).rgb


def ask(images: tuple[Pixels, ...], aspect: str = "all") -> Evidence:
    return Statistics().run([Request(images, SimilarityArgs(aspect=aspect))])[0]


@pytest.mark.system
@pytest.mark.parametrize("aspect", ["content", "layout", "style", "all"])
def test_a_slightly_changed_copy_is_closest(aspect: str):
    right = 0
    for seed in range(6):
        pixels = photo(seed)
        copy = np.clip(pixels[4:-4, 4:-4].astype(float) * 1.05, 0, 255).astype(np.uint8)
        right += ask((pixels, photo(50 + seed), copy, photo(90 + seed)), aspect).data["best"] == 1
    assert right == 6


def test_equal_candidates_are_undecided_at_chance():
    output = ask((photo(1), photo(2), photo(2)))
    assert output.data["best"] is None
    assert output.confidence == 0.5
    assert "Undecided" in output.text


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=2, max_size=4), st.integers(0, 99))
def test_any_images_give_evidence_within_bounds(shapes: list[tuple[int, int]], seed: int):
    rng = np.random.default_rng(seed)
    images = tuple(rng.integers(0, 256, (*shape, 3)).astype(np.uint8) for shape in shapes)
    copieds = [image.copy() for image in images]
    output = ask(images)
    assert all(np.array_equal(a, b) for a, b in zip(images, copieds, strict=True))
    assert output.data == ask(images).data
    assert len(output.data["candidates"]) == len(images) - 1
    assert all(0 <= entry[key] <= 1 for entry in output.data["candidates"] for key in entry if key != "image")
    assert 0 <= output.confidence <= 1
    assert [picture.of for picture in output.pictures] == list(range(1, len(images)))
    assert all(picture.pixels.shape == images[picture.of].shape for picture in output.pictures)
    assert len(output.text.splitlines()) <= 6
    assert max(map(len, output.text.splitlines())) <= 160


@given(st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_confidence_lies_between_chance_and_its_ceiling(scores: list[float]):
    best, confident = decide(scores, 0.65)
    assert 1 / len(scores) <= confident <= 0.65
    assert best is None or scores[best] == max(scores)


def test_arguments_are_checked():
    with pytest.raises(ValidationError):
        SimilarityArgs(aspect="mood")


def squares(seed: int) -> Pixels:
    levels = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return levels.repeat(40, 0).repeat(40, 1)


@pytest.mark.parametrize("aspect", ["content", "layout", "style", "all"])
def test_random_squares_are_alike_by_chance_only(aspect: str):
    first, second, third = map(squares, range(3))
    assert ask((first, second, third), aspect).data["best"] is None
    assert ask((first, second, third), aspect).confidence == 0.5
    copy = np.clip(first.astype(int) + 2, 0, 255).astype(np.uint8)
    assert ask((first, second, copy), aspect).data["best"] == 1
