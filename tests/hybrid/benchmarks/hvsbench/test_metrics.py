"""HVSBench's metrics: the published overall accuracies, and scanpaths against human ones."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.hvsbench import BENCHMARK, CHANCE_COUNT
from hybrid.benchmarks.hvsbench.metrics import (
    DIMENSIONS,
    FALLBACK_PATH,
    FIELDS,
    PUBLISHED_ENDS,
    Rules,
    compare,
    references,
    screen_of,
    summarise,
)
from hybrid.benchmarks.hvsbench.multimatch import multimatch
from hybrid.errors import UsageError
from hybrid.scoring.published import Published, published
from hybrid.types import Outcome, Scanpath, Score

ROUNDED = 5.1e-5
"""Half a unit of the fourth printed digit, and a little."""

REPRODUCED = (
    "MiniGPT4-v2",
    "DeepSeek-VL",
    "Idefics",
    "Idefics2",
    "Idefics3",
    "LLaVA-Next",
    "LLaVA-OneVision",
    "mPLUG-Owl3",
    "Qwen2-VL",
    "MiniCPM-V 2.6",
)
INCONSISTENT = {"GPT4-o": 0.3837, "Gemini-1.5-Flash": 0.3897, "InternVL2.0": 0.3350}
"""Rows whose printed overall accuracy is not that of their own columns, with what the columns give."""

PATH = Scanpath((0.5, 0.2, 0.7, 0.4), (0.5, 0.3, 0.8, 0.1), (9, 9, 9, 9))
OTHER = Scanpath((0.5, 0.25, 0.6), (0.45, 0.35, 0.8), (9, 9, 9))


def cells(source: str, who: str) -> dict[str, Published]:
    return {row.metric: row for row in published("hvsbench") if row.source == source and row.who == who}


def questions_behind(cell: Published) -> int:
    """How many questions a printed accuracy was measured on: those of the card, or one fewer where only that fits."""
    number = int(cell.n)
    fits = [n for n in (number, number - 1) if abs(round(cell.value * n) / n - cell.value) <= ROUNDED]
    return fits[0] if fits else number


def verdicts(task: str, accuracy: float, number: int) -> list[Score]:
    right = round(accuracy * number)
    return [Score(f"{task}_{n}", task, float(n < right), Outcome.ANSWERED) for n in range(number)]


def values(scores: list[Score]) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in summarise(scores)}


@cache
def of_table_11(who: str) -> dict[str, float | None]:
    """The metrics of answers that are right as often as printed for each task."""
    row = cells("Table 11", who)
    scores = [
        score
        for task, count in BENCHMARK.card.tasks.items()
        if count
        for score in verdicts(task, row[task].value, questions_behind(row[task]))
    ]
    return values(scores)


@pytest.mark.parametrize("who", REPRODUCED)
def test_overall_accuracy_of_table_11(who: str) -> None:
    printed = cells("Table 11", who)["overall_accuracy"].value
    assert of_table_11(who)["overall_accuracy"] == pytest.approx(printed, abs=ROUNDED)


@pytest.mark.parametrize("who", INCONSISTENT)
def test_rows_that_contradict_their_own_columns(who: str) -> None:
    row = cells("Table 11", who)
    assert of_table_11(who)["overall_accuracy"] == pytest.approx(INCONSISTENT[who], abs=1.5e-4)
    assert abs(INCONSISTENT[who] - row["overall_accuracy"].value) > 1e-3
    assert f".{str(INCONSISTENT[who])[2:]}" in row["overall_accuracy"].note


@pytest.mark.parametrize(("who", "printed", "ours"), [("Random guess", 0.2806, 0.2806), ("Human", 0.7438, 0.7349)])
def test_overall_accuracy_of_table_3(who: str, printed: float, ours: float) -> None:
    row = cells("Table 3", who)
    scores = []
    for field, tasks in FIELDS.items():
        members = sum(BENCHMARK.card.tasks[task] for task in tasks)
        scores += verdicts(tasks[0], row[f"accuracy.{field}"].value, members)
    assert row["overall_accuracy"].value == printed
    assert values(scores)["overall_accuracy"] == pytest.approx(ours, abs=1.5e-4)


@pytest.mark.parametrize("who", REPRODUCED)
def test_field_accuracies_of_table_3_from_table_11(who: str) -> None:
    found = of_table_11(who)
    for field in FIELDS:
        assert found[f"accuracy.{field}"] == pytest.approx(
            cells("Table 3", who)[f"accuracy.{field}"].value, abs=ROUNDED
        )


def test_constants_are_those_of_the_published_rows() -> None:
    human, random = cells("Table 3", "Human"), cells("Table 3", "Random guess")
    for (name, task), ends in PUBLISHED_ENDS.items():
        metric = f"{name}.{task.lower()}"
        assert ends == (random[metric].value, human[metric].value)
    assert random["accuracy.subitizing"].value == CHANCE_COUNT


def test_published_rows_cover_the_tables() -> None:
    rows = published("hvsbench")
    assert len({row.who for row in rows if row.source == "Table 3"}) == 15
    assert len({row.who for row in rows if row.source == "Table 11"}) == 14
    assert {row.source for row in rows} == {"Table 3", "Table 4", "Table 5", "Table 6", "Table 11", "Section F.1"}
    assert sum(BENCHMARK.card.tasks.values()) == 7574


def test_compare_is_the_mean_over_human_paths() -> None:
    rules = Rules()
    each = [compare(PATH, [human], rules) for human in (PATH, OTHER)]
    both = compare(PATH, [PATH, OTHER], rules)
    assert each[0] == dict.fromkeys(DIMENSIONS, 1.0)
    assert both == {name: pytest.approx((each[0][name] + each[1][name]) / 2) for name in DIMENSIONS}


def test_a_prediction_is_cut_to_six_and_human_paths_only_when_asked() -> None:
    x, y = (0.5, 0.4, 0.6, 0.5, 0.4, 0.5, *(0.0, 1.0) * 7), (0.5, 0.5, 0.4, 0.6, 0.5, 0.4, *(0.0, 1.0) * 7)
    long, short = Scanpath(x, y, ()), Scanpath(x[:6], y[:6], ())
    assert compare(long, [PATH], Rules()) == compare(short, [PATH], Rules())
    assert compare(short, [long], Rules()) != compare(short, [short], Rules())
    assert compare(short, [long], Rules(crop_truth=True)) == dict.fromkeys(DIMENSIONS, 1.0)


def test_short_paths_are_padded_with_points_one_one_in_pixels() -> None:
    padded = np.array([[256, 160, 1], [1, 1, 1], [1, 1, 1]], float)
    whole = np.array([[x * 512, y * 320, 1] for x, y in zip(PATH.x, PATH.y, strict=True)])
    expected = multimatch([padded, whole], [(0, 1)], (512, 320))[0]
    assert list(compare(FALLBACK_PATH, [PATH], Rules()).values()) == pytest.approx(expected[:4])


def test_points_outside_the_image_count_as_its_edge() -> None:
    wild, edge = Scanpath((0.5, 250.0, -3.0), (0.5, 1e300, 0.2), ()), Scanpath((0.5, 1.0, 0.0), (0.5, 1.0, 0.2), ())
    assert compare(wild, [PATH], Rules()) == compare(edge, [PATH], Rules())


def test_durations_do_not_matter_and_the_screen_does() -> None:
    faster = Scanpath(PATH.x, PATH.y, (1, 2, 3, 4))
    assert compare(faster, [OTHER], Rules()) == compare(PATH, [OTHER], Rules())
    assert compare(PATH, [OTHER], Rules(screen=(1, 1)))["m_dir"] != compare(PATH, [OTHER], Rules())["m_dir"]


def test_references_leave_one_subject_out() -> None:
    humans = (PATH, OTHER, FALLBACK_PATH)
    known = references(humans, OTHER, Rules())
    left_out = [
        compare(subject, [human for human in humans if human is not subject], Rules())["m_pos"] for subject in humans
    ]
    assert known["m_pos_human"] == pytest.approx(sum(left_out) / 3)
    assert known["m_dir_random"] == compare(OTHER, humans, Rules())["m_dir"]


def test_references_that_the_data_does_not_allow_are_absent() -> None:
    assert references((PATH,), None, Rules()) == {}
    assert not any("human" in name for name in references((PATH,), OTHER, Rules()))


def scanpath_score(name: str, values: dict[str, float], task: str = "Q9") -> Score:
    return Score(f"{task}_{name}", task, None, Outcome.ANSWERED, values=values)


def rows(value: float) -> dict[str, float]:
    found = dict.fromkeys(DIMENSIONS, value)
    return found | {f"{name}_human": 0.9 for name in DIMENSIONS} | {f"{name}_random": 0.7 for name in DIMENSIONS}


def by_name(scores: list[Score]) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in summarise(scores)}


def test_rescaled_between_random_and_human() -> None:
    found = by_name([scanpath_score("1", rows(0.8)), scanpath_score("2", rows(0.9))])
    assert found["m_dir_rescaled_measured.q9"] == pytest.approx(0.75)
    assert found["m_dir_human.q9"] == pytest.approx(0.9)
    assert found["m_pos_random.q9"] == pytest.approx(0.7)
    assert found["m_pos_rescaled_published.q9"] == pytest.approx((0.85 - 0.8304) / (0.8863 - 0.8304))
    assert "m_len_rescaled_measured.q9" not in found
    assert not any(name.endswith("q12") for name in found)


@pytest.mark.parametrize("ends", [(0.0, 1.0), (1.0, 0.0)])
def test_the_ends_of_the_measured_scale(ends: tuple[float, float]) -> None:
    values = rows(0.9 if ends[1] else 0.7)
    assert by_name([scanpath_score("1", values)])["m_dir_rescaled_measured.q9"] == pytest.approx(ends[1])


def test_no_measured_scale_unless_every_question_has_both_ends() -> None:
    partial = {key: value for key, value in rows(0.8).items() if not key.endswith("_human")}
    found = by_name([scanpath_score("1", rows(0.8)), scanpath_score("2", partial)])
    assert "m_dir_rescaled_measured.q9" not in found
    assert found["m_dir_human.q9"] == pytest.approx(0.9)


def test_failed_scanpath_questions_are_in_no_mean_and_no_accuracy() -> None:
    failed = Score("Q9_3", "Q9", 0.0, Outcome.OUTAGE)
    right = Score("Q1_1", "Q1", 1.0, Outcome.ANSWERED)
    metrics = {metric.name: metric for metric in summarise([scanpath_score("1", rows(0.8)), failed, right])}
    assert metrics["m_dir.q9"].value == pytest.approx(0.8)
    assert metrics["m_dir.q9"].n == 1
    assert (metrics["overall_accuracy"].value, metrics["overall_accuracy"].n) == (1.0, 1)


@settings(max_examples=100)
@given(errors=st.lists(st.floats(-30, 30), min_size=1, max_size=20))
def test_mae_and_rmse(errors: list[float]) -> None:
    scores = [
        Score(f"Q2_{n}", "Q2", 0.0, Outcome.ANSWERED, values={"error": error, "predicted": error + 3})
        for n, error in enumerate(errors)
    ]
    found = by_name(scores)
    assert found["mae"] == pytest.approx(np.mean(np.abs(errors)))
    assert found["rmse"] == pytest.approx(math.sqrt(np.mean(np.square(errors))))


def test_no_scores_give_no_value() -> None:
    assert [(metric.name, metric.value) for metric in summarise([])] == [("overall_accuracy", None)]


def test_screen() -> None:
    assert screen_of("1680x1050") == (1680, 1050)


@pytest.mark.parametrize("text", ["", "512", "0x320", "512x", "512×320", "-1x5", "1e3x2", "512x320 "])
def test_no_screen(text: str) -> None:
    with pytest.raises(UsageError, match=r"--setting screen=.*: the values are: WIDTHxHEIGHT"):
        BENCHMARK.card.chosen({"screen": text})
