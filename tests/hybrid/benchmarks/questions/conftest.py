"""A folder of questions about small pictures, and the questions that the benchmark reads from it."""

import base64
import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Question
from hybrid.plugins.registry import load
from hybrid.running.data import mount, questions
from tests.image_bytes import saved


class Made:
    """Writes tables and reads them as a run does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        (folder / "red.png").write_bytes(self.png((200, 30, 30)))

    @staticmethod
    def png(colour: tuple[int, int, int] = (9, 90, 190)) -> bytes:
        return saved(Image.new("RGB", (40, 30), colour))

    def base64(self, colour: tuple[int, int, int] = (9, 90, 190)) -> str:
        return base64.b64encode(self.png(colour)).decode()

    @staticmethod
    def row(**changed: object) -> dict[str, object]:
        """Return a valid row; fields that are None are left out."""
        payload = {"id": "q1", "image": "red.png", "question": "Which?", "choices": ["one", "two"], "answer": "two"}
        return {name: value for name, value in (payload | changed).items() if value is not None}

    def table(self, rows: Sequence[Mapping[str, object]], name: str = "questions.jsonl") -> Path:
        path = self.folder / name
        match path.suffix:
            case ".jsonl":
                path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            case ".parquet":
                pq.write_table(
                    pa.Table.from_pylist([dict(row) for row in rows]),
                    path,
                    2,
                    compression="none",
                    write_statistics=False,
                )
            case _:
                columns = list(dict.fromkeys(name for row in rows for name in row))
                with path.open("w", newline="") as file:
                    writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
                    writer.writerow(columns)
                    for row in rows:
                        cells = [row.get(column, "") for column in columns]
                        writer.writerow([json.dumps(cell) if isinstance(cell, list) else cell for cell in cells])
        return path

    def read_questions(
        self, data: Path, benchmark: str = "questions", **options: Any
    ) -> Sequence[Question | BrokenQuestion]:
        bench = load("hybrid.benchmarks", benchmark)
        store = ImageStore(self.folder / "store")
        payload = {"split": None, "tasks": (), "settings": {}, **options}
        return list(questions(bench, mount(bench, str(data), store=store, **payload).source, payload.get("limit")))

    def sound(self, data: Path, benchmark: str = "questions", **options: Any) -> list[Question]:
        result = self.read_questions(data, benchmark, **options)
        assert all(isinstance(question, Question) for question in result), result
        return [question for question in result if isinstance(question, Question)]

    def why(self, **changed: object) -> str:
        """Return the error of a row that differs in these fields from a valid one."""
        (broken,) = self.read_questions(self.table([self.row(**changed)]))
        assert isinstance(broken, BrokenQuestion), broken
        return broken.error


@pytest.fixture
def table_writer(tmp_path: Path) -> Made:
    return Made(tmp_path / "data")


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes a recipe into a folder that `hybrid.plugins.registry` searches, and returns its name."""
    from hybrid.plugins.discovery import add_search_path, folders, look_in

    previous = folders("hybrid.benchmarks")

    def write(name: str, text: str) -> str:
        place = tmp_path / "own" / "benchmarks"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.yaml").write_text(text)
        add_search_path([tmp_path / "own"], "--path")
        return name

    yield write  # type: ignore[misc]
    look_in("hybrid.benchmarks", previous)
