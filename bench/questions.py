"""Measure peak memory and time of reading a file of questions by number of rows; memory is flat if rows are streamed.

    python -m bench.questions [--rows 2000 --rows 200000] [--ending .tsv]

Each row has its own image, a PNG of 64 x 64 pixels in base64, and one of ten tasks. The command measures one process of
`hybrid data check FILE --json`; peak_mb is its peak resident memory.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from bench._frame import environment, measured, options, table, turns

COLUMNS = ("id", "image", "question", "choices", "answer", "task")


def write(path: Path, rows: int) -> None:
    """Write a file with `rows` rows, in the format of its suffix."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        if path.suffix != ".jsonl":
            writer.writerow(COLUMNS)
        for number in range(rows):
            buffer = io.BytesIO()
            Image.new("RGB", (64, 64), (number % 256, number // 256 % 256, number // 65536)).save(buffer, "PNG")
            image = base64.b64encode(buffer.getvalue()).decode()
            choices = ["red", "green", "blue", f"colour {number}"]
            row = (f"q{number}", image, "Which colour is the square?", choices, "B", f"task {number % 10}")
            if path.suffix == ".jsonl":
                file.write(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n")
            else:
                writer.writerow([json.dumps(cell) if isinstance(cell, list) else cell for cell in row])


@dataclass(frozen=True)
class Peak:
    """Cost of reading a file with this number of rows."""

    rows: int
    peak_mb: float
    seconds: float


def main() -> None:
    """Print one line per number of rows."""
    flags = options(__doc__, {"--rows": [int], "--ending": (".jsonl", ".csv", ".tsv")})

    def read(rows: int) -> Peak:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"questions{flags.ending}"
            write(path, rows)
            words = [sys.executable, "-m", "hybrid", "data", "check", str(path), "--json"]
            measurement = measured(words, environment(Path(folder) / "home"), Path(folder) / "log")
        return Peak(rows, measurement.largest_mb, measurement.wall_s)

    print(table(turns(flags.rows or (2_000, 200_000), 1, read)))


if __name__ == "__main__":
    main()
