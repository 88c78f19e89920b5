"""ActiView's files: `asset/data.json`, `groundtruth_views.json`, `shifting_level.json`, `images/`, `images_split/`.

A row lists seven pictures: the original, the small full image, the full image with lines, and the parts upper left,
lower left, upper right, lower right. For other numbers of parts than four, the full image and the parts are cut from
the original. The JSON files may also be in the folder itself.
"""

from __future__ import annotations

import logging
import random
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.benchmarks._shared.paths import located, read_located
from hybrid.benchmarks._shared.rows import DataRow, lost, read_json
from hybrid.benchmarks.actiview.settings import LEVELS, Settings, column
from hybrid.benchmarks.actiview.views import GRIDS, cut, lined, shrink_to_part, stitch, stitched_orders
from hybrid.benchmarks.base import Source
from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore, decode
from hybrid.core.types import LETTERS, BrokenQuestion, Json, Kind, Question, StoredImage

log = logging.getLogger("hybrid.benchmarks.actiview")

TASKS: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

DATA, CLUES, STARTS = "data.json", "groundtruth_views.json", "shifting_level.json"
# Folders to which the names of pictures are relative.
BELOW = ("", "asset")
START_SEED = 1234
PICTURES = 7


@dataclass(frozen=True)
class Entry:
    """A row of data.json joined with the other files. Parts are numbered from 1.

    `fault` is the reason why the question cannot be asked; `id` and `task` are empty if the row lacks them.
    """

    row: DataRow
    id: str
    task: str
    clues: tuple[int, ...]
    starts: Mapping[str, int]
    fault: str = ""


def asset_folder(folder: Path) -> Path:
    """Return the folder of the JSON files. Raises `DataError` naming the folders searched."""
    for candidate in (folder / "asset", folder):
        if (candidate / DATA).is_file():
            if candidate.name == "asset" and candidate == folder and not any(map(Path.is_dir, folder.iterdir())):
                raise DataError(
                    f"{folder} contains {DATA}, but it is not ActiView's: the pictures must be in folders next to it"
                )
            return candidate
    raise DataError(f"{folder} contains no ActiView data: expected asset/{DATA} (or {DATA})")


def task_of(category: str, location: str) -> str:
    """Return the task of a category string. Raises `DataError` if it matches no task."""
    lowered = category.strip().casefold().replace("_", "-").replace(" ", "-")
    for task, facts in TASKS.items():
        if lowered.startswith(tuple(facts["begins"])):
            return task
    raise DataError(f"{location}, field category: {category!r} is not one of ActiView's eight categories")


def entries(source: Source, settings: Settings) -> tuple[Entry, ...]:
    """Return all rows, in order. Raises `DataError` for an unusable file."""
    folder = asset_folder(source.folder)
    rows = _rows(source.folder, folder / DATA)
    clues = _clues(source.folder, folder / CLUES, len(rows))
    # The released code draws once per row, over all rows in order, whichever tasks are chosen.
    draw = random.Random(START_SEED)
    random_starts = [draw.randint(0, settings.splits - 1) + 1 for _ in rows]
    levels = _levels(source.folder, folder / STARTS, len(rows)) if settings.starts & LEVELS.keys() else {}
    seen: set[str] = set()
    read_entries = []
    for number, row in enumerate(rows):
        starts = {
            "R": random_starts[number],
            **{start: levels[name][number] for start, name in LEVELS.items() if levels},
        }
        views_of_row = clues[number]
        identity = task = ""
        faults = [error for error in (views_of_row, *starts.values()) if isinstance(error, DataError)]
        try:
            task = task_of(row.text("category"), row.where)
            given_id = row.text("id")
            if given_id in seen:
                faults.insert(0, DataError(f"{row.where}, field id: {given_id!r:.80} appears for the second time"))
            else:
                identity = given_id
                seen.add(given_id)
        except DataError as error:
            faults.insert(0, error)
        views = () if isinstance(views_of_row, DataError) else views_of_row
        flags = row.values.get("contains_bbox")
        if not faults and isinstance(flags, list) and clue_views(flags) != views:
            log.warning("%s: contains_bbox %s does not give the views %s of %s", row.where, flags, views, CLUES)
        valid_starts = {name: start for name, start in starts.items() if not isinstance(start, DataError)}
        read_entries.append(
            Entry(row, identity, task=task, clues=views, starts=valid_starts, fault=str(faults[0]) if faults else "")
        )
    if not any(entry.task for entry in read_entries):
        raise DataError(read_entries[0].fault)
    return tuple(read_entries)


def clue_views(flags: Sequence[object]) -> tuple[int, ...]:
    """Return the views with clues: those whose `contains_bbox` flag is not "no", or all views if all flags are "no"."""
    marked = tuple(number for number, flag in enumerate(flags, 1) if flag != "no")
    return marked or tuple(range(1, len(flags) + 1))


def question_images(entry: Entry, source: Source, settings: Settings) -> tuple[StoredImage, ...]:
    """Return the small full image, the full image with lines, then the parts.

    Raises `DataError` for a missing picture.
    """
    names = entry.row.values.get("images")
    if not isinstance(names, list) or len(names) != PICTURES or not all(isinstance(name, str) for name in names):
        raise DataError(f"{entry.row.where}, field images: expected {PICTURES} paths, found {names!r:.80}")
    if settings.splits == 4:
        return tuple(
            source.store.put(_image_bytes(source, name, entry.row.where), f"{entry.row.where}, {name}")
            for name in names[1:]
        )
    original = decode(_image_bytes(source, names[0], entry.row.where), f"{entry.row.where}, {names[0]}")
    columns, rows = GRIDS[settings.splits]
    if original.shape[1] < columns or original.shape[0] < rows:
        size = f"{original.shape[1]} x {original.shape[0]} pixels"
        raise DataError(f"{entry.row.where}, {names[0]}: {size} cannot be cut into {columns} columns and {rows} rows")
    small = shrink_to_part(original, settings.splits)
    pictures = (small, lined(small, settings.splits), *cut(original, settings.splits))
    return tuple(source.store.put_pixels(picture) for picture in pictures)


def picture_paths(source: Source, tasks: Sequence[str], settings: Settings) -> tuple[Path, ...]:
    """Return the existing picture files of the questions of `tasks`."""
    paths: dict[Path, None] = {}
    for entry in entries(source, settings):
        names = entry.row.values.get("images")
        if entry.task in tasks and isinstance(names, list):
            requested = names[1:] if settings.splits == 4 else names[:1]
            for name in requested:
                path = located(source.folder, name, BELOW) if isinstance(name, str) else None
                if path is not None:
                    paths[path] = None
    return tuple(paths)


def questions_of(entry: Entry, source: Source, settings: Settings) -> Iterator[Question | BrokenQuestion]:
    """Yield the variants of one row; one `BrokenQuestion` if the row is unusable."""
    if not (entry.task and entry.id):
        for task in (entry.task,) if entry.task else source.tasks:
            yield lost(task, source.folder, entry.row.where, entry.fault)
        return
    if entry.fault:
        yield BrokenQuestion(entry.id, entry.task, entry.fault)
        return
    try:
        yield from _variants(entry, source, settings)
    except DataError as error:
        yield BrokenQuestion(entry.id, entry.task, str(error))


def _variants(entry: Entry, source: Source, settings: Settings) -> list[Question]:
    row = entry.row
    text, options = row.text("question"), row.texts("options")
    if len(set(options)) != len(options):
        raise DataError(f"{row.where}, field options: the same option appears twice: {options!r:.120}")
    answer = _answer(row, len(options))
    images = question_images(entry, source, settings)
    clues: list[Json] | None = list(entry.clues) if settings.splits == 4 else None
    several, questions = len(settings.variants) > 1, []
    for mode, start in settings.variants:
        name, first = column(mode, start), entry.starts[start] if start else None
        form = "concat" if settings.images == "any_view" and mode == "shift" else settings.images
        facts: dict[str, Json] = {
            "mode": mode,
            "start": first,
            "choose": settings.choose,
            "splits": settings.splits,
            "images": form,
            "decisions": settings.decisions,
        }
        if settings.oracle_views:
            facts["oracle_views"] = list(entry.clues)
        if form == "concat":
            facts["stitched"] = _stitched(source.store, images[2:], stitched_orders(mode, first, settings.choose))
        groups = {"type": TASKS[entry.task]["type"], "mode": name, "views_with_clues": str(len(entry.clues))}
        if (distraction := row.values.get("distraction")) in (0, 1):
            groups["distraction"] = str(int(distraction))
        questions.append(
            Question(
                id=f"{entry.id}#{name}" if several else entry.id,
                task=entry.task,
                images=images,
                text=text,
                kind=Kind.CHOICE,
                choices=options,
                target={"answer": LETTERS[answer], "views": clues},
                route="choice",
                groups=groups,
                protocol=facts,
                cluster=entry.id,
            )
        )
    return questions


def _answer(row: DataRow, options: int) -> int:
    """Return the number of the right option, from 0. Raises `DataError`."""
    answer = row.values.get("answer")
    if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < options:
        raise DataError(f"{row.where}, field answer: {answer!r} is not an option's number, 0 to {options - 1}")
    return answer


def _stitched(store: ImageStore, views: Sequence[StoredImage], orders: Iterable[Sequence[int]]) -> dict[str, Json]:
    """Store the views side by side in each order, cut to the lowest; return each picture's facts by its order."""
    pixels = [store.pixels(view) for view in views]
    lowest = min(picture.shape[0] for picture in pixels)
    stitched: dict[str, Json] = {}
    for order in orders:
        image = store.put_pixels(stitch([pixels[number - 1][:lowest] for number in order]))
        stitched["-".join(map(str, order))] = [image.sha256, image.width, image.height, image.media_type]
    return stitched


def _rows(root: Path, path: Path) -> tuple[DataRow, ...]:
    """Return the rows; a row that is not an object has no readable field."""
    loaded = read_json(root, path)
    records = loaded.get("data") if isinstance(loaded, dict) else None
    if not isinstance(records, list) or not records:
        raise DataError(f"{path}, field data: expected a list of questions, found {type(records).__name__}")
    return tuple(
        DataRow(values, f"{path}, row {number}")
        if isinstance(values, dict)
        else DataRow(
            {}, f"{path}, row {number}", {"category": f"the row must be an object, not {type(values).__name__}"}
        )
        for number, values in enumerate(records, 1)
    )


def _clues(root: Path, path: Path, count: int) -> tuple[tuple[int, ...] | DataError, ...]:
    """Return the views with clues of each row, or the row's error. Raises `DataError` unless there are `count` rows."""
    loaded = read_json(root, path)
    if not isinstance(loaded, list) or len(loaded) != count:
        raise DataError(f"{path}: expected {count} lists of views, one for each row of {DATA}")
    return tuple(
        tuple(sorted(set(views)))
        if isinstance(views, list) and views and all(type(view) is int and 1 <= view <= 4 for view in views)
        else DataError(f"{path}, row {number}: expected numbers of views from 1 to 4, found {views!r:.80}")
        for number, views in enumerate(loaded, 1)
    )


def _levels(root: Path, path: Path, count: int) -> dict[str, tuple[int | DataError, ...]]:
    """Return, by level, the first view of each row or its error. Raises `DataError` unless there are `count` rows."""
    loaded = read_json(root, path)
    by_level: dict[str, tuple[int | DataError, ...]] = {}
    for name in LEVELS.values():
        views = loaded.get(name) if isinstance(loaded, dict) else None
        if not isinstance(views, list) or len(views) != count:
            raise DataError(f"{path}, field {name}: expected {count} first views, one for each row of {DATA}")
        by_level[name] = tuple(
            view + 1
            if type(view) is int and 0 <= view <= 3
            else DataError(f"{path}, field {name}, row {n}: {view!r:.80} is not a view from 0 to 3")
            for n, view in enumerate(views, 1)
        )
    return by_level


def _image_bytes(source: Source, name: str, location: str) -> bytes:
    return read_located(source.folder, name, f"{location}, field images", BELOW)
