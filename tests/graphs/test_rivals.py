"""The arbiter's rule compared with simpler rules, out of fold, on simulated tools and models with known answers."""

from statistics import mean

import pytest

from bench.arbiter import out_of_fold, simulated


@pytest.mark.parametrize("kind", ["noise", "says nothing"])
def test_where_it_tells_nothing_it_is_as_good_as_the_better_of_the_two(kind: str) -> None:
    values = [out_of_fold(simulated("either", kind, 60, 0.0, seed)) for seed in range(4)]
    reached = {rule: mean(right for item in values for right in item[rule]) for rule in ("arbiter", "better by task")}
    assert reached["arbiter"] > reached["better by task"] - 0.012
