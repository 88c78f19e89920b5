"""Published predictions: recognised, de-duplicated, ordered, two files of a model together, faults named."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.mvp_bench.outputs import read_outputs
from hybrid.errors import DataError

PROMPT = "Which?\nA. this\nB. that\nAnswer."


def row(question_id: object, output: object = "A", image: str = "Cross_Images/3_concat.jpg") -> dict[str, Any]:
    return {"question_id": question_id, "output": output, "prompt": PROMPT, "image": image, "model_id": "m"}


def put(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    return path


def test_rows_come_sorted_and_once(tmp_path: Path) -> None:
    path = put(tmp_path / "m.jsonl", row(12), row(2, "B"), row(12), row(2, "B"))
    found = read_outputs(path)
    assert found is not None
    assert [(o.id, o.reply) for o in found] == [("2", "B"), ("12", "A")]


def test_rotations_are_variants_and_the_two_files_of_a_model_are_read_together(tmp_path: Path) -> None:
    put(tmp_path / "m.jsonl", row(12))
    put(tmp_path / "mcq_m.jsonl", row("12__3__1"), row("12__3__0"), row("2__0__4"))
    found = read_outputs(tmp_path)
    assert found is not None
    assert [o.id for o in found] == ["2#circ5", "12", "12#circ1", "12#circ2"]


def test_other_layouts_are_not_recognised(tmp_path: Path) -> None:
    assert read_outputs(tmp_path) is None
    assert read_outputs(put(tmp_path / "log.jsonl", {"doc_id": 1, "resps": []})) is None
    assert read_outputs(put(tmp_path / "x.json", row(1))) is None
    assert read_outputs(put(tmp_path / "y.jsonl", row("val_1"))) is None


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((row(1), row(1, "B")), r"m.jsonl, line 2: question 1 has another reply in .*line 1"),
        ((row(1), row("one")), r"line 2, field question_id: 'one'"),
        ((row(1), row(True)), r"line 2, field question_id: True"),
        ((row(1), row(2, 5)), r"line 2, field output: expected text, found int"),
        ((row(1), row(2, image="../3_s.jpg")), r"line 2, field image: '../3_s.jpg'"),
        ((row(1), {"question_id": 2}), r"line 2, field image: expected text, found None"),
    ],
)
def test_faults_name_file_line_and_field(tmp_path: Path, rows: tuple[dict[str, Any], ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_outputs(put(tmp_path / "m.jsonl", *rows))


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "m.jsonl", row(1))
    path.write_text(path.read_text() + "{oops\n")
    with pytest.raises(DataError, match=r"m.jsonl, line 2: not JSON"):
        read_outputs(path)


def test_a_line_separator_inside_a_reply_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(row(1, "A\u2028B"), ensure_ascii=False) + "\n", encoding="utf-8")
    found = read_outputs(path)
    assert found is not None
    assert found[0].reply == "A\u2028B"


def test_several_models_are_not_mixed(tmp_path: Path) -> None:
    put(tmp_path / "m.jsonl", row(1))
    put(tmp_path / "n.jsonl", row(1))
    with pytest.raises(DataError, match="2 models \\(m, n\\): give one file"):
        read_outputs(tmp_path)
