"""Metrics of saliency maps and scanpaths, compared with values computed by hand and by counting pairs."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from hybrid.scoring import gaze_metrics as metrics

MAP = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
FLAT = np.full((2, 3), 0.7)
FIXATIONS = np.array([[1, 2], [0, 1]])


def density() -> Any:
    return metrics.blurred(FIXATIONS, (2, 3), 0.5)


def counted_auc(positive: Any, negative: Any) -> float:
    pairs = list(itertools.product(positive, negative))
    return sum((p > n) + 0.5 * (p == n) for p, n in pairs) / len(pairs)


def random_case(seed: int) -> tuple[Any, Any, Any]:
    """Return a map with ties, its fixations and those of other pictures; some pixels are fixated twice."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(2, 9)), int(rng.integers(2, 9)))
    values = rng.integers(0, 5, shape).astype(float)
    first, second = (
        np.stack([rng.integers(0, shape[0], count), rng.integers(0, shape[1], count)], axis=1)
        for count in rng.integers(1, 12, 2)
    )
    return values, first, second


@pytest.mark.parametrize("seed", range(50))
def test_both_auc_count_pairs(seed: int) -> None:
    values, fixations, others = random_case(seed)
    pixels = set(map(tuple, fixations.tolist()))
    other_pixels = [pixel for pixel in np.ndindex(values.shape) if pixel not in pixels]
    if other_pixels:
        expected = counted_auc([values[pixel] for pixel in pixels], [values[pixel] for pixel in other_pixels])
        assert metrics.auc_judd(values, fixations) == pytest.approx(expected)
    # Each fixation counts, even if two are at one pixel.
    pairs = [[values[tuple(pixel)] for pixel in side.tolist()] for side in (fixations, others)]
    counts = metrics.count_fixations(others, values.shape)
    assert metrics.shuffled_auc(values, fixations, counts) == pytest.approx(counted_auc(*pairs))


def test_nss_by_hand() -> None:
    # The map has the mean 2.5 and the population variance 35 / 12; its values at the fixations are 5 and 1.
    assert metrics.nss(MAP, FIXATIONS) == pytest.approx((2.5 - 1.5) / 2 / math.sqrt(35 / 12))


def test_auc_of_a_map_that_is_highest_where_people_look() -> None:
    perfect = np.zeros((4, 4))
    perfect[1, 2] = 1
    assert metrics.auc_judd(perfect, np.array([[1, 2]])) == 1.0
    assert metrics.auc_judd(-perfect, np.array([[1, 2]])) == 0.0
    all_pixels = np.array(list(np.ndindex(4, 4)))
    assert metrics.auc_judd(perfect, all_pixels) == 0.5


def test_a_constant_map_is_worth_chance_and_never_perfect() -> None:
    fixed, uniform = density(), np.full((2, 3), 1 / 6)
    for flat in (FLAT, FLAT * 0, FLAT + np.array([[0, 1e-17, 0], [0, 0, 0]])):
        assert metrics.nss(flat, FIXATIONS) == 0.0
        assert metrics.auc_judd(flat, FIXATIONS) == 0.5
        assert metrics.shuffled_auc(flat, FIXATIONS, metrics.count_fixations(np.array([[0, 0]]), flat.shape)) == 0.5
        assert metrics.cc(flat, fixed) == 0.0
        assert metrics.kl(flat, fixed) == pytest.approx(float((fixed * np.log(6 * fixed)).sum()))
        assert metrics.kl(flat, fixed) > 0
        assert metrics.sim(flat, fixed) == pytest.approx(float(np.minimum(fixed, 1 / 6).sum()))
        assert metrics.sim(flat, fixed) < 1
        assert metrics.information_gain(flat, FIXATIONS, uniform) == pytest.approx(0.0)


def test_a_map_that_is_the_density_is_perfect() -> None:
    fixed = density()
    fixed = (fixed - fixed.min()) / (fixed - fixed.min()).sum()
    assert metrics.cc(fixed, fixed) == pytest.approx(1.0)
    assert metrics.sim(fixed, fixed) == pytest.approx(1.0)
    assert metrics.kl(fixed, fixed) == pytest.approx(0.0, abs=1e-9)


def test_information_gain_is_in_bits() -> None:
    values = np.array([[0.0, 0.0], [0.0, 1.0]])
    # All of the map's mass is at the fixation, and a quarter of the baseline's mass: 2 bits.
    assert metrics.information_gain(values, np.array([[1, 1]]), np.full((2, 2), 0.25)) == pytest.approx(2.0)


def test_the_density_has_sum_one_and_its_mode_at_the_fixation() -> None:
    density = metrics.blurred(np.array([[10, 20], [10, 20], [30, 5]]), (40, 40), 2.0)
    assert density.sum() == pytest.approx(1.0)
    assert np.unravel_index(int(density.argmax()), density.shape) == (10, 20)
    # The density is a Gaussian: at two standard deviations it is exp(-2) of its mode.
    assert density[14, 20] / density[10, 20] == pytest.approx(math.exp(-2), abs=0.01)


def path(*points: tuple[float, float, float]) -> Any:
    return np.array(points)


LEFT, RIGHT, DOWN = (0.04, 0.05, 200.0), (0.96, 0.05, 200.0), (0.04, 0.95, 200.0)


def test_the_edit_of_strings() -> None:
    assert metrics.string_edit(path(LEFT, RIGHT, DOWN), path(LEFT, RIGHT, DOWN)) == 1.0
    # A fixation that stays in its cell adds no letter.
    assert metrics.string_edit(path(LEFT, LEFT, RIGHT), path(LEFT, RIGHT)) == 1.0
    assert metrics.string_edit(path(LEFT, RIGHT), path(LEFT, DOWN)) == 0.5
    assert metrics.string_edit(path(LEFT, RIGHT, DOWN), path(RIGHT)) == pytest.approx(1 / 3)
    assert metrics.string_edit(path(LEFT), path(RIGHT)) == 0.0


def test_scanmatch() -> None:
    assert metrics.scanmatch(path(LEFT, RIGHT), path(LEFT, RIGHT)) == pytest.approx(1.0)
    # Cells in opposite corners score less than a gap.
    assert metrics.scanmatch(path(LEFT), path((0.96, 0.95, 200.0))) == 0.0
    # The second path stays twice as long in the same place, so half of it has no partner.
    assert metrics.scanmatch(path(LEFT), path((*LEFT[:2], 400.0))) == pytest.approx(0.5)
    near, far = path((0.12, 0.05, 200.0)), path((0.3, 0.05, 200.0))
    assert 1 > metrics.scanmatch(path(LEFT), near) > metrics.scanmatch(path(LEFT), far) > 0


def brute_alignment(similarity: Any) -> float:
    """Return the best of all ways to pair two sequences in order."""
    rows, columns = similarity.shape
    best = 0.0
    for count in range(1, min(rows, columns) + 1):
        for a in itertools.combinations(range(rows), count):
            for b in itertools.combinations(range(columns), count):
                best = max(best, sum(similarity[i, j] for i, j in zip(a, b, strict=True)))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_the_alignment_is_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    similarity = rng.normal(size=rng.integers(1, 6, 2))
    assert metrics.needleman_wunsch(similarity) == pytest.approx(brute_alignment(similarity))


def test_the_sequence_score_aligns_clusters() -> None:
    clusters = np.array([LEFT[:2], RIGHT[:2], DOWN[:2]])
    assert metrics.sequence_score(path(LEFT, RIGHT, DOWN), path(LEFT, RIGHT, DOWN), clusters, 0.1) == 1.0
    assert metrics.sequence_score(path(LEFT, RIGHT, DOWN), path(LEFT, DOWN), clusters, 0.1) == pytest.approx(2 / 3)
    assert metrics.sequence_score(path(LEFT, RIGHT), path(RIGHT, LEFT), clusters, 0.1) == 0.5
    assert metrics.sequence_score(path(LEFT), path(DOWN), clusters, 0.1) == 0.0
    # If people look at one place, a path elsewhere is not perfect.
    assert metrics.sequence_score(path(LEFT, LEFT), path(DOWN, RIGHT), clusters[:1], 0.1) == 0.0
    assert metrics.sequence_score(path(LEFT, LEFT), path(LEFT, RIGHT), clusters[:1], 0.1) == 0.5


def test_two_fixations_of_no_cluster_agree_if_they_are_near() -> None:
    clusters = np.array([LEFT[:2]])
    assert metrics.sequence_score(path(LEFT, RIGHT), path(LEFT, RIGHT), clusters, 0.1) == 1.0
    assert metrics.sequence_score(path(LEFT, RIGHT), path(LEFT, DOWN), clusters, 0.1) == 0.5


def test_clusters_of_fixations() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0.2, 0.2], [0.8, 0.3], [0.5, 0.9]])
    points = np.concatenate([centre + rng.normal(0, 0.01, (10, 2)) for centre in centres])
    clusters = metrics.fixation_clusters(points, 0.1)
    assert len(clusters) == 3
    assert sorted(metrics.nearest(clusters, centres).tolist()) == [0, 1, 2]
    assert np.abs(clusters - centres[metrics.nearest(clusters, centres)]).max() < 0.02


def test_a_constant_map_is_not_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(np, "unique")
    counts = metrics.count_fixations(np.array([[0, 0]]), (2, 3))
    assert metrics.shuffled_auc(FLAT, FIXATIONS, counts) == metrics.auc_judd(FLAT, FIXATIONS) == 0.5


def test_scanmatch_holds_no_matrix_of_all_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    align, lazy = metrics.needleman_wunsch, []

    def align_lazily(similarity: Any) -> float:
        lazy.append(iter(similarity) is similarity)
        return align(similarity)

    monkeypatch.setattr(metrics, "needleman_wunsch", align_lazily)
    assert metrics.scanmatch(path(LEFT, RIGHT), path(LEFT, RIGHT)) == pytest.approx(1.0)
    assert lazy == [True], "rows are made one after another"
