"""Statistics of noise and spectrum of photographs: reference ranges of the weight-free `forensics` backend.

    uv run python -m bench.forensics --data DIR [--json FILE]

DIR has BLINK's layout; the first images of two of its tasks are photographs from the web, at most 640 px long and coded
as JPEG. The range of each statistic holds the middle 90 % of every other photograph; how many of the rest lie in it is
printed beside it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench._accuracy import blink_rows
from bench._frame import options, write_json
from hybrid.core.images import decode
from hybrid.display.tables import Column, Table, as_text
from tools.forensics import MIN_SIDE_PX, measure

MIDDLE = (5, 95)
# Photographs from two collections; two small marks change none of the statistics.
TASKS = ("Spatial_Relation", "Relative_Depth")


def main() -> None:
    """Print the table. Raises `SystemExit` if there are no photographs."""
    given = options(__doc__, {"--data": ..., "--json": Path})
    photographs = blink_rows(given.data, *TASKS, columns=("idx", "image_1"))
    images = (decode(row["image_1"]["bytes"], row["idx"]) for row in photographs)
    found = [measure(pixels) for pixels in images if min(pixels.shape[:2]) >= MIN_SIDE_PX]
    ranges, rest = found[::2], found[1::2]
    rows, numbers = [], {}
    for name in found[0]:
        low, high = np.percentile([one[name] for one in ranges], MIDDLE)
        inside = sum(low <= one[name] <= high for one in rest)
        rows.append((name, f"{low:.4g}", f"{high:.4g}", f"{inside}/{len(rest)}"))
        numbers[name] = {"low": float(low), "high": float(high), "inside": int(inside), "n": len(rest)}
    columns = (Column("statistic", "left"), Column("5 %"), Column("95 %"), Column("others inside"))
    print(as_text(Table(f"Of {len(ranges)} photographs", columns, tuple(rows), ())))
    write_json(given.json, numbers)


if __name__ == "__main__":
    main()
