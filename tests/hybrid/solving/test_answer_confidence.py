"""Log-odds of a witness: what it claims, what real cases make of it, and what holds for any numbers."""

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hybrid.solving.answer_confidence import (
    AS_CLAIMED,
    CERTAIN,
    SPREAD,
    AnswerConfidence,
    Recalibration,
    fit,
    log_odds,
    probability,
)

CHANCES = st.floats(0, 1)
CASES = st.lists(st.tuples(st.floats(-9, 9), st.sampled_from([0.0, 0.3, 1.0])), max_size=30)


@pytest.mark.parametrize(("chance", "odds"), [(0.5, 0.0), (0.75, math.log(3)), (0.2, -math.log(4))])
def test_log_odds_by_hand(chance: float, odds: float) -> None:
    assert log_odds(chance) == pytest.approx(odds)
    assert probability(odds) == pytest.approx(chance)


@given(CHANCES)
def test_log_odds_and_probability_undo_each_other_but_for_certainty(chance: float) -> None:
    assert probability(log_odds(chance)) == pytest.approx(min(max(chance, CERTAIN), 1 - CERTAIN))


def test_no_log_odds_are_too_large() -> None:
    assert (probability(-9999.0), probability(9999.0)) == (0.0, 1.0)


def test_what_is_said_is_pulled_half_way_to_what_is_known() -> None:
    # ln 3 known, ln 9 said: their mean, ln 27 / 2, are odds of the square root of 27.
    answer_confidence = AnswerConfidence(rate=3 / 4, said=9 / 10)
    assert answer_confidence.claimed == pytest.approx(math.log(27) / 2)
    assert answer_confidence.worth == pytest.approx(math.sqrt(27) / (1 + math.sqrt(27)))
    assert AnswerConfidence(0.7).worth == pytest.approx(0.7)


def test_a_recalibration_is_an_intercept_and_a_slope() -> None:
    answer_confidence = AnswerConfidence(0.5, 0.9, Recalibration(intercept=0.25, slope=2.0))
    assert answer_confidence.log_odds == pytest.approx(0.25 + 2 * answer_confidence.claimed)
    assert AS_CLAIMED(1.7) == 1.7


@given(rate=CHANCES, low=CHANCES, high=CHANCES, cases=CASES)
def test_more_confidence_never_means_less(
    rate: float, low: float, high: float, cases: list[tuple[float, float]]
) -> None:
    low, high = sorted((low, high))
    found = fit(cases)
    assert found.slope >= 0
    assert AnswerConfidence(rate, low, found).log_odds <= AnswerConfidence(rate, high, found).log_odds + 1e-9


@given(rate=CHANCES, said=CHANCES)
def test_a_worth_lies_between_what_is_known_and_what_is_said(rate: float, said: float) -> None:
    low, high = sorted((rate, said))
    assert low - CERTAIN <= AnswerConfidence(rate, said).worth <= high + CERTAIN


def test_without_a_case_nothing_is_corrected() -> None:
    assert fit([]) == AS_CLAIMED


def height(at: Recalibration, cases: list[tuple[float, float]]) -> float:
    """The penalised likelihood that `fit` maximises, written as its docstring has it."""
    told = -(at.intercept**2 + (at.slope - 1) ** 2) / (2 * SPREAD**2)
    for x, score in cases:
        p = 1 / (1 + math.exp(-at(x)))
        told += score * math.log(p) + (1 - score) * math.log(1 - p)
    return told


@given(CASES, st.floats(-1, 1), st.floats(-1, 1))
@example([(-9.0, 1.0), (9.0, 0.0)] * 15, 0.1, 0.1)
def test_no_other_line_fits_the_cases_better(cases: list[tuple[float, float]], up: float, steeper: float) -> None:
    found = fit(cases)
    other = Recalibration(found.intercept + up, max(0.0, found.slope + steeper))
    assert height(other, cases) <= height(found, cases) + 1e-7


def test_more_confident_and_more_often_wrong_is_no_slope_at_all() -> None:
    found = fit([(-2.0, 1.0)] * 30 + [(2.0, 0.0)] * 30 + [(2.0, 1.0)] * 6)
    assert found.slope == 0
    # 36 of 66 right, pulled to one half.
    assert 0 < found.intercept < math.log(36 / 30)


def test_few_cases_change_little_and_many_are_followed() -> None:
    x = log_odds(0.8)
    wrong = fit([(x, 0.0)] * 2)
    assert 0.6 < probability(wrong(x)) < 0.8
    draw = random.Random(0)
    cases = [(z, float(draw.random() < probability(0.7 + 0.5 * z))) for z in (draw.gauss(0, 2) for _ in range(3000))]
    found = fit(cases)
    assert (found.intercept, found.slope) == (pytest.approx(0.7, abs=0.1), pytest.approx(0.5, abs=0.1))


@given(CASES, st.randoms(use_true_random=False))
def test_the_order_of_cases_decides_nothing(cases: list[tuple[float, float]], shuffle: random.Random) -> None:
    other = list(cases)
    shuffle.shuffle(other)
    a, b = fit(cases), fit(other)
    assert (a.intercept, a.slope) == (pytest.approx(b.intercept, abs=1e-6), pytest.approx(b.slope, abs=1e-6))


def test_every_number_is_told() -> None:
    answer_confidence = AnswerConfidence(0.6, 0.9, Recalibration(0.1, 0.8))
    told = answer_confidence.as_json()
    assert (told["rate"], told["said"], told["intercept"], told["slope"]) == (0.6, 0.9, 0.1, 0.8)
    odds = [math.log(p / (1 - p)) for p in (0.6, 0.9)]
    assert told["log_odds_claimed"] == pytest.approx(sum(odds) / 2)
    assert told["worth"] == pytest.approx(1 / (1 + math.exp(-(0.1 + 0.8 * sum(odds) / 2))))
