"""The simulation behind docs/statistics.md: its draws have the shares and correlation that its tables name."""

import json

import numpy as np
import pytest

from bench import _grouped as grouped
from bench import coverage as bench
from hybrid.stats import Interval


@pytest.mark.parametrize("icc", [0.0, 0.3, 0.8])
def test_rows_of_a_question_have_the_named_share_and_correlation(icc: float):
    design = bench.Design("two tasks", (4000, 4000), "2", icc)
    rng = np.random.default_rng(3)
    sizes = design.sizes(rng)
    right = bench.drawn(rng, design, sizes, np.array([[0.7, 0.3], [0.2, 0.8]]))[:, 0]
    assert set(sizes) == {2}
    for place, share in enumerate((0.7, 0.2)):
        members = right[4000 * place : 4000 * (place + 1)]
        assert members.mean() / 2 == pytest.approx(share, abs=0.02)
        # Var(x1 + x2) = 2 p (1 - p) (1 + icc)
        assert members.var() / (2 * share * (1 - share)) - 1 == pytest.approx(icc, abs=0.06)


def test_sizes_are_those_that_the_design_names():
    rng = np.random.default_rng(0)
    ranges = {rows: bench.Design("", (2000,), rows).sizes(rng) for rows in ("1", "2", "3-5", "unequal")}
    assert {rows: (sizes.min(), sizes.max()) for rows, sizes in ranges.items()} == {
        "1": (1, 1),
        "2": (2, 2),
        "3-5": (3, 5),
        "unequal": (1, 20),
    }
    assert ranges["unequal"].mean() == pytest.approx(5, abs=0.4)


def test_a_metric_has_one_cell_for_each_question_in_its_stratum():
    design = bench.Design("", (1, 2))
    made = bench.metric(design, np.array([1.0, 0.0, 1.0]), np.array([1, 1, 2]))
    assert [(cell.stratum, cell.numerator, cell.denominator) for cell in made.cells] == [
        ("t0", 1, 1),
        ("t1", 0, 1),
        ("t1", 1, 2),
    ]
    assert made.value == pytest.approx((1 + 1 / 3) / 2)
    assert bench.metric(bench.Design("", (3,)), np.ones(3), np.ones(3, dtype=np.int64)).combine == "ratio"


def test_a_missing_interval_counts_as_not_covering():
    design = bench.Design("d", (3,))
    found = bench.summed("t", design, "s", 0.5, [Interval(0.4, 0.6, ""), Interval(0.6, 0.8, ""), None, None], None)
    assert (found.coverage, found.missing) == (0.25, 0.5)
    assert found.width == pytest.approx(0.2)


def test_truths_are_those_of_the_draws():
    design = bench.MACRO["macro 400/30/30"]
    null = next(pair for pair in bench.pairs(bench.Design("", design)) if pair.name == "macro equal, strata not")
    rng = np.random.default_rng(1)
    found, by_mcnemar = bench.of_pairs("t", bench.Design("", design), null, rng, 40)
    assert found.truth == pytest.approx(0)
    assert found.rejected is not None
    assert found.rejected < 0.2
    assert by_mcnemar > 0.9
    abstaining = bench.IntervalPair("", (0.3,), (0.1,), 0.3)
    (plain, _) = bench.of_pairs("t", bench.Design("", (50,)), abstaining, rng, 40)
    # Of the rows that are not abstained on, b gains 0.2; on the others b is right in 0.3 + 0.7 * 0.6, a has chance.
    assert plain.truth == pytest.approx(0.7 * 0.2 + 0.3 * (0.3 + 0.7 * 0.6 - 0.25))
    alone = bench.of_shares("t", bench.Design("", (30,)), (0.7,), rng, 40, abstained=0.3)
    assert alone.truth == pytest.approx(0.7 * 0.7 + 0.3 * 0.25)
    assert alone.coverage > 0.8


def test_errors_have_the_moments_that_they_name():
    rng = np.random.default_rng(2)
    for errors in bench.ERRORS:
        drawn = errors.draw(rng, 400_000)
        assert (drawn.mean(), (drawn**2).mean()) == pytest.approx((errors.true_mean, errors.true_square), rel=0.02)


def test_every_design_is_measured_and_printed(capsys: pytest.CaptureFixture[str]):
    bench.main(["--simulations", "1", "--json"])
    measured = json.loads(capsys.readouterr().out)
    tables = {one["table"] for one in measured}
    assert tables == {"intervals", "intervals, 0.3 abstained", "differences", "errors"}
    names = {design.name for design in bench.designs()}
    assert {one["design"] for one in measured} == names
    lines = bench.printed([bench.Measured(**one) for one in measured])
    assert sum(line.startswith("|") for line in lines) == 2 * 4 + 3 * len(bench.designs()) + len(bench.CLUSTERS)


def test_a_table_has_a_row_for_each_design_and_a_column_for_each_setting():
    two = [
        bench.Measured("t", "5 clusters", "1", 0.3, "p 0.5", 0.5, 0.95, 0.4567, 0.0),
        bench.Measured("t", "5 clusters", "1", 0.3, "p 0.8", 0.8, 0.9, 0.4, 0.0, 0.05),
    ]
    assert bench.printed(two) == [
        "",
        "**t**",
        "",
        "| questions | rows | icc | p 0.5 | p 0.8 |",
        "|---|---|---|---|---|",
        "| 5 clusters | 1 | 0.3 | 0.950 (0.46) | 0.900 (0.40) 0.050 |",
    ]


def test_grouped_truths_are_those_of_the_draws():
    rng = np.random.default_rng(4)
    for kind in grouped.kinds():
        truths = kind.truths(kind.gain)
        found = kind.draw(rng, 1000, kind.gain)
        assert set(found) == set(truths)
        for name, (a, b) in found.items():
            assert a.value is not None
            assert b.value is not None
            assert b.value - a.value == pytest.approx(truths[name], abs=0.06), (kind.setting, name)
            assert len({cell.cluster for cell in a.cells}) == 1000


def test_the_grouped_metrics_count_what_the_tests_say(capsys: pytest.CaptureFixture[str]):
    bench.main(["--grouped", "--simulations", "2", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert {row["clusters"] for row in rows} == set(grouped.CLUSTERS)
    assert len(rows) == len(grouped.CLUSTERS) * sum(len(kind.truths(kind.gain)) for kind in grouped.kinds())
    assert len(grouped.printed([grouped.Grouped(**row) for row in rows])) == 2 + len(rows)
    a, b = (bench.metric(bench.Design("", (40,)), np.full(40, worth), np.ones(40, dtype=np.int64)) for worth in (0, 1))
    found = grouped.measured("m", 40, "s", 1.0, [(a, b), (a, b), (a, a), (b, a)])
    assert (found.coverage, found.linearised, found.randomised) == (0.5, 0.75, 0.75)
