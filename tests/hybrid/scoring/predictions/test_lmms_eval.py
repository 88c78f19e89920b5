"""lmms-eval's sample logs: recognised by their fields, one file per task, with and without the data row."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import DataError
from hybrid.scoring.predictions.lmms_eval import read
from tests.tables import cases


def sample(doc_id: Any = 0, reply: str = "A", target: str = "(A)", **changes: Any) -> dict[str, Any]:
    """Return a line as lmms-eval writes it for BLINK: without the data row, and with the metric's own entry."""
    identity = f"val_Jigsaw_{doc_id + 1}" if isinstance(doc_id, int) else "val_Jigsaw_1"
    entry = {
        "id": identity,
        "gt_content": target.strip("()"),
        "pred_parsed": reply[:1].upper(),
        "pred": reply,
        "sub_task": "Jigsaw",
        "is_correct": reply[:1].upper() == target.strip("()"),
    }
    facts = {"doc_id": doc_id, "target": target, "filtered_resps": [reply], "doc_hash": "0", "input": "prompt"}
    return {**facts, "blink_acc": entry, **changes}


def log(path: Path, *samples: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in samples))
    return path


@pytest.mark.parametrize("empty", [[], None, "", [[]], [""]])
def test_an_empty_reply_is_empty(tmp_path: Path, empty: Any) -> None:
    parsed = read(log(tmp_path / "samples_a.jsonl", sample(0) | {"filtered_resps": empty}))
    assert parsed is not None
    assert parsed.rows[0].reply == ""


@pytest.mark.parametrize(*cases(__file__, "test_a_line_that_cannot_be_used_is_named"))
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "samples_blink.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read(path)


def test_other_json_lines_are_not_ours(tmp_path: Path) -> None:
    assert read(log(tmp_path / "a.jsonl", {"question_id": 1, "output": "A"})) is None
    (tmp_path / "b.jsonl").write_text("not json\n")
    assert read(tmp_path / "b.jsonl") is None
    (tmp_path / "c.jsonl").write_text("")
    assert read(tmp_path / "c.jsonl") is None


@pytest.mark.parametrize(
    ("resps", "first", "many"),
    [
        ([["A", "B", "B"]], "A", "3"),
        ([["A"], ["B"]], "A", "2"),
        (["A", "B"], "A", "2"),
        ([["A"]], "A", ""),
        ("A", "A", ""),
    ],
)
def test_of_several_replies_the_first_is_scored_and_that_is_said(
    tmp_path: Path, resps: Any, first: str, many: str
) -> None:
    parsed = read(log(tmp_path / "samples_a.jsonl", sample(0) | {"resps": resps}, sample(1)))
    assert parsed is not None
    assert parsed.rows[0].reply == first
    text = f"1 of 2 lines contain {many} replies each: only the first is scored"
    assert parsed.notes == ((text,) if many else ())
