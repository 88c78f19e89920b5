"""The annotated places of a question: boxes and points that have to be seen to answer it.

    evidence: [[40, 30, 90, 80], [12, 15]]                # a box and a point
    evidence: [{"image": 2, "box": [40, 30, 90, 80]}]     # of the second of several pictures

The places are in a column, or in a JSON file next to the picture (`evidence_beside: KEY` of a mapping, as for V*Bench).
Their coordinates are in the frame of the table. No solver gets them; the statistic `places` compares them with the
regions of tool calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from hybrid.benchmarks._shared.paths import located, read_located
from hybrid.benchmarks._shared.rows import DataRow
from hybrid.benchmarks.questions.cells import numbers, parse_list
from hybrid.benchmarks.questions.columns import Columns
from hybrid.benchmarks.questions.frames import Size, in_pixels
from hybrid.benchmarks.questions.schema import Layout
from hybrid.core.errors import DataError
from hybrid.core.types import AnnotatedPlace, Box, Json, Point

MAX_PLACES: Final = 1000
# An annotation as written: the number of its picture, or None if it names no picture; and `{"box": [...]}` or
# `{"point": [...]}` in the frame.
Written = tuple[int | None, dict[str, Json]]


def annotated_places(row: DataRow, columns: Columns, layout: Layout, folder: Path, sizes: Sequence[Size]) -> Any:
    """Return the annotated places of a row as a tuple of `AnnotatedPlace`; empty without an annotation.

    Args:
        row: row of the table.
        columns: its columns.
        layout: frame and form of boxes; the key of a file beside the picture.
        folder: root of image paths.
        sizes: sizes of the row's pictures; if empty, positions are checked and converted only as far as possible.

    Raises:
        DataError: an annotation that is not a box or point, is outside of its picture, or names a missing picture.
    """
    written, location = _written(row, columns, layout, folder)
    return tuple(_in_picture(image, place, layout, sizes, location) for image, place in written)


def is_ignored(row: DataRow, columns: Columns) -> bool:
    """Return whether the cell has text (such as a quotation) but no place, in a column that no mapping names."""
    column = columns.evidence
    value = row.cell(column) if column and "evidence" not in columns.from_mapping else None
    if isinstance(value, str) and (value.strip().startswith("{") or _is_broken_list(value)):
        # A text that should be an annotation but cannot be parsed is an error.
        return not any(character.isdigit() for character in value)
    return isinstance(value, str | list | tuple | Mapping) and _has_text(value) and not _holds_place(value)


def _is_broken_list(text: str) -> bool:
    return text.strip().startswith(("[", "(")) and parse_list(text) is None and numbers(text) is None


def _has_text(value: Any) -> bool:
    if isinstance(value, str) and (items := parse_list(value)) is not None:
        return _has_text(items)
    if isinstance(value, Mapping | list | tuple):
        return any(map(_has_text, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, str) and bool(value.strip())


def _holds_place(value: Any) -> bool:
    """Return whether the value contains a list with two numbers, even as text, or a list or mapping of numbers only."""
    if isinstance(value, Mapping):
        values = list(value.values())
        return bool(numbers(values)) or any(map(_holds_place, values))
    if numbers(value):
        return True
    items = parse_list(value) or []
    # A title with the number of a sentence is not a place. A box with a missing number is a place, but an invalid one.
    return sum(isinstance(item, int | float) for item in items) > 1 or any(map(_holds_place, items))


def _written(row: DataRow, columns: Columns, layout: Layout, folder: Path) -> tuple[list[Written], str]:
    if columns.evidence:
        location = f"{row.where}, column {columns.evidence}"
        value = None if is_ignored(row, columns) else row.cell(columns.evidence)
        return _places(value, layout, location), location
    if layout.evidence_beside is None or not columns.image:
        return [], row.where
    name = row.cell(columns.image[0])
    path = str(PurePosixPath(name).with_suffix(".json")) if isinstance(name, str) and name and len(name) < 512 else ""
    if not path or located(folder, path) is None:
        return [], row.where
    location = f"{row.where}: {path}"
    try:
        facts = json.loads(read_located(folder, path, location))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{location}: is not JSON ({error})") from error
    value = facts.get(layout.evidence_beside) if isinstance(facts, Mapping) else None
    return _places(value, layout, f"{location}, {layout.evidence_beside}"), location


def _places(value: Any, layout: Layout, location: str) -> list[Written]:
    if value is None or value == "" or value != value:  # noqa: PLR0124 - pandas writes an empty cell as nan
        return []
    flat = numbers(value)
    items = [list(flat)] if flat else parse_list(value)
    if isinstance(value, Mapping):
        items = [value]
    if items is None:
        raise DataError(
            f"{location}: {value!r:.60} is not a list of boxes or points: write [[left, top, right, bottom]]"
        )
    if len(items) > MAX_PLACES:
        raise DataError(f"{location}: {len(items):,} annotated places; at most {MAX_PLACES:,}")
    return [_place(item, layout, location) for item in items]


def _place(item: Any, layout: Layout, location: str) -> Written:
    image = None
    if isinstance(item, Mapping):
        image, places = item.get("image"), [item[key] for key in ("box", "point") if item.get(key) is not None]
        if not (image is None or (isinstance(image, int) and not isinstance(image, bool))) or len(places) != 1:
            raise DataError(f'{location}: {item!r:.80}: write {{"image": 1, "box": [...]}} or "point"')
        item = places[0]
    place = numbers(item)
    if place is not None and len(place) == 2:
        return image, {"point": list(place)}
    if place is None or len(place) != 4:
        raise DataError(f"{location}: {item!r:.60} is neither a box (four numbers) nor a point (two)")
    x0, y0, x1, y1 = place
    if layout.evidence_form == "xywh":
        x1, y1 = x0 + x1, y0 + y1
    if not (x0 < x1 and y0 < y1):
        expected = "left, top, width, height" if layout.evidence_form == "xywh" else "left, top, right, bottom"
        raise DataError(f"{location}: {item!r:.60} is not a box: write {expected}")
    return image, {"box": [x0, y0, x1, y1]}


def _in_picture(
    image: int | None, place: Mapping[str, Json], layout: Layout, sizes: Sequence[Size], location: str
) -> AnnotatedPlace:
    if image is None and len(sizes) > 1:
        raise DataError(
            f'{location}: it is unclear which of the {len(sizes)} pictures is meant: write {{"image": 1, "box": [...]}}'
        )
    number = 1 if image is None else image
    if number < 1:
        raise DataError(f"{location}: there is no picture {number}; pictures are numbered from 1")
    if sizes and number > len(sizes):
        raise DataError(f"{location}: there is no picture {number}; the row has {len(sizes)}")
    picture_sizes = [sizes[number - 1]] if sizes else []
    # Without sizes (a check of the table alone) positions stay in the frame.
    placed: Any = in_pixels(place, layout.frame, picture_sizes, location) if picture_sizes else place
    corners: Sequence[float] = placed.get("box") or placed["point"]
    return AnnotatedPlace(Box(*corners) if len(corners) == 4 else Point(corners[0], corners[1]), number)
