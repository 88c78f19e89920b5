"""Generated ActiView questions: layout, clues, bytes."""

import json
from pathlib import Path

import cv2
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.actiview.data import clue_views
from hybrid.benchmarks.actiview.sample import HEIGHT, WIDTH, flags, levels, write
from hybrid.core.images import decode

rects = st.tuples(st.integers(0, WIDTH - 31), st.integers(0, HEIGHT - 31)).map(lambda p: (*p, p[0] + 30, p[1] + 30))


@given(st.lists(rects, min_size=1, max_size=4))
def test_flags_and_first_views(clues: list[tuple[int, int, int, int]]) -> None:
    marks = flags(clues)
    canvas = np.zeros((HEIGHT, WIDTH), np.uint8)
    for x0, y0, x1, y1 in clues:
        cv2.rectangle(canvas, (x0, y0), (x1 - 1, y1 - 1), 1, -1)
    views = [canvas[:360, :480], canvas[360:, :480], canvas[:360, 480:], canvas[360:, 480:]]
    assert [mark != "no" for mark in marks] == [bool(view.any()) for view in views]
    assert clue_views(marks) == tuple(number for number, view in enumerate(views, 1) if view.any())
    starts = levels(marks)
    classes = {"hard": marks[starts["hard"]], "easy": marks[starts["easy"]], "medium": marks[starts["medium"]]}
    assert classes["hard"] == "no" or "no" not in marks
    assert isinstance(classes["easy"], int) or not any(isinstance(mark, int) for mark in marks)
    assert classes["medium"] == "partial" or "partial" not in marks
    if "partial" not in marks and "no" in marks:
        assert starts["medium"] == starts["hard"]


def test_files_have_the_official_layout(tmp_path: Path) -> None:
    write(tmp_path, ("geo_loc", "object_attr"), 2, 8)
    rows = json.loads((tmp_path / "asset" / "data.json").read_text())["data"]
    views = json.loads((tmp_path / "asset" / "groundtruth_views.json").read_text())
    starts = json.loads((tmp_path / "asset" / "shifting_level.json").read_text())
    assert [row["id"] for row in rows] == [f"actiview{number:04d}" for number in range(1, 5)]
    assert set(starts) == {"easy", "medium", "hard"}
    for number, row in enumerate(rows):
        assert set(row) == {
            "id", "question", "options", "answer", "images", "category", "distraction", "contains_bbox"
        }  # fmt: skip
        original, small, lines, *parts = (decode((tmp_path / name).read_bytes(), name) for name in row["images"])
        assert original.shape == (HEIGHT, WIDTH, 3)
        assert {part.shape for part in (small, lines, *parts)} == {(HEIGHT // 2, WIDTH // 2, 3)}
        second = np.block([[[parts[0]], [parts[2]]], [[parts[1]], [parts[3]]]])
        assert np.abs(second.astype(int) - original).mean() < 4
        assert views[number] == list(clue_views(row["contains_bbox"]))
        assert all(starts[name][number] == start for name, start in levels(row["contains_bbox"]).items())
