"""Lessons: the weight of each part of a conversation in training, and the targets for picture tokens."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.architecture import IMAGE_TOKENS
from training.curriculum import draw_batches
from training.learn import to_read
from training.lessons import NOTHING, Lesson, Lessons
from training.pictures import Eyes
from training.scenes import look
from training.vocabulary import tokenizer

SAID = "1 red cube 1 0.2 0.60, 2 green ball 1 0.4 0.40"


@pytest.fixture(scope="module")
def words() -> Any:
    return tokenizer([f"How many red cubes are there? {SAID} Answer: (A)", "circle square depth img:1"] * 3, 1200)


def row(task: str, *turns: Mapping[str, Any], form: str = "plain") -> dict[str, Any]:
    return {"benchmark": "blink", "task": task, "form": form, "tools": [], "turns": list(turns)}


def test_only_tokens_of_pictures_that_are_looked_at_are_to_read_as_something(words: Any, tmp_path: Path) -> None:
    rows = list(look("prominence", 2, 0, tmp_path))
    lessons = Lessons(rows, words, Eyes(tmp_path), 0)
    scenes = [name for name, _ in lessons.scenes()]
    none = Lesson(np.zeros(1, np.int32), np.zeros(1, np.float32), (scenes[1], scenes[1]))
    lesson = Lesson(np.zeros(1, np.int32), np.zeros(1, np.float32), (scenes[0],), "prominence")
    places, expected = to_read([none, lesson, none], lessons)
    assert places == list(range(2 * IMAGE_TOKENS, 3 * IMAGE_TOKENS))
    assert expected == lessons.read_as(scenes[0], "prominence")
    (nothing,) = words(NOTHING, add_special_tokens=False)["input_ids"]
    parts = [part for part in Eyes(tmp_path).parts(scenes[0]) if part is not None]
    read = [[words.decode([token]) for token in tokens] for tokens in expected if tokens[0] != nothing]
    assert read == [[item.colour, "circle" if item.round else "square", *item.place] for item in parts]


def test_batches_are_as_many_as_asked_for_and_no_larger(words: Any, tmp_path: Path) -> None:
    answered = row("Jigsaw", {"role": "user", "content": "Which?"}, {"role": "assistant", "content": "Answer: (A)"})
    lessons = Lessons([*look("prominence", 2, 0, tmp_path), answered], words, Eyes(tmp_path), 0)
    batches = list(draw_batches(lessons, 23, 600, 0))
    assert len(batches) == 23
    assert all(len(batch) * max(len(item.ids) for item in batch) <= 600 for batch in batches)
    second = draw_batches(lessons, 23, 600, 0)
    assert [[entry.ids.tolist() for entry in batch] for batch in batches] == [
        [e.ids.tolist() for e in b] for b in second
    ]
