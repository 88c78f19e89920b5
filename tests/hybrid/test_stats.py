"""Intervals, sample size and Holm's correction against published examples, plain sums and simulation."""

import math
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.errors import DataError, UsageError
from hybrid.stats import (
    TYPICAL_DISCORDANT,
    combine,
    holm,
    interval,
    sample_size,
    wilson,
)
from hybrid.types import Cell, Combine, Metric


def metric(cells: Sequence[Cell], how: Combine) -> Metric:
    return Metric("m", combine(cells, how), len(cells), how, tuple(cells))


def singles(values: Sequence[float], stratum: str = "t", prefix: str = "q") -> list[Cell]:
    return [Cell(stratum, f"{prefix}{stratum}{place}", value, 1.0) for place, value in enumerate(values)]


CELLS = st.lists(
    st.builds(
        Cell,
        st.sampled_from("xyz"),
        st.sampled_from([f"c{number}" for number in range(8)]),
        st.sampled_from([0.0, 0.5, 1.0, 3.0]),
        st.sampled_from([0.0, 1.0, 4.0]),
    ),
    max_size=20,
)
HOW = st.sampled_from(["ratio", "mean_of_ratios", "root_of_ratio"])


def test_combine_ratio_pools_and_macro_averages_the_strata() -> None:
    cells = [*singles([1, 0, 0, 0], "x"), *singles([1, 1], "y")]
    assert combine(cells, "ratio") == 0.5
    assert combine(cells, "mean_of_ratios") == 0.625


def test_combine_root_is_the_rmse() -> None:
    errors = [3.0, -1.0, 2.0, 0.0]
    cells = [Cell("t", str(place), error**2, 1.0) for place, error in enumerate(errors)]
    assert combine(cells, "root_of_ratio") == pytest.approx(math.sqrt(14 / 4))


def test_combine_leaves_out_a_stratum_without_denominator_and_is_none_without_any() -> None:
    assert combine([Cell("x", "a", 1, 2), Cell("y", "b", 0, 0)], "mean_of_ratios") == 0.5
    assert combine([Cell("y", "b", 0, 0)], "mean_of_ratios") is None
    assert combine([], "ratio") is None


@given(CELLS, HOW)
def test_combine_agrees_with_plain_sums(cells: list[Cell], how: Combine) -> None:
    ratios = []
    for group in [["x"], ["y"], ["z"]] if how == "mean_of_ratios" else [["x", "y", "z"]]:
        below = sum(cell.denominator for cell in cells if cell.stratum in group)
        if below:
            ratios.append(sum(cell.numerator for cell in cells if cell.stratum in group) / below)
    expected = sum(ratios) / len(ratios) if ratios else None
    if how == "root_of_ratio" and expected is not None:
        expected = math.sqrt(expected)
    assert combine(cells, how) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("cell", "how"),
    [
        (Cell("depth", "q7", math.nan, 1), "ratio"),
        (Cell("depth", "q7", 1, math.inf), "ratio"),
        (Cell("depth", "q7", 1, -1), "ratio"),
        (Cell("depth", "q7", -1, 1), "root_of_ratio"),
    ],
)
def test_a_cell_that_cannot_be_used_is_named(cell: Cell, how: Combine) -> None:
    with pytest.raises(DataError, match="'q7' in 'depth'"):
        combine([cell], how)
    with pytest.raises(DataError, match="'q7' in 'depth'"):
        interval(Metric("m", None, 1, how, (cell,)))


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Newcombe 1998, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_published_values(k: int, n: int, low: float, high: float) -> None:
    found = wilson(k, n)
    assert found is not None
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_is_symmetric(counts: tuple[int, int]) -> None:
    k, n = counts
    found, mirrored, wider = wilson(k, n), wilson(n - k, n), wilson(k, n, 0.99)
    assert found is not None
    assert mirrored is not None
    assert wider is not None
    assert 0 <= found.low <= k / n <= found.high <= 1
    assert found.low < found.high
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-12)
    assert wider.low <= found.low
    assert wider.high >= found.high


def test_wilson_edges() -> None:
    assert wilson(0, 0) is None
    one = wilson(1, 1)
    assert one is not None
    assert one.high == 1.0
    assert one.low == pytest.approx(1 / (1 + 1.959964**2), abs=1e-6)
    for k, n, level in [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0.0)]:
        with pytest.raises(ValueError, match=r"trials|level"):
            wilson(k, n, level)


def test_interval_of_a_plain_proportion_is_wilson_also_for_a_macro_of_one_task() -> None:
    cells = singles([1] * 15 + [0] * 133)
    assert interval(metric(cells, "ratio")) == wilson(15, 148)
    assert interval(metric(cells, "mean_of_ratios")) == wilson(15, 148)


@pytest.mark.parametrize(
    ("cells", "how"),
    [
        ([*singles([1, 0, 1]), Cell("t", "half", 0.5, 1)], "ratio"),
        ([*singles([1, 0, 1]), Cell("t", "wide", 1, 2)], "ratio"),
        ([*singles([1, 0, 1]), Cell("t", "qt0", 0, 1)], "ratio"),
        ([*singles([1, 0, 1], "x"), *singles([1, 0, 0], "y")], "mean_of_ratios"),
        (singles([1, 0, 1]), "root_of_ratio"),
    ],
)
def test_interval_of_anything_else_is_the_bootstrap(cells: list[Cell], how: Combine) -> None:
    found = interval(metric(cells, how), resamples=200)
    assert found is not None
    assert found.method == "cluster bootstrap, 200 resamples"


def test_interval_degenerate_cases() -> None:
    assert interval(metric([], "ratio")) is None
    assert interval(metric([], "mean_of_ratios")) is None
    assert interval(metric([Cell("t", "only", 0.5, 1)], "ratio")) is None
    assert interval(metric([Cell("t", "a", 2, 4), Cell("t", "b", 1, 2)], "ratio")) is None
    assert interval(metric([Cell("t", "a", 0, 0)], "ratio")) is None
    with pytest.raises(ValueError, match="resamples"):
        interval(metric(singles([0.5, 1]), "ratio"), resamples=0)
    with pytest.raises(ValueError, match="level"):
        interval(metric(singles([0.5, 1]), "ratio"), level=95)


def test_all_right_in_every_task_is_not_certainty() -> None:
    cells = [*singles([1] * 30, "x"), *singles([1] * 30, "y")]
    found, per_task, pooled = interval(metric(cells, "mean_of_ratios")), wilson(30, 30), wilson(60, 60)
    assert found is not None
    assert per_task is not None
    assert pooled is not None
    assert found.method == "Wilson by stratum"
    assert found.high == 1.0
    assert found.low == pytest.approx(1 - (1 - per_task.low) / math.sqrt(2))
    assert per_task.low < found.low < 1
    assert found.low < pooled.low


def test_bootstrap_of_a_mean_has_the_textbook_standard_error() -> None:
    values = np.random.default_rng(5).random(400)
    found = interval(metric(singles(values.tolist()), "ratio"))
    assert found is not None
    half = 1.959964 * values.std() / 20
    assert found.low == pytest.approx(values.mean() - half, abs=0.06 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.06 * half)


def test_both_ways_of_drawing_give_the_same_distribution() -> None:
    values = ([0.0, 0.5, 1.0] * 100)[:200]
    alike = interval(metric(singles(values), "ratio"), resamples=20_000)
    # A change too small to matter makes every row one of its kind, which is drawn by index.
    different = [value + place * 1e-9 for place, value in enumerate(values)]
    indexed = interval(metric(singles(different), "ratio"), resamples=20_000)
    assert alike is not None
    assert indexed is not None
    assert alike.low == pytest.approx(indexed.low, abs=0.004)
    assert alike.high == pytest.approx(indexed.high, abs=0.004)


def test_copies_of_a_question_do_not_narrow_the_interval() -> None:
    values = np.random.default_rng(1).integers(0, 2, 100)
    once = interval(metric([Cell("t", f"q{i}", v + 0.0, 1) for i, v in enumerate(values)], "root_of_ratio"))
    thrice = interval(metric([Cell("t", f"q{i}", v + 0.0, 1) for i, v in enumerate(values)] * 3, "root_of_ratio"))
    naive = interval(metric([Cell("t", f"q{i}", v + 0.0, 1) for i, v in enumerate([*values] * 3)], "root_of_ratio"))
    assert once is not None
    assert thrice is not None
    assert naive is not None
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    assert (naive.high - naive.low) < 0.65 * (once.high - once.low)


def test_strata_are_kept_when_resampling() -> None:
    # Within a task nothing varies, so only a bootstrap that mixed the tasks would show a spread.
    cells = [*singles([0.0, 0.0, 0.0], "x"), *singles([0.5, 0.5, 0.5], "y")]
    assert interval(metric(cells, "ratio")) is None
    assert interval(metric(cells, "mean_of_ratios")) is None


def test_a_cluster_in_two_strata_is_drawn_as_a_whole() -> None:
    values = np.random.default_rng(2).random(60)
    # What a cluster gains in one task it loses in the other: together the macro mean cannot move.
    cells = [Cell("x", f"c{i}", v, 1) for i, v in enumerate(values)]
    cells += [Cell("y", f"c{i}", 1 - v, 1) for i, v in enumerate(values)]
    assert combine(cells, "mean_of_ratios") == pytest.approx(0.5)
    assert interval(metric(cells, "mean_of_ratios")) is None


@settings(max_examples=30)
@given(CELLS.flatmap(lambda cells: st.tuples(st.just(cells), st.permutations(cells))), HOW)
def test_interval_ignores_the_order_of_cells(orders: tuple[list[Cell], list[Cell]], how: Combine) -> None:
    first, second = (interval(metric(cells, how), resamples=50) for cells in orders)
    assert first == second


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=9), min_size=1, max_size=4))
def test_interval_of_shares_stays_in_range(tasks: list[list[float]]) -> None:
    cells = [cell for number, values in enumerate(tasks) for cell in singles(values, f"t{number}")]
    for how in ("ratio", "mean_of_ratios"):
        found = interval(metric(cells, how), resamples=50)
        assert found is None or 0 <= found.low <= found.high <= 1


def test_seed_decides_the_draws() -> None:
    given_metric = metric(singles(np.random.default_rng(0).random(50).tolist()), "ratio")
    assert interval(given_metric, seed=3) == interval(given_metric, seed=3)
    assert interval(given_metric, seed=3) != interval(given_metric, seed=4)


def test_macro_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    truth, sizes = (0.5, 0.75, 0.6), (40, 80, 60)
    covered = 0
    for seed in range(200):
        cells = [
            cell
            for number, (share, size) in enumerate(zip(truth, sizes, strict=True))
            for cell in singles((rng.random(size) < share).astype(float).tolist(), f"t{number}")
        ]
        found = interval(metric(cells, "mean_of_ratios"), resamples=400, seed=seed)
        covered += found is not None and found.low <= sum(truth) / 3 <= found.high
    assert 180 <= covered <= 198


def test_bootstrap_of_2000_questions_is_fast() -> None:
    values = np.random.default_rng(0).random(2000).tolist()
    cells = [Cell(f"t{place % 14}", str(place), value, 1.0) for place, value in enumerate(values)]
    started = time.process_time()
    assert interval(metric(cells, "mean_of_ratios")) is not None
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("difference", "discordant", "n"),
    # Two calculators after Connor 1987 print these: p01, p10 of 0.45, 0.05 and of 0.30, 0.15.
    [(0.4, 0.5, 23), (-0.4, 0.5, 23), (0.15, 0.45, 155)],
)
def test_sample_size_published_values(difference: float, discordant: float, n: int) -> None:
    assert sample_size(difference, discordant) == n


def test_sample_size_reaches_its_power() -> None:
    n = sample_size(0.08, 0.3, power=0.8)
    draws = np.random.default_rng(0).multinomial(n, [0.19, 0.11, 0.7], size=20_000)
    helped, harmed = draws[:, 0], draws[:, 1]
    power = np.mean((helped - harmed) ** 2 > 1.959964**2 * (helped + harmed))
    assert power == pytest.approx(0.8, abs=0.015)


@given(st.floats(0.01, 1), st.floats(0, 1))
def test_sample_size_grows_with_power_and_discordance(difference: float, room: float) -> None:
    discordant = difference + room * (1 - difference)
    assert sample_size(difference, discordant) <= sample_size(difference, 1.0)
    assert sample_size(difference, discordant) <= sample_size(difference, discordant, power=0.9)
    assert sample_size(difference) == sample_size(difference, max(difference, TYPICAL_DISCORDANT))


@pytest.mark.parametrize(
    ("difference", "discordant", "power", "level"),
    [
        (0, None, 0.8, 0.05),
        (1.2, None, 0.8, 0.05),
        (math.nan, None, 0.8, 0.05),
        (0.3, 0.2, 0.8, 0.05),
        (0.1, 1.2, 0.8, 0.05),
        (0.1, None, 1.0, 0.05),
        (0.1, None, 0.8, 0.0),
        (0.1, None, 0.01, 0.05),
    ],
)
def test_sample_size_refuses(difference: float, discordant: float | None, power: float, level: float) -> None:
    with pytest.raises(UsageError, match=r"difference|power"):
        sample_size(difference, discordant, power, level)


def test_holm_published_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    with pytest.raises(ValueError, match="position 1"):
        holm([0.1, 1.5])
    with pytest.raises(ValueError, match="position 0"):
        holm([math.nan])


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_the_raw_and_the_bonferroni_values(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for raw, found in zip(p_values, adjusted, strict=True):
        assert raw <= found <= min(1.0, len(p_values) * raw)
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    assert [adjusted[index] for index in order] == sorted(adjusted)
