"""A run whose data has changed asks new questions; it is refused if an answered question is now a different one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hybrid import compare
from hybrid.config import RunConfig
from hybrid.core.errors import UsageError
from hybrid.core.types import Box, Point, Question
from hybrid.log.folder import RunFolder
from hybrid.running.resolve import prepare
from hybrid.running.run import run_until_complete
from tests.tables import cases


def write(folder: Path, ids: Sequence[str], seed: int = 0, **changed: Any) -> None:
    """Write a file of questions, each with a picture file; `changed` overrides or adds fields of the first question."""
    rows = []
    for place, identity in enumerate(ids):
        pixels = np.random.default_rng([seed, *identity.encode()]).integers(0, 255, (30, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{identity}.png")
        row = {"id": identity, "image": f"{identity}.png", "question": "Which?", "choices": ["a", "b"], "answer": "A"}
        rows.append(row if place else {**row, **changed})
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


async def run(folder: Path, out: str = "run", limit: int | None = None) -> int:
    """Run a command; return how many questions it asks."""
    config = RunConfig(
        "questions", ("mllm",), model="embedded", data=str(folder / "own.jsonl"), out=folder / out, limit=limit
    )
    resolved = prepare(config)
    waiting = len(resolved.open_questions("mllm")) if (folder / out).exists() else len(resolved.sound)
    await run_until_complete(resolved, lambda *_: None, lambda _: None)
    return waiting


@pytest.mark.parametrize(*cases(__file__, "test_what_is_asked_of_changed_data"))
async def test_what_is_asked_of_changed_data(
    tmp_path: Path, ids: str, seed: int, changed: dict[str, Any], asks: int | str
) -> None:
    write(tmp_path, "abc")
    assert await run(tmp_path) == 3
    answers = (tmp_path / "run/mllm/attempts.jsonl").read_bytes()
    write(tmp_path, ids, seed, **changed)
    if isinstance(asks, str):
        with pytest.raises(UsageError, match=asks):
            await run(tmp_path)
        assert (tmp_path / "run/mllm/attempts.jsonl").read_bytes() == answers
        return
    assert await run(tmp_path) == asks
    assert (tmp_path / "run/mllm/attempts.jsonl").read_bytes().startswith(answers)
    assert await run(tmp_path) == 0


async def test_an_annotation_that_is_added_later_is_stored(tmp_path: Path) -> None:
    write(tmp_path, "abc")
    assert await run(tmp_path) == 3
    for evidence in ([[4, 3, 8, 6]], [[5, 5]], []):
        write(tmp_path, "abc", evidence=evidence)
        assert await run(tmp_path) == 0
        first = RunFolder(tmp_path / "run").readable_questions()[0].by_id["a"]
        assert isinstance(first, Question)
        stored = [Box(*place) if len(place) == 4 else Point(place[0], place[1]) for place in evidence]
        assert [annotation.place for annotation in first.evidence] == stored


@pytest.mark.system
async def test_runs_on_other_pictures_of_one_table_are_not_compared(tmp_path: Path) -> None:
    write(tmp_path, "abc")
    await run(tmp_path, "one")
    await run(tmp_path, "again")
    table = (tmp_path / "own.jsonl").read_text()
    write(tmp_path, "c", seed=5)
    (tmp_path / "own.jsonl").write_text(table)
    await run(tmp_path, "other")
    assert "mllm" in str(compare(tmp_path / "one", tmp_path / "again"))
    with pytest.raises(UsageError, match="1 of the 3 ids that both have differ; c differs in images"):
        str(compare(tmp_path / "one", tmp_path / "other"))
