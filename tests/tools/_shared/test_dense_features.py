"""Features read at points of an image: bilinear between the middles of patches, computed by hand."""

import numpy as np
import pytest

from hybrid.core.errors import ToolError
from tools._shared.dense_features import FeatureInput, FeatureMap, feature_map

# Three rows of four patches, on an image of patches of 10 px.
GRID = np.random.default_rng(3).normal(0, 4, (3, 4, 3)).astype(np.float32)


def test_the_map_of_an_image_has_its_size_and_only_finite_features() -> None:
    image = FeatureInput(None, (30, 40))
    built = feature_map("matcher", image, GRID)
    assert (built.size, built.vectors is GRID) == ((30, 40), True)
    broken = GRID.copy()
    broken[1, 1, 1] = np.nan
    with pytest.raises(ToolError, match=r"^matcher: the network returned values that are not finite"):
        feature_map("matcher", image, broken)


def test_features_are_interpolated_before_they_are_normalised() -> None:
    """As in the DIFT authors' code, a feature of three times the length has three times the weight half-way."""
    vectors = np.zeros((1, 2, 2), np.float32)
    vectors[0, 0], vectors[0, 1] = (3, 0), (0, 1)
    features = FeatureMap(vectors, (10, 20))
    assert features.at(9.5, 5) == pytest.approx([3 / 10**0.5, 1 / 10**0.5])
    assert features.similarity(np.array([0, 1], np.float32)).tolist() == [[0, 1]]
