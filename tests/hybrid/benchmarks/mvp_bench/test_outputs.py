"""Published predictions: recognised, de-duplicated, ordered, two files of one model merged, faults named."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.mvp_bench.outputs import read_outputs
from hybrid.core.errors import DataError
from tests.tables import cases

PROMPT = "Which?\nA. this\nB. that\nAnswer."


def row(question_id: object, output: object = "A", image: str = "Cross_Images/3_concat.jpg") -> dict[str, Any]:
    return {"question_id": question_id, "output": output, "prompt": PROMPT, "image": image, "model_id": "m"}


def put(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    return path


@pytest.mark.parametrize(*cases(__file__, "test_faults_name_file_line_and_field"))
def test_faults_name_file_line_and_field(tmp_path: Path, rows: tuple[dict[str, Any], ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_outputs(put(tmp_path / "m.jsonl", *rows))


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "m.jsonl", row(1))
    path.write_text(path.read_text() + "{oops\n")
    with pytest.raises(DataError, match=r"m.jsonl, line 2: not JSON"):
        read_outputs(path)


def test_several_models_are_not_mixed(tmp_path: Path) -> None:
    put(tmp_path / "m.jsonl", row(1))
    put(tmp_path / "n.jsonl", row(1))
    with pytest.raises(DataError, match="2 models \\(m, n\\): give one file"):
        read_outputs(tmp_path)
