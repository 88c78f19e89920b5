"""BLINK's printed rows: complete, possible, and for four models equal to their published outputs."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK, TASKS
from hybrid.scoring.predicted import score_predictions
from hybrid.scoring.published import Published, published
from tests.tables import cases, stored

FOLDERS = {"GPT-4V": "GPT4V", "GPT-4o": "GPT4o", "Qwen-VL-Max": "QwenVLMax", "LLaVA-v1.6-34B": "llava-v1.6-34b"}
CELLS = published("blink")

# Cells that are not readable in the text of the paper that is available here.
UNREADABLE = {tuple(key): count for *key, count in cases(__file__, "UNREADABLE")[1]}

# Macro accuracy over the 14 tasks of val for each model, recomputed from all 19 models' published outputs.
MACRO = stored(__file__, "MACRO")


def of(source: str, who: str, split: str) -> dict[str, Published]:
    return {c.metric: c for c in CELLS if (c.source, c.who, c.split) == (source, who, split)}


@pytest.mark.parametrize(("source", "split"), [("Table 1", "test"), ("Table 4", "val")])
@pytest.mark.parametrize("who", [*MACRO, "Random", "Human"])
def test_a_row_is_whole_but_for_what_is_named(source: str, split: str, who: str) -> None:
    row = of(source, who, split)
    assert len(row) == 15 - UNREADABLE.get((source, who), 0)
    tasks = {metric: cell.value for metric, cell in row.items() if metric != "accuracy_macro"}
    assert tasks.keys() <= TASKS.keys()
    # The tolerance covers the rounding of each cell and of the mean of the 14 cells.
    if len(tasks) == 14 and who != "Human":
        assert sum(tasks.values()) / 14 == pytest.approx(row["accuracy_macro"].value, abs=0.0101)


@pytest.mark.parametrize("who", MACRO)
def test_the_printed_averages_are_the_recomputed_ones(who: str) -> None:
    assert of("Table 4", who, "val")["accuracy_macro"].value == MACRO[who]
    assert of("Table 1", who, "val")["accuracy_macro"].value == MACRO[who]


def test_the_human_average_leaves_out_the_iq_test() -> None:
    row = {metric: cell.value for metric, cell in of("Table 1", "Human", "test").items()}
    total = row.pop("accuracy_macro")
    assert sum(row.values()) / 14 == pytest.approx(94.58, abs=0.005)
    del row["IQ_Test"]
    assert sum(row.values()) / 13 == pytest.approx(total, abs=0.0051)


def test_a_models_cell_is_a_count_out_of_its_questions() -> None:
    cells = [cell for cell in CELLS if cell.kind == "model" and cell.metric != "accuracy_macro"]
    counts = {cell: round(cell.value / 100 * int(cell.n)) for cell in cells}
    off = [cell for cell, right in counts.items() if abs(100 * right / int(cell.n) - cell.value) > 0.0051]
    assert len(cells) > 500
    assert [(cell.source, cell.who, cell.metric) for cell in off] == []


def test_what_each_table_holds() -> None:
    assert Counter(cell.source for cell in CELLS) == {"Table 1": 325, "Table 2": 30, "Table 4": 330, "Table 5": 48}
    assert {cell.kind for cell in CELLS} == {"model", "specialist", "human", "chance"}
    assert all(re.fullmatch(r"\d*", cell.n) for cell in CELLS)
    val = {cell.metric: cell.n for cell in CELLS if cell.source == "Table 4" and cell.who == "GPT-4o"}
    assert {task: int(n) for task, n in val.items() if task in TASKS} == dict(BENCHMARK.card.tasks)


def test_the_specialists() -> None:
    mapping = {(c.who, c.metric): c.value for c in CELLS if c.kind == "specialist"}
    assert mapping == {tuple(key): value for *key, value in cases(__file__, "SPECIALISTS")[1]}


def test_the_cell_that_two_tables_print_differently_says_so() -> None:
    (cell,) = [c for c in CELLS if (c.source, c.who, c.metric) == ("Table 2", "Gemini Pro", "Relative_Reflectance")]
    assert cell.value == 45.52
    assert "Table 4 and the published outputs give 38.81" in cell.note
    assert of("Table 4", "Gemini Pro", "val")["Relative_Reflectance"].value == 38.81


@cache
def percent(folder: Path, who: str) -> dict[str, float]:
    scored = score_predictions(folder / "blink_outputs" / FOLDERS[who], BENCHMARK, "stored", ScoreOptions())
    tasks = {task: [s.correct or 0.0 for s in scored.scores if s.task == task] for task in TASKS}
    by_task = {task: 100 * sum(right) / len(right) for task, right in tasks.items()}
    return {**by_task, "accuracy_macro": sum(by_task.values()) / 14}


@pytest.mark.shared_data
@pytest.mark.parametrize("who", FOLDERS)
def test_the_published_outputs_give_every_printed_cell_of_table_4(shared_data: Path, who: str) -> None:
    actual = percent(shared_data, who)
    row = of("Table 4", who, "val")
    assert {metric: f"{actual[metric]:.2f}" for metric in row} == {m: f"{cell.value:.2f}" for m, cell in row.items()}
