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
    plain,
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


def test_noise_has_no_seam_where_tiles_meet() -> None:
    noise = fractal_noise(np.random.default_rng(1), 128, 1.2)
    inner = np.abs(np.diff(noise, axis=1)).mean()
    across_the_seam = np.abs(noise[:, 0] - noise[:, -1]).mean()
    assert across_the_seam < 1.5 * inner


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


def test_a_texture_repeats_after_one_tile_without_drift() -> None:
    surface = texture(np.random.default_rng(2), "checker", ((0.1, 0.1, 0.1), (0.6, 0.6, 0.6)), drift=0, side=64)
    tile_m = 64 / surface.texels_per_m
    fine = np.full((24, 24), 1e-4, np.float32)
    here, next_tile = (sample(surface, *grid(offset), fine) for offset in (0.0, tile_m))
    assert np.abs(here - next_tile).max() < 0.06
    drifting = texture(np.random.default_rng(2), "checker", ((0.1, 0.1, 0.1), (0.6, 0.6, 0.6)), drift=0.4, side=64)
    assert np.abs(sample(drifting, *grid(), fine) - sample(drifting, *grid(40 * tile_m), fine)).max() > 0.06


def test_a_large_footprint_reads_the_mean_of_the_pattern() -> None:
    surface = texture(np.random.default_rng(3), "checker", ((0.2, 0.2, 0.2), (0.6, 0.6, 0.6)), grain=0, drift=0)
    far = sample(surface, *grid(), np.full((24, 24), 5.0, np.float32))
    assert far.mean() == pytest.approx(0.4, abs=0.01)
    assert far.std() < 0.02
    near = sample(surface, *grid(), np.full((24, 24), 1e-3, np.float32))
    assert near.std() > 0.1


def test_plain_has_the_colour_it_was_given() -> None:
    surface = plain(np.random.default_rng(4), (0.5, 0.25, 0.1))
    assert surface.levels[0].mean(axis=(0, 1)) == pytest.approx([0.5, 0.25, 0.1], rel=0.02)
