"""Quantiles of a letter's grey levels equal those of NumPy."""

import numpy as np
import pytest

from hybrid.marks.letters import quantile


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_quantiles_are_those_of_numpy(share: float, kind: type[np.generic]) -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 3, 6, 7, 11, 38, 84):
        values = rng.integers(0, 256, (size, 3)).astype(kind)[:, : 1 + size % 3]
        assert quantile(values, share) == float(np.quantile(values.astype(np.float64), share))
