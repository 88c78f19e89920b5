"""The randomisation test compared with a published example, plain enumeration and the test by formula."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.errors import DataError
from hybrid.core.types import Cell, Combine, Metric
from hybrid.stats import combine, mcnemar
from hybrid.stats.randomisation import randomisation


def metric(cells: Sequence[Cell], mode: Combine = "ratio") -> Metric:
    return Metric("m", combine(cells, mode), len(cells), mode, tuple(cells))


def plain(values: Sequence[float]) -> Metric:
    return metric([Cell("", f"q{place}", value, 1.0) for place, value in enumerate(values)])


@pytest.mark.parametrize(("helped", "harmed"), [(0, 0), (1, 0), (6, 1), (5, 5), (2, 9), (14, 2)])
def test_of_single_questions_it_is_the_exact_mcnemar_test(helped: int, harmed: int) -> None:
    a, b = [0] * helped + [1] * harmed + [1] * 4, [1] * helped + [0] * harmed + [1] * 4
    test_result = randomisation(plain(a), plain(b))
    assert test_result.exact
    assert test_result.clusters == helped + harmed
    assert test_result.p_value == pytest.approx(mcnemar(helped, harmed))


VALUES = st.sampled_from([0.0, 0.25, 1.0, 2.0])
CELLS = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from("abcde"), VALUES, VALUES, VALUES, VALUES), min_size=1, max_size=9
)
HOW: st.SearchStrategy[Combine] = st.sampled_from(["ratio", "mean_of_ratios", "root_of_ratio"])


def both(rows: Sequence[tuple[str, str, float, float, float, float]], mode: Combine) -> tuple[Metric, Metric]:
    a = [Cell(stratum, cluster, above, below) for stratum, cluster, above, below, _, _ in rows]
    b = [Cell(stratum, cluster, above, below) for stratum, cluster, _, _, above, below in rows]
    return metric(a, mode), metric(b, mode)


@settings(deadline=None)
@given(CELLS, HOW)
def test_agrees_with_plain_enumeration(
    rows: list[tuple[str, str, float, float, float, float]], combine_rule: Combine
) -> None:
    a, b = both(rows, combine_rule)
    test_result = randomisation(a, b)
    if a.value is None or b.value is None:
        assert (test_result.difference, test_result.p_value) == (None, None)
        return
    clusters = sorted({cell.cluster for cell in a.cells})
    as_far = 0
    for swapped in itertools.product((False, True), repeat=len(clusters)):
        values = dict(zip(clusters, swapped, strict=True))
        pairs = [(y, x) if values[x.cluster] else (x, y) for x, y in zip(a.cells, b.cells, strict=True)]
        first, second = (combine([pair[side] for pair in pairs], combine_rule) for side in (0, 1))
        undefined = first is None or second is None
        as_far += undefined or abs(second - first) >= abs(b.value - a.value) - 1e-9
    assert test_result.p_value == pytest.approx(as_far / 2 ** len(clusters))


@settings(deadline=None)
@given(CELLS, HOW)
def test_it_is_symmetric_and_blind_to_order(
    rows: list[tuple[str, str, float, float, float, float]], combine_rule: Combine
) -> None:
    test_result = randomisation(*both(rows, combine_rule))
    estimate = randomisation(*reversed(both(rows, combine_rule)))
    assert test_result.p_value == estimate.p_value == randomisation(*both(sorted(rows), combine_rule)).p_value
    if test_result.p_value is not None:
        assert 0 < test_result.p_value <= 1
        assert test_result.p_value >= 2.0**-test_result.clusters


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
