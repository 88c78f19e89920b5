"""What an unmeasured MLLM is credited with: the means of the published rows that it names, and of no others."""

import math
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.registry import load
from hybrid.scoring.published import Published, published
from hybrid.solving.published_skill import (
    ABOVE_CHANCE,
    BLINK,
    BLINK_MODELS,
    GUESSED_PATH,
    HVSBENCH,
    HVSBENCH_FIELDS,
    chance,
    usual_skill,
)
from hybrid.types import Kind, Prompt


def rows(benchmark: str, source: str, kind: str) -> list[Published]:
    """The printed cells of one table on the test split."""
    return [one for one in published(benchmark) if (one.source, one.split, one.kind) == (source, "test", kind)]


def asked(route: str, kind: Kind = Kind.CHOICE, choices: int = 2) -> Prompt:
    return Prompt(("?",), kind, tuple(str(number) for number in range(choices)), route=route)


def test_blinks_means_are_those_of_its_test_split() -> None:
    models = [row for row in rows("blink", "Table 1", "model") if row.who in BLINK_MODELS]
    assert {row.who for row in models} == set(BLINK_MODELS)
    tasks = {row.metric for row in models} - {"accuracy_macro"}
    means = {task: mean(row.value / 100 for row in models if row.metric == task) for task in tasks}
    assert means == pytest.approx(BLINK, abs=5e-5)


def test_the_share_above_chance_is_the_mean_over_tasks() -> None:
    guessed = {row.metric: row.value / 100 for row in rows("blink", "Table 1", "chance")}
    shares = [(value - guessed[task]) / (1 - guessed[task]) for task, value in BLINK.items()]
    assert mean(shares) == pytest.approx(ABOVE_CHANCE, abs=5e-4)


def test_hvsbenchs_means_are_those_of_its_table() -> None:
    models = rows("hvsbench", "Table 3", "model")
    means = {name: mean(row.value for row in models if row.metric == name) for name in HVSBENCH}
    assert means == pytest.approx(HVSBENCH, abs=5e-5)
    assert sorted(route for routes in HVSBENCH_FIELDS.values() for route in routes) == sorted(
        load("hybrid.benchmarks", "hvsbench").card.sample_tasks
    )
    random = {row.metric: row.value for row in rows("hvsbench", "Table 3", "chance")}
    assert {"Q9": random["m_dir.q9"], "Q12": random["m_dir.q12"]} == GUESSED_PATH


@pytest.mark.parametrize(
    ("kind", "choices", "worth"),
    [
        (Kind.CHOICE, 4, 0.25),
        (Kind.YES_NO, 0, 0.5),
        (Kind.CONTINUE, 4, 0.5),
        (Kind.ORDER, 4, 1 / 24),
        (Kind.INTEGER, 0, 0.1),
        (Kind.VIEWS, 4, 0.1),
        (Kind.SCANPATH, 0, 0.6079),
        (Kind.ORDER, 0, 0.1),
        (Kind.CHOICE, 0, 0.1),
    ],
)
def test_what_a_guess_is_worth(kind: Kind, choices: int, worth: float) -> None:
    assert chance(asked("Q9", kind, choices)) == pytest.approx(worth)


def test_a_route_has_its_own_mean_and_others_a_share_above_chance() -> None:
    assert usual_skill(asked("Relative_Depth")) == BLINK["Relative_Depth"]
    assert usual_skill(asked("elsewhere", choices=4)) == pytest.approx(0.25 + 0.75 * ABOVE_CHANCE)
    # Published means below a guess: a choice is worth one, a scanpath is what it is.
    assert usual_skill(asked("Object_Localization")) == 0.5 > BLINK["Object_Localization"]
    assert usual_skill(asked("Q9", Kind.SCANPATH, 0)) == HVSBENCH["m_dir.q9"] < GUESSED_PATH["Q9"]


@given(st.sampled_from([*BLINK, "Q2", "none"]), st.sampled_from([Kind.CHOICE, Kind.ORDER]), st.integers(2, 9))
def test_an_unmeasured_model_is_no_worse_than_a_guess_and_not_certain(route: str, kind: Kind, choices: int) -> None:
    prompt = asked(route, kind, choices)
    assert chance(prompt) <= usual_skill(prompt) < 1
    assert not math.isnan(usual_skill(prompt))
