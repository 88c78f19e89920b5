"""Exports are read by the library `datasets`, as file and as folder. test_inspect.py has the exports for Inspect."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.conversations import EXPORTER as CONVERSATIONS
from hybrid.exporting.parquet import EXPORTER as PARQUET
from hybrid.exporting.sharegpt import EXPORTER as SHAREGPT
from hybrid.exporting.table import EXPORTER as TABLE
from tests.hybrid.exporting.conversation_runs import write

datasets = pytest.importorskip("datasets", reason="datasets is in the dependency group dev")
# `datasets` leaves the arrow files of its cache open.
pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.mark.parametrize("exporter", [PARQUET, TABLE], ids=lambda item: str(item.form))
def test_datasets_reads_every_column_of_a_table(synthetic_runs: Any, tmp_path: Path, exporter: Any) -> None:
    run = ExportedRun.at(synthetic_runs.write(tmp_path, "mvp_bench", size=4, failed=1).real)
    exporter.export(run, tmp_path / "t.parquet", ExportOptions())
    stored = pq.read_table(tmp_path / "t.parquet")
    read = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "t.parquet"), cache_dir=str(tmp_path / "cache"), split="train"
    )
    assert list(read.features) == stored.column_names
    # A column of only nulls (dollars without a known price) has the type of its numbers.
    assert set(read["cost_usd"]) == {None}
    assert "null" not in {str(field.type) for field in stored.schema}
    assert list(read) == stored.to_pylist()


@pytest.mark.parametrize(
    ("exporter", "column"),
    [(CONVERSATIONS, "messages"), (SHAREGPT, "conversations")],
    ids=["conversations", "sharegpt"],
)
def test_datasets_takes_a_folder_for_its_conversations_and_not_for_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exporter: Any, column: str
) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    run = ExportedRun.at(write(tmp_path, solvers=("controller",)).path)
    exporter.export(run, tmp_path / "out", ExportOptions(only="all"))
    read = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["train"]
    rows = [json.loads(line) for line in (tmp_path / "out" / "conversations.jsonl").read_text().splitlines()]
    assert {column, "tools", "images", "id", "score"} <= set(read.column_names)
    assert set(read.column_names) == set(rows[0])
    assert [(row["id"], row["ask"], row["images"], row["score"]) for row in read] == [
        (row["id"], row["ask"], row["images"], row["score"]) for row in rows
    ]
    assert [len(row[column]) for row in read] == [len(row[column]) for row in rows]
    text = "value" if column == "conversations" else "content"
    assert [row[column][-1][text] for row in read] == [filled(row[column][-1][text]) for row in rows]


def filled(content: Any) -> Any:
    """Return message content as `datasets` does: each part of a message has every key that any part has."""
    return content if isinstance(content, str) else [{"type": None, "text": None, **part} for part in content]
