"""The tables of measured results, in the README and in bench/results/by_task.md, contain the measured values."""

from pathlib import Path

import pytest

from bench.readme_table import Measured, all_measured, by_task, table
from hybrid.display.tables import as_markdown

pytestmark = [pytest.mark.system, pytest.mark.shared_data]

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def measured(shared_data: Path) -> Measured:
    return all_measured(shared_data)


def printed(page: str, head: str, end: str) -> str:
    return (ROOT / page).read_text().split(f"{head} -->\n\n", 1)[1].split(f"\n<!-- {end}", 1)[0]


def test_results_table_is_what_is_measured(measured: Measured) -> None:
    assert printed("README.md", "--data ../shared/data", "end of results -->") == as_markdown(table(measured))


def test_results_by_task_are_what_is_measured(measured: Measured) -> None:
    page = printed("bench/results/by_task.md", "--by-task", "end of results by task -->")
    assert page == as_markdown(by_task(measured))
