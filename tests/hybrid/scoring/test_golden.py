"""Every row, lead and card of small made-up runs, as `test_golden.tsv` has them: a number that moves names its section.

A change that is meant: HYBRID_GOLDEN=write uv run pytest tests/hybrid/scoring/test_golden.py -n 0, and read the diff.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from hybrid.scoring.reports import compare_paths

GOLDEN = Path(__file__).with_suffix(".tsv")
SETS: dict[str, dict[str, Any]] = {
    "blink": {"benchmark": "blink", "size": 6},
    "blink, failed and unreadable": {"benchmark": "blink", "size": 6, "failed": 1, "unreadable": 0.2},
    "blink, repeated": {"benchmark": "blink", "size": 4, "repeats": 3},
    "blink, votes": {"benchmark": "blink", "size": 4, "samples": 3},
    "mvp_bench": {"benchmark": "mvp_bench", "size": 6},
}


def plain(value: Any) -> Any:
    """Numbers to nine digits, as sums may end otherwise on another machine."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def lines(name: str, paths: Any, rule: Any) -> list[str]:
    """A line a section: its rows by number and hash, its card by hash, its lead."""
    report = compare_paths(paths, unanswered=rule)
    told = []
    for made in report.sections:
        rows = json.dumps([plain(row.as_json()) for row in made.rows])
        section = made.section
        card = repr((section.title, section.about, section.quantities, section.headings, section.chart))
        digests = [hashlib.sha256(one.encode()).hexdigest()[:12] for one in (rows, card)]
        told.append("\t".join((name, rule, made.name, str(len(made.rows)), *digests, made.lead)))
    return [*told, *("\t".join((name, rule, one.id, one.text)) for one in report.conclusion if not one.command)]


def test_every_row_lead_and_card(made_up_runs: Any, tmp_path: Path) -> None:
    told = []
    for number, (name, options) in enumerate(SETS.items()):
        made = made_up_runs.write(tmp_path / str(number), **options)
        told += lines(name, made.paths, ("guess", "wrong")[number % 2])
    if os.environ.get("HYBRID_GOLDEN") == "write":
        GOLDEN.write_text("\n".join(told) + "\n", encoding="utf-8")
    assert told == GOLDEN.read_text(encoding="utf-8").splitlines()
