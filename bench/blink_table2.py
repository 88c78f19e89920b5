"""Compare the six specialist cells of BLINK's Table 2 with this project's tools, and list those outside the interval.

    uv run python -m bench.blink_table2 RUN                      a finished run with the solver specialist
    uv run python -m bench.blink_table2 --data DIR --weights depth=DIR_OR_ID [--device cuda] [--backend learned]
    uv run python -m bench.blink_table2 --data DIR --backend classical

DIR holds BLINK's official layout. Fu et al., ECCV 2024, arXiv:2404.12390, Table 2, validation split; the published
cells are those of `hybrid benchmarks show blink`. `docs/specialists.md` lists the command for each cell, and stand-ins.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench._frame import parser
from bench._runs import finished
from hybrid.benchmarks.base import ScoreOptions, accuracy
from hybrid.config import RunConfig, ServiceOptions
from hybrid.core.errors import UsageError
from hybrid.core.types import Outcome
from hybrid.display.tables import Column, Table, as_text, bounds
from hybrid.display.tables import accuracy as fraction
from hybrid.log.folder import RunFolder
from hybrid.scoring.published import Published, published
from hybrid.scoring.runs import score_run
from hybrid.stats import Interval, interval

SOLVER = "specialist"
SOURCE = "Table 2"
COLUMNS = ("task", "published", "by", "ours", "95 % interval", "n", "abstained", "backend", "published lies")


@dataclass(frozen=True)
class TableRow:
    """One published cell in percent, and the measured fraction (0..1) with its interval; None if not run."""

    cell: Published
    n: int = 0
    abstained: int = 0
    value: float | None = None
    around: Interval | None = None
    backends: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return where the published value is relative to our interval."""
        if self.around is None:
            return "not run"
        if self.around.low <= self.cell.value / 100 <= self.around.high:
            return "inside"
        return "OUTSIDE (ours lower)" if self.cell.value / 100 > self.around.high else "OUTSIDE (ours higher)"

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        values = (self.cell.metric, fraction(self.cell.value / 100), self.cell.who)
        if self.around is None:
            return (*values, "-", "-", "0", "-", "-", self.verdict)
        counts = (str(self.n), str(self.abstained), ", ".join(self.backends) or "-")
        return (*values, fraction(self.value), bounds(self.around, 3), *counts, self.verdict)


def cells() -> tuple[Published, ...]:
    """Return the six published specialist cells."""
    return tuple(cell for cell in published("blink") if cell.kind == SOLVER and cell.source == SOURCE)


def compare(folder: RunFolder) -> tuple[TableRow, ...]:
    """Return a row per published cell. Raises `UsageError` for another benchmark or split, or generated data."""
    identity = folder.manifest["identity"]
    items = tuple(identity[key] for key in ("benchmark", "split"))
    if items != ("blink", "val") or identity["data"].get("kind") == "sample":
        raise UsageError(
            f"{folder.path}: Table 2 is BLINK val, the run is {' '.join(items)} on {identity['data']['kind']} data"
        )
    (scored,) = score_run(folder, ScoreOptions(unanswered="guess"), (SOLVER,))
    backends = _backends(folder)
    rows = []
    for cell in cells():
        scores = [score for score in scored.scores if score.task == cell.metric]
        metric = accuracy("", scores)
        around, abstained = interval(metric), sum(score.outcome is Outcome.ABSTAINED for score in scores)
        measured = (len(scores), abstained, metric.value, around, backends.get(cell.metric, ()))
        rows.append(TableRow(cell) if around is None else TableRow(cell, *measured))
    return tuple(rows)


def _backends(folder: RunFolder) -> Mapping[str, tuple[str, ...]]:
    """Return, by route, the tools and backends that gave an answer."""
    seen: dict[str, set[str]] = {}
    exchanges = (exchange for attempt in folder.attempts(SOLVER) for exchange in attempt.exchanges)
    for exchange, step in ((item, step) for item in exchanges for step in item.reply.steps):
        value = step.data.get("specialist_answer")
        if isinstance(value, Mapping):
            seen.setdefault(exchange.prompt.route, set()).add(f"{value['tool']}:{value['backend']}")
    return {route: tuple(sorted(result)) for route, result in seen.items()}


def table(rows: tuple[TableRow, ...]) -> Table:
    """Return the printed table."""
    outside = [row.cell.metric for row in rows if row.verdict.startswith("OUTSIDE")]
    missing = [row.cell.metric for row in rows if row.value is None]
    notes = [f"Outside of the interval: {', '.join(outside) or 'none'}."]
    if missing:
        notes.append(f"Not in this run: {', '.join(missing)}.")
    notes.append("An abstention counts as a guess. The paper does not print how an output becomes an answer.")
    columns = tuple(
        Column(name, "left" if name in ("task", "by", "backend", "published lies") else "right") for name in COLUMNS
    )
    return Table("BLINK val, Table 2: specialists", columns, tuple(row.cells() for row in rows), tuple(notes))


def run(options: argparse.Namespace, out: Path) -> RunFolder:
    """Run the specialist on the tasks of the six cells that the data contains."""
    present = tuple(cell.metric for cell in cells() if (options.data / cell.metric).is_dir())
    if not present:
        raise UsageError(f"--data {options.data}: it holds none of the six tasks of Table 2")
    weights = dict(pair.split("=", 1) for pair in options.weights or ())
    service = ServiceOptions(options.backend, weights, options.device)
    request = {"data": str(options.data), "split": "val", "tasks": present, "allow": tuple(options.allow or ())}
    return finished(RunConfig("blink", (SOLVER,), **request, service=service, out=out))


def main() -> None:
    """Print the table."""
    flags = {"run": {"nargs": "?", "type": Path}, "--data": Path, "--weights": [str], "--allow": [str]}
    command = parser(__doc__, {**flags, "--backend": ("auto", "learned", "classical"), "--device": "auto"})
    arguments = command.parse_args()
    if (arguments.run is None) == (arguments.data is None):
        command.error("give either a finished RUN or --data DIR")
    if bad := [pair for pair in arguments.weights or () if "=" not in pair]:
        command.error(f"--weights {bad[0]}: expected TOOL=DIR_OR_ID")
    with tempfile.TemporaryDirectory() as folder:
        result = RunFolder.existing(arguments.run) if arguments.run else run(arguments, Path(folder) / "run")
        print(as_text(table(compare(result))))


if __name__ == "__main__":
    main()
