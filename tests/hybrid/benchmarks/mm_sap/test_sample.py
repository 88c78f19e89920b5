"""Generated MM-SAP questions: sets, answers, bytes."""

from pathlib import Path

import pyarrow.parquet as pq

from hybrid.benchmarks.mm_sap.sample import HEIGHT, LEVEL, SETS, UPRIGHT, WIDTH, row, write
from hybrid.core.images import decode


def test_no_two_flags_are_alike() -> None:
    stripes = [*((True, *colours) for colours in UPRIGHT.values()), *((False, *colours) for colours in LEVEL.values())]
    assert len(set(stripes)) == len(UPRIGHT) + len(LEVEL)


def test_files_hold_the_rows(tmp_path: Path) -> None:
    paths = write(tmp_path, tuple(SETS), 1, 7)
    assert [path.name for path in paths] == [f"{name}-00000-of-00001.parquet" for name in SETS]
    for name, path in zip(SETS, paths, strict=True):
        stored = pq.read_table(path).to_pylist()
        assert stored == [row(name, 0, 7)]
        assert decode(stored[0]["image"]["bytes"], "image").shape == (HEIGHT, WIDTH, 3)
