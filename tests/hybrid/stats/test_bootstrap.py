"""The cluster bootstrap: whole clusters are drawn, numbers that add up do so in every resample, intervals hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.stats.bootstrap import Sample, bootstrap, interval_of, mean_of
from hybrid.stats.linearised import Floats

ROWS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.sampled_from("abcdef"), st.sampled_from("xyz")),
    min_size=1,
    max_size=30,
)


def sample_of(rows: list[tuple[float, float, str, str]]) -> Sample:
    return Sample.of([(a, b, a + b, 1.0) for a, b, *_ in rows], [r[2] for r in rows], [r[3] for r in rows])


@given(ROWS, st.sampled_from(["ratio", "mean_of_ratios"]))
def test_parts_that_add_up_do_so_in_every_resample(rows: list[tuple[float, float, str, str]], how: str) -> None:
    def parts(sums: Floats) -> Floats:
        return np.stack([mean_of(sums, column, 3, how) for column in range(3)], axis=-1)

    found = bootstrap(sample_of(rows), parts, resamples=50)
    for numbers in (found.values[None], found.draws, found.without[np.isfinite(found.without).all(axis=1)]):
        np.testing.assert_allclose(numbers[:, 0] + numbers[:, 1], numbers[:, 2], atol=1e-12)


@given(ROWS)
def test_a_resample_holds_whole_clusters(rows: list[tuple[float, float, str, str]]) -> None:
    sample = Sample.of([(1.0, float(r[2] == "a")) for r in rows], [r[2] for r in rows], ["all"] * len(rows))
    sizes = np.bincount(sample.cluster)
    found = bootstrap(sample, lambda sums: sums.sum(axis=-2), resamples=20)
    largest = len(sizes) * sizes.max()
    assert (found.draws[:, 0] <= largest).all()
    assert (found.draws[:, 0] >= len(sizes) * sizes.min()).all()
    own = sum(r[2] == "a" for r in rows)
    assert not own or (found.draws[:, 1] % own == 0).all()


def test_a_seed_gives_the_same_resamples() -> None:
    rows = [(float(i % 3 == 0), 0.5, f"c{i % 7}", "xy"[i % 2]) for i in range(40)]
    total = lambda sums: sums.sum(axis=-2)  # noqa: E731 - a name for the statistic of both
    one = bootstrap(sample_of(rows), total, resamples=30, seed=3)
    same = bootstrap(sample_of(rows), total, resamples=30, seed=3)
    other = bootstrap(sample_of(rows), total, resamples=30, seed=4)
    np.testing.assert_array_equal(one.draws, same.draws)
    assert (one.draws != other.draws).any()


def test_the_interval_of_a_mean_is_near_that_of_the_t_distribution() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(3.0, 2.0, 400)
    sample = Sample.of([(v, 1.0) for v in values], [str(i) for i in range(400)], ["all"] * 400)
    ends = interval_of(bootstrap(sample, lambda sums: mean_of(sums, 0, 1, "ratio")[..., None]), 0)
    half = 1.966 * values.std(ddof=1) / 20
    assert ends is not None
    assert ends == pytest.approx((values.mean() - half, values.mean() + half), abs=0.03)


def test_a_skewed_share_reaches_farther_up_than_down() -> None:
    sample = Sample.of([(float(i < 6), 1.0) for i in range(200)], [str(i) for i in range(200)], ["all"] * 200)
    ends = interval_of(bootstrap(sample, lambda sums: mean_of(sums, 0, 1, "ratio")[..., None]), 0)
    assert ends is not None
    assert 0 < ends[0] < 0.03 < ends[1]
    assert ends[1] - 0.03 > 0.03 - ends[0]


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_what_does_not_vary_has_no_interval(value: float) -> None:
    sample = Sample.of([(value, 1.0)] * 5, list("abcde"), ["all"] * 5)
    assert interval_of(bootstrap(sample, lambda sums: mean_of(sums, 0, 1, "ratio")[..., None]), 0) is None


def test_one_cluster_and_an_undefined_number_have_no_interval() -> None:
    sample = Sample.of([(1.0, 0.0, 1.0), (0.0, 0.0, 1.0)], ["a", "a"], ["all", "all"])
    found = bootstrap(sample, lambda s: np.stack([mean_of(s, 0, 2, "ratio"), mean_of(s, 0, 1, "ratio")], -1))
    assert found.values[0] == 0.5
    assert np.isnan(found.values[1])
    assert interval_of(found, 0) is None
    assert interval_of(found, 1) is None


def test_wrong_lengths_and_roots_are_refused() -> None:
    with pytest.raises(ValueError, match="1 clusters"):
        Sample.of([(1.0,), (2.0,)], ["a"], ["x", "x"])
    with pytest.raises(ValueError, match="root_of_ratio"):
        mean_of(np.ones((1, 2)), 0, 1, "root_of_ratio")
