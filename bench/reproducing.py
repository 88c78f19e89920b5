"""Try to reproduce each printed cell of the five papers, and name the source. Writes `bench/results/reproducing.*`.

    uv run python -m bench.reproducing --data ../shared/data                     prints the page
    uv run python -m bench.reproducing --data ../shared/data -o bench/results    writes page and sheet

DATA holds `blink_outputs/MODEL`, `mvp_bench/` (questions and predictions) and `actiview/groundtruth_views.json`. The
printed cells are those of `hybrid/benchmarks/NAME/published.csv`. No model is called.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bench import _printed
from bench._frame import options
from bench._printed import DATA
from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK as BLINK
from hybrid.benchmarks.mvp_bench import BENCHMARK as MVP
from hybrid.display.tables import Column, Table, as_markdown
from hybrid.scoring.predicted import score_predictions
from hybrid.scoring.published import Published, published
from hybrid.scoring.score import Scored

COMMAND: Final = "uv run python -m bench.reproducing --data ../shared/data -o bench/results"
Status = Literal["reproduced", "follows", "differs", "contradicted", "unreadable", "absent"]

MEANING: Final[Mapping[Status, str]] = DATA["meaning"]
TITLES: Final[Mapping[str, str]] = DATA["titles"]
BLINK_FILES: Final[Mapping[str, str]] = DATA["files"]["blink"]
MVP_FILES: Final[Mapping[str, str]] = DATA["files"]["mvp_bench"]
# Tolerance in percent: the papers print two decimals, and sometimes truncate instead of rounding.
CUT = 0.0099


@dataclass(frozen=True)
class Verdict:
    """The outcome for one printed cell. `computed` is in the unit of the cell; None if nothing was computed."""

    benchmark: str
    cell: Published
    status: Status
    computed: float | None
    reason: str


@dataclass(frozen=True)
class Measured:
    """A value from our scorer, in the unit of the cell, and what it was computed from."""

    value: float
    source: str


Measure = Callable[[Published], Measured | None]


def verdicts(data: Path) -> tuple[Verdict, ...]:
    """Return one verdict per printed cell, in the order of the published files; skip missing folders of `data`."""
    verdicts_here: list[Verdict] = []
    for name, derive in DERIVE.items():
        cells = published(name)
        measure = MEASURES[name](data) if name in MEASURES else lambda _: None
        derived = {id(item.cell): item for item in derive(cells)}
        verdicts_here += (
            _verdict(name, cell, measure(cell), derived.get(id(cell)), _absence(name, cell)) for cell in cells
        )
    return tuple(verdicts_here)


def _verdict(
    name: str, cell: Published, measured: Measured | None, derived: _printed.Derived | None, absence: str
) -> Verdict:
    if "recomputed from the published outputs" in cell.note:
        value = measured.value if measured else None
        return Verdict(name, cell, "unreadable", value, "recomputed, so it proves nothing")
    if measured is not None:
        same = abs(measured.value - cell.value) <= CUT
        return Verdict(name, cell, "reproduced" if same else "differs", measured.value, measured.source)
    if derived is not None:
        follows = abs(derived.value - cell.value) <= derived.tolerance
        return Verdict(name, cell, "follows" if follows else "contradicted", derived.value, derived.derivation)
    return Verdict(name, cell, "absent", None, absence)


def _blink(data: Path) -> Measure:
    """Return a function for accuracies on val, from the authors' saved outputs and the answers that they extracted."""
    results: dict[tuple[str, str], float] = {}
    for who, folder in BLINK_FILES.items():
        path = data / "blink_outputs" / folder
        if path.is_dir():
            scored = score_predictions(path, BLINK, "stored", ScoreOptions())
            results |= {(who, metric): value for metric, value in _by_task(scored).items()}

    def measure(cell: Published) -> Measured | None:
        value = results.get((cell.who, cell.metric)) if cell.split == "val" else None
        return None if value is None else Measured(value, f"saved_outputs/{BLINK_FILES[cell.who]}, answers as stored")

    return measure


def _by_task(scored: Scored) -> dict[str, float]:
    """Return percent by task, and the macro average."""
    tasks: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for score in scored.scores:
        tasks[score.task] += 1
        right[score.task] += score.correct == 1.0
    values = {task: 100 * right[task] / count for task, count in tasks.items()}
    return values | {"accuracy_macro": sum(values.values()) / len(values)}


def _mvp_bench(data: Path) -> Measure:
    """Return a function for the metrics of the published predictions, by the authors' rule and without their judge."""
    folder = data / "mvp_bench"
    results: dict[str, dict[str, float]] = {}
    for who in MVP_FILES if folder.is_dir() else ():
        for file in (MVP_FILES[who], f"mcq_{MVP_FILES[who]}"):
            path = folder / "model_prediction" / f"{file}.jsonl"
            scored = score_predictions(path, MVP, "stored", ScoreOptions(), str(folder / "data"))
            results[file] = {metric.name: 100 * (metric.value or 0.0) for metric in scored.metrics}

    def measure(cell: Published) -> Measured | None:
        tables = ("Table 2", "Table 3", "Table 4", "Table 5")
        if cell.who not in MVP_FILES or cell.source not in tables or "sentence" in cell.note:
            return None
        rotated = cell.metric.startswith("circular") or "first rotation" in cell.note
        file = f"mcq_{MVP_FILES[cell.who]}" if rotated else MVP_FILES[cell.who]
        value = results.get(file, {}).get(cell.metric)
        other = "; the published outputs are of another run" if cell.who.startswith("InstructBLIP") else ""
        return None if value is None else Measured(value, f"{file}.jsonl, by rule{other}")

    return measure


def _actiview(data: Path) -> Measure:
    """Return a function for the recall of a model that looks at every view, as in the paper.

    The recall is computed from only the ground truth.
    """
    path = data / "actiview" / "groundtruth_views.json"
    cells = published("actiview")
    everything = {cell.who for cell in cells if cell.metric == "views_shift.mean" and cell.value == 4.0}
    clues: list[list[int]] = json.loads(path.read_text()) if path.is_file() else []
    total = sum(map(len, clues))

    def measure(cell: Published) -> Measured | None:
        if not clues or cell.metric != "recall_shift_paper" or cell.who not in everything:
            return None
        # Views are counted from 0, and the clues from 1.
        hits = sum(len({0, 1, 2, 3}.intersection(views)) for views in clues)
        return Measured(100 * hits / total, f"groundtruth_views.json: {hits} of {total} where all four views are seen")

    return measure


MEASURES: Final[Mapping[str, Callable[[Path], Measure]]] = {
    item.__name__.removeprefix("_"): item for item in (_blink, _mvp_bench, _actiview)
}


def _absence(name: str, cell: Published) -> str:
    """Return why no available data can check a cell."""
    match = next(
        row["why"]
        for row in DATA["absent"][name]
        if all(re.search(pattern, getattr(cell, field)) for field, pattern in row.get("where", {}).items())
    )
    if "{views}" not in match:
        return str(match)
    views = int(cell.n)
    fits = math.isclose(round(100 * round(cell.value * views / 100) / views, 2), cell.value, abs_tol=0.001)
    return str(match.format(a="a" if fits else "no", views=views))


DERIVE: Final[Mapping[str, Callable[[Sequence[Published]], Iterator[_printed.Derived]]]] = {
    name: getattr(_printed, name) for name in TITLES
}


def page(verdicts: Sequence[Verdict]) -> str:
    """Return the page as markdown: a summary, a table for each paper, and every cell that differs."""
    statuses = tuple(MEANING)
    lines = [
        "# What is reproduced",
        "",
        "This page says which printed cells of the five papers (`hybrid benchmarks show NAME --all`) were reproduced.",
        f"Made by `{COMMAND}`; every cell with our value and the reason",
        "is in [reproducing.csv](reproducing.csv).",
        "",
        *(f"- **{status}**: {meaning}" for status, meaning in MEANING.items()),
        "",
        as_markdown(
            _counts("by paper", {TITLES[name]: [v for v in verdicts if v.benchmark == name] for name in TITLES})
        ),
    ]
    for name in TITLES:
        mine = [verdict for verdict in verdicts if verdict.benchmark == name]
        tables = {verdict.cell.source: [v for v in mine if v.cell.source == verdict.cell.source] for verdict in mine}
        reasons = Counter(verdict.reason for verdict in mine if verdict.status == "absent")
        lines += [f"## {TITLES[name]}", "", as_markdown(_counts("by table", tables))]
        lines += ["Absent:", "", *(f"- {reason}: {count} cells" for reason, count in reasons.most_common()), ""]
        if name in DATA["unread"]:
            lines += [f"Not listed: {DATA['unread'][name]}.", ""]
        for status in statuses[2:5]:
            if values := [verdict for verdict in mine if verdict.status == status]:
                lines += [f"### {TITLES[name]}: {status}", "", as_markdown(_list(values))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _counts(title: str, groups: Mapping[str, Sequence[Verdict]]) -> Table:
    """Count cells by status, with a row for each group and one for all groups."""
    columns = (Column("", "left"), Column("cells"), *map(Column, MEANING))
    rows = []
    values = [verdict for group in groups.values() for verdict in group]
    for name, group in (*groups.items(), ("all", values)):
        by = Counter(verdict.status for verdict in group)
        rows.append((name, str(len(group)), *(str(by[status]) for status in MEANING)))
    return Table(title, columns, tuple(rows))


def _list(verdicts: Sequence[Verdict]) -> Table:
    names = ("table", "split", "who", "metric")
    columns = (*(Column(name, "left") for name in names), Column("printed"), Column("ours"), Column("from", "left"))
    return Table("", columns, tuple((*_key(verdict), *_values(verdict), verdict.reason) for verdict in verdicts))


def _key(verdict: Verdict) -> tuple[str, ...]:
    cell = verdict.cell
    return cell.source, cell.split, cell.who, cell.metric


def _values(verdict: Verdict) -> tuple[str, str]:
    """Format the printed value and ours, with as many decimals as the paper."""
    decimals = 4 if verdict.benchmark == "hvsbench" else 2
    text = "" if verdict.computed is None else f"{verdict.computed:.{decimals}f}"
    return f"{verdict.cell.value:.{decimals}f}", text


def sheet(verdicts: Sequence[Verdict]) -> str:
    """Return every cell as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("benchmark", "source", "split", "who", "metric", "printed", "status", "ours", "why"))
    for verdict in verdicts:
        printed, actual = _values(verdict)
        writer.writerow((verdict.benchmark, *_key(verdict), printed, verdict.status, actual, verdict.reason))
    return text.getvalue()


def main() -> None:
    """Print or write the page."""
    flags = options(__doc__, {"--data": ..., "-o --out": Path})
    result = verdicts(flags.data)
    if flags.out is None:
        print(page(result), end="")
        return
    (flags.out / "reproducing.md").write_text(page(result))
    (flags.out / "reproducing.csv").write_text(sheet(result))


if __name__ == "__main__":
    main()
