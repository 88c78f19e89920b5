"""Score published outputs again, and compare the paper's number, the official count and this project's score.

    uv run python -m bench.verified --data ../shared/data             prints the page
    uv run python -m bench.verified --data ../shared/data -o docs     writes docs/verified.md

DATA is the folder of `bench.reproducing`, which gives the verdicts. BLINK's official count is repeated here from the
raw files, following the few lines of `eval/test_benchmark.py` that count (a stored answer equals the key; the mean over
tasks), without our scorer. Full replies come from `bench/results/scorers.json`. No model is called.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

from bench._frame import options
from bench.reproducing import BLINK_FILES, CUT, TITLES, Verdict, verdicts
from bench.scorers import RESULTS as SCORERS
from hybrid.display.tables import NONE, Column, Table, as_markdown

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "verified.md"
COMMAND: Final = "uv run python -m bench.verified --data ../shared/data -o docs"
COLUMNS: Final = ("benchmark", "table", "model", "mode", "metric", "paper", "official", "ours", "status")
STORED: Final = "answers as extracted by the authors"
FULL: Final = "full replies"


@dataclass(frozen=True)
class VerifiedRow:
    """One number, in the unit that the paper prints; None if missing."""

    benchmark: str
    table: str
    model: str
    mode: str
    metric: str
    paper: float | None
    official: float | None
    computed: float | None
    status: str

    def cells(self) -> tuple[str, ...]:
        """Return the row as the page prints it."""
        numbers = (NONE if value is None else f"{value:.2f}" for value in (self.paper, self.official, self.computed))
        return (self.benchmark, self.table, self.model, self.mode, self.metric, *numbers, self.status)


def official_blink(data: Path) -> dict[tuple[str, str], float]:
    """Count BLINK's saved answers as its script does: percent by model and task, and the mean over tasks."""
    results: dict[tuple[str, str], float] = {}
    for who, name in BLINK_FILES.items():
        tasks: dict[str, float] = {}
        for path in sorted((data / "blink_outputs" / name).glob("*.json")):
            rows = json.loads(path.read_text("utf-8"))["val"]
            tasks[path.stem] = 100 * mean(row["prediction"] == row["answer"] for row in rows)
        results |= {(who, task): value for task, value in tasks.items()}
        if tasks:
            results[who, "accuracy_macro"] = mean(tasks.values())
    return results


def verified_rows(data: Path, scorers: Mapping[str, Any]) -> tuple[VerifiedRow, ...]:
    """Return a row for each cell with available outputs, and for each model's full replies."""
    official = official_blink(data)
    cells = [verdict for verdict in verdicts(data) if verdict.status in ("reproduced", "differs")]
    return (*(_row(verdict, official) for verdict in cells), *_full_replies(scorers["blink"]))


def _row(verdict: Verdict, official: Mapping[tuple[str, str], float]) -> VerifiedRow:
    cell, computed = verdict.cell, verdict.computed
    count = official.get((cell.who, cell.metric)) if verdict.benchmark == "blink" else None
    equal = verdict.status == "reproduced"
    status = "equal" if equal else f"differs: {verdict.reason.partition('; ')[2] or verdict.reason}"
    if count is not None and computed is not None and abs(count - computed) > CUT:
        status += "; differs from the official count"
    mode = "ground truth" if verdict.benchmark == "actiview" else STORED
    title = TITLES[verdict.benchmark]
    return VerifiedRow(title, cell.source, cell.who, mode, cell.metric, cell.value, count, computed, status)


def _full_replies(blink: Mapping[str, Any]) -> Iterator[VerifiedRow]:
    """Yield the accuracies of the full replies: by the official rule without its call to GPT-3.5, and by our parser."""
    names = {folder: who for who, folder in BLINK_FILES.items()}
    for folder, readers in blink.items():
        official, by_hybrid = readers["official"], readers["ours"]
        unread = f"the official rule leaves {official['unread']} of 1,901 replies to GPT-3.5, our parser reads all but"
        equal = abs(official["accuracy"] - by_hybrid["accuracy"]) <= CUT
        status = "equal" if equal else f"differs: {unread} {by_hybrid['unread']}"
        numbers = (None, official["accuracy"], by_hybrid["accuracy"])
        yield VerifiedRow(TITLES["blink"], NONE, names[folder], FULL, "accuracy_macro", *numbers, status)


def page(rows: Sequence[VerifiedRow], others: Sequence[Verdict]) -> str:
    """Return the page; `others` are all verdicts, whose cells without outputs are counted by table."""
    columns = tuple(Column(name, "right" if name in ("paper", "official", "ours") else "left") for name in COLUMNS)
    by_status = Counter(row.status.partition(":")[0] for row in rows)
    absent = Counter(
        (TITLES[verdict.benchmark], verdict.cell.source) for verdict in others if verdict.status == "absent"
    )
    missing = tuple((title, table, str(count), "no outputs available") for (title, table), count in absent.items())
    names = (*(Column(name, "left") for name in ("benchmark", "table")), Column("cells"), Column("status", "left"))
    counts = f"{by_status['equal']} equal the printed or official number, {by_status['differs']} differ"
    summary = f"We computed {len(rows)} numbers from published outputs: {counts}."
    lines = [
        "# Verified against published outputs",
        "",
        summary,
        f"Made by `{COMMAND}`. No model was called.",
        "",
        "- *paper*: the printed number.",
        "- *official*: the result of the benchmark's own code on the same outputs. For BLINK it is computed again from",
        "  the raw files, without our scorer; for full replies by the official rule, without its call to GPT-3.5. The",
        "  code of the other benchmarks was not available.",
        "- *ours*: the result of `hybrid score`.",
        "",
        as_markdown(Table("", columns, tuple(row.cells() for row in rows))).rstrip("\n"),
        "",
        "## No outputs available",
        "",
        "Cells that follow from other printed cells: [What reproduces](protocols.md#what-reproduces).",
        "",
        as_markdown(Table("", names, missing)).rstrip("\n"),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print or write the page."""
    flags = options(__doc__, {"--data": ..., "-o --out": Path})
    rows = verified_rows(flags.data, json.loads(SCORERS.read_text("utf-8")))
    text = page(rows, verdicts(flags.data))
    if flags.out is None:
        print(text, end="")
        return
    (flags.out / PAGE.name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
