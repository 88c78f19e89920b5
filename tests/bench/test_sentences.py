"""What conclusions assert of drawn runs is read from their words; the difference with 80 % power is found so often."""

import numpy as np
import pytest

from bench import sentences as bench
from hybrid.scoring.conclusion import Sentence
from hybrid.stats import contrast, detectable


def test_claims_are_read_from_case_and_words() -> None:
    said = [
        Sentence("gain.more", "Accuracy is 0.740 with tools ..."),
        Sentence("content.shared", "Of the 24 points, 20 come with blank tools already; what the tools say adds 4."),
        Sentence("tasks.shown", "After adjustment (Holm) over 2 tasks: worse on Counting (-40 points, -57 to -24)."),
    ]
    assert bench.claims(said) == {"gain", "presence adds", "what the tools say adds", "a task is worse"}
    assert bench.claims([Sentence("content.parts", "That what the tools say makes a difference is not shown")]) == set()


def test_a_draw_of_each_arm_asserts_what_is_true() -> None:
    for design in bench.ARMS[:3]:
        found, true = bench.asserted(design, 3), bench.is_true(design)
        assert found
        assert all(true[claim] for claim in found), (design.name, found)


@pytest.mark.parametrize("sizes", [(120, 60, 20), (12,) * 5, (10,), (20,)])
def test_a_difference_of_80_percent_power_is_found_about_so_often(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    least = float(np.median([detectable(*bench.pair(rng, sizes, 0.4, 0.0)) or 1.0 for _ in range(20)]))
    p_values = [contrast(*bench.pair(rng, sizes, max(0.4, least), least)).p_value for _ in range(150)]
    assert 0.7 <= np.mean([p is not None and p < 0.05 for p in p_values]) <= 0.95


@pytest.mark.parametrize(
    ("sizes", "none"), [((4,), True), ((5,), True), ((6,), False), ((3, 2), True), ((3, 3), False)]
)
def test_fewer_than_six_questions_cannot_show_any_difference(sizes: tuple[int, ...], *, none: bool) -> None:
    draws = [bench.pair(np.random.default_rng(seed), sizes, 0.4, 0.0) for seed in range(20)]
    assert {detectable(*one) is None for one in draws} == {none}


def test_a_task_of_one_question_hides_what_a_hundred_show() -> None:
    rng = np.random.default_rng(0)
    alone, beside = (detectable(*bench.pair(rng, sizes, 0.3, 0.0)) for sizes in ((100,), (100, 1)))
    assert alone is not None
    assert alone < 0.2
    assert beside is None or beside > 0.6
