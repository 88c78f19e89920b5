"""Statistics of noise and spectrum of photographs: reference ranges of the weight-free `forensics` backend.

    uv run python -m bench.forensics --data DIR [--json FILE]

DIR has BLINK's layout; the first images of two of its tasks are photographs from the web, at most 640 px long and coded
as JPEG. The range of each statistic contains the middle 90 % of every other photograph; next to it, the command prints
how many of the remaining photographs are in the range.
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
# Photographs from two collections. The two small marks that are drawn on those of Relative_Depth do not affect any of
# the statistics.
TASKS = ("Spatial_Relation", "Relative_Depth")


def main() -> None:
    """Print the table. Raises `SystemExit` if there are no photographs."""
    flags = options(__doc__, {"--data": ..., "--json": Path})
    photographs = blink_rows(flags.data, *TASKS, columns=("idx", "image_1"))
    images = (decode(row["image_1"]["bytes"], row["idx"]) for row in photographs)
    measurements = [measure(pixels) for pixels in images if min(pixels.shape[:2]) >= MIN_SIDE_PX]
    ranges, rest = measurements[::2], measurements[1::2]
    rows, numbers = [], {}
    for name in measurements[0]:
        low, high = np.percentile([item[name] for item in ranges], MIDDLE)
        inside = sum(low <= entry[name] <= high for entry in rest)
        rows.append((name, f"{low:.4g}", f"{high:.4g}", f"{inside}/{len(rest)}"))
        numbers[name] = {"low": float(low), "high": float(high), "inside": int(inside), "n": len(rest)}
    columns = (Column("statistic", "left"), Column("5 %"), Column("95 %"), Column("others inside"))
    print(as_text(Table(f"Of {len(ranges)} photographs", columns, tuple(rows), ())))
    write_json(flags.json, numbers)


if __name__ == "__main__":
    main()
