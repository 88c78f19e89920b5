"""Scanpaths: limits on number and time, seeds, search with and without weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.tool import Evidence, Pixels, Request
from tools.scanpath import (
    FLAT_CONFIDENCE,
    FREE_BASIS,
    FREE_CONFIDENCE,
    NOTHING_BASIS,
    FreeViewing,
    ScanpathArgs,
)
from tools.scanpath.fixations import MAX_MS, durations, fixate


def ask(pixels: Pixels, args: ScanpathArgs | None = None, seed: int = 0) -> Evidence:
    return FreeViewing().run([Request((pixels,), args or ScanpathArgs(), seed=seed)])[0]


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 12), st.integers(0, 50))
def test_fixations_stay_inside_and_within_time(height: int, width: int, count: int, seed: int):
    values = np.random.default_rng(seed).random((height, width)).astype(np.float32)
    path = fixate(values, count, seed)
    assert len(path) == count
    assert all(0 <= fix.x <= 1 and 0 <= fix.y <= 1 and fix.ms >= 0 for fix in path)
    assert sum(fix.ms for fix in path) <= MAX_MS
    assert path == fixate(values, count, seed)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_durations_keep_their_sum(values: list[float]):
    result = durations(values)
    assert len(result) == len(values)
    assert min(result) > 0
    assert sum(result) <= MAX_MS


@settings(max_examples=3)
@given(st.text(min_size=1, max_size=100), st.integers(1, 12))
def test_the_text_is_short_whatever_is_searched_for(target: str, fixations: int):
    pixels = np.random.default_rng(2).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    output = ask(pixels, ScanpathArgs(target=target, fixations=fixations))
    assert len(output.text) <= 450
    assert "not known" in output.text


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (2400, 3200)])
def test_any_shape_survives(shape: tuple[int, int]):
    output = ask(np.full((*shape, 3), 77, np.uint8), ScanpathArgs(fixations=12))
    assert len(output.data["fixations"]) == 12
    assert output.confidence <= 0.2
    assert output.pictures[0].pixels.shape == (*shape, 3)


def test_arguments_are_bounded():
    for wrong in ({"fixations": 0}, {"fixations": 13}, {"target": ""}, {"steps": 3}):
        with pytest.raises(ValidationError):
            ScanpathArgs.model_validate(wrong)


def test_a_path_over_nothing_is_a_guess():
    noise = np.random.default_rng(0).integers(0, 256, (120, 160, 3)).astype(np.uint8)
    thing = np.full((120, 160, 3), 90, np.uint8)
    thing[40:70, 90:130] = (220, 40, 30)
    assert ask(noise).confidence == FLAT_CONFIDENCE
    assert NOTHING_BASIS in ask(noise).text
    assert ask(thing).confidence == FREE_CONFIDENCE
    assert FREE_BASIS in ask(thing).text
