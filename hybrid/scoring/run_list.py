"""Runs of some folders with the score and cost of each solver, and one run in detail: `hybrid runs list` and `show`.

    runs = list_scored([Path("runs")], RunFilter(benchmark="blink"), sort="score")
    print(runs)                      # a row for each solver of each run
    show_run(Path("runs/blink-1a2b3c4d5e"))

Nothing is written. A run that cannot be scored (damaged, hidden answers, a plug-in that is missing) has no score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

from hybrid.benchmarks.base import Benchmark
from hybrid.core.errors import HybridError, UsageError, did_you_mean
from hybrid.core.secrets import redact
from hybrid.core.types import COST_FIELDS, Json, Usage
from hybrid.display.tables import NONE, Column, Table, share
from hybrid.display.terminal import how_many
from hybrid.log.folder import RunFolder
from hybrid.log.listing import ListedRun, State, list_runs
from hybrid.plugins.registry import load
from hybrid.scoring.paths import options_for
from hybrid.scoring.reports import Report
from hybrid.scoring.runs import score_run
from hybrid.scoring.sections.cost import REUSED

Sort = Literal["date", "name", "score", "cost", "n"]
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)
STATES: Final[tuple[State, ...]] = get_args(State)
HEADINGS: Final = ("name", "benchmark", "model", "solver", "answered", "score", "cost", "control", "date", "state")
NUMBERS: Final = frozenset({"answered", "score", "cost", "failed", "tool calls", "tokens", "seconds"})


@dataclass(frozen=True)
class RunFilter:
    """Which runs and solvers to list; an empty field allows all."""

    benchmark: str = ""
    # A part of the model's name.
    model: str = ""
    solver: str = ""
    state: str = ""

    def allows(self, run: ListedRun) -> bool:
        """Return whether the run is listed."""
        model = (run.model or "").casefold()
        return (
            self.benchmark in ("", run.benchmark)
            and self.model.casefold() in model
            and (not self.solver or self.solver in run.solvers)
            and self.state in ("", run.state)
        )


@dataclass(frozen=True)
class SolverSummary:
    """One solver of a run; unknown numbers are None."""

    solver: str
    # Number of questions that the solver finished.
    answered: int
    metric: str = ""
    score: float | None = None
    failed: int | None = None
    usage: Usage | None = None
    wall_s: float | None = None

    @property
    def cost_usd(self) -> float | None:
        """The cost in US dollars; None if no price is known or replies of earlier runs were reused."""
        return self.usage.cost_usd if self.usage is not None and self.usage.is_complete else None

    @property
    def tokens(self) -> int | None:
        """Tokens in and out; None if unknown or replies of earlier runs were reused."""
        if self.usage is None or not self.usage.is_complete:
            return None
        return self.usage.input_tokens + self.usage.output_tokens

    @property
    def reused_note(self) -> str:
        """A sentence on reused replies; empty if no reply was reused."""
        if self.usage is None or self.usage.is_complete:
            return ""
        calls = f"{self.usage.reused_calls:,} of {how_many(self.usage.model_calls, 'model call')}"
        return f"{self.solver}: {calls} answered by {REUSED}, so tokens, cost and seconds are not known."

    def as_json(self) -> dict[str, Json]:
        """Return the summary as JSON."""
        usage = None if self.usage is None else asdict(self.usage)
        if usage is not None and self.usage is not None and not self.usage.is_complete:
            usage |= dict.fromkeys(COST_FIELDS)
        facts: dict[str, Json] = {"answered": self.answered, "metric": self.metric or None, "score": self.score}
        return {**facts, "failed": self.failed, "cost_usd": self.cost_usd, "wall_s": self.wall_s, "usage": usage}


@dataclass(frozen=True, repr=False)
class RunList(Report):
    """Runs with a row for each of their solvers."""

    runs: tuple[ListedRun, ...]
    sort: Sort = "date"
    solver: str = ""
    most: int | None = None

    @cached_property
    def entries(self) -> tuple[tuple[ListedRun, SolverSummary], ...]:
        """The runs with each solver, in the chosen order. Sorting by score or cost scores all runs."""
        runs = sorted(self.runs, key=_RUN_KEYS[self.sort]) if self.sort in _RUN_KEYS else list(self.runs)
        if self.sort in _RUN_KEYS:
            runs = runs[: self.most]
        pairs = [
            (run, summary)
            for run in runs
            for summary in summaries(run)
            if not self.solver or summary.solver == self.solver
        ]
        if self.sort == "score":
            pairs.sort(key=lambda pair: (pair[1].score is None, -(pair[1].score or 0.0)))
        elif self.sort == "cost":
            pairs.sort(key=lambda pair: (pair[1].cost_usd is None, -(pair[1].cost_usd or 0.0)))
        return tuple(pairs if self.sort in _RUN_KEYS else pairs[: self.most])

    @property
    def left_out(self) -> int:
        """Number of runs that `most` leaves out, or number of rows if the list is sorted by score or cost."""
        if self.most is None:
            return 0
        if self.sort in _RUN_KEYS:
            return max(0, len(self.runs) - self.most)
        return max(0, sum(max(1, len(run.solvers)) for run in self.runs) - self.most)

    def tables(self) -> tuple[Table, ...]:
        """Return the table of runs."""
        columns = tuple(Column(name, "right" if name in NUMBERS else "left") for name in HEADINGS)
        notes = tuple(f"{run.path}: {summary.reused_note}" for run, summary in self.entries if summary.reused_note)
        return (Table("", columns, tuple(_cells(run, summary) for run, summary in self.entries), notes),)

    def rows(self) -> list[dict[str, Json]]:
        """Return a record for each solver of each run."""
        return [
            {
                "run": str(run.path),
                "benchmark": run.benchmark,
                "model": run.model,
                "solver": summary.solver,
                "n": run.n,
                "control": run.control,
                "date": run.date.isoformat(),
                "state": run.state,
                **{name: value for name, value in summary.as_json().items() if name != "usage"},
            }
            for run, summary in self.entries
        ]

    def as_json(self) -> dict[str, Json]:
        """Return an object for each run."""
        by_run: dict[Path, tuple[ListedRun, dict[str, Json]]] = {}
        for run, summary in self.entries:
            by_run.setdefault(run.path, (run, {}))[1][summary.solver] = summary.as_json()
        return {"runs": [{**_run_json(run), "scores": scores} for run, scores in by_run.values()]}


@dataclass(frozen=True, repr=False)
class RunDetails(Report):
    """One run: its questions, its model, and its results."""

    run: ListedRun
    manifest: Mapping[str, Any]

    @cached_property
    def solvers(self) -> tuple[SolverSummary, ...]:
        """The solvers with their scores and costs."""
        return summaries(self.run)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return the facts of the manifest as pairs of label and value."""
        identity, commands = self.manifest["identity"], self.manifest.get("commands") or [{}]
        model = identity.get("model")
        settings = {key: value for key, value in model.items() if key != "model"} if isinstance(model, Mapping) else {}
        plain = [f"{key} {value}" for key, value in settings.items() if isinstance(value, str | int | float)]
        data = identity.get("data") or {}
        facts = {
            "run": str(self.run.path),
            "state": f"{self.run.state}, {self.run.date.astimezone():%Y-%m-%d %H:%M}",
            "benchmark": f"{self.run.benchmark}, split {identity.get('split')}, {self.run.n:,} questions",
            "data": ", ".join(str(data[key]) for key in ("kind", "revision", "sha256") if data.get(key)),
            "model": f"{self.run.model or NONE}{''.join(f', {fact}' for fact in plain if len(fact) < 40)}",
            "answered by": ", ".join(f"{name} ({count:,})" for name, count in self._answering_models()),
            "tools": ", ".join(identity.get("tools_offered") or ()),
            "tool output": str(self.run.control or ""),
            "labels": ", ".join(self.manifest.get("labels") or ()),
            "command": str(commands[-1].get("command", "")),
            "hybrid": str(identity.get("hybrid", "")),
        }
        return tuple((word, redact(text)) for word, text in facts.items() if text)

    def _answering_models(self) -> list[tuple[str, int]]:
        counts = self.manifest.get("answered_by")
        if not isinstance(counts, Mapping):
            return []
        return [(str(name), count) for name, count in counts.items() if isinstance(count, int)]

    def tables(self) -> tuple[Table, ...]:
        """Return the tables of facts and of solvers."""
        facts = Table("", (Column("", "left"), Column("value", "left")), self.facts())
        metric = next((summary.metric for summary in self.solvers if summary.metric), "score")
        names = ("solver", "answered", "failed", metric, "tool calls", "tokens", "cost", "seconds")
        columns = tuple(Column(name, "left" if name == "solver" else "right") for name in names)
        notes = tuple(summary.reused_note for summary in self.solvers if summary.reused_note)
        return (facts, Table("", columns, tuple(_solver_cells(self.run, summary) for summary in self.solvers), notes))

    def rows(self) -> list[dict[str, Json]]:
        """Return a record for each solver."""
        return [{"run": str(self.run.path), "solver": entry.solver, **entry.as_json()} for entry in self.solvers]

    def as_json(self) -> dict[str, Json]:
        """Return the run, its facts, and an object for each solver."""
        scores: dict[str, Json] = {entry.solver: entry.as_json() for entry in self.solvers}
        return {**_run_json(self.run), "facts": dict(self.facts()), "scores": scores}


def list_scored(
    folders: Iterable[Path], criteria: RunFilter | None = None, sort: Sort = "date", most: int | None = None
) -> RunList:
    """Return the runs in (or at) these folders.

    Args:
        folders: where to look; three levels of folders are searched.
        criteria: which runs and solvers to list.
        sort: the order: newest first, by name, highest score first, highest cost first, or most questions first.
        most: largest number of runs, or of rows if sorted by score or cost; None for all.

    Raises:
        UsageError: a folder is missing, or a filter names something that none of the runs has.
    """
    criteria = criteria or RunFilter()
    runs = list_runs(folders)
    if sort not in SORTS:
        raise UsageError(f"sort {sort!r}: choose one of {', '.join(SORTS)}")
    _refuse_unknown(runs, criteria)
    return RunList(tuple(run for run in runs if criteria.allows(run)), sort, criteria.solver, most)


def show_run(path: Path) -> RunDetails:
    """Return one run. Raises `UsageError` if the folder is not a run, `DataError` for a damaged manifest."""
    folder = RunFolder.existing(path)
    manifest = folder.manifest
    run = next((run for run in list_runs([path]) if run.path.resolve() == path.resolve()), None)
    assert run is not None  # noqa: S101 - the folder itself is a run
    return RunDetails(run, manifest)


def summaries(run: ListedRun) -> tuple[SolverSummary, ...]:
    """Return each solver of a run with its score and cost; a run without solvers gets one summary without a name."""
    if not run.solvers:
        return (SolverSummary("", 0),)
    folder, results = RunFolder(run.path), []
    for solver, answered in run.solvers.items():
        try:
            results.append(_scored_summary(folder, solver, answered))
        except (HybridError, OSError):
            results.append(SolverSummary(solver, answered, usage=_usage_of(folder, solver)))
    return tuple(results)


def _scored_summary(folder: RunFolder, solver: str, answered: int) -> SolverSummary:
    (scored,) = score_run(folder, options_for({}, folder), (solver,), keep=False)
    benchmark: Benchmark = load("hybrid.benchmarks", scored.benchmark)
    name = benchmark.card.headline[0]
    value = next((metric.value for metric in scored.metrics if metric.name == name), None)
    wall_s = scored.wall_s if scored.usage is None or scored.usage.is_complete else None
    return SolverSummary(
        solver, answered, metric=name, score=value, failed=scored.failed, usage=scored.usage, wall_s=wall_s
    )


def _usage_of(folder: RunFolder, solver: str) -> Usage | None:
    """Return the usage of a solver that has no scores; None if its file cannot be read."""
    try:
        attempts = folder.recorded(solver).without_steps.values()
        return sum((item.reply.usage for attempt in attempts for item in attempt.exchanges), Usage())
    except (HybridError, OSError, ValueError):
        return None


def _refuse_unknown(runs: Sequence[ListedRun], criteria: RunFilter) -> None:
    """Raise `UsageError` for a benchmark, model or solver that no run has, with the nearest existing name."""
    available = {
        "benchmark": {run.benchmark for run in runs if run.benchmark},
        "model": {run.model for run in runs if run.model},
        "solver": {solver for run in runs for solver in run.solvers},
    }
    for field, names in available.items():
        word = getattr(criteria, field)
        is_part = field == "model" and any(word.casefold() in name.casefold() for name in names)
        if word and names and word not in names and not is_part:
            hint, has = did_you_mean(word, sorted(names)), ", ".join(sorted(names))
            raise UsageError(f"--{field} {word}: no run here has it{hint}; available: {has}")


_RUN_KEYS: Final[Mapping[str, Callable[[ListedRun], Any]]] = {
    "date": lambda run: -run.date.timestamp(),
    "name": lambda run: str(run.path),
    "n": lambda run: -run.n,
}


def _run_json(run: ListedRun) -> dict[str, Json]:
    return {**asdict(run), "path": str(run.path), "date": run.date.isoformat(), "damage": [*run.damage]}


def _cells(run: ListedRun, summary: SolverSummary) -> tuple[str, ...]:
    return (
        run.path.resolve().name if run.path == Path() else str(run.path),
        run.benchmark or NONE,
        run.model or NONE,
        summary.solver or NONE,
        share(summary.answered, run.n),
        _number(summary.score, "{:.3f}"),
        _number(summary.cost_usd, "${:.2f}"),
        run.control or NONE,
        f"{run.date.astimezone():%Y-%m-%d %H:%M}",
        run.state + (f", {run.in_batches:,} in batches" if run.in_batches else ""),
    )


def _solver_cells(run: ListedRun, summary: SolverSummary) -> tuple[str, ...]:
    usage = summary.usage
    return (
        summary.solver or NONE,
        share(summary.answered, run.n),
        NONE if summary.failed is None else f"{summary.failed:,}",
        _number(summary.score, "{:.3f}"),
        NONE if usage is None else f"{usage.tool_calls:,}",
        _number(summary.tokens, "{:,}"),
        _number(summary.cost_usd, "${:.4f}"),
        _number(summary.wall_s, "{:.0f}"),
    )


def _number(value: float | None, form: str) -> str:
    return NONE if value is None else form.format(value)
