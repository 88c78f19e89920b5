"""Predictions as a JSON object of ids and answers, valid and invalid."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.blink.outputs import read_outputs
from hybrid.core.errors import DataError
from hybrid.scoring.predictions.flat import read


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_an_answer_that_is_no_text_costs_its_question(tmp_path: Path) -> None:
    parsed = read(write(tmp_path / "m.json", {"val_Jigsaw_1": "(A)", "val_Jigsaw_2": 3, "val_Jigsaw_3": None}))
    assert parsed is not None
    assert [(row.id, row.reply) for row in parsed.rows] == [
        ("val_Jigsaw_1", "(A)"),
        ("val_Jigsaw_2", "3"),
        ("val_Jigsaw_3", ""),
    ]


@pytest.mark.parametrize(
    "content", [{}, [], {"a": 1, "b": 2}, {"a": "(A)", "b": True}, {"a": "(A)", "b": ["(B)"]}], ids=json.dumps
)
def test_another_object_is_not_taken(tmp_path: Path, content: Any) -> None:
    assert read(write(tmp_path / "m.json", content)) is None


def test_outputs_about_generated_questions_belong_to_their_task(tmp_path: Path) -> None:
    row = {"idx": "generated_val_Jigsaw_1", "answer": "(A)", "prediction": "(A)", "full_prediction": "It is (A)"}
    write(tmp_path / "Jigsaw_concat.json", {"val": [row]})
    rows = read_outputs(tmp_path)
    assert rows is not None
    assert [(result.id, result.task) for result in rows] == [("generated_val_Jigsaw_1", "Jigsaw")]


def test_a_letter_counts_in_either_case_and_an_id_once(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"val_Jigsaw_1": "b", "val_Jigsaw_2": "(b)", "val_Jigsaw_3": "(z)", "val_Jigsaw_4": "a cat"}')
    parsed = read(file)
    assert parsed is not None
    assert [row.stored for row in parsed.rows] == ["B", "(B)", "", "a cat"]
    file.write_text('{"val_Jigsaw_1": "A", "val_Jigsaw_1": "B"}')
    with pytest.raises(DataError, match="val_Jigsaw_1 appears twice; keep one"):
        read(file)
