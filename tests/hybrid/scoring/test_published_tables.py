"""Printed cells as tables: one for each source table, with what limits comparison below."""

import pytest
from click.testing import CliRunner

from hybrid.cli import cli
from hybrid.display.tables import NONE
from hybrid.scoring.published import Published, published
from hybrid.scoring.published_tables import WIDEST, published_tables


def cell(who: str, metric: str, value: float, note: str = "", source: str = "Table 1", **changes: str) -> Published:
    facts = {"kind": "model", "split": "val", "n": "10", **changes}
    return Published(who=who, metric=metric, value=value, source=source, note=note, **facts)


def test_rows_columns_and_what_is_not_printed() -> None:
    (table,) = published_tables([cell("a", "x", 50), cell("a", "y", 33.3), cell("b", "y", 1.25, n="12")])
    assert table.title == "published, Table 1 (val)"
    assert table.names == ("who", "x", "y")
    assert table.rows == (("questions", "10", NONE), ("a", "50.00", "33.30"), ("b", NONE, "1.25"))


def test_a_note_of_the_whole_row_stands_at_its_name() -> None:
    (table,) = published_tables(
        [cell("a", "x", 1, "one"), cell("a", "y", 2, "one"), cell("b", "x", 3, "two"), cell("b", "y", 4)]
    )
    assert table.rows[1:] == (("a [1]", "1", "2"), ("b", "3 [2]", "4"))
    assert table.notes == ("[1] one", "[2] two")


def test_tables_splits_and_repeated_names_stay_apart() -> None:
    found = published_tables(
        [cell("a", "x", 1), cell("a", "x", 2, split="test"), cell("a", "x", 3), cell("a", "x", 4, source="Table 2")]
    )
    assert [table.title for table in found] == ["published, Table 1", "published, Table 2 (val)"]
    assert found[0].names == ("who", "x (val)", "x (test)")
    assert found[0].rows[1:] == (("a", "1", "2"), ("a", "3", NONE))


@pytest.mark.parametrize("name", ["blink", "mvp_bench", "mm_sap", "hvsbench", "actiview"])
def test_every_cell_of_a_benchmark_is_shown_once(name: str) -> None:
    cells = published(name)
    tables = published_tables(cells)
    shown = [value for table in tables for row in table.rows if row[0] != "questions" for value in row[1:]]
    assert sum(value != NONE for value in shown) == len(cells) > 0
    assert all(len(table.columns) <= WIDEST + 1 for table in tables)


def test_the_command_prints_them_after_the_card() -> None:
    result = CliRunner().invoke(
        cli, ["benchmarks", "show", "blink", "--all"], standalone_mode=False, catch_exceptions=False
    )
    card, _, tables = result.stdout.partition("published, Table 1")
    assert "settings (--setting KEY=VALUE)" in card
    assert "95.70 [2]" in tables
    assert "published, Table 5" in tables


def test_no_cells_no_tables() -> None:
    assert published_tables(()) == ()
