"""Every row, lead and card of small synthetic runs equals `test_golden.tsv`: a changed number names its section.

For an intended change: HYBRID_GOLDEN=write uv run pytest tests/hybrid/scoring/test_golden.py -n 0, and read the diff.
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
    """Round numbers to nine digits, because sums may differ on another machine."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def lines(name: str, paths: Any, rule: Any) -> list[str]:
    """Return a line per section: its rows by number and hash, its card by hash, its lead."""
    report = compare_paths(paths, unanswered=rule)
    results = []
    for built in report.sections:
        rows = json.dumps([plain(row.as_json()) for row in built.rows])
        section = built.section
        card = repr((section.title, section.about, section.quantities, section.headings, section.chart))
        digests = [hashlib.sha256(item.encode()).hexdigest()[:12] for item in (rows, card)]
        results.append("\t".join((name, rule, built.name, str(len(built.rows)), *digests, built.lead)))
    return [
        *results,
        *("\t".join((name, rule, entry.id, entry.text)) for entry in report.conclusion if not entry.command),
    ]


def test_every_row_lead_and_card(synthetic_runs: Any, tmp_path: Path) -> None:
    results = []
    for number, (name, options) in enumerate(SETS.items()):
        run = synthetic_runs.write(tmp_path / str(number), **options)
        results += lines(name, run.paths, ("guess", "wrong")[number % 2])
    if os.environ.get("HYBRID_GOLDEN") == "write":
        GOLDEN.write_text("\n".join(results) + "\n", encoding="utf-8")
    assert results == GOLDEN.read_text(encoding="utf-8").splitlines()
