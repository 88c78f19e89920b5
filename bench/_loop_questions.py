"""Questions for the measurements of the loop: BLINK's official layout, each with a distinct JPEG of about 50 kB."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

TASK = "Spatial_Relation"
# Width and height.
SIZE_PX = (640, 480)
QUALITY = 90
# Side of a patch of uniform colour before smoothing.
COARSE_PX = 16
GREYS = (56, 200)
CHOICES = ("yes", "no")
# Rows per row group, as the hub's library (`datasets`) writes tables of images.
GROUP_ROWS = 100


def prompt(number: int) -> str:
    """Return the text of a question; the server identifies it by its number."""
    return f"In question {number}, is the cat on the mat?\nSelect from the following choices.\n(A) yes\n(B) no"


def picture(number: int) -> bytes:
    """Return a JPEG of noise that is smoothed to a size of about 50 kB."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(
        rng.integers(*GREYS, (SIZE_PX[1] // COARSE_PX, SIZE_PX[0] // COARSE_PX, 3), dtype=np.uint8)
    )
    buffer = io.BytesIO()
    coarse.resize(SIZE_PX, Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


def write_questions(folder: Path, count: int) -> Path:
    """Write a folder with `count` questions: parquet for `hybrid`, and files and `questions.jsonl` for bare loops."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = folder / "plain"
    plain.mkdir(parents=True)
    (folder / "blink" / TASK).mkdir(parents=True)
    numbers = range(1, count + 1)
    files = [picture(number) for number in numbers]
    for number, data in zip(numbers, files, strict=True):
        (plain / f"{number}.jpg").write_bytes(data)
    lines = [json.dumps({"number": number, "prompt": prompt(number)}) for number in numbers]
    (plain / "questions.jsonl").write_text("\n".join(lines) + "\n")
    table = {
        "idx": [f"val_{TASK}_{number}" for number in numbers],
        "prompt": [prompt(number) for number in numbers],
        "choices": [list(CHOICES)] * count,
        "answer": ["(A)" if number % 2 else "(B)" for number in numbers],
        "image_1": [{"bytes": data, "path": "picture.jpg"} for data in files],
    }
    file = folder / "blink" / TASK / "val-00000-of-00001.parquet"
    pq.write_table(pa.table(table), file, row_group_size=GROUP_ROWS)
    return folder
