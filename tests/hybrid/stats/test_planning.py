"""Numbers of questions and differences are planned with the test of the comparison, for given tasks and clusters."""

from collections.abc import Iterator

import numpy as np
import pytest

from bench.sentences import pair
from hybrid.core.errors import UsageError
from hybrid.core.types import Cell, Metric
from hybrid.stats import (
    Design,
    contrast,
    detectable,
    detectable_difference,
    measured_design,
    planning,
    power_of,
    sample_size,
)
from hybrid.stats.planning import has_power
from tests.tables import cases

ONE = Design.of((1,))


@pytest.mark.system
@pytest.mark.parametrize(
    ("difference", "discordant", "questions"),
    # Values from Connor's formula; the last two (23 and 155, as calculators print them) are small enough to simulate.
    [(0.05, None, 1254), (0.05, 0.18, 563), (0.4, 0.5, 23), (0.15, 0.45, 155)],
)
def test_of_one_task_it_is_connor_s_number(difference: float, discordant: float | None, questions: int) -> None:
    assert sample_size(ONE, difference, discordant).questions == pytest.approx(questions, rel=0.08)


@pytest.mark.system
@pytest.mark.parametrize(*cases(__file__, "test_what_is_planned_is_found_as_often_as_claimed"))
def test_what_is_planned_is_found_as_often_as_claimed(sizes: tuple[int, ...], rows: int, discordant: float) -> None:
    least, rng = detectable_difference(Design.of(sizes, rows), discordant), np.random.default_rng(7)
    p_values = [contrast(*pair(rng, sizes, discordant, least, rows)).p_value for _ in range(600)]
    assert np.mean([p is not None and p < 0.05 for p in p_values]) == pytest.approx(0.8, abs=0.05)


@pytest.mark.system
def test_a_size_is_planned_in_the_proportions_given_and_suffices() -> None:
    planned = sample_size(Design.of((120, 60, 20)), 0.1, 0.2)
    sizes = [len(task) for task in planned.tasks]
    assert sizes[0] == pytest.approx(6 * sizes[2], abs=6)
    assert power_of(planned, 0.1, 0.2) >= 0.8
    assert power_of(planned.scaled(planned.clusters * 3 // 4), 0.1, 0.2) < 0.8


@pytest.mark.system
def test_rows_alike_are_worth_one_question_and_a_mean_over_unequal_tasks_less_than_all_rows() -> None:
    assert detectable_difference(Design.of((200,), 5), 0.4) == detectable_difference(Design.of((40,)), 0.4)
    by_task, plain = (
        detectable_difference(Design(Design.of((120, 60, 20)).tasks, macro), 0.2) for macro in (True, False)
    )
    assert by_task > 1.2 * plain


@pytest.mark.system
def test_a_power_is_compared_as_if_all_answers_were_simulated() -> None:
    design = Design.of((12, 8))
    for difference in (0.1, 0.3, 0.5, 0.6):
        power = power_of(design, difference, 0.6, draws=40)
        # A least power that equals the power counts as reached; the last draw decides this at the latest.
        for least in (0.01, power - 0.02, power, power + 0.001, power + 0.02, 0.99):
            assert has_power(design, difference, 0.6, least, draws=40) is (power >= least)


def test_no_answer_is_simulated_after_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[bool] = []

    def detections(found: bool) -> Iterator[bool]:
        while True:
            simulated.append(found)
            yield found

    for is_found, count in ((True, 32), (False, 9)):
        monkeypatch.setattr(planning, "_detections", lambda *_, found=is_found: detections(found))
        # Not the cached function, which would keep these results for other tests.
        assert has_power.__wrapped__(Design.of((5, 4)), 0.5 + is_found / 10, 0.6, 0.8, draws=40) is is_found
        assert len(simulated) == count
        simulated.clear()


def test_a_design_is_measured_of_two_solvers() -> None:
    design, share = measured_design(*pair(np.random.default_rng(0), (600, 300), 0.2, 0.1, 3))
    assert [len(task) for task in design.tasks] == [200, 100]
    assert set(design.tasks[0]) == {3.0}
    assert share == pytest.approx(0.2, abs=0.06)


@pytest.mark.parametrize(*cases(__file__, "test_what_cannot_be_planned_is_refused"))
def test_what_cannot_be_planned_is_refused(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sample_size(ONE, *arguments)


@pytest.mark.parametrize("sizes", [(5,), (20,), (200, 2, 2)])
def test_too_few_or_too_unequal_questions_show_nothing(sizes: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=f"{sum(sizes)} questions at 0.20 discordant: too few"):
        detectable_difference(Design.of(sizes), 0.2)


def similarities(values: np.ndarray) -> Metric:
    cells = tuple(Cell("", f"q{n:03}", float(value), 1.0) for n, value in enumerate(values))
    return Metric("m_dir.q9", float(values.mean()), len(values), "ratio", cells, share=True)


def test_scores_that_differ_little_detect_smaller_differences_than_right_and_wrong() -> None:
    # Differences with a standard deviation of 0.15: 80 % power is at about 2.8 standard errors, 0.077.
    rng = np.random.default_rng(1)
    values = np.clip(rng.normal(0.7, 0.12, 30), 0, 1)
    size = detectable(similarities(values), similarities(np.clip(values + rng.normal(0.03, 0.15, 30), 0, 1)))
    assert size is not None
    assert 0.06 < size < 0.11


def test_differences_of_half_a_point_each_scale_the_detectable_difference() -> None:
    right = np.repeat([1.0, 0.0], [10, 25])
    whole, half = (detectable(similarities(0 * right), similarities(worth * right)) for worth in (1.0, 0.5))
    assert whole is not None
    assert half == pytest.approx(whole / 2, rel=0.05)
