"""A file of questions to start from: a row of each kind about one drawn picture.

write(Path("questions.jsonl"))      # and shapes.png beside it; .csv and .tsv have the same rows
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hybrid.errors import UsageError
from hybrid.log.files import write_atomic

PICTURE: Final = "shapes.png"
SIZE: Final = (320, 200)
RED_DISC, BLUE_SQUARE = (30, 40, 130, 140), (200, 70, 280, 150)
"""Where the shapes are, in pixels: left, top, right, bottom."""

_ROWS: Final[Sequence[Mapping[str, object]]] = (
    {
        "question": "Which shape is on the left?",
        "choices": ["a red disc", "a blue square"],
        "answer": "a red disc",
        "task": "relation",
        "comment": "A choice. The answer is the text or the letter of one. Paths of images are relative to this file.",
    },
    {
        "question": "Is there a green triangle in the image?",
        "answer": "no",
        "task": "existence",
        "comment": "Without choices the answer shows the kind: yes or no, a number, a text. The column kind says it.",
    },
    {
        "question": "How many shapes are in the image?",
        "answer": 2,
        "task": "counting",
        "comment": "task is the row of the tables of results; leave it out where there is only one.",
    },
    {
        "question": "How many times as wide as high is the image?",
        "answer": 1.6,
        "kind": "number",
        "tolerance": "5%",
        "task": "measuring",
        "comment": "A number counts within the tolerance: 0.1 is absolute, 5% is of the answer.",
    },
    {
        "question": "What colour is the square?",
        "answer": "blue|dark blue",
        "kind": "text",
        "task": "attribute",
        "hint": "One word is enough.",
        "comment": "A text counts when it is one of the spellings, without case, punctuation and articles.",
    },
    {
        "question": "Name a point on the red disc.",
        "answer": list(RED_DISC),
        "kind": "point",
        "task": "pointing",
        "comment": "A point counts inside of the box left, top, right, bottom in pixels.",
    },
    {
        "question": "Where is the blue square?",
        "answer": list(BLUE_SQUARE),
        "kind": "box",
        "task": "locating",
        "comment": "A box counts when its intersection over union is at least 0.5.",
    },
)
COLUMNS: Final = ("id", "image", "question", "choices", "answer", "kind", "tolerance", "task", "hint", "comment")


def write(path: Path) -> tuple[Path, ...]:
    """Write the file, as its ending says, and the picture. Returns both.

    Raises:
        UsageError: one of them is there, or the ending is none.
    """
    written = (path, path.parent / PICTURE)
    for each in written:
        if each.exists():
            raise UsageError(f"{each} is there already: give another name or folder with -o")
    rows = [{"id": f"q{number}", "image": PICTURE, **row} for number, row in enumerate(_ROWS, 1)]
    match path.suffix.lower():
        case ".jsonl":
            text = "".join(json.dumps({name: row[name] for name in COLUMNS if name in row}) + "\n" for row in rows)
        case ".csv" | ".tsv":
            text = _separated(rows, "," if path.suffix.lower() == ".csv" else "\t")
        case _:
            raise UsageError(f"-o {path}: end the name in .jsonl, .csv or .tsv")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(written[0], text.encode())
    write_atomic(written[1], _picture())
    return written


def _separated(rows: Sequence[Mapping[str, object]], delimiter: str) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        cells = (row.get(name, "") for name in COLUMNS)
        writer.writerow([json.dumps(cell) if isinstance(cell, list) else cell for cell in cells])
    return buffer.getvalue()


def _picture() -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", SIZE, (245, 245, 240))
    draw = ImageDraw.Draw(picture)
    draw.ellipse(RED_DISC, fill=(200, 40, 40))
    draw.rectangle(BLUE_SQUARE, fill=(40, 70, 190))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
