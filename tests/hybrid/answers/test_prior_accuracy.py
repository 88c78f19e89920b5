"""Prior accuracy of an MLLM that was not measured, and accuracy of a guess: by route, or by kind if the route has no
row."""

import math
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.prior_accuracy import ABOVE_CHANCE, PriorAccuracy, chance
from hybrid.core.types import Kind, Prompt
from hybrid.plugins.registry import load
from hybrid.scoring.published import published
from tests.tables import cases

PRIOR_ACCURACY = PriorAccuracy({"sure": 0.8, "poor": 0.3, "eyes": 0.4}, {"eyes": 0.6})


def make_prompt(route: str, kind: Kind = Kind.CHOICE, choices: int = 2) -> Prompt:
    return Prompt(("?",), kind, tuple(str(number) for number in range(choices)), route=route)


def test_the_share_above_chance_is_the_mean_over_tasks() -> None:
    cells = [row for row in published("blink") if (row.source, row.split, row.kind) == ("Table 1", "test", "chance")]
    guessed = {row.metric: row.value / 100 for row in cells}
    accuracy = load("hybrid.benchmarks", "blink").card.prior_accuracy.accuracy
    shares = [(value - guessed[task]) / (1 - guessed[task]) for task, value in accuracy.items()]
    assert mean(shares) == pytest.approx(ABOVE_CHANCE, abs=5e-4)


@pytest.mark.parametrize(*cases(__file__, "test_what_a_guess_is_worth", kind=Kind))
def test_what_a_guess_is_worth(kind: Kind, choices: int, expected: float) -> None:
    prompt = make_prompt("eyes", kind, choices)
    assert chance(prompt) == PRIOR_ACCURACY.guess(prompt) == pytest.approx(expected)


def test_a_guess_at_a_scanpath_is_worth_what_its_route_says() -> None:
    assert PRIOR_ACCURACY.guess(make_prompt("eyes", Kind.SCANPATH, 0)) == 0.6
    assert PRIOR_ACCURACY.guess(make_prompt("sure", Kind.SCANPATH, 0)) == 0.1


def test_a_route_has_its_own_mean_and_others_a_share_above_chance() -> None:
    assert PRIOR_ACCURACY.usual(make_prompt("sure")) == 0.8
    assert PRIOR_ACCURACY.usual(make_prompt("elsewhere", choices=4)) == pytest.approx(0.25 + 0.75 * ABOVE_CHANCE)
    # A published mean below a guess is raised to the guess for a choice, and unchanged for a scanpath.
    assert PRIOR_ACCURACY.usual(make_prompt("poor")) == 0.5
    assert PRIOR_ACCURACY.usual(make_prompt("eyes", Kind.SCANPATH, 0)) == 0.4


@given(
    st.floats(0, 0.99),
    st.sampled_from(["here", "elsewhere"]),
    st.sampled_from([Kind.CHOICE, Kind.ORDER]),
    st.integers(2, 9),
)
def test_an_unmeasured_model_is_no_worse_than_a_guess_and_not_certain(
    accuracy: float, route: str, kind: Kind, choices: int
) -> None:
    prompt, prior_accuracy = make_prompt(route, kind, choices), PriorAccuracy({"here": accuracy})
    assert chance(prompt) <= prior_accuracy.usual(prompt) < 1
    assert not math.isnan(prior_accuracy.usual(prompt))
