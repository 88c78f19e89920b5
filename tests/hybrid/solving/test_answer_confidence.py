"""Log-odds of an answer: cases with known results, and properties that hold for all numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.solving.answer_confidence import CERTAIN, AnswerConfidence, log_odds, probability

CHANCES = st.floats(0, 1)


@pytest.mark.parametrize(("chance", "odds"), [(0.5, 0.0), (0.75, math.log(3)), (0.2, -math.log(4))])
def test_log_odds_by_hand(chance: float, odds: float) -> None:
    assert log_odds(chance) == pytest.approx(odds)
    assert probability(odds) == pytest.approx(chance)


@given(CHANCES)
def test_log_odds_and_probability_undo_each_other_but_for_certainty(chance: float) -> None:
    assert probability(log_odds(chance)) == pytest.approx(min(max(chance, CERTAIN), 1 - CERTAIN))


@given(rate=CHANCES, low=CHANCES, high=CHANCES, usually=st.none() | st.floats(-9, 9), slope=st.floats(0, 3))
def test_more_confidence_never_means_less(
    rate: float, low: float, high: float, usually: float | None, slope: float
) -> None:
    item, other = (AnswerConfidence(rate, text, usually, slope).log_odds for text in sorted((low, high)))
    assert item <= other + 1e-9


@given(rate=CHANCES, value=CHANCES)
def test_a_worth_lies_between_what_is_known_and_what_is_said(rate: float, value: float) -> None:
    low, high = sorted((rate, value))
    assert low - CERTAIN <= AnswerConfidence(rate, value).worth <= high + CERTAIN
