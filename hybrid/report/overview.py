"""The first page of a benchmark: what was run, and a section for each question that a reader has of the numbers.

    overview_of(found, Commands(("runs/a",)))     # of a comparison (`hybrid/scoring/compare.py`)

Every section carries the command that prints the same numbers.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.benchmarks.base import Benchmark
from hybrid.log.folder import RunFolder
from hybrid.registry import load
from hybrid.report.charts import charts_of
from hybrid.report.facts import card, facts, run_facts
from hybrid.report.payload import Overview, OverviewSection
from hybrid.scoring.compare import Comparison
from hybrid.scoring.headline import warnings
from hybrid.scoring.published import published
from hybrid.scoring.published_tables import published_below
from hybrid.scoring.reference import reference_lines
from hybrid.scoring.rendering import tables_of
from hybrid.scoring.reports import PUBLISHED_TITLE
from hybrid.scoring.sections import results
from hybrid.tables import Table


@dataclass(frozen=True)
class Commands:
    """The words of the commands that print the numbers of a report: paths, and options that change what is counted."""

    paths: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def numbers(self) -> str:
        """What prints every number of a comparison, unrounded."""
        return self._words("compare", "--json")

    def of(self, section: str) -> str:
        """What prints the tables of one section."""
        return self._words("compare", "--only", section)

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


def overview_of(found: Comparison, commands: Commands) -> Overview:
    """The overview of solvers side by side; there is at least one."""
    made = results(found)
    chance = next((one.rows for one in made if one.name == "chance"), ())
    marks = reference_lines(found, chance)
    sections = [
        OverviewSection(
            one.name.replace("_", "-"),
            one.section.title,
            one.lead,
            charts_of(found, one, marks),
            tables_of(found, one),
            commands.of(one.name),
        )
        for one in made
    ]
    sections += [
        OverviewSection("published", PUBLISHED_TITLE, "", (), tables, commands.published)
        for tables in _published(found)
    ]
    return Overview(
        benchmark=found.benchmark.card.name,
        title=found.benchmark.card.short_title,
        facts=facts(found.solvers),
        warnings=(*warnings(found.solvers), *(f"{one.name}: {one.fault}" for one in made if one.fault is not None)),
        solvers=tuple(map(card, found.solvers)),
        pairs=tuple((pair.a, pair.b) for pair in found.pairs),
        sections=tuple(sections),
    )


def _published(found: Comparison) -> Iterator[tuple[Table, ...]]:
    """Nothing for generated questions and for a benchmark of which nothing measured here is printed."""
    if any(one.data.generated for one in found.solvers):
        return
    measured = {metric.name for one in found.solvers for metric in one.metrics if found.is_shown(metric.name)}
    measured |= {score.task for one in found.solvers for score in one.scores}
    splits = {one.data.split for one in found.solvers}
    cells = published(found.solvers[0].benchmark)
    if any(cell.metric in measured and cell.split in splits for cell in cells):
        yield published_below(found)


def unanswered_overview(folder: RunFolder, open_questions: int) -> Overview:
    """The overview of a run of which no question is finished yet."""
    benchmark: Benchmark = load("hybrid.benchmarks", folder.manifest["identity"]["benchmark"])
    waiting = f"No answer is there yet; {open_questions} questions are to be asked."
    labels = tuple(str(label) for label in folder.manifest.get("labels", ()))
    return Overview(benchmark.card.name, benchmark.card.short_title, run_facts(folder), (waiting, *labels), (), (), ())
