"""The table of what other programs read in exports: the page holds the committed results, and no score changed."""

import json

import pytest

from bench import exchange

ROWS = [exchange.Row(**row) for row in json.loads(exchange.RESULTS.read_text(encoding="utf-8"))]


def test_the_page_holds_the_committed_results() -> None:
    text = exchange.PAGE.read_text(encoding="utf-8")
    assert exchange.page(text, ROWS) == text


def test_results_are_of_readers_that_the_command_runs() -> None:
    wanted = [(form, reader.shown) for form, _, readers in exchange.EXPORTS for reader in readers]
    assert ROWS
    assert all((row.form, row.reader) in wanted for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.form}{row.suffix} by {row.reader}")
def test_a_program_reads_the_score_of_the_run_or_none(row: exchange.Row) -> None:
    assert row.rows > 0
    assert row.score is None or row.score == pytest.approx(row.score_of_run)


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"exchange.md has no lines <!-- readers"):
        exchange.page("# Exchange results\n", ROWS)
