"""Generated questions in HVSBench's official parquet layout, for tests, the quickstart and load tests.

Answers are known by construction, human scanpaths follow a rule, and the wording is this project's own, so a score on
them is never an HVSBench result. Row i of a type depends only on (seed, type, i).
Run: `write(Path("sample"), tuple(TASKS), per_task=20, seed=0)`, or `hybrid run hvsbench --data sample`.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hybrid.benchmarks._shared.samples import (
    check_item,
    check_request,
    dealt,
    indices_to_draw,
    table_schema,
    write_parquet,
)
from hybrid.core.errors import UsageError
from hybrid.core.types import LETTERS, Scanpath
from hybrid.samples.item import jpeg, until
from hybrid.samples.layouts import Rect
from hybrid.samples.pop_out import HEIGHT, MAX_THINGS, WIDTH, PopOutScene, free_viewing, pop_out, searching
from hybrid.samples.seeds import Purpose, generator

if TYPE_CHECKING:
    import pyarrow as pa

FILE_NAME = "test-00000-of-00001.parquet"
ORIGIN = "generated"
# Row i of the n-th type has the index n * ROWS_OF_A_TYPE + i, so that indices are unique.
ROWS_OF_A_TYPE = 1_000_000

TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


@dataclass(frozen=True)
class SceneQuestion:
    """A question before it becomes a row: its scene, its text, its answer and the form of the answer."""

    scene: PopOutScene
    question: str
    answer: str
    answer_type: str = "choice"


@dataclass(frozen=True)
class Task:
    """A question type. `make(rng, answer)` makes a question; `answer` is drawn evenly from 0 to `answers` - 1."""

    make: Callable[[np.random.Generator, int], SceneQuestion]
    answers: int
    field: str


def make_question(task: str, index: int, seed: int, purpose: Purpose = "sample") -> SceneQuestion:
    """Make question `index` (from 0) of a type. Raises `UsageError` for an unknown type or a negative number."""
    check_item(task, TASKS, index, seed)
    name = zlib.crc32(f"hvsbench {task}".encode())
    answer = dealt(TASKS[task].answers, index, purpose, seed, name)
    return TASKS[task].make(generator(purpose, seed, name, 1, index), answer)


def write(folder: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: Purpose = "sample") -> None:
    """Write `data/test-00000-of-00001.parquet`; the same call gives the same bytes on one machine.

    Raises:
        UsageError: an unknown type, `per_task` outside 1..1,000,000, or a negative seed; nothing is written then.
    """
    check_request(tasks, TASKS, per_task, seed)
    if per_task > ROWS_OF_A_TYPE:
        raise UsageError(f"per_task {per_task} must be at most {ROWS_OF_A_TYPE:,}")
    tables = (list(_records(task, per_task, seed, purpose)) for task in tasks)
    write_parquet(folder / "data" / FILE_NAME, tables, schema(), 100)


def schema() -> pa.Schema:
    """Return the arrow schema of the official files."""
    texts = "question question_type answer answer_type category split real_image_path origin_dataset"
    return table_schema(("number", "index"), ("image", "image"), ("text", texts))


def _records(task: str, rows: int, seed: int, purpose: Purpose) -> Iterator[Mapping[str, object]]:
    place = list(TASKS).index(task)
    for index in indices_to_draw(task, rows):
        item = make_question(task, index, seed, purpose)
        yield {
            "index": place * ROWS_OF_A_TYPE + index,
            "image": {"bytes": jpeg(item.scene.draw(), 90), "path": None},
            "question": item.question,
            "question_type": task,
            "answer": item.answer,
            "answer_type": item.answer_type,
            "category": TASKS[task].field,
            "split": "test",
            "real_image_path": f"{ORIGIN}/{task}_{index}.jpg",
            "origin_dataset": ORIGIN,
        }


def _most_salient(rng: np.random.Generator, answer: int) -> SceneQuestion:
    scene = pop_out(rng, 4)
    order = _with_first_at(rng, 4, answer)
    boxes = [_box(scene.objects[rank].box) for rank in order]
    text = f"Which of these boxes, given as [x0, y0, x1, y1], holds the most salient object? {_options(boxes)}"
    return SceneQuestion(scene, text, LETTERS[answer])


def _order(rng: np.random.Generator, answer: int) -> SceneQuestion:
    number = int(rng.integers(3, 5))
    scene = pop_out(rng, number)
    order = _with_first_at(rng, number, answer)
    boxes = [_box(scene.objects[rank].box) for rank in order]
    text = (
        "Sort the objects in these boxes, given as [x0, y0, x1, y1], from the most to the least salient, for example "
        f'"CAB". {_options(boxes)}'
    )
    return SceneQuestion(scene, text, "".join(LETTERS[order.index(rank)] for rank in range(number)), "sort")


def _more_salient(rng: np.random.Generator, answer: int, *, by_name: bool) -> SceneQuestion:
    """Ask which of two objects is more salient; the options are their names or their boxes."""
    scene = pop_out(rng, int(rng.integers(3, 6)))
    low, high = sorted(int(rank) for rank in rng.permutation(len(scene.objects))[:2])
    pair = [scene.objects[rank] for rank in ((low, high) if answer == 0 else (high, low))]
    if by_name:
        text = f"Which object is more salient? {_options([f'the {item.name}' for item in pair])}"
    else:
        text = f"Which box holds the more salient object? {_options([_box(item.box) for item in pair])}"
    return SceneQuestion(scene, text, LETTERS[answer])


def _rank(rng: np.random.Generator, answer: int, *, by_name: bool) -> SceneQuestion:
    """Ask for the rank of an object that is given by its name or by its box."""
    scene = pop_out(rng, int(rng.integers(3, 6)))
    item = scene.objects[answer]
    what = item.name if by_name else f"object in the box {_box(item.box)}"
    text = f"Which place has the {what} among all objects by saliency? {_options(TEXTS['ranks'])}"
    return SceneQuestion(scene, text, LETTERS[answer])


def _human_path(rng: np.random.Generator, answer: int, *, search: bool) -> SceneQuestion:
    """Ask which of two paths belongs to this image; the other path belongs to another image."""
    if search:
        scene, target = _with_target(rng)
        other = pop_out(rng, 5)
        paths = [searching(rng, scene, target, 1)[0], searching(rng, other, int(rng.integers(1, 5)), 1)[0]]
        text = f"Which scanpath fits a person who is searching for a {scene.objects[target].name} in this image?"
    else:
        scene, other = pop_out(rng, int(rng.integers(3, 6))), pop_out(rng, int(rng.integers(3, 6)))
        paths = [free_viewing(rng, pictured, 1)[0] for pictured in (scene, other)]
        text = "Which scanpath fits a person who looks at this image freely?"
    listings = [_lists(path) for path in (paths if answer == 0 else paths[::-1])]
    return SceneQuestion(scene, f"{text}\n{_options(listings)}", LETTERS[answer])


def _path(rng: np.random.Generator, answer: int, *, search: bool) -> SceneQuestion:
    del answer
    if search:
        scene, target = _with_target(rng)
        paths = searching(rng, scene, target)
        text = f"Predict where a person fixates when searching for a {scene.objects[target].name} in this image."
    else:
        scene = pop_out(rng, int(rng.integers(3, 6)))
        paths = free_viewing(rng, scene)
        text = "Predict where a person who looks at this image freely fixates."
    request = TEXTS["request"].format(n=len(paths[0].x))
    return SceneQuestion(scene, f"{text} {request}", "\n".join(_lists(path) for path in paths), "scanpath")


def _longest(rng: np.random.Generator, answer: int, *, search: bool) -> SceneQuestion:
    """Ask which of four fixations of one path was the longest."""
    if search:
        scene, target = _with_target(rng)
        text = (
            f"Which fixation did a person hold longest when searching for a {scene.objects[target].name} in this image?"
        )
        spots = until("path of four places", lambda: _longest_at(rng, searching(rng, scene, target, 1)[0], answer))
    else:
        scene = pop_out(rng, 5)
        text = "Which of these fixations did a person who looked at this image freely hold longest?"
        spots = until("path of four places", lambda: _longest_at(rng, free_viewing(rng, scene, 1)[0], answer))
    return SceneQuestion(scene, f"{text} {_options(spots)}", LETTERS[answer])


# By question type, in the benchmark's order.
TASKS: Mapping[str, Task] = {
    "Q1": Task(_most_salient, 4, "Prominence"),
    "Q2": Task(
        lambda rng, answer: SceneQuestion(
            pop_out(rng, answer + 1), "How many salient objects are there in the image?", str(answer + 1), "int"
        ),
        MAX_THINGS,
        "Subitizing",
    ),
    "Q3": Task(_order, 3, "Prioritizing"),
    "Q4": Task(partial(_more_salient, by_name=False), 2, "Prioritizing"),
    "Q5": Task(partial(_more_salient, by_name=True), 2, "Prioritizing"),
    "Q6": Task(partial(_rank, by_name=False), 3, "Prioritizing"),
    "Q7": Task(partial(_rank, by_name=True), 3, "Prioritizing"),
    "Q8": Task(partial(_human_path, search=False), 2, "Free-viewing"),
    "Q9": Task(partial(_path, search=False), 1, "Free-viewing"),
    "Q10": Task(partial(_longest, search=False), 4, "Free-viewing"),
    "Q11": Task(partial(_human_path, search=True), 2, "Searching"),
    "Q12": Task(partial(_path, search=True), 1, "Searching"),
    "Q13": Task(partial(_longest, search=True), 4, "Searching"),
}


def _with_first_at(rng: np.random.Generator, number: int, place: int) -> list[int]:
    """Return the ranks 0 to `number` - 1 in random order, with rank 0 at `place`."""
    order = [int(rank) + 1 for rank in rng.permutation(number - 1)]
    return [*order[:place], 0, *order[place:]]


def _with_target(rng: np.random.Generator) -> tuple[PopOutScene, int]:
    """Return a scene and the rank of the target, which is never the most salient object."""
    scene = pop_out(rng, 5)
    return scene, int(rng.integers(1, 5))


def _longest_at(rng: np.random.Generator, path: Scanpath, answer: int) -> list[str] | None:
    """Return four different positions of a path, with the longest fixation at index `answer`.

    Return None if the path has too few positions.
    """
    held_s: dict[str, float] = {}
    for x, y, time in zip(path.x, path.y, path.t_ms, strict=True):
        spot = f"({x:.2f}, {y:.2f})"
        held_s[spot] = max(held_s.get(spot, 0.0), time)
    if len(held_s) < 4:
        return None
    spots = [list(held_s)[int(place)] for place in rng.permutation(len(held_s))[:4]]
    longest = max(spots, key=lambda spot: held_s[spot])
    others = [spot for spot in spots if spot != longest]
    return [*others[:answer], longest, *others[answer:]]


def _options(texts: Sequence[str]) -> str:
    return " ".join(f"[{LETTERS[place]}] {text}" for place, text in enumerate(texts))


def _box(box: Rect) -> str:
    fractions = (box[0] / WIDTH, box[1] / HEIGHT, box[2] / WIDTH, box[3] / HEIGHT)
    return "[" + ", ".join(f"{value:.2f}" for value in fractions) + "]"


def _lists(path: Scanpath) -> str:
    x, y = (", ".join(f"{value:.2f}" for value in column) for column in (path.x, path.y))
    return f"X = [{x}] Y = [{y}] T = [{', '.join(str(round(time)) for time in path.t_ms)}]"
