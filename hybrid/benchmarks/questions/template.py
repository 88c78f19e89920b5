"""A file of questions to start from: a row of each kind about one drawn picture.

write(Path("questions.jsonl"))      # and shapes.png beside it; .csv and .tsv have the same rows
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Final

from hybrid.errors import UsageError
from hybrid.log.files import write_atomic

PICTURE: Final = "shapes.png"
SIZE: Final = (320, 200)
# Where the shapes are, in pixels: left, top, right, bottom.
RED_DISC, BLUE_SQUARE = (30, 40, 130, 140), (200, 70, 280, 150)

COLUMNS: Final = ("id", "image", "question", "choices", "answer", "kind", "tolerance", "task", "hint", "comment")
# The file itself; its boxes are those above.
ROWS: Final = Path(__file__).with_name("template.jsonl")


def write(path: Path) -> tuple[Path, ...]:
    """Write the file, as its ending says, and the picture. Returns both.

    Raises:
        UsageError: one of them is there, or the ending is none.
    """
    written = (path, path.parent / PICTURE)
    for each in written:
        if each.exists():
            raise UsageError(f"{each} is there already: give another name or folder with -o")
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
    write_atomic(written[0], text.encode())
    write_atomic(written[1], _picture())
    return written


def _picture() -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", SIZE, (245, 245, 240))
    draw = ImageDraw.Draw(picture)
    draw.ellipse(RED_DISC, fill=(200, 40, 40))
    draw.rectangle(BLUE_SQUARE, fill=(40, 70, 190))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
