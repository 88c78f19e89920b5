"""The randomisation test against a published example, plain enumeration and the test by formula."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bench.randomisation import ENUMERATED, randomisation
from hybrid.errors import DataError
from hybrid.stats import combine, contrast, mcnemar
from hybrid.types import Cell, Combine, Metric


def metric(cells: Sequence[Cell], how: Combine = "ratio") -> Metric:
    return Metric("m", combine(cells, how), len(cells), how, tuple(cells))


def plain(values: Sequence[float]) -> Metric:
    return metric([Cell("", f"q{place}", value, 1.0) for place, value in enumerate(values)])


DARWIN = (49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48)
"""Crossed minus self-fertilised maize, 15 pairs, in eighths of an inch: Fisher, The Design of Experiments (1935)."""


def test_fisher_s_enumeration_of_darwin_s_maize() -> None:
    # Section 21: 863 of the 32,768 arrangements have a sum as great as the 314 found, or greater; as many have -314.
    found = randomisation(plain([0] * 15), plain(DARWIN))
    assert found.difference == pytest.approx(314 / 15)
    assert (found.as_far, found.rearrangements, found.exact) == (2 * 863, 32_768, True)
    assert found.p_value == 1726 / 32_768


@pytest.mark.parametrize(("helped", "harmed"), [(0, 0), (1, 0), (6, 1), (5, 5), (2, 9), (14, 2)])
def test_of_single_questions_it_is_the_exact_mcnemar_test(helped: int, harmed: int) -> None:
    a, b = [0] * helped + [1] * harmed + [1] * 4, [1] * helped + [0] * harmed + [1] * 4
    found = randomisation(plain(a), plain(b))
    assert found.exact
    assert found.clusters == helped + harmed
    assert found.p_value == pytest.approx(mcnemar(helped, harmed))


VALUES = st.sampled_from([0.0, 0.25, 1.0, 2.0])
CELLS = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from("abcde"), VALUES, VALUES, VALUES, VALUES), min_size=1, max_size=9
)
HOW: st.SearchStrategy[Combine] = st.sampled_from(["ratio", "mean_of_ratios", "root_of_ratio"])


def both(rows: Sequence[tuple[str, str, float, float, float, float]], how: Combine) -> tuple[Metric, Metric]:
    a = [Cell(stratum, cluster, above, below) for stratum, cluster, above, below, _, _ in rows]
    b = [Cell(stratum, cluster, above, below) for stratum, cluster, _, _, above, below in rows]
    return metric(a, how), metric(b, how)


@settings(deadline=None)
@given(CELLS, HOW)
def test_agrees_with_plain_enumeration(rows: list[tuple[str, str, float, float, float, float]], how: Combine) -> None:
    a, b = both(rows, how)
    found = randomisation(a, b)
    if a.value is None or b.value is None:
        assert (found.difference, found.p_value) == (None, None)
        return
    clusters = sorted({cell.cluster for cell in a.cells})
    as_far = 0
    for swapped in itertools.product((False, True), repeat=len(clusters)):
        turned = dict(zip(clusters, swapped, strict=True))
        pairs = [(y, x) if turned[x.cluster] else (x, y) for x, y in zip(a.cells, b.cells, strict=True)]
        first, second = (combine([pair[side] for pair in pairs], how) for side in (0, 1))
        undefined = first is None or second is None
        as_far += undefined or abs(second - first) >= abs(b.value - a.value) - 1e-9
    assert found.p_value == pytest.approx(as_far / 2 ** len(clusters))


@settings(deadline=None)
@given(CELLS, HOW)
def test_it_is_symmetric_and_blind_to_order(
    rows: list[tuple[str, str, float, float, float, float]], how: Combine
) -> None:
    found = randomisation(*both(rows, how))
    turned = randomisation(*reversed(both(rows, how)))
    again = randomisation(*both(sorted(rows), how))
    assert found.p_value == turned.p_value == again.p_value
    if found.p_value is not None:
        assert 0 < found.p_value <= 1
        assert found.p_value >= 2.0**-found.clusters


def many(count: int, seed: int = 0) -> tuple[Metric, Metric]:
    rng = np.random.default_rng(seed)
    a, b = (rng.random((count, 3)) < share for share in (0.5, 0.62))
    return tuple(  # type: ignore[return-value]  # two of them
        metric([Cell(f"t{i % 4}", f"q{i}", float(row.sum()), 3.0) for i, row in enumerate(rows)], "mean_of_ratios")
        for rows in (a, b)
    )


def test_drawn_rearrangements_come_near_to_all_of_them() -> None:
    a, b = [1] * 20 + [0] * 4, [0] * 16 + [1] * 8
    exact = mcnemar(4, 16)
    found = randomisation(plain(a), plain(b), draws=20_000)
    assert not found.exact
    assert found.clusters == 20 > ENUMERATED
    error = math.sqrt(exact / 20_000)
    assert found.p_value == pytest.approx(exact, abs=4 * error)
    assert found.p_value == (found.as_far + 1) / 20_001


def test_a_drawn_p_value_follows_from_the_seed_and_is_never_0() -> None:
    found = [randomisation(*many(200), draws=500, seed=seed) for seed in (0, 0, 1)]
    assert found[0] == found[1]
    strong = randomisation(plain([0] * 60), plain([1] * 60), draws=99)
    assert (strong.as_far, strong.p_value) == (0, 0.01)
    # 2^60 arrangements, of which two are as extreme: blocks of draws are different ones.
    weak = randomisation(plain([0] * 30 + [1] * 31), plain([1] * 30 + [0] * 31), draws=4_000)
    share = 2 * float(binom.cdf(30, 61, 0.5))
    assert weak.p_value == pytest.approx(min(1.0, share), abs=0.03)


def test_with_many_clusters_it_agrees_with_the_test_by_formula() -> None:
    for seed in range(4):
        a, b = many(150, seed)
        by_formula = contrast(a, b).p_value
        assert randomisation(a, b).p_value == pytest.approx(by_formula, abs=0.012, rel=0.25)


def test_only_what_can_be_compared() -> None:
    a, b = plain([0, 1]), plain([1, 1, 1])
    with pytest.raises(DataError, match="only one of the two solvers has cluster 'q2'"):
        randomisation(a, b)
    with pytest.raises(DataError, match="combined as ratio"):
        randomisation(a, metric(a.cells, "mean_of_ratios"))
    with pytest.raises(ValueError, match="0 draws"):
        randomisation(a, a, draws=0)
    assert randomisation(a, a).p_value == 1
    assert randomisation(metric([]), metric([])).p_value is None
