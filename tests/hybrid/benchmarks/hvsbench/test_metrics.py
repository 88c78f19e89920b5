"""HVSBench's metrics: the published overall accuracies, and scanpaths against human ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.hvsbench import BENCHMARK, CHANCE_COUNT
from hybrid.benchmarks.hvsbench.metrics import (
    DIMENSIONS,
    FALLBACK_PATH,
    PUBLISHED_ENDS,
    Rules,
    compare,
    references,
    summarise,
)
from hybrid.core.errors import UsageError
from hybrid.core.types import Outcome, Scanpath, Score
from hybrid.scoring.published import Published, published

PATH = Scanpath((0.5, 0.2, 0.7, 0.4), (0.5, 0.3, 0.8, 0.1), (9, 9, 9, 9))
OTHER = Scanpath((0.5, 0.25, 0.6), (0.45, 0.35, 0.8), (9, 9, 9))


def cells(source: str, who: str) -> dict[str, Published]:
    return {row.metric: row for row in published("hvsbench") if row.source == source and row.who == who}


def values(scores: list[Score]) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in summarise(scores)}


def test_constants_are_those_of_the_published_rows() -> None:
    human, random = cells("Table 3", "Human"), cells("Table 3", "Random guess")
    for task, dimensions in PUBLISHED_ENDS.items():
        for name, ends in dimensions.items():
            metric = f"{name}.{task.lower()}"
            assert ends == [random[metric].value, human[metric].value]
    assert random["accuracy.subitizing"].value == CHANCE_COUNT


def test_published_rows_cover_the_tables() -> None:
    rows = published("hvsbench")
    assert len({row.who for row in rows if row.source == "Table 3"}) == 15
    assert len({row.who for row in rows if row.source == "Table 11"}) == 14
    assert {row.source for row in rows} == {"Table 3", "Table 4", "Table 5", "Table 6", "Table 11", "Section F.1"}
    assert sum(BENCHMARK.card.tasks.values()) == 7574


def test_references_leave_one_subject_out() -> None:
    humans = (PATH, OTHER, FALLBACK_PATH)
    expected_values = references(humans, OTHER, Rules())
    left_out = [
        compare(subject, [human for human in humans if human is not subject], Rules())["m_pos"] for subject in humans
    ]
    assert expected_values["m_pos_human"] == pytest.approx(sum(left_out) / 3)
    assert expected_values["m_dir_random"] == compare(OTHER, humans, Rules())["m_dir"]


def test_references_that_the_data_does_not_allow_are_absent() -> None:
    assert references((PATH,), None, Rules()) == {}
    assert not any("human" in name for name in references((PATH,), OTHER, Rules()))


def scanpath_score(name: str, values: dict[str, float], task: str = "Q9") -> Score:
    return Score(f"{task}_{name}", task, None, Outcome.ANSWERED, values=values)


def rows(value: float) -> dict[str, float]:
    result = dict.fromkeys(DIMENSIONS, value)
    return result | {f"{name}_human": 0.9 for name in DIMENSIONS} | {f"{name}_random": 0.7 for name in DIMENSIONS}


def by_name(scores: list[Score]) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in summarise(scores)}


def test_rescaled_between_random_and_human() -> None:
    result = by_name([scanpath_score("1", rows(0.8)), scanpath_score("2", rows(0.9))])
    assert result["m_dir_rescaled_measured.q9"] == pytest.approx(0.75)
    assert result["m_dir_human.q9"] == pytest.approx(0.9)
    assert result["m_pos_random.q9"] == pytest.approx(0.7)
    assert result["m_pos_rescaled_published.q9"] == pytest.approx((0.85 - 0.8304) / (0.8863 - 0.8304))
    assert "m_len_rescaled_measured.q9" not in result
    assert not any(name.endswith("q12") for name in result)


def test_no_measured_scale_unless_every_question_has_both_ends() -> None:
    partial = {key: value for key, value in rows(0.8).items() if not key.endswith("_human")}
    result = by_name([scanpath_score("1", rows(0.8)), scanpath_score("2", partial)])
    assert "m_dir_rescaled_measured.q9" not in result
    assert result["m_dir_human.q9"] == pytest.approx(0.9)


@settings(max_examples=100)
@given(errors=st.lists(st.floats(-30, 30), min_size=1, max_size=20))
def test_mae_and_rmse(errors: list[float]) -> None:
    scores = [
        Score(f"Q2_{n}", "Q2", 0.0, Outcome.ANSWERED, values={"error": error, "predicted": error + 3})
        for n, error in enumerate(errors)
    ]
    result = by_name(scores)
    assert result["mae"] == pytest.approx(np.mean(np.abs(errors)))
    assert result["rmse"] == pytest.approx(math.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("text", ["", "512", "0x320", "512x", "512×320", "-1x5", "1e3x2", "512x320 "])
def test_no_screen(text: str) -> None:
    with pytest.raises(UsageError, match=r"--setting screen=.*: the allowed values are: WIDTHxHEIGHT"):
        BENCHMARK.card.resolve_settings({"screen": text})
