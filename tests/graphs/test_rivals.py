"""The arbiter's rule next to simpler ones, out of fold, on simulated tools of which the truth is known."""

from statistics import mean

import pytest

from bench.arbiter import out_of_fold, simulated


def reached(kind: str, skills: str = "either", size: int = 60) -> dict[str, float]:
    """By rule the mean over a few draws."""
    drawn = [out_of_fold(simulated(skills, kind, size, 0.0, seed)) for seed in range(4)]
    return {rule: mean(one[rule] for one in drawn) for rule in drawn[0]}


@pytest.mark.parametrize("kind", ["noise", "says nothing"])
def test_where_it_tells_nothing_it_is_as_good_as_the_better_of_the_two(kind: str) -> None:
    found = reached(kind)
    assert found["arbiter"] > found["better by task"] - 0.012
