"""Claims about simulated runs are parsed from the conclusions' text; differences with 80 % power are found in about 80
% of the draws."""

import numpy as np
import pytest

from bench import sentences as bench
from bench._sentence_worlds import WORLDS, false_in
from hybrid.stats import contrast, detectable


@pytest.mark.system
def test_a_draw_of_each_arm_asserts_what_is_true() -> None:
    for design in bench.ARMS:
        result, true = bench.asserted(design, 3), bench.is_true(design)
        assert result
        assert all(true[claim] for claim in result), (design.name, result)


@pytest.mark.parametrize("sizes", [(120, 60, 20), (12,) * 5, (10,), (20,)])
def test_a_difference_of_80_percent_power_is_found_about_so_often(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    least = float(np.median([detectable(*bench.pair(rng, sizes, 0.4, 0.0)) or 1.0 for _ in range(20)]))
    p_values = [contrast(*bench.pair(rng, sizes, max(0.4, least), least)).p_value for _ in range(150)]
    assert 0.7 <= np.mean([p is not None and p < 0.05 for p in p_values]) <= 0.95


# The claims of the first sentence about the model alone.
FIRST = {"gain", "loss", "by answering more", "by answering less", "tasks and questions disagree"}


@pytest.mark.system
def test_quick_draws_claim_what_run_folders_do() -> None:
    def claims(name: str) -> list[set[str]]:
        design = next(design for design in (*bench.ARMS, *bench.NULLS) if design.name == name)
        return [draw(design, 5) & FIRST for draw in (bench.quickly_asserted, bench.asserted)]

    expected = {
        "what the tools say alone": {"gain"},
        "harm by presence": {"loss"},
        "refuses a third alone, no effect": {"by answering more"},
        "a third unreadable with tools, no effect": {"by answering less"},
        "300 + 40 + 10, worse on the largest": {"tasks and questions disagree"},
    }
    for name, claimed in expected.items():
        assert claims(name) == [claimed, claimed], name


@pytest.mark.parametrize("name", [name for name in WORLDS if "5 % expected" not in name])
def test_a_draw_of_each_world_has_a_true_output(name: str) -> None:
    assert false_in(name, 1, 0) == 0
