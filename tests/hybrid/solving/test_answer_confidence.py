"""Log-odds of an answer: what is known of its giver, what that says of it, and what holds for any numbers."""

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


def test_no_log_odds_are_too_large() -> None:
    assert (probability(-9999.0), probability(9999.0)) == (0.0, 1.0)


def test_what_is_said_is_pulled_half_way_to_what_is_known() -> None:
    # ln 3 known, ln 9 said: their mean, ln 27 / 2, are odds of the square root of 27.
    answer_confidence = AnswerConfidence(rate=3 / 4, said=9 / 10)
    assert answer_confidence.log_odds == pytest.approx(math.log(27) / 2)
    assert answer_confidence.worth == pytest.approx(math.sqrt(27) / (1 + math.sqrt(27)))
    assert AnswerConfidence(0.7).worth == pytest.approx(0.7)


def test_what_was_measured_is_held_against_what_is_usually_said() -> None:
    # It says 9/10 where it says odds of 3 as a rule: one ln 3 more, of which a fifth counts.
    found = AnswerConfidence(rate=1 / 2, said=9 / 10, usually=math.log(3), slope=0.2)
    assert found.log_odds == pytest.approx(0.2 * math.log(3))
    assert AnswerConfidence(1 / 2, 3 / 4, math.log(3), 0.2).worth == pytest.approx(1 / 2)
    told = found.as_json()
    assert (told["rate"], told["said"], told["usually"], told["slope"]) == (0.5, 0.9, math.log(3), 0.2)
    assert told["worth"] == pytest.approx(probability(0.2 * math.log(3)))


@given(rate=CHANCES, low=CHANCES, high=CHANCES, usually=st.none() | st.floats(-9, 9), slope=st.floats(0, 3))
def test_more_confidence_never_means_less(
    rate: float, low: float, high: float, usually: float | None, slope: float
) -> None:
    one, other = (AnswerConfidence(rate, said, usually, slope).log_odds for said in sorted((low, high)))
    assert one <= other + 1e-9


@given(rate=CHANCES, said=CHANCES)
def test_a_worth_lies_between_what_is_known_and_what_is_said(rate: float, said: float) -> None:
    low, high = sorted((rate, said))
    assert low - CERTAIN <= AnswerConfidence(rate, said).worth <= high + CERTAIN
