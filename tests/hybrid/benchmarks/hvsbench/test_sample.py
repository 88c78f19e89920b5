"""Generated HVSBench questions: the official layout, answers that are true, the same bytes again."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from hybrid.benchmarks.hvsbench.data import human_paths
from hybrid.benchmarks.hvsbench.question_text import given, options
from hybrid.benchmarks.hvsbench.sample import FILE_NAME, TASKS, made, write
from hybrid.errors import UsageError
from hybrid.images import decode
from hybrid.samples.pop_out import HEIGHT, MOST, WIDTH, free_viewing, pop_out, searching
from hybrid.types import LETTERS

COLUMNS = [
    *("index", "image", "question", "question_type", "answer"),
    *("answer_type", "category", "split", "real_image_path", "origin_dataset"),
]


def rows(folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = pq.read_table(folder / "data" / FILE_NAME).to_pylist()
    return found


def test_the_official_columns_and_every_type(tmp_path: Path) -> None:
    write(tmp_path, tuple(TASKS), 2, 0)
    table = pq.read_table(tmp_path / "data" / FILE_NAME)
    assert table.schema.names == COLUMNS
    assert str(table.schema.field("index").type) == "int64"
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == {"_type": "Image"}
    found = rows(tmp_path)
    assert [row["question_type"] for row in found] == [task for task in TASKS for _ in range(2)]
    assert len({row["index"] for row in found}) == len(found)
    cell = found[0]["image"]
    assert isinstance(cell, dict)
    assert decode(cell["bytes"], "row 1").shape == (HEIGHT, WIDTH, 3)


def test_the_same_call_gives_the_same_bytes_and_more_rows_change_none(tmp_path: Path) -> None:
    for name, per_task, seed in (("a", 3, 1), ("b", 3, 1), ("c", 4, 1), ("d", 3, 2)):
        write(tmp_path / name, ("Q3", "Q12"), per_task, seed)
    files = {name: (tmp_path / name / "data" / FILE_NAME).read_bytes() for name in "abd"}
    assert files["a"] == files["b"] != files["d"]
    assert rows(tmp_path / "a")[:3] == rows(tmp_path / "c")[:3]


@pytest.mark.parametrize(
    ("tasks", "per_task", "seed"), [(("Q14",), 1, 0), (("Q1",), 0, 0), (("Q1",), 1, -1), (("Q1",), 1_000_001, 0)]
)
def test_what_cannot_be_written(tmp_path: Path, tasks: tuple[str, ...], per_task: int, seed: int) -> None:
    with pytest.raises(UsageError):
        write(tmp_path, tasks, per_task, seed)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("task", [task for task in TASKS if task not in {"Q2", "Q3", "Q9", "Q12"}])
def test_every_block_of_rows_holds_each_letter_once(task: str) -> None:
    size = TASKS[task].answers
    for block in range(3):
        letters = [made(task, block * size + place, 5).answer for place in range(size)]
        assert sorted(letters) == list(LETTERS[:size])


def area(box: tuple[float, float, float, float]) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


@pytest.mark.parametrize("index", range(4))
def test_orders_and_pairs_follow_the_sizes(index: int) -> None:
    item = made("Q3", index, 0)
    boxes = given("Q3", item.question, (WIDTH, HEIGHT), "xyxy").boxes
    sizes = [area((box.x0, box.y0, box.x1, box.y1)) for box in boxes]
    assert [LETTERS[place] for place in np.argsort(sizes)[::-1]] == list(item.answer)
    for task in ("Q1", "Q4"):
        item = made(task, index, 0)
        boxes = given(task, item.question, (WIDTH, HEIGHT), "xyxy").boxes
        assert int(np.argmax([area((box.x0, box.y0, box.x1, box.y1)) for box in boxes])) == LETTERS.index(item.answer)


@pytest.mark.parametrize("index", range(6))
def test_ranks_names_and_counts(index: int) -> None:
    item = made("Q7", index, 0)
    name = re.search(r"has the (\w+ \w+) among", item.question)
    assert name is not None
    assert [str(thing.name) for thing in item.scene.things].index(name[1]) == LETTERS.index(item.answer)
    item = made("Q5", index, 0)
    names = [f"the {thing.name}" for thing in item.scene.things]
    ranks = [names.index(option) for option in options(item.question)]
    assert ranks.index(min(ranks)) == LETTERS.index(item.answer)
    item = made("Q2", index, 0)
    assert len(item.scene.things) == int(item.answer)


@pytest.mark.parametrize("task", ["Q8", "Q11"])
@pytest.mark.parametrize("index", range(4))
def test_the_right_scanpath_visits_the_things_of_the_picture(task: str, index: int) -> None:
    item = made(task, index, 0)
    paths = given(task, item.question, (WIDTH, HEIGHT), "xyxy").scanpaths
    spots = [(0.5, 0.5), *(thing.centre for thing in item.scene.things)]
    right = paths[LETTERS.index(item.answer)]
    for x, y in zip(right.x, right.y, strict=True):
        assert min(np.hypot(x - a, y - b) for a, b in spots) < 0.08


@pytest.mark.parametrize("task", ["Q9", "Q12"])
def test_several_subjects_with_the_length_that_the_question_names(task: str) -> None:
    item = made(task, 1, 0)
    paths = human_paths(item.answer)
    assert len(paths) == 5
    assert given(task, item.question, (WIDTH, HEIGHT), "xyxy").fixations == len(paths[0].x)
    assert all(sum(path.t_ms) <= 5000 for path in paths)


def test_pictures_show_as_many_coloured_things_as_they_have() -> None:
    rng = np.random.default_rng(3)
    for count in range(1, MOST + 1):
        scene = pop_out(rng, count)
        pixels = scene.draw().astype(int)
        assert np.array_equal(pixels, scene.draw())
        colourful = np.ptp(pixels, axis=2) > 45
        for thing in scene.things:
            x0, y0, x1, y1 = (int(value) for value in thing.box)
            assert colourful[y0:y1, x0:x1].mean() > 0.6
            colourful[y0:y1, x0:x1] = False
        assert colourful.mean() < 0.001


def test_scanpaths_stay_inside_and_end_at_the_target() -> None:
    rng = np.random.default_rng(4)
    scene = pop_out(rng, 5)
    for path in free_viewing(rng, scene, 20):
        assert 4 <= len(path.x) <= 8
        assert all(0 <= value <= 1 for value in (*path.x, *path.y))
        assert len(set(path.t_ms)) == len(path.t_ms)
    for path in searching(rng, scene, 3, 20):
        x, y = scene.things[3].centre
        assert np.hypot(path.x[-1] - x, path.y[-1] - y) < 0.08
