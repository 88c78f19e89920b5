"""Tests of the simulation of kappa's coverage: the draws have the kappa that the tables state."""

import json

import pytest

from bench import kappa as bench


def test_a_kappa_that_no_two_solvers_can_have_is_refused():
    with pytest.raises(ValueError, match=r"right in 0\.9 and 0\.95 have kappa 0\.9"):
        bench.joint(0.9, 0.95, 0.9)


def test_every_entry_is_measured_and_printed(capsys: pytest.CaptureFixture[str]):
    bench.main(["--simulations", "2", "--json"])
    measureds = [bench.Measured(**load) for load in json.loads(capsys.readouterr().out)]
    designs = len(bench.CLUSTERS) * len(bench.ROWS)
    assert len(measureds) == designs * (len(bench.RIGHT) * len(bench.TRUTHS) + 1)
    assert sum(line.startswith("|") for line in bench.printed(measureds)) == 2 + designs + 2 + len(bench.CLUSTERS)
