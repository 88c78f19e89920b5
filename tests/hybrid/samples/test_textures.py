"""Textures: value ranges, tiling, filtering."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.samples.textures import (
    MAX_ALBEDO,
    MIN_ALBEDO,
    PATTERNS,
    FloatMap,
    Pattern,
    earthy,
    fractal_noise,
    sample,
    texture,
)


def grid(offset_m: float = 0.0) -> tuple[FloatMap, FloatMap]:
    v, u = np.mgrid[0:24, 0:24].astype(np.float32) * 0.013
    return np.asarray(u + offset_m, np.float32), v


def test_noise_is_standardised() -> None:
    noise = fractal_noise(np.random.default_rng(0), 128)
    assert abs(float(noise.mean())) < 1e-4
    assert float(noise.std()) == pytest.approx(1, abs=1e-3)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), pattern=st.sampled_from(PATTERNS), footprint=st.floats(1e-4, 10))
def test_albedo_stays_in_range_at_any_footprint(seed: int, pattern: Pattern, footprint: float) -> None:
    rng = np.random.default_rng(seed)
    surface = texture(rng, pattern, earthy(rng), side=64)
    u, v = grid(float(rng.uniform(-500, 500)))
    albedo = sample(surface, u, v, np.full(u.shape, footprint, np.float32))
    assert albedo.shape == (24, 24, 3)
    assert np.isfinite(albedo).all()
    assert albedo.min() >= np.float32(MIN_ALBEDO)
    assert albedo.max() <= np.float32(MAX_ALBEDO)


def test_a_large_footprint_reads_the_mean_of_the_pattern() -> None:
    surface = texture(np.random.default_rng(3), "checker", ((0.2, 0.2, 0.2), (0.6, 0.6, 0.6)), grain=0, drift=0)
    far = sample(surface, *grid(), np.full((24, 24), 5.0, np.float32))
    assert far.mean() == pytest.approx(0.4, abs=0.01)
    assert far.std() < 0.02
    assert sample(surface, *grid(), np.full((24, 24), 1e-3, np.float32)).std() > 0.1
