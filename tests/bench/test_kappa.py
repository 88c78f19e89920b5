"""The simulation behind the coverage of kappa: its draws have the kappa that its tables name."""

import json

import numpy as np
import pytest

from bench import kappa as bench
from bench.coverage import Design
from hybrid.stats.kappa import kappa


@pytest.mark.parametrize("shares", bench.RIGHT)
@pytest.mark.parametrize("truth", bench.TRUTHS)
def test_the_joint_shares_have_their_margins_and_their_kappa(shares: tuple[float, float], truth: float):
    both, first, second, neither = bench.joint(*shares, truth)
    assert (both + first, both + second, both + first + second + neither) == pytest.approx((*shares, 1))
    by_chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
    assert (both + neither - by_chance) / (1 - by_chance) == pytest.approx(truth)


def test_a_kappa_that_no_two_solvers_can_have_is_refused():
    with pytest.raises(ValueError, match=r"right in 0\.9 and 0\.95 have kappa 0\.9"):
        bench.joint(0.9, 0.95, 0.9)


@pytest.mark.parametrize(("rows", "icc"), bench.ROWS)
def test_draws_have_the_named_shares_tasks_and_kappa(rows: str, icc: float):
    design = Design("", (3000, 6000), rows, icc)
    kinds = np.stack([bench.joint(0.9, 0.8, 0.0), bench.joint(0.6, 0.7, 0.6)])
    drawn = list(zip(*bench.rows_of(np.random.default_rng(1), design, kinds), strict=True))
    assert len({question for _, _, question, _ in drawn}) == 9000
    for task, (right_a, right_b, truth) in {"t0": (0.9, 0.8, 0.0), "t1": (0.6, 0.7, 0.6)}.items():
        a, b, questions, _ = zip(*[row for row in drawn if row[3] == task], strict=True)
        assert (np.mean(a), np.mean(b)) == pytest.approx((right_a, right_b), abs=0.02)
        assert kappa(a, b, questions).value == pytest.approx(truth, abs=0.05)


def test_every_entry_is_measured_and_printed(capsys: pytest.CaptureFixture[str]):
    bench.main(["--simulations", "2", "--json"])
    found = [bench.Measured(**one) for one in json.loads(capsys.readouterr().out)]
    designs = len(bench.CLUSTERS) * len(bench.ROWS)
    assert len(found) == designs * (len(bench.RIGHT) * len(bench.TRUTHS) + 1)
    assert sum(line.startswith("|") for line in bench.printed(found)) == 2 + designs + 2 + len(bench.CLUSTERS)
