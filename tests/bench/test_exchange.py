"""The table of programs that read the exports: the page contains the committed results, and no score changed."""

import json
from pathlib import Path

import pytest

from bench import exchange

ROWS = [exchange.Row(**row) for row in json.loads(exchange.RESULTS.read_text(encoding="utf-8"))]


def test_the_page_holds_the_committed_results() -> None:
    text = exchange.PAGE.read_text(encoding="utf-8")
    assert exchange.page(text, ROWS) == text


def test_results_are_of_every_reader_that_the_command_runs() -> None:
    rows = [
        (form, Path(file).suffix, reader.title, reader.function)
        for form, file, readers in exchange.EXPORTS
        for reader in readers
    ]
    assert [(row.form, row.suffix, row.reader, row.function) for row in ROWS] == rows


def test_every_format_of_results_but_the_submission_has_a_reader() -> None:
    exporters = {path.stem for path in (exchange.HERE.parent / "hybrid" / "exporting").glob("[a-z]*.py")} - {"base"}
    # The export for verifiers is an environment without results; tests/hybrid/exporting/test_verifiers.py evaluates in
    # it.
    assert exporters - {form for form, _, _ in exchange.EXPORTS} == {"submission", "verifiers"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.form}{row.suffix} by {row.reader}")
def test_a_program_reads_the_score_of_the_run_or_none(row: exchange.Row) -> None:
    assert row.rows == ROWS[0].rows
    assert row.score is None or row.score == pytest.approx(row.score_of_run)


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"exchange.md has no lines <!-- readers"):
        exchange.page("# Exchange results\n", ROWS)
