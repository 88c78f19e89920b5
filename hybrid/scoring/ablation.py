"""What an ablation comes to: each of its runs against the full menu, and each tool alone against none.

    report = ablation_at(Path("runs/ablation"))
    print(report)                    # the tables of `hybrid ablate --report runs/ablation`
    report.as_json()                 # the object of `--json`

Differences are those of `hybrid compare`: paired, on the questions that both runs have. Each table is a Holm family of
its own. Nothing here shares a gain out among tools, or says what two of them do together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from hybrid.benchmarks.base import Benchmark
from hybrid.errors import UsageError
from hybrid.manifest import MANIFEST
from hybrid.registry import load, load_solver
from hybrid.run_folder import RunFolder, difference
from hybrid.running.ablation import FULL, NONE, Variant, ablation
from hybrid.scoring.compare import ALL, FAILED_SHARE, Choice, Comparison, Contest, Pair, compare
from hybrid.scoring.compare_tables import COUNTED
from hybrid.scoring.reports import Report, TableArguments, scored_at
from hybrid.scoring.groups import REPEAT
from hybrid.scoring.score import Scored, refuse_hidden
from hybrid.scoring.tidy import lines_as_csv
from hybrid.scoring.told import Number, unit_of
from hybrid.stats import interval
from hybrid.tables import NONE as NOTHING
from hybrid.tables import Column, Table, bounds, number, p_value, signed, tokens
from hybrid.tables import accuracy as fraction
from hybrid.types import Json, Metric

SECTION = "ablation"
LEVEL = 0.05
"""A difference is called shown where its adjusted p value is below."""
COVER = (
    "Where two tools tell the same, leaving out one of them changes nothing: a tool that is not missed may still help."
)
ALONE = " --add-one asks with each tool alone."
SHARED_OUT = "One tool at a time tells nothing of what tools do together, and gives no tool a share of their gain."


@dataclass(frozen=True)
class AblatedRun:
    """One run of an ablation, its solver called by what is left of the menu (`without depth`)."""

    variant: Variant
    scored: Scored

    @property
    def name(self) -> str:
        """What it is called in tables, and as the solver of a comparison."""
        return self.variant.words

    @property
    def tokens(self) -> int | None:
        """Tokens read and written; None where nobody recorded them."""
        usage = self.scored.usage
        if usage is None:
            return None
        total = usage.input_tokens + usage.output_tokens
        return None if usage.model_calls and not total else total

    def spent(self) -> dict[str, Json]:
        """What its asks cost."""
        usage = self.scored.usage
        return {
            "model_calls": None if usage is None else usage.model_calls,
            "tool_calls": None if usage is None else usage.tool_calls,
            "tokens": self.tokens,
            "cost_usd": None if usage is None else usage.cost_usd,
        }


@dataclass(frozen=True, repr=False)
class AblationReport(Report):
    """The runs of an ablation, the full menu first."""

    folder: Path
    solver: str
    """The word of the solver in all of the runs."""
    runs: tuple[AblatedRun, ...]
    choice: Choice = field(default_factory=Choice)

    @property
    def full(self) -> AblatedRun:
        """The run with the whole menu."""
        return self.runs[0]

    @property
    def damage(self) -> tuple[str, ...]:
        """A line for each thing that is wrong with a run."""
        return tuple(dict.fromkeys(line for run in self.runs for line in run.scored.damage))

    @property
    def failures(self) -> dict[str, str]:
        """What became of each question that nobody answered, or that has no score, by `ID (RUN)`."""
        return {
            f"{score.id} ({run.name})": run.scored.reasons.get(score.id, score.outcome.value)
            for run in self.runs
            for score in run.scored.scores
            if score.outcome.failed
        }

    @cached_property
    def against_full(self) -> Comparison:
        """The runs that lack one tool, or all of them, against the full menu."""
        most = len(self.full.variant.menu) - 1
        return self._against(self.full, [run for run in self.runs if len(run.variant.menu) in (0, most)])

    @cached_property
    def against_none(self) -> Comparison | None:
        """Every run with one tool against the one without any; None where there are none."""
        none = next((run for run in self.runs if run.variant.name == NONE), None)
        alone = [run for run in self.runs if len(run.variant.menu) == 1 and run is not self.full]
        return self._against(none, alone) if none is not None and alone else None

    def _against(self, reference: AblatedRun, others: Sequence[AblatedRun]) -> Comparison:
        pairs = tuple(Pair(reference.name, other.name) for other in others)
        return compare([run.scored for run in (reference, *others)], replace(self.choice, pairs=pairs))

    @cached_property
    def metric(self) -> str:
        """The benchmark's headline metric of these questions."""
        for contest in self.against_full.family("headline"):
            return contest.metric
        benchmark: Benchmark = load("hybrid.benchmarks", self.full.scored.benchmark)
        known = {metric.name for metric in self.full.scored.metrics if metric.cells}
        return next((name for name in benchmark.card.headline if name in known), "headline metric")

    def tables(self) -> tuple[Table, ...]:
        """What is left out against the full menu, one tool against none, and both by task."""
        whose, by = f"{self.full.scored.benchmark}: {self.solver}", self.choice.by or "task"
        found = [self._overall(self.against_full, f"{whose}, one tool of the menu left out")]
        if self.against_none is not None:
            found.append(self._overall(self.against_none, f"{whose}, one tool alone"))
        if self.against_full.family("tasks"):
            found.append(self._by_task(self.against_full, f"{whose}, one tool of the menu left out, by {by}"))
        if self.against_none is not None and self.against_none.family("tasks"):
            found.append(self._by_task(self.against_none, f"{whose}, one tool alone, by {by}"))
        return tuple(found)

    def render(self, form: str = "text") -> str:
        """The tables; as csv one number a line, with the columns of `hybrid compare --csv`."""
        if form != "csv":
            return super().render(form)
        return lines_as_csv(self.full.scored.benchmark, self.numbers())

    def as_json(self) -> dict[str, Json]:
        """Every run with what it cost, every difference unrounded, and what could be shown in words."""
        return {
            "ablation": str(self.folder),
            "benchmark": self.full.scored.benchmark,
            "solver": self.solver,
            "metric": self.metric,
            "abstain": self.full.scored.abstain,
            "menu": list(self.full.variant.menu),
            "runs": {run.variant.name: self._run_json(run) for run in self.runs},
            "against_full": [contest.as_json() for contest in self.against_full.contests],
            "against_none": [c.as_json() for c in self.against_none.contests] if self.against_none else [],
            "conclusion": [*self.conclusion()],
        }

    def _run_json(self, run: AblatedRun) -> dict[str, Json]:
        left_out = [name for name in self.full.variant.menu if name not in run.variant.menu]
        facts: dict[str, Json] = {
            "name": run.name,
            "folder": str(self.folder / run.variant.name),
            "menu": list(run.variant.menu),
            "left_out": [*left_out],
        }
        return {**facts, **run.scored.as_json(self.choice.by), **run.spent()}

    def rows(self) -> list[dict[str, Json]]:
        """One number a line: value and cost of every run, then every difference by the headline and within tasks."""
        return [asdict(one) for one in self.numbers()]

    def numbers(self) -> tuple[Number, ...]:
        """The same as values."""
        found: list[Number] = []
        for run in self.runs:
            found += self._numbers_of_run(run)
        for comparison in filter(None, (self.against_full, self.against_none)):
            for contest in (*comparison.family("headline"), *comparison.family("tasks")):
                found += _numbers_of(contest)
        return tuple(found)

    def _numbers_of_run(self, run: AblatedRun) -> list[Number]:
        found: list[Number] = []
        metric = self._metric(run)
        if metric is not None:
            ends = interval(metric)
            value = Number(SECTION, "value", unit_of((metric,)), metric.value, run.name, metric=metric.name, n=metric.n)
            found.append(replace(value, low=ends.low, high=ends.high) if ends is not None else value)
        usage = run.scored.usage
        if usage is not None:
            found += [
                Number(SECTION, "model calls", "calls", usage.model_calls, run.name),
                Number(SECTION, "tool calls", "calls", usage.tool_calls, run.name),
                Number(SECTION, "tokens", "tokens", run.tokens, run.name),
                Number(SECTION, "cost", "USD", usage.cost_usd, run.name),
            ]
        return found

    def conclusion(self) -> tuple[str, ...]:
        """Plain sentences on what could be shown and what could not."""
        of_one = () if self.against_none is None else self._told_alone(self.against_none)
        return (*self._told_left_out(), *of_one, *self._last_words())

    def _last_words(self) -> tuple[str, ...]:
        return (SHARED_OUT,) if len(self.runs) > 1 else ()

    def _told_left_out(self) -> tuple[str, ...]:
        none, left_out = [], []
        for contest in self.against_full.family("headline"):
            menu = self._run(contest.pair.b).variant.menu
            if not menu:
                none.append(contest)
            elif len(menu) == len(self.full.variant.menu) - 1:
                left_out.append(contest)
        found = [self._told_none(contest) for contest in none if contest.p_holm is not None]
        found += self._told_single(left_out, "Without {tool}", "No single tool's absence changes")
        if left_out:
            found.append(COVER + ("" if self.against_none else ALONE))
        return tuple(found)

    def _told_none(self, contest: Contest) -> str:
        if _is_shown(contest):
            return f"Without any tool {_change(contest)}."
        return f"That the tools together change anything is not shown: without any {_change(contest)}."

    def _told_alone(self, found: Comparison) -> tuple[str, ...]:
        return tuple(
            self._told_single(found.family("headline"), "Against no tool, with {tool} alone", "No tool alone changes")
        )

    def _told_single(self, contests: Sequence[Contest], opening: str, nothing: str) -> list[str]:
        """A sentence for each tool whose difference is shown, and one for all others together."""
        tested = [contest for contest in contests if contest.p_holm is not None]
        shown = [contest for contest in _sorted(tested) if _is_shown(contest)]
        found = [f"{opening.format(tool=self._tool(contest))} {_change(contest)}." for contest in shown]
        open_ = [contest for contest in tested if not _is_shown(contest)]
        if open_:
            if shown:
                nothing = (
                    f"Of the other {len(open_)} none changes" if len(open_) > 1 else "The other one does not change"
                )
            found.append(f"{nothing} {self.metric} measurably on {open_[0].counts.n} questions: {_reach(open_)}.")
        if len(tested) < len(contests):
            found.append(f"{len(contests) - len(tested)} of {len(contests)} differences could not be tested.")
        return found

    def _tool(self, contest: Contest) -> str:
        """The tool that one of two runs lacks or has alone."""
        menu = self._run(contest.pair.b).variant.menu
        if not self._run(contest.pair.a).variant.menu:
            return menu[0]
        return next(name for name in self.full.variant.menu if name not in menu)

    def _run(self, name: str) -> AblatedRun:
        return next(run for run in self.runs if run.name == name)

    def _metric(self, run: AblatedRun) -> Metric | None:
        return next((metric for metric in run.scored.metrics if metric.name == self.metric), None)

    def _overall(self, found: Comparison, title: str) -> Table:
        """A row for the reference, then one for each other run, by its difference."""
        reference = self._run(found.solvers[0].solver)
        alone = reference is not self.full
        rows = [self._reference_row(reference)]
        rows += [self._row(contest, alone=alone) for contest in _sorted(found.family("headline"), gains=alone)]
        tested = {contest.pair.b for contest in found.family("headline")}
        rows += [self._untested_row(self._run(one.solver)) for one in found.solvers[1:] if one.solver not in tested]
        names = ("n", self.metric, "change", "95 %", "p (Holm)", "tool calls", "tokens", *self._priced("cost USD"))
        columns = (Column("run", "left"), *map(Column, names))
        labels = dict.fromkeys(label for run in self.runs for label in run.scored.labels)
        labelled = f"{title} [{'; '.join(labels)}]" if labels else title
        before = () if alone else (f"The menu: {', '.join(self.full.variant.menu)}.", COUNTED)
        told = self._told_alone(found) if alone else (*self._told_left_out(), *self._last_words())
        return Table(labelled, columns, tuple(rows), (*before, *self._notes(found, "headline"), *told))

    def _reference_row(self, run: AblatedRun) -> tuple[str, ...]:
        metric = self._metric(run)
        value = (number(metric.n), fraction(metric.value)) if metric is not None else (NOTHING, NOTHING)
        return (run.name, *value, NOTHING, NOTHING, NOTHING, *self._cost(run))

    def _untested_row(self, run: AblatedRun) -> tuple[str, ...]:
        return (run.name, *(NOTHING,) * 5, *self._cost(run))

    def _cost(self, run: AblatedRun) -> tuple[str, ...]:
        usage = run.scored.usage
        if usage is None:
            return (NOTHING, NOTHING, *self._priced(NOTHING))
        cost = NOTHING if usage.cost_usd is None else f"{usage.cost_usd:.4f}"
        return (tokens(usage.tool_calls), tokens(run.tokens), *self._priced(cost))

    def _priced(self, cell: str) -> tuple[str, ...]:
        """A cell of the column of costs, which is there where a price was given."""
        known = any(run.scored.usage is not None and run.scored.usage.cost_usd is not None for run in self.runs)
        return (cell,) if known else ()

    def _row(self, contest: Contest, *, alone: bool) -> tuple[str, ...]:
        run, measured = self._run(contest.pair.b), contest.contrast
        return (
            f"only {run.variant.menu[0]}" if alone else run.name,
            number(contest.n),
            fraction(measured.value_b),
            signed(measured.difference),
            bounds(measured.interval, 3),
            p_value(contest.p_holm),
            *self._cost(run),
        )

    def _by_task(self, found: Comparison, title: str) -> Table:
        """A row for each task and run with a difference within the task, by its size."""
        reference = found.solvers[0].solver
        alone = reference != self.full.name
        contests = found.family("tasks")
        changed = [contest for contest in contests if contest.contrast.value_a != contest.contrast.value_b]
        rows = []
        for group in sorted({contest.group for contest in changed}):
            members = [contest for contest in changed if contest.group == group]
            rows += [self._task_row(contest, alone=alone) for contest in _sorted(members, gains=alone)]
        names = ("n", reference, "accuracy", "change", "95 %", "p (Holm)")
        columns = (Column(self.choice.by or "task", "left"), Column("run", "left"), *map(Column, names))
        notes = []
        if same := len(contests) - len(changed):
            notes.append(
                f"{same} of {len(contests)} rows are not shown: their difference is 0. --json and --csv have them."
            )
        return Table(title, columns, tuple(rows), (*notes, *self._notes(found, "tasks")))

    def _task_row(self, contest: Contest, *, alone: bool) -> tuple[str, ...]:
        run, measured = self._run(contest.pair.b), contest.contrast
        return (
            contest.group,
            f"only {run.variant.menu[0]}" if alone else run.name,
            number(contest.n),
            fraction(measured.value_a),
            fraction(measured.value_b),
            signed(measured.difference),
            bounds(measured.interval, 3),
            p_value(contest.p_holm),
        )

    def _notes(self, found: Comparison, family: str) -> tuple[str, ...]:
        contests = [contest for contest in found.contests if contest.family == family]
        tested = sum(contest.p_holm is not None for contest in contests)
        rule = self.full.scored.abstain
        reference = found.solvers[0].solver
        notes = [f"change: minus {reference}, on the questions that both runs have; here none = {rule}."]
        if tested:
            notes.append(f"Holm over the {tested} tests of this table." if tested > 1 else "There is one test.")
        if any(contest.withheld == "failed" for contest in contests):
            notes.append(
                f"Nothing is tested where more than {FAILED_SHARE:.0%} failed, unless --allow-failed is given."
            )
        if any(contest.withheld in ("unanswered", "units") for contest in contests):
            notes.append("Nothing is tested where one of the two answered nothing, or has other units of the metric.")
        if family == "headline":
            notes += [
                f"{run.name}: {run.scored.open} questions not asked yet are left out."
                for run in self.runs
                if run.scored.open
            ]
        return tuple(notes)


def _sorted(contests: Sequence[Contest], *, gains: bool = False) -> list[Contest]:
    """By their difference, losses first or gains first; those without one last."""
    sign = -1 if gains else 1

    def place(contest: Contest) -> tuple[bool, float]:
        difference = contest.contrast.difference
        return (difference is None, sign * (difference or 0.0))

    return sorted(contests, key=place)


def _is_shown(contest: Contest) -> bool:
    return contest.p_holm is not None and contest.p_holm < LEVEL


def _change(contest: Contest) -> str:
    measured = contest.contrast
    return (
        f"{contest.metric} changes by {signed(measured.difference)} (95 % {bounds(measured.interval, 3)}, "
        f"p (Holm) {p_value(contest.p_holm)})"
    )


def _reach(contests: Sequence[Contest]) -> str:
    """How small a difference could have been shown: half of the intervals' lengths."""
    ends = [contest.contrast.interval for contest in contests if contest.contrast.interval is not None]
    halves = sorted(fraction((found.high - found.low) / 2) for found in ends)
    width = halves[0] if halves[0] == halves[-1] else f"{halves[0]} to {halves[-1]}"
    return f"the 95 % intervals reach {width} to either side, and a smaller difference could not have been shown"


def _numbers_of(contest: Contest) -> list[Number]:
    """The difference of a pair, and the questions that it helped and harmed."""
    group = "" if contest.group == ALL else contest.group
    measured, counts = contest.contrast, contest.counts
    plain = Number(SECTION, "difference", "fraction", measured.difference, *contest.pair, contest.metric, group)
    found = replace(plain, n=contest.n, p=measured.p_value, p_holm=contest.p_holm)
    if measured.interval is not None:
        found = replace(found, low=measured.interval.low, high=measured.interval.high)
    asked = replace(plain, unit="questions", n=counts.both_answered)
    helped, harmed = (
        replace(asked, quantity=name, value=count)
        for name, count in (("helped", counts.helped), ("harmed", counts.harmed))
    )
    return [found, helped, harmed]


def ablation_at(folder: Path, solver: str | None = None, options: TableArguments | None = None) -> AblationReport:
    """The runs of an ablation that lie in a folder, those that answered nothing yet left out.

    Args:
        folder: of the ablation; its runs are `full`, `none`, `without-TOOL` and `only-TOOL`.
        solver: which of the solvers in them; None for the only one that offers tools.
        options: those of `hybrid compare` that say how is scored and what is reported.

    Raises:
        UsageError: there is no run with the full menu, or one of the others was asked otherwise than by its menu.
        DataError: a file that cannot be used.
    """
    options = options or {}
    full = folder / FULL
    if not (full / MANIFEST).is_file():
        raise UsageError(f"{folder} holds no ablation: there is no run in {full}")
    identity = RunFolder(full).manifest["identity"]
    refuse_hidden(load("hybrid.benchmarks", identity["benchmark"]), identity["split"])
    name = solver or _only_solver(RunFolder(full))
    found = []
    for variant in ablation(identity.get("menu") or (), add_one=True).variants:
        run = RunFolder(folder / variant.name)
        if not (run.path / MANIFEST).is_file():
            continue
        _refuse_other(run, {**identity, "menu": list(variant.menu)}, full)
        if name in run.solvers() and run.finished(name):
            (scored,) = scored_at(run.path / name, options)
            found.append(AblatedRun(variant, replace(scored, solver=variant.words)))
    if not found or found[0].variant.name != FULL:
        raise UsageError(f"{full} has no answer of {name!r} yet: there is nothing to compare with")
    choice = Choice(options.get("by"), allow_failed=options.get("allow_failed", False))
    return AblationReport(folder, name, tuple(found), choice)


def _only_solver(run: RunFolder) -> str:
    """The solver of a run that offers tools, as it was asked first. Raises `UsageError` unless there is one."""
    known = [name for name in run.solvers() if REPEAT not in name and load_solver(name).offers_menu]
    if len(known) != 1:
        raise UsageError(
            f"{run.path} has answers of {', '.join(known) or 'no solver that offers tools'}: give --solver"
        )
    return known[0]


def _refuse_other(run: RunFolder, identity: Mapping[str, Json], full: Path) -> None:
    changes = difference(dict(identity), run.manifest["identity"])
    if changes:
        raise UsageError(
            f"{run.path} is not a run of this ablation; next to {full} it differs in more than its menu:\n  "
            + "\n  ".join(changes)
        )
