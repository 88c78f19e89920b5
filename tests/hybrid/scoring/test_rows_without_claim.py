"""A difference that the conclusion does not claim says why in every output: csv, JSON, records, tables."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.headline_pair import NO_CLAIM
from hybrid.scoring.reports import compare_paths
from tests.hybrid.scoring.solvers import letters

# By claim, the letters of the model alone and of the solver with tools, by task.
WORLDS = {
    "more": ({"Jigsaw": "40w60r"}, {"Jigsaw": "40r60r"}),
    "answering": ({"Jigsaw": "100r30w70a"}, {"Jigsaw": "100r30w70r"}),
    "rule": ({"Jigsaw": "100r60a40w"}, {"Jigsaw": "100r30r30w40w"}),
    "uneven": (
        {"Jigsaw": "180r120w", "Counting": "4r16w"},
        {"Jigsaw": "150r150w", "Counting": "18r2w"},
    ),
    "split": ({"Jigsaw": "20r20w40a"}, {"Jigsaw": "40a22r18w"}),
}


@pytest.mark.parametrize("claim", WORLDS)
def test_a_row_without_a_claim_says_why(tmp_path: Path, synthetic_runs: Any, claim: str) -> None:
    alone, with_tools = ({task: letters(word) for task, word in side.items()} for side in WORLDS[claim])
    run = synthetic_runs.from_letters(
        tmp_path / "run", {"mllm": alone, "controller": with_tools}, costing=synthetic_runs.calling
    )
    report = compare_paths([run.path], all=True)
    reason = NO_CLAIM.get(claim, "")
    table = list(csv.DictReader(io.StringIO(report.render("csv"))))
    outputs: list[tuple[Any, str | None]] = [(table, ""), (report.as_json()["results"], None), (report.rows(), "")]
    for rows, empty in outputs:
        found = [row for row in rows if row["quantity"] == "difference" and not row.get("group")]
        by_section = {row["section"]: row.get("no_claim") for row in found if row.get("metric") == "accuracy_macro"}
        assert by_section["differences"] == by_section["noninferior"] == (reason or empty)
        # A value of one solver has no claim, and neither has the margin.
        others = [row for row in rows if row["quantity"] in ("value a", "value b", "helped", "margin")]
        assert {row.get("no_claim") for row in others} == {empty}
    assert (f"no claim: {reason}" in report.render()) == bool(reason)
