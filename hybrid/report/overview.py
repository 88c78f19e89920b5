"""The first page of a benchmark: what was run, and a section for each question that a reader has of the numbers.

    overview_of(found, Commands(("runs/a",)))     # of a comparison (`hybrid/scoring/compare.py`)

Every section carries the command that prints the same numbers.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from hybrid.benchmarks.base import Benchmark
from hybrid.registry import load
from hybrid.report.charts import (
    cost_scatter,
    forest,
    help_matrix,
    outcome_stack,
    task_bars,
    told_charts,
)
from hybrid.report.facts import card, facts, run_facts, warnings
from hybrid.report.leads import (
    cost_lead,
    difference_lead,
    help_lead,
    outcome_lead,
    result_lead,
    task_lead,
)
from hybrid.report.payload import Chart, Overview, OverviewSection
from hybrid.run_folder import RunFolder
from hybrid.scoring.compare import Comparison, Family
from hybrid.scoring.compare_sections import sections
from hybrid.scoring.compare_tables import (
    accuracy_table,
    metric_table,
    outcome_table,
    paired_table,
    published_below,
)
from hybrid.scoring.published import published
from hybrid.scoring.reference import reference_lines
from hybrid.scoring.told import Told
from hybrid.tables import Table

FAMILIES: tuple[Family, ...] = ("headline", "metrics", "tasks")


@dataclass(frozen=True)
class Commands:
    """The words of the commands that print the numbers of a report: paths, and options that change what is counted."""

    paths: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def numbers(self) -> str:
        """What prints every number of a comparison, unrounded."""
        return self._words("compare", "--json")

    @property
    def tables(self) -> str:
        """What prints its tables."""
        return self._words("compare")

    @property
    def published(self) -> str:
        """What prints its tables with what papers printed below them."""
        return self._words("compare", "--published")

    @property
    def payload(self) -> str:
        """What prints all that the pages are made from."""
        return self._words("report", "--json")

    def _words(self, command: str, *form: str) -> str:
        return shlex.join(("hybrid", command, *self.paths, *self.options, *form))


@dataclass(frozen=True)
class Shown:
    """What a section shows besides its title and its command."""

    lead: str = ""
    charts: Sequence[Chart | None] = field(default=())
    tables: Sequence[Table] = field(default=())


def overview_of(found: Comparison, commands: Commands) -> Overview:
    """The overview of solvers side by side; there is at least one."""
    benchmark: Benchmark = load("hybrid.benchmarks", found.solvers[0].benchmark)
    told = sections(found)
    faults = tuple(f"{one.name}: {one.fault}" for one in told if one.fault is not None)
    return Overview(
        benchmark=benchmark.card.name,
        title=benchmark.card.short_title,
        facts=facts(found.solvers),
        warnings=(*warnings(found.solvers), *faults),
        solvers=tuple(map(card, found.solvers)),
        pairs=tuple((meeting.pair.a, meeting.pair.b) for meeting in found.meetings),
        sections=_sections(found, told, commands),
    )


def unanswered_overview(folder: RunFolder, open_questions: int) -> Overview:
    """The overview of a run of which no question is finished yet."""
    benchmark: Benchmark = load("hybrid.benchmarks", folder.manifest["identity"]["benchmark"])
    waiting = f"No answer is there yet; {open_questions} questions are to be asked."
    labels = tuple(str(label) for label in folder.manifest.get("labels", ()))
    return Overview(benchmark.card.name, benchmark.card.short_title, run_facts(folder), (waiting, *labels), (), (), ())


def _sections(found: Comparison, said: Sequence[Told], commands: Commands) -> tuple[OverviewSection, ...]:
    """The sections in the order in which they are read; one that has nothing to show is left out."""
    made = [
        _section("results", "How right is each solver?", commands.tables, _results(found)),
        _section("differences", "Which solver is better on the same questions?", commands.numbers, _differences(found)),
        _section("tasks", "How does each task go, next to chance and people?", commands.payload, _tasks(found)),
        _section("helped", "Which questions does one get right and the other wrong?", commands.payload, _helped(found)),
        *(
            _section(
                told.name.replace("_", "-"), told.title, commands.numbers, Shown("", told_charts(told), told.tables)
            )
            for told in said
        ),
        _section("cost", "What does an answer cost, and what is it worth?", commands.payload, _cost(found)),
        _section("outcomes", "How did the questions end?", commands.tables, _outcomes(found)),
        _section("published", "What do papers report?", commands.published, _published(found)),
    ]
    return tuple(section for section in made if section.charts or section.tables)


def _section(identity: str, title: str, command: str, shown: Shown) -> OverviewSection:
    charts = tuple(chart for chart in shown.charts if chart is not None)
    return OverviewSection(identity, title, shown.lead, charts, tuple(shown.tables), command)


def _results(found: Comparison) -> Shown:
    return Shown(result_lead(found), (), (metric_table(found), accuracy_table(found)))


def _differences(found: Comparison) -> Shown:
    tables = [paired_table(found, family) for family in FAMILIES if found.family(family)]
    return Shown(difference_lead(found), (forest(found, "headline"), forest(found, "tasks")), tables)


def _tasks(found: Comparison) -> Shown:
    return Shown(task_lead(found), (task_bars(found, reference_lines(found)),))


def _helped(found: Comparison) -> Shown:
    return Shown(help_lead(found), (help_matrix(found),))


def _cost(found: Comparison) -> Shown:
    chart = cost_scatter(found)
    return Shown(cost_lead(found, chart), (chart,))


def _outcomes(found: Comparison) -> Shown:
    return Shown(outcome_lead(found), (outcome_stack(found),), (outcome_table(found.solvers),))


def _published(found: Comparison) -> Shown:
    """Nothing for generated questions and for a benchmark of which nothing measured here is printed."""
    if any(one.data.generated for one in found.solvers):
        return Shown()
    measured = {metric.name for one in found.solvers for metric in one.metrics}
    measured |= {score.task for one in found.solvers for score in one.scores}
    splits = {one.data.split for one in found.solvers}
    cells = published(found.solvers[0].benchmark)
    if not any(cell.metric in measured and cell.split in splits for cell in cells):
        return Shown()
    return Shown("", (), published_below(found))
