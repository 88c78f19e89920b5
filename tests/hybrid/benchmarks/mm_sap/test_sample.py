"""Generated MM-SAP questions: sets, answers, bytes."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.mm_sap.sample import HEIGHT, LEVEL, REFUSAL, SETS, UPRIGHT, WIDTH, item, row, write
from hybrid.errors import UsageError
from hybrid.images import decode


@pytest.mark.parametrize("name", SETS)
def test_a_row_has_five_options_and_one_refusal(name: str) -> None:
    for index in range(4):
        made = row(name, index, 3)
        options = made["options"]
        assert isinstance(options, list)
        assert len(set(options)) == 5
        assert options.count(REFUSAL) == 1
        answer = options["ABCDE".index(str(made["answer"]))]
        assert (answer == REFUSAL) == (name == "BeyondVisQA")
        assert answer == (item(name, index, 3).right or REFUSAL)


def test_flags_have_the_colours_of_the_answer() -> None:
    for index in range(12):
        made = item("KnowVisQA", index, 0)
        right = str(made.right)
        upright = right in UPRIGHT
        grey = made.pixels[0, 0]
        inside = (made.pixels != grey).any(axis=2)
        rows, columns = np.nonzero(inside)
        flag = made.pixels[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        height, width = flag.shape[:2]
        for place, rgb in enumerate(UPRIGHT[right] if upright else LEVEL[right]):
            middle = (2 * place + 1) / 6
            spot = flag[height // 2, int(width * middle)] if upright else flag[int(height * middle), width // 2]
            assert tuple(int(value) for value in spot) == rgb


def test_no_two_flags_are_alike() -> None:
    stripes = [*((True, *colours) for colours in UPRIGHT.values()), *((False, *colours) for colours in LEVEL.values())]
    assert len(set(stripes)) == len(UPRIGHT) + len(LEVEL)


def test_colours_asked_for_are_seen() -> None:
    asked = [item("BasicVisQA", index, 1) for index in range(12)]
    colours = [made for made in asked if made.type == "Color"]
    assert {made.type for made in asked} == {"Color", "Counting"}
    strongest = {"red": 0, "green": 1, "blue": 2}
    seen = [made for made in colours if made.right in strongest]
    assert seen
    for made in seen:
        channel = strongest[str(made.right)]
        pixels = made.pixels.astype(int)
        others = np.delete(pixels, channel, axis=2).max(axis=2)
        assert (pixels[..., channel] - others > 50).sum() > 50


def test_beyond_asks_for_several_kinds_of_unknown() -> None:
    kinds = {item("BeyondVisQA", index, 0).type for index in range(12)}
    assert len(kinds) >= 4
    assert all(item("BeyondVisQA", index, 0).right is None for index in range(3))


def test_right_options_and_refusals_fall_on_every_letter() -> None:
    rows = [row("KnowVisQA", index, 0) for index in range(40)]
    assert {str(made["answer"]) for made in rows} == set("ABCDE")
    options = [made["options"] for made in rows]
    assert {texts.index(REFUSAL) for texts in options if isinstance(texts, list)} == set(range(5))


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


def test_wrong_numbers_and_names_write_nothing(tmp_path: Path) -> None:
    for sets, per_task, seed in ((("KnowVisQA",), 0, 0), (("KnowVisQA",), 1, -1), (("KnowVisQA", "x"), 1, 0)):
        with pytest.raises(UsageError):
            write(tmp_path, sets, per_task, seed)
    with pytest.raises(UsageError, match="negative"):
        item("KnowVisQA", -1, 0)
    assert list(tmp_path.iterdir()) == []
