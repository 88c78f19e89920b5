"""Generated MM-SAP questions: sets, answers, bytes."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.mm_sap.sample import HEIGHT, LEVEL, SETS, UPRIGHT, WIDTH, item, row, write
from hybrid.errors import UsageError
from hybrid.images import decode


def test_no_two_flags_are_alike() -> None:
    stripes = [*((True, *colours) for colours in UPRIGHT.values()), *((False, *colours) for colours in LEVEL.values())]
    assert len(set(stripes)) == len(UPRIGHT) + len(LEVEL)


def test_files_hold_the_rows_and_are_equal_byte_for_byte(tmp_path: Path) -> None:
    paths = write(tmp_path / "a", tuple(SETS), 1, 7)
    again = write(tmp_path / "b", tuple(SETS), 1, 7)
    assert [path.name for path in paths] == [f"{name}-00000-of-00001.parquet" for name in SETS]
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    (other,) = write(tmp_path / "c", ("KnowVisQA",), 1, 8)
    assert other.read_bytes() != paths[1].read_bytes()
    for name, path in zip(SETS, paths, strict=True):
        stored = pq.read_table(path).to_pylist()
        assert stored == [row(name, 0, 7)]
        assert decode(stored[0]["image"]["bytes"], "image").shape == (HEIGHT, WIDTH, 3)


@settings(max_examples=20)
@given(name=st.text(max_size=12).filter(lambda text: text not in SETS))
def test_unknown_sets_are_named(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be generated; there are: BasicVisQA"):
        item(name, 0, 0)
