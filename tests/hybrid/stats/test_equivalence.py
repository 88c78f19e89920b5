"""Two one-sided tests compared with a second implementation, the equivalent interval, and their error rate."""

import numpy as np
import pytest

from hybrid.core.errors import UsageError
from hybrid.core.types import Cell, Metric
from hybrid.stats import combine, contrast, equivalence
from tests.recomputed.review import ninety, tost
from tests.recomputed.runs import Cell as PlainCell


def metric(cells: list[Cell], mode: str = "ratio") -> Metric:
    return Metric("accuracy", combine(cells, mode), len(cells), mode, tuple(cells))  # type: ignore[arg-type]


def answers(right: list[float], strata: list[str] | None = None, clusters: list[str] | None = None) -> list[Cell]:
    strata, clusters = strata or [""] * len(right), clusters or [str(n) for n in range(len(right))]
    return [Cell(*row, 1.0) for row in zip(strata, clusters, right, strict=True)]


@pytest.mark.system
def test_two_hundred_random_tables_agree_with_a_second_implementation() -> None:
    rng, equal = np.random.default_rng(0), 0
    for _ in range(200):
        n, selected = int(rng.integers(30, 400)), rng.uniform(0.5, 1)
        a = rng.random(n) < rng.uniform(0.2, 0.95)
        b = np.where(rng.random(n) < selected, a, rng.random(n) < a.mean())
        macro = rng.random() < 0.5
        strata = [f"task {number % 3}" if macro else "" for number in range(n)]
        clusters = [str(number // int(rng.integers(1, 3))) for number in range(n)]
        margin = float(rng.uniform(0.02, 0.2))
        sides = [answers(side.astype(float).tolist(), strata, clusters) for side in (a, b)]
        text = "mean_of_ratios" if macro else "ratio"
        result = equivalence(*(metric(side, text) for side in sides), margin)
        if len(set(clusters)) < 30 or result.interval is None:
            continue
        plain = [[PlainCell(cell.stratum, cell.cluster, cell.numerator) for cell in side] for side in sides]
        word = "macro" if macro else "ratio"
        assert (result.interval.low, result.interval.high) == pytest.approx(ninety(word, *plain))
        assert result.p_value == pytest.approx(tost(word, *plain, margin), abs=1e-9)
        assert result.equal == (result.p_value < 0.05)
        equal += result.equal
    assert 40 < equal < 160, "tables on both sides of the margin"


@pytest.mark.system
@pytest.mark.parametrize("truth", [-0.1, 0.1])
@pytest.mark.parametrize(("sizes", "discordant"), [((120,), 0.2), ((40, 40, 40), 0.3), ((300, 60), 0.15)])
def test_a_difference_of_the_margin_is_called_equal_in_at_most_one_of_twenty(
    sizes: tuple[int, ...], discordant: float, truth: float
) -> None:
    rng, errors = np.random.default_rng([int(100 * discordant), *sizes]), 0
    strata = [str(task) for task, size in enumerate(sizes) for _ in range(size)]
    text = "mean_of_ratios" if len(sizes) > 1 else "ratio"
    for _ in range(400):
        draws = rng.random(len(strata))
        up, pair = (discordant + truth) / 2, rng.random(len(strata)) < 0.5
        better, worse = draws < up, (draws >= up) & (draws < discordant)
        sides = [
            metric(answers((side | (pair & ~other)).astype(float).tolist(), strata), text)
            for side, other in ((worse, better), (better, worse))
        ]
        errors += equivalence(*sides, abs(truth)).equal
    # In 400 draws with an error rate of 5 %, more than 33 errors have a probability of 1 in 250.
    assert errors <= 33


def test_the_margin_decides_and_no_difference_of_few_is_not_equality() -> None:
    same = metric(answers([1.0, 0.0] * 100))
    assert equivalence(same, same, 0.05).equal
    few = metric(answers([1.0, 0.0] * 5))
    result = equivalence(few, few, 0.05)
    assert (result.difference, result.equal, result.beyond) == (0.0, False, False)
    other = metric(answers([1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0] * 25))
    assert equivalence(same, other, 0.05).beyond
    assert not equivalence(same, other, 0.25).beyond


def test_a_significant_difference_may_be_equal_within_the_margin() -> None:
    a = metric(answers([1.0] * 500 + [0.0] * 500))
    b = metric(answers([1.0] * 520 + [0.0] * 480))
    assert (contrast(a, b).p_value or 1) < 0.05
    assert equivalence(a, b, 0.05).equal


def test_what_is_refused() -> None:
    same = metric(answers([1.0, 0.0] * 20))
    for margin in (0.0, -0.1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="--margin"):
            equivalence(same, same, margin)
    with pytest.raises(ValueError, match="level"):
        equivalence(same, same, 0.1, level=0.5)
    assert equivalence(metric(answers([1.0])), metric(answers([1.0])), 0.1).interval is None
