"""The arbiter's rule next to simpler ones, out of fold, on simulated tools of which the truth is known."""

from collections.abc import Sequence
from statistics import mean

import pytest

from bench._rivals import RULES, Duel, out_of_fold, simulated
from hybrid.solving.answer_confidence import AnswerConfidence


def reached(kind: str, skills: str = "either", size: int = 60) -> dict[str, float]:
    """By rule the mean over a few draws."""
    drawn = [out_of_fold(simulated(skills, kind, size, 0.0, seed)) for seed in range(4)]
    return {rule: mean(one[rule] for one in drawn) for rule in drawn[0]}


@pytest.mark.parametrize("kind", ["honest", "overstates", "understates"])
def test_where_confidence_tells_something_it_is_above_the_better_of_the_two(kind: str) -> None:
    found = reached(kind)
    assert found["arbiter"] > found["better by task"] + 0.02
    assert found["arbiter"] > found["logistic"] - 0.01


@pytest.mark.parametrize("kind", ["noise", "says nothing"])
def test_where_it_tells_nothing_it_is_as_good_as_the_better_of_the_two(kind: str) -> None:
    found = reached(kind)
    assert found["arbiter"] > found["better by task"] - 0.012


def always(tool: bool, count: int) -> Sequence[Duel]:
    """A tool that is always right, or always wrong, where the MLLM is the reverse."""
    return [Duel(f"q{n}", "one", float(tool), float(not tool), AnswerConfidence(0.5, 0.7), 0.6) for n in range(count)]


@pytest.mark.parametrize("tool", [True, False])
def test_whoever_is_always_right_is_followed_by_all_that_count(tool: bool) -> None:
    found = out_of_fold(always(tool, 40))
    assert {name: found[name] for name in RULES if name not in ("specialist", "no trust file")} == {
        "better by task": 1.0,
        "logistic": 1.0,
        "arbiter": 1.0,
    }
    assert (found["specialist"], found["better part"]) == (float(tool), 1.0)
