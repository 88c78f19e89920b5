"""The page of verified numbers contains the command's output and agrees with the sheet of reproduced cells."""

import json
from pathlib import Path

import pytest

from bench.reproducing import verdicts
from bench.scorers import RESULTS as SCORERS
from bench.verified import COLUMNS, PAGE, VerifiedRow, official_blink, page, verified_rows
from tests.bench.test_reproducing import committed


def table() -> list[dict[str, str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").replace("\\_", "_").split(" | ")] for line in lines]
    return [dict(zip(COLUMNS, row, strict=True)) for row in cells if len(row) == len(COLUMNS)][1:]


@pytest.mark.system
@pytest.mark.shared_data
def test_the_committed_page_is_what_the_command_prints(shared_data: Path) -> None:
    rows = verified_rows(shared_data, json.loads(SCORERS.read_text()))
    assert page(rows, verdicts(shared_data)) == PAGE.read_text()


def test_the_page_has_every_cell_with_published_outputs() -> None:
    rows = [row for row in table() if not row["status"].startswith(":")]
    cells = [row for row in committed() if row["status"] in ("reproduced", "differs")]
    assert len(rows) == len(cells) + 4
    assert len(rows) >= 40
    assert [(row["model"], row["metric"], row["paper"], row["ours"]) for row in rows[: len(cells)]] == [
        (cell["who"], cell["metric"], cell["printed"], cell["ours"]) for cell in cells
    ]
    assert sum(row["status"] == "equal" for row in rows[: len(cells)]) == sum(
        cell["status"] == "reproduced" for cell in cells
    )


def test_the_official_count_is_the_mean_over_tasks(tmp_path: Path) -> None:
    folder = tmp_path / "blink_outputs" / "GPT4o"
    folder.mkdir(parents=True)
    for task, right in {"Jigsaw": 1, "Counting": 3}.items():
        rows = [{"answer": "(A)", "prediction": "(A)" if number < right else "(B)"} for number in range(4)]
        (folder / f"{task}.json").write_text(json.dumps({"val": rows}))
    assert official_blink(tmp_path) == {
        ("GPT-4o", "Counting"): 75.0,
        ("GPT-4o", "Jigsaw"): 25.0,
        ("GPT-4o", "accuracy_macro"): 50.0,
    }


def test_a_row_without_a_number_has_a_dash() -> None:
    row = VerifiedRow("B", "T", "m", "full replies", "accuracy_macro", None, 52.4, 60.7, "differs: x")
    assert row.cells()[5:] == ("-", "52.40", "60.70", "differs: x")
