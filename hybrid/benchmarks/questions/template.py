"""A template file of questions: one row of each kind, about several drawn pictures.

write(Path("questions.jsonl"))      # with its pictures in the same folder; .csv and .tsv have the same rows
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hybrid.core.errors import UsageError
from hybrid.core.files import write_atomic

Box = tuple[int, int, int, int]
SIZE: Final = (320, 200)
# Boxes of a red disc and a blue square in each picture: left, top, right, bottom in pixels. There are several pictures,
# because questions about one picture are a single observation, which has no interval.
PICTURES: Final[Mapping[str, tuple[Box, Box]]] = {
    "shapes.png": ((30, 40, 130, 140), (200, 70, 280, 150)),
    "shapes-2.png": ((20, 60, 100, 140), (180, 30, 300, 150)),
    "shapes-3.png": ((50, 60, 150, 160), (210, 20, 270, 80)),
    "shapes-4.png": ((40, 90, 120, 170), (180, 30, 260, 110)),
}

COLUMNS: Final = (
    "id",
    "image",
    "question",
    "choices",
    "answer",
    "kind",
    "tolerance",
    "task",
    "hint",
    "evidence",
    "comment",
)
# The file with the rows of the template; its boxes belong to the pictures above.
ROWS: Final = Path(__file__).with_name("template.jsonl")


def write(path: Path) -> tuple[Path, ...]:
    """Write the file, in the format of its ending, and its pictures. Returns all paths.

    Raises:
        UsageError: one of the files exists, or the ending is unknown.
    """
    paths = (path, *(path.parent / name for name in PICTURES))
    for written_path in paths:
        if written_path.exists():
            raise UsageError(f"{written_path} already exists: give another name or folder with -o")
    text = ROWS.read_text("utf-8")
    if path.suffix.lower() in (".csv", ".tsv"):
        table = io.StringIO()
        delimiter = "," if path.suffix.lower() == ".csv" else "\t"
        writer = csv.DictWriter(table, COLUMNS, delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        for row in map(json.loads, text.splitlines()):
            writer.writerow({name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()})
        text = table.getvalue()
    elif path.suffix.lower() != ".jsonl":
        raise UsageError(f"-o {path}: end the name in .jsonl, .csv or .tsv")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode())
    for name, (disc, square) in PICTURES.items():
        write_atomic(path.parent / name, _draw(disc, square))
    return paths


def _draw(disc: Box, square: Box) -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", SIZE, (245, 245, 240))
    draw = ImageDraw.Draw(picture)
    draw.ellipse(disc, fill=(200, 40, 40))
    draw.rectangle(square, fill=(40, 70, 190))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
