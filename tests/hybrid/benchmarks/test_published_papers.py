"""Every printed cell compared with the text of its paper, if the papers' texts are next to the data."""

import re
from pathlib import Path

import pytest

from hybrid.scoring.published import published
from tests.tables import cases

pytestmark = pytest.mark.shared_data

NUMBER = r"(?<![\w.])\d+\.?\d*"
# A cell in the text of MVP-Bench's paper, where a number in a formula is repeated: `63.3363.3363.33`.
TWICE = re.compile(r"^(\d{1,3}\.\d\d)(?:\1|$|\D)")


@pytest.fixture
def papers(shared_data: Path) -> Path:
    folder = shared_data.parent / "papers"
    if not folder.is_dir():
        pytest.skip(f"the papers' texts are not at {folder}")
    return folder


def numbers(benchmark: str, line: str) -> tuple[float, ...]:
    """Return the numbers in a row of a table, without the row's name."""
    if benchmark == "mvp_bench":
        return tuple(float(match[1]) for token in line.split() if (match := TWICE.match(token)))
    name, _, cells = line.partition("|" if benchmark == "hvsbench" else "\t")
    return tuple(float(number) for number in re.findall(NUMBER, cells or name))


@pytest.mark.parametrize(*cases(__file__, "test_every_row_is_a_row_of_the_paper"))
def test_every_row_is_a_row_of_the_paper(papers: Path, benchmark: str, tables: dict[str, int]) -> None:
    lines = (papers / f"{benchmark}.txt").read_text().splitlines()
    printed = [numbers(benchmark, line) for line in lines]
    for table, width in tables.items():
        values = [row.value for row in published(benchmark) if row.source == table]
        assert len(values) % width == 0
        for start in range(0, len(values), width):
            row = tuple(values[start : start + width])
            assert any(result[-width:] == row for result in printed), (table, row)


def test_what_a_one_line_table_prints(papers: Path) -> None:
    lines = (papers / "mvp_bench.txt").read_text().splitlines()
    printed = [numbers("mvp_bench", line) for line in lines]
    rows = [row.value for row in published("mvp_bench") if row.source == "Table 4"]
    assert [pair in printed for pair in zip(rows[::2], rows[1::2], strict=True)] == [True] * 8
    lines = (papers / "mm_sap.txt").read_text().splitlines()
    refusals = [row.value for row in published("mm_sap") if row.source == "Table 4"]
    printed = [numbers("mm_sap", line) for line in lines]
    assert [pair in printed for pair in zip(refusals[::2], refusals[1::2], strict=True)] == [True] * 4
