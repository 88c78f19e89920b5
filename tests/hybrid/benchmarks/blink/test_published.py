"""BLINK's published outputs: every number that the paper prints about them, and rows that cannot be used."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.core.errors import DataError
from hybrid.scoring.predicted import score_predictions
from hybrid.stats import combine
from tests.tables import cases

MACRO = {"GPT4o": 0.6004, "GPT4V": 0.5114, "llava-v1.6-34b": 0.4680, "QwenVLMax": 0.4028}
TABLE_4 = {name: tuple(rest) for name, *rest in cases(__file__, "TABLE_4")[1]}
STRICT = ScoreOptions()


@pytest.mark.shared_data
@pytest.mark.parametrize("model", MACRO)
def test_the_published_outputs_score_as_published(shared_data: Path, model: str) -> None:
    scored = score_predictions(shared_data / "blink_outputs" / model, BENCHMARK, "stored", STRICT)
    metrics = {metric.name: metric.value for metric in scored.metrics}
    assert metrics["accuracy_macro"] == pytest.approx(MACRO[model], abs=5e-5)
    if model == "GPT4o":
        assert metrics["accuracy_micro"] == pytest.approx(0.5992, abs=5e-5)
    assert scored.solver == model
    assert len(scored.scores) == 1901


@pytest.mark.shared_data
@pytest.mark.parametrize(("column", "model"), [(0, "GPT4V"), (1, "GPT4o")])
def test_every_cell_is_that_of_table_4(shared_data: Path, column: int, model: str) -> None:
    scored = score_predictions(shared_data / "blink_outputs" / model, BENCHMARK, "stored", STRICT)
    tasks = scored.as_json()["tasks"]
    assert isinstance(tasks, dict)
    printed = {task: f"{100 * tasks[task]['accuracy']:.2f}" for task in tasks}
    assert printed == {task: f"{cells[column]:.2f}" for task, cells in TABLE_4.items()}
    assert {task: tasks[task]["n"] for task in tasks} == dict(BENCHMARK.card.tasks)


@pytest.mark.system
@pytest.mark.shared_data
def test_our_parse_agrees_with_what_was_stored(shared_data: Path) -> None:
    cells = []
    for model in MACRO:
        scored = score_predictions(shared_data / "blink_outputs" / model, BENCHMARK, "text", STRICT)
        (agreement,) = [metric for metric in scored.metrics if metric.name == "agreement"]
        cells += [cell._replace(cluster=f"{model}/{cell.cluster}") for cell in agreement.cells]
    assert len(cells) == 4 * 1901
    result = combine(cells, "ratio")
    assert result is not None
    assert result >= 0.96


def outputs(folder: Path, name: str, identity: str, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    row = {"idx": identity, "answer": "(A)", "full_prediction": "(A)", "prediction": "(A)", **changes}
    (folder / f"{name}.json").write_text(json.dumps({"val": [row], "test": []}))
    return folder


@pytest.mark.parametrize(*cases(__file__, "test_an_unusable_row_of_predictions_is_named"))
def test_an_unusable_row_of_predictions_is_named(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        BENCHMARK.predictions(outputs(tmp_path / "m", "Jigsaw", "val_Jigsaw_1", **changes))


def test_predictions_of_another_layout_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    assert BENCHMARK.predictions(tmp_path) is None
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(DataError, match=r"a\.json is not JSON"):
        BENCHMARK.predictions(tmp_path)
    outputs(tmp_path / "twice", "Art Style", "val_Art_Style_1")
    outputs(tmp_path / "twice", "Art_Style", "val_Art_Style_1")
    with pytest.raises(DataError, match="also appears in"):
        BENCHMARK.predictions(tmp_path / "twice")


def test_the_card_has_the_tasks_of_table_4() -> None:
    assert set(BENCHMARK.card.tasks) == set(TABLE_4)
