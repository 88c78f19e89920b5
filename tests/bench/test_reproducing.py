"""The page of reproduced cells contains the command's output; some of its cells can be checked without the data."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from bench import reproducing
from bench.reproducing import MEANING, Verdict, page, sheet, verdicts

MACRO = ("Table 4", "val", "accuracy_macro")
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


@pytest.fixture(scope="module")
def without_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Verdict, ...]:
    return verdicts(tmp_path_factory.mktemp("nothing"))


def counts(result: tuple[Verdict, ...], benchmark: str, source: str, metric: str = "") -> Counter[str]:
    return Counter(
        verdict.status
        for verdict in result
        if (verdict.benchmark, verdict.cell.source) == (benchmark, source) and metric in verdict.cell.metric
    )


def committed() -> list[dict[str, str]]:
    with (RESULTS / "reproducing.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.system
@pytest.mark.shared_data
def test_the_committed_page_is_what_the_command_prints(shared_data: Path) -> None:
    result = verdicts(shared_data)
    assert page(result) == (RESULTS / "reproducing.md").read_text()
    assert sheet(result) == (RESULTS / "reproducing.csv").read_text()


@pytest.mark.parametrize("page", ["bench/results/reproducing.md", "docs/protocols.md"])
def test_both_pages_count_what_the_sheet_lists(page: str) -> None:
    text = (ROOT / page).read_text()
    rows = committed()
    for name, title in reproducing.TITLES.items():
        by = Counter(row["status"] for row in rows if row["benchmark"] == name)
        cells = " | ".join(str(by[status]) for status in MEANING)
        assert f"| {title} | {sum(by.values())} | {cells} |" in text


def test_the_committed_sheet_has_the_numbers_that_scorers_gave() -> None:
    rows = committed()
    whos = {row["who"] for row in rows if row["status"] == "reproduced" and row["benchmark"] == "blink"}
    assert whos == {"GPT-4o", "GPT-4V", "LLaVA-v1.6-34B", "Qwen-VL-Max"}
    # Each of three models has 33 cells in Tables 2, 3 and 5; the four cells of Table 4 repeat two columns of Table 2.
    scored = Counter(
        row["status"]
        for row in rows
        if row["benchmark"] == "mvp_bench" and row["status"] in ("reproduced", "differs") and row["source"] != "Table 4"
    )
    assert scored == {"reproduced": 81, "differs": 18}
    views = [row for row in rows if row["benchmark"] == "actiview" and row["status"] == "reproduced"]
    assert {row["ours"] for row in views} == {"74.62"}


def test_without_data_nothing_is_reproduced(without_data: tuple[Verdict, ...]) -> None:
    by = Counter(verdict.status for verdict in without_data)
    assert set(by) == {"follows", "contradicted", "unreadable", "absent"}
    assert len(without_data) == 3879


def test_what_the_papers_own_cells_decide(without_data: tuple[Verdict, ...]) -> None:
    for metric, wrong in (("score_kk.total", 1), ("score_ku.total", 1), ("score_sa.total", 2)):
        assert counts(without_data, "mm_sap", "Table 1", metric) == {"follows": 14 - wrong, "contradicted": wrong}
        assert counts(without_data, "mm_sap", "Table 3", metric) == {"follows": 6}
    assert counts(without_data, "hvsbench", "Table 11", "overall") == {"follows": 10, "contradicted": 4}
    assert counts(without_data, "hvsbench", "Table 3", "overall") == {"follows": 11, "contradicted": 4}
    assert counts(without_data, "actiview", "Table 7", "model_avg") == {"follows": 27}
    assert counts(without_data, "actiview", "Table 8", "type") == {"follows": 81}
    assert counts(without_data, "mvp_bench", "Table 3", "aAcc.all") == {"follows": 11, "contradicted": 1}


def test_a_recomputed_cell_proves_nothing(without_data: tuple[Verdict, ...]) -> None:
    unread = [verdict for verdict in without_data if verdict.status == "unreadable"]
    assert len(unread) == 13
    assert all("recomputed" in verdict.cell.note for verdict in unread)
    macros = [v for v in without_data if (v.cell.source, v.cell.split, v.cell.metric) == MACRO]
    blink = {verdict.cell.who: verdict.status for verdict in macros}
    # The averages of these models would depend on recomputed cells, so they have no verdict.
    assert {blink[who] for who in ("GPT-4o", "GPT-4V", "Gemini Pro", "Claude 3 OPUS", "GPT-4 Turbo")} == {"absent"}
    assert blink["CogVLM"] == "follows"
