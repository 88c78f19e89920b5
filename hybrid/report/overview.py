"""The first page of a benchmark: conclusion and charts, then a section for each typical question of a reader.

    overview_of(comparison, ("runs/a", "--by", "level"))     # of a comparison (`hybrid/scoring/compare.py`)

Every section includes the command that prints its numbers.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hybrid.benchmarks.base import Benchmark
from hybrid.display.terminal import how_many
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.report.charts import charts_of, headlines, of_main_pairs, rows_to_chart
from hybrid.report.facts import card, facts, run_facts
from hybrid.report.payload import Chart, Overview, OverviewSection
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.headline import head_of, head_of_run, headline_tables, rule_line, warnings
from hybrid.scoring.published_tables import cells_of, published_below
from hybrid.scoring.reference import ReferenceLine, reference_lines
from hybrid.scoring.rendering import tables_of
from hybrid.scoring.reports import PUBLISHED_TITLE
from hybrid.scoring.result import Result, SectionResult
from hybrid.scoring.sections import results

# The sections whose rows the first screen shows.
DECOMPOSITION, VALUES, DIFFERENCES, TASKS = "decomposition", "metrics", "differences", "tasks"
GAIN = "The parts of the gain"


def overview_of(comparison: Comparison, arguments: Sequence[str]) -> Overview:
    """Return the overview of one or more solvers, side by side.

    `arguments` are the paths and options of the `hybrid compare` command that prints its numbers.
    """
    by_name = {result.name: result for result in results(comparison)}
    marks = reference_lines(comparison, by_name["chance"].rows if "chance" in by_name else ())
    sections = [
        OverviewSection(
            result.name.replace("_", "-"),
            result.section.title,
            lead=result.lead,
            charts=charts_of(comparison, result, marks),
            tables=tables_of(comparison, result),
            command=shlex.join(("hybrid", "compare", *arguments, "--all")),
        )
        for result in by_name.values()
    ]
    # No paper reports numbers on generated questions.
    if cells_of(comparison):
        command = shlex.join(("hybrid", "compare", *arguments, "--published"))
        sections.append(
            OverviewSection(
                "published", PUBLISHED_TITLE, lead="", charts=(), tables=published_below(comparison), command=command
            )
        )
    rows = {name: rows_to_chart(result) for name, result in by_name.items()}
    return Overview(
        benchmark=comparison.benchmark.card.name,
        title=comparison.benchmark.card.short_title,
        facts=facts(comparison.solvers),
        head=head_of(comparison.solvers),
        warnings=(
            *filter(None, (rule_line(comparison.solvers),)),
            *warnings(comparison.solvers),
            *(f"{result.name}: {result.fault}" for result in by_name.values() if result.fault is not None),
        ),
        solvers=tuple(map(card, comparison.solvers)),
        pairs=tuple((pair.a, pair.b) for pair in comparison.pairs),
        sections=tuple(sections),
        conclusion=tuple(sentence.text for sentence in conclusion(comparison)),
        front=tuple(_front(comparison, by_name, rows, marks)),
        headline=headline_tables(comparison),
        by=comparison.grouping,
    )


def _front(
    comparison: Comparison,
    by_name: Mapping[str, SectionResult],
    rows: Mapping[str, Sequence[Result]],
    marks: Sequence[ReferenceLine],
) -> Iterator[Chart]:
    """Yield charts: the gain's parts, each solver's value, and by task the main pairs' differences, or else accuracies.

    The parts of the gain are over all questions, with one chart per pair. The steps of a chart link to their questions.
    """
    if DECOMPOSITION in by_name:
        steps = [chart for chart in charts_of(comparison, by_name[DECOMPOSITION]) if not chart.rows[0].group]
        for chart in steps:
            # With several charts a menu names the solvers; a heading with names would fill a phone's screen.
            yield replace(chart, title=GAIN) if len(steps) > 1 else chart
    if values := headlines(comparison, rows.get(VALUES, ())):
        metric = values[0].metric
        # Draw one reference line of each kind: the highest, or for chance the first, which is the value of guessing.
        by_kind: dict[str, ReferenceLine] = {}
        for mark in (mark for mark in marks if mark.task == metric):
            other = by_kind.setdefault(mark.kind, mark)
            if mark.kind != "chance" and mark.value > other.value:
                by_kind[mark.kind] = mark
        yield Chart("bars", f"{metric}{_over(values)}, 95 % intervals", values, tuple(by_kind.values()))
    by = comparison.grouping
    if differing := of_main_pairs(comparison, rows.get(DIFFERENCES, ())):
        yield Chart("intervals", f"Difference by {by}", differing)
    elif accuracies := tuple(row for row in rows.get(TASKS, ()) if row.group):
        yield Chart("bars", f"Accuracy by {by}", accuracies)


def _over(values: Sequence[Result]) -> str:
    """Return over which questions the values are; the conclusion may compare solvers over fewer of them."""
    numbers = sorted({row.n for row in values if row.n is not None})
    if not numbers:
        return ""
    number = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return f" over all {number} questions, answered or not"


def unanswered_overview(folder: RunFolder, open_questions: int) -> Overview:
    """Return the overview of a run without a finished question."""
    benchmark: Benchmark = load("hybrid.benchmarks", folder.manifest["identity"]["benchmark"])
    waiting = f"No answer yet; {how_many(open_questions)} to ask."
    head = head_of_run(folder, open_questions)
    labels = tuple(str(label) for label in folder.manifest.get("labels", ()))
    return Overview(benchmark.card.name, benchmark.card.short_title, run_facts(folder), (waiting, *labels), head=head)
