"""Peak memory and time of reading a file of questions over its number of rows: flat, if rows and images stream.

    python -m bench.questions [--rows 2000 --rows 200000] [--ending .tsv]

Each row has a picture of its own, a PNG of 64 x 64 pixels in base64, and one of ten tasks. What is measured is one
process of `hybrid data check FILE --json`: peak_mb is its largest resident memory.
"""

from __future__ import annotations

import argparse
import base64
import csv
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

COLUMNS = ("id", "image", "question", "choices", "answer", "task")


def write(path: Path, rows: int) -> None:
    """A file of so many rows, as its ending says."""
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


def main() -> None:
    """Print a line a number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="append", type=int)
    parser.add_argument("--ending", choices=(".jsonl", ".csv", ".tsv"), default=".jsonl")
    chosen = parser.parse_args()
    print(f"{'rows':>10}{'peak MB':>10}{'seconds':>10}")
    # The peak of children is that of the largest so far, so the counts go up.
    for rows in sorted(chosen.rows or (2_000, 200_000)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"questions{chosen.ending}"
            write(path, rows)
            begun = time.monotonic()
            words = [sys.executable, "-m", "hybrid", "data", "check", str(path), "--json"]
            subprocess.run(  # noqa: S603 - our own program
                words, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "HYBRID_HOME": f"{folder}/home"}
            )
            seconds = time.monotonic() - begun
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{rows:>10,}{peak:>10.0f}{seconds:>10.0f}")


if __name__ == "__main__":
    main()
