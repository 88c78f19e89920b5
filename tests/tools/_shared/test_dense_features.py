"""Features read at points of an image: bilinear between the middles of patches, by hand."""

import numpy as np
import pytest

from hybrid.errors import ToolError
from tools._shared.dense_features import FeatureInput, FeatureMap, feature_map, unit

GRID = np.random.default_rng(3).normal(0, 4, (3, 4, 3)).astype(np.float32)
"""Three rows of four patches, on an image of patches of 10 px."""
MAP = FeatureMap(GRID, (30, 40))


@pytest.mark.parametrize(
    ("x", "y", "mixed"),
    [
        (4.5, 4.5, {(0, 0): 1.0}),
        (34.5, 14.5, {(1, 3): 1.0}),
        (4.5, 22.0, {(1, 0): 0.25, (2, 0): 0.75}),
        (9.5, 4.5, {(0, 0): 0.5, (0, 1): 0.5}),
        (24.5, 7.0, {(0, 2): 0.75, (1, 2): 0.25}),
        (17.0, 12.0, {(0, 1): 0.1875, (0, 2): 0.0625, (1, 1): 0.5625, (1, 2): 0.1875}),
        (0.0, 0.0, {(0, 0): 1.0}),
        (39.0, 29.0, {(2, 3): 1.0}),
    ],
)
def test_a_point_between_patches_mixes_the_nearest_four(
    x: float, y: float, mixed: dict[tuple[int, int], float]
) -> None:
    wanted = sum(share * GRID[place].astype(float) for place, share in mixed.items())
    found = MAP.at(x, y)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted), atol=1e-6)


def test_similarity_is_the_cosine_with_every_patch() -> None:
    vector = unit(GRID[1, 2])
    found = MAP.similarity(vector)
    assert (found.shape, found.dtype) == ((3, 4), np.float32)
    wanted = GRID @ vector / np.linalg.norm(GRID, axis=-1)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert found[1, 2] == pytest.approx(1)


def test_the_map_of_an_image_has_its_size_and_only_finite_features() -> None:
    image = FeatureInput(None, (30, 40))
    made = feature_map("matcher", image, GRID)
    assert (made.size, made.vectors is GRID) == ((30, 40), True)
    broken = GRID.copy()
    broken[1, 1, 1] = np.nan
    with pytest.raises(ToolError, match=r"^matcher: the network returned values that are not finite"):
        feature_map("matcher", image, broken)


def test_features_are_interpolated_before_they_are_normalised() -> None:
    """As the authors of DIFT do: a feature three times as long weighs three times as much half-way."""
    vectors = np.zeros((1, 2, 2), np.float32)
    vectors[0, 0], vectors[0, 1] = (3, 0), (0, 1)
    features = FeatureMap(vectors, (10, 20))
    assert features.at(9.5, 5) == pytest.approx([3 / 10**0.5, 1 / 10**0.5])
    assert features.similarity(np.array([0, 1], np.float32)).tolist() == [[0, 1]]
