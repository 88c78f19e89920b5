"""The results of an ablation: each run compared with all tools, and each tool alone compared with no tools.

    report = ablation_at(Path("runs/ablation"))
    print(report)                    # the tables of `hybrid ablate --report runs/ablation`
    report.as_json()                 # the object of `--json`

The report has two comparisons, restricted to the core sections; p values are adjusted (Holm) over both together.
Nothing here divides a gain among tools or estimates what two tools do together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist

from hybrid.core.errors import UsageError
from hybrid.core.repetitions import REPEAT
from hybrid.core.types import Json, Usage
from hybrid.display.tables import Table, signed
from hybrid.display.tables import accuracy as fraction
from hybrid.display.terminal import how_many
from hybrid.log.folder import RunFolder
from hybrid.log.manifest import MANIFEST, difference
from hybrid.plugins.registry import load, load_solver, solver_names
from hybrid.running.ablation import FULL, NONE, ablation, tools_of
from hybrid.running.plan import PlannedRun
from hybrid.scoring.compare import ComparisonOptions, SolverPair
from hybrid.scoring.families import OTHER_METRICS, family_of_tasks
from hybrid.scoring.faults import tool_faults
from hybrid.scoring.headline import SECTIONS, flag_captions, head_of, headline_tables
from hybrid.scoring.paths import TableArguments, scored_at
from hybrid.scoring.rendering import as_csv
from hybrid.scoring.reports import (
    ComparisonReport,
    Report,
    corruption_warnings,
    failures_of,
    first_line,
    head_as_html,
)
from hybrid.scoring.result import LEVEL, Family, Result, adjusted
from hybrid.scoring.runs import refuse_hidden
from hybrid.scoring.score import Scored
from hybrid.scoring.sections import results

COVER = "If two tools report the same, leaving out one changes nothing, so a tool without a difference may still help."
ALONE = " --add-one asks with each tool alone."
UNCALLED = "No tool was called in any of the {runs} runs: no difference below comes from tool output."
SHARED_OUT = "One tool at a time shows neither what tools do together nor the share of a tool in their gain."


def _count_calls(usage: Usage | None) -> dict[str, Json]:
    """Return the numbers of calls of a run, and its cost if no reply of an earlier run was reused."""
    if usage is None:
        return dict.fromkeys(("model_calls", "tool_calls", "reused_calls", "cost_usd"))
    cost = usage.cost_usd if usage.is_complete else None
    counts: dict[str, Json] = {name: getattr(usage, name) for name in ("model_calls", "tool_calls", "reused_calls")}
    return {**counts, "cost_usd": cost}


@dataclass(frozen=True)
class AblatedRun:
    """One run of an ablation; its solver is named after the tools offered (`without depth`)."""

    planned: PlannedRun
    scored: Scored

    @property
    def tools_offered(self) -> tuple[str, ...]:
        """Names of the tools that the run offers."""
        return tools_of(self.planned)


@dataclass(frozen=True, repr=False)
class AblationReport(Report):
    """The runs of an ablation; the run with all tools comes first."""

    folder: Path
    # The solver's name on the command line, the same in all runs.
    solver: str
    runs: tuple[AblatedRun, ...]
    options: ComparisonOptions = field(default_factory=ComparisonOptions)

    @property
    def full(self) -> AblatedRun:
        """The run that offers all tools."""
        return self.runs[0]

    @property
    def damage(self) -> tuple[str, ...]:
        """One line for each problem with a run, and one for each tool that never ran."""
        return corruption_warnings([run.scored for run in self.runs])

    @property
    def failures(self) -> dict[str, str]:
        """Reason why each question has no answer or score, by `ID (RUN)`."""
        return failures_of([run.scored for run in self.runs])

    @cached_property
    def against_full(self) -> ComparisonReport:
        """Runs that lack one tool, or all tools, compared with the run of all tools."""
        return self._against(self.full, [run for run in self.runs if not run.tools_offered or self._lacks_one(run)])

    @cached_property
    def against_none(self) -> ComparisonReport | None:
        """Each run with one tool, compared with the run without tools; None if either kind of run is missing."""
        none = [run for run in self.runs if run.planned.name == NONE]
        alone = [run for run in self.runs if len(run.tools_offered) == 1 and run is not self.full]
        return self._against(none[0], alone) if none and alone else None

    def _lacks_one(self, run: AblatedRun) -> bool:
        return len(run.tools_offered) == len(self.full.tools_offered) - 1

    def _against(self, reference: AblatedRun, others: Sequence[AblatedRun]) -> ComparisonReport:
        pairs = tuple(SolverPair(reference.scored.solver, other.scored.solver) for other in others)
        solvers = tuple(run.scored for run in (reference, *others))
        return ComparisonReport(solvers, replace(self.options, pairs=pairs))

    @property
    def comparisons(self) -> tuple[ComparisonReport, ...]:
        """The comparisons against all tools and, if present, against no tools."""
        return tuple(filter(None, (self.against_full, self.against_none)))

    @property
    def metric(self) -> str:
        """Name of the benchmark's headline metric for these questions."""
        return self.against_full.comparison.headline or "headline metric"

    def tables(self) -> tuple[Table, ...]:
        """Return the tables: first those of `against_full`, with the conclusion; then those of `against_none`."""
        tables = [table for report in self.comparisons for table in headline_tables(report.comparison)]
        first = replace(tables[0], notes=(*self.conclusion(), *tables[0].notes))
        return (first, *tables[1:])

    def render(self, form: str = "text") -> str:
        """Render the head and the tables; as csv, one number per line with the columns of `hybrid compare --csv`."""
        solvers = [run.scored for run in self.runs]
        if form == "csv":
            return as_csv(solvers, self.results)
        head, tables = first_line(solvers, form).rstrip("\n"), super().render(form)
        return f"{head}\n\n{flag_captions(tables, solvers) if form == 'latex' else tables}"

    def html_parts(self) -> Iterator[str]:
        """Yield the head, then the tables."""
        yield head_as_html([run.scored for run in self.runs])
        yield from super().html_parts()

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Rows of `against_full`, followed by those rows of `against_none` that `against_full` does not have.

        P values are adjusted as in the tables, with separate families for the headline metric of each comparison (tools
        left out, or added to none), for the other metrics, and for the tasks of each pair.
        """
        section_results = (result for report in self.comparisons for result in results(report.comparison, SECTIONS))
        rows = dict.fromkeys(replace(row, p_holm=None) for result in section_results for row in result.rows)

        def family(row: Result) -> Family:
            if row.group:
                return family_of_tasks(row)
            return Family("sets of tools", row.a) if row.metric == self.metric else OTHER_METRICS

        return tuple(adjusted([*rows], family))

    def rows(self) -> list[dict[str, Json]]:
        """Return a record for each row."""
        return [asdict(row) for row in self.results]

    def as_json(self) -> dict[str, Json]:
        """Return every run, the rows of the comparisons (`results`), and the conclusions in words."""
        return {
            "head": list(head_of([run.scored for run in self.runs])),
            "ablation": str(self.folder),
            "benchmark": self.full.scored.benchmark,
            "solver": self.solver,
            "metric": self.metric,
            "unanswered": self.full.scored.unanswered,
            "tools_offered": list(self.full.tools_offered),
            "runs": {
                run.planned.name: {
                    "name": run.scored.solver,
                    "folder": str(self.folder / run.planned.name),
                    "tools_offered": list(run.tools_offered),
                    "left_out": [name for name in self.full.tools_offered if name not in run.tools_offered],
                    **run.scored.as_json(self.options.by),
                    **_count_calls(run.scored.usage),
                }
                for run in self.runs
            },
            "results": [row.as_json() for row in self.results],
            "conclusion": [*self.conclusion()],
        }

    def conclusion(self) -> tuple[str, ...]:
        """Return sentences that say which effects are significant and which are not."""
        waiting = {run.scored.solver: run.scored.open for run in self.runs if run.scored.open}
        compared = len(self.runs) > 1
        has_calls = any(run.scored.usage is None or run.scored.usage.tool_calls for run in self.runs)
        on_single = []
        if self.against_none is not None:
            tools_offered_by = {run.scored.solver: run.tools_offered for run in self.runs}
            rows = self._differences(self.against_none.comparison.solvers[0].solver)
            of_one_tool = [(tools_offered_by[row.b][0], row) for row in rows]
            on_single = self._on_each(of_one_tool, "Against no tool, with {tool} alone", "No tool alone changes")
        return (
            *([UNCALLED.format(runs=len(self.runs))] if compared and not has_calls else ()),
            *self._on_missing(),
            *on_single,
            *(f"{name}: {how_many(count)} not finished yet, left out." for name, count in waiting.items()),
            *([SHARED_OUT] if compared else ()),
        )

    def _differences(self, reference: str) -> list[Result]:
        """Return each run's paired difference from a reference run, by the headline metric over all tasks."""
        key = ("differences", "difference", "", self.metric, reference, False)
        return [
            row for row in self.results if (row.section, row.quantity, row.group, row.metric, row.a, row.detail) == key
        ]

    def _on_missing(self) -> list[str]:
        """Describe the effects of leaving out all tools, then each tool."""
        rows = {row.b: row for row in self._differences(self.full.scored.solver)}
        none = rows.get(next((run.scored.solver for run in self.runs if not run.tools_offered), ""))
        sentences = []
        if none is not None and none.p_holm is not None:
            opening = "Without any tool" if none.holds else NOT_SHOWN
            sentences.append(f"{opening} {none.metric} changes by {_estimate(none)}.")
        of_one_tool = [
            (next(name for name in self.full.tools_offered if name not in run.tools_offered), rows[run.scored.solver])
            for run in self.runs
            if self._lacks_one(run) and run.tools_offered and run.scored.solver in rows
        ]
        # These tools were offered in the run with all tools but never called.
        called_tools = {fault.tool for fault in tool_faults(self.full.scored)}
        idle = frozenset(self.full.tools_offered if self.full.scored.folder else ()) - called_tools
        sentences += self._on_each(of_one_tool, "Without {tool}", "No single tool's absence changes", idle)
        if of_one_tool:
            sentences.append(COVER + ("" if self.against_none else ALONE))
        return sentences

    def _on_each(
        self, rows: Sequence[tuple[str, Result]], opening: str, nothing: str, idle: Collection[str] = ()
    ) -> list[str]:
        """Return a sentence for each significant difference, and one for all others; `idle` tools were never called."""
        family = self._differences(rows[0][1].a) if rows else []
        tested = sorted(
            ((tool, row) for tool, row in rows if row.p_holm is not None), key=lambda pair: pair[1].value or 0
        )
        never = {
            tool: f", though {self.full.scored.solver} never called it" if tool in idle else "" for tool, _ in tested
        }
        sentences = [
            f"{opening.format(tool=tool)} {row.metric} changes by {_estimate(row)}{never[tool]}."
            for tool, row in tested
            if row.holds
        ]
        open_ = [(tool, row) for tool, row in tested if not row.holds]
        if open_:
            if sentences:
                several = f"Of the other {len(open_)} none changes"
                nothing = several if len(open_) > 1 else "The other one does not change"
            differences = "; ".join(f"{tool} {_estimate(row)}{never[tool]}" for tool, row in open_)
            # The smallest difference of one tool that would have been significant: half the width of its interval,
            # widened by the adjustment for several tests.
            tests = sum(row.p_holm is not None for row in family)
            wider = NormalDist().inv_cdf(1 - LEVEL / 2 / tests) / NormalDist().inv_cdf(1 - LEVEL / 2)
            ends = (row.interval for _, row in open_ if row.interval is not None)
            halves = sorted(wider * (interval.high - interval.low) / 2 for interval in ends)
            least, most = fraction(halves[0]), fraction(halves[-1])
            about = least if least == most else f"{least} to {most}"
            detectable = f"a difference of about {about} or more would have been shown."
            adjusted = f"Adjusted for {how_many(tests, 'test')}, {detectable}"
            sentences.append(
                f"{nothing} {self.metric} measurably on {how_many(open_[0][1].n or 0)}: {differences}. {adjusted}"
            )
        if len(tested) < len(rows):
            sentences.append(f"{len(rows) - len(tested)} of {how_many(len(rows), 'difference')} could not be tested.")
        return sentences


NOT_SHOWN = "The tools together have no demonstrated effect: without any"


def _estimate(row: Result) -> str:
    return f"{signed(row.value)} (95 % [{row.low:.3f}, {row.high:.3f}], p (Holm) {row.p_holm:.3f})"


def ablation_at(folder: Path, solver: str | None = None, options: TableArguments | None = None) -> AblationReport:
    """Load the runs of an ablation from a folder, without the runs that have no answers yet.

    Args:
        folder: the folder of the ablation; its runs are `full`, `none`, `without-TOOL` and `only-TOOL`.
        solver: the solver to report; None for the only one in the runs that offers tools.
        options: the options of `hybrid compare` for scoring and reporting.

    Raises:
        UsageError: the run with all tools is missing, or another run differs from that run in more than the tools.
        DataError: a file cannot be used.
    """
    options = options or {}
    full = folder / FULL
    if not (full / MANIFEST).is_file():
        raise UsageError(f"{folder} contains no ablation: it has no run {full}")
    identity = RunFolder(full).manifest["identity"]
    refuse_hidden(load("hybrid.benchmarks", identity["benchmark"]), identity["split"])
    if not solver:
        candidates = [name for name in RunFolder(full).solvers() if REPEAT not in name and name in solver_names()]
        with_tools = [name for name in candidates if load_solver(name).offers_tools]
        if len(with_tools) != 1:
            offering = ", ".join(with_tools) or "no solver that offers tools"
            raise UsageError(f"{full} has answers of {offering}: give --solver")
        (solver,) = with_tools
    runs = []
    for planned in ablation(identity.get("tools_offered") or (), add_one=True).runs:
        run = RunFolder(folder / planned.name)
        if not (run.path / MANIFEST).is_file():
            continue
        expected = {**identity, "tools_offered": list(tools_of(planned))}
        if changes := difference(expected, run.manifest["identity"]):
            raise UsageError(
                f"{run.path} is not a run of this ablation; it differs from {full} in more than the tools offered:\n"
                + "\n".join(f"  {change}" for change in changes)
            )
        if solver in run.solvers() and run.finished(solver):
            (scored,) = scored_at(run.path / solver, options)
            runs.append(AblatedRun(planned, replace(scored, solver=planned.about)))
    if not runs or runs[0].planned.name != FULL:
        raise UsageError(f"{full} has no answer of {solver!r} yet: there is nothing to compare with")
    compared = ComparisonOptions(options.get("by"), allow_failed=options.get("allow_failed", False))
    return AblationReport(folder, solver, tuple(runs), compared)
