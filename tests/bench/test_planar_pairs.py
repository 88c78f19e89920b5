"""Planar pairs: the right candidate is where the homography puts REF."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.planar_pairs import APART_PX, LEVELS, planar_pair, project
from hybrid.errors import HybridError

PIXELS = np.random.default_rng(8).integers(0, 256, (300, 400, 3)).astype(np.uint8)


@settings(max_examples=12)
@given(st.sampled_from(LEVELS), st.integers(0, 1000), st.integers(0, 3))
def test_the_answer_follows_from_the_homography(level, seed: int, answer: int) -> None:
    made = planar_pair(np.random.default_rng(seed), PIXELS, level, answer)
    facts = made.facts
    there = project(np.array(facts.homography), *facts.ref)
    distances = [np.hypot(x - there[0], y - there[1]) for x, y in facts.candidates]
    assert made.answer == answer == int(np.argmin(distances))
    assert distances[answer] < 1
    assert sorted(distances)[1] > APART_PX - 1
    assert [image.shape for image in made.images] == [PIXELS.shape, PIXELS.shape]


def test_a_picture_too_small_for_marks_is_refused() -> None:
    with pytest.raises(HybridError, match="60 x 60 px has no room"):
        planar_pair(np.random.default_rng(0), PIXELS[:60, :60], "mild", 0)
