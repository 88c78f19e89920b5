"""HVSBench row by row: what makes a question unusable, and what distinguishes questions."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.hvsbench import BENCHMARK
from hybrid.benchmarks.hvsbench.sample import schema
from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Exchange, Prompt, Question, Reply
from hybrid.running.data import mount
from tests.image_bytes import saved
from tests.tables import cases

HUMAN = "X = [0.5, 0.2, 0.8] Y = [0.5, 0.3, 0.6] T = [100, 200, 300]"


GOOD: dict[str, Any] = {
    "index": 7,
    "image": {"bytes": saved(Image.new("RGB", (40, 30), (9, 90, 200))), "path": None},
    "question": "Which is more salient? [A] the dog [B] the cat",
    "question_type": "Q5",
    "answer": "A",
}


def one(tmp_path: Path, *changed: Mapping[str, Any]) -> Iterator[Question | BrokenQuestion]:
    (tmp_path / "data").mkdir()
    table = pa.Table.from_pylist([{**GOOD, **row} for row in changed], schema())
    pq.write_table(table, tmp_path / "data" / "test-00000-of-00001.parquet")
    store = ImageStore(tmp_path / "store")
    return BENCHMARK.questions(mount(BENCHMARK, str(tmp_path), split=None, tasks=(), settings={}, store=store).source)


SCANPATH_ROW = {"question_type": "Q9", "question": "Give three lists, each containing 3 values."}


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_cannot_be_used_costs_its_question_alone"))
def test_a_row_that_cannot_be_used_costs_its_question_alone(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    if changed.get("image"):
        changed["image"] = {key: value and value.encode() for key, value in changed["image"].items()}
    items = list(one(tmp_path, changed, {"index": 8}))
    broken = [question for question in items if isinstance(question, BrokenQuestion)]
    assert len(broken) == 1
    assert re.search(f"test-00000-of-00001.parquet, {message}", broken[0].error)
    assert len(items) == 2


def test_a_single_human_path_has_no_references(tmp_path: Path) -> None:
    (question,) = one(tmp_path, {**SCANPATH_ROW, "answer": HUMAN})
    assert isinstance(question, Question)
    exchange = Exchange(Prompt((question.text,), question.kind), Reply(HUMAN))
    score = BENCHMARK.score(question, (exchange,), ScoreOptions())
    assert score.values == dict.fromkeys(("m_shape", "m_dir", "m_len", "m_pos"), 1.0)
