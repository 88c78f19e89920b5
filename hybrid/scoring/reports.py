"""The output of `hybrid score`, `hybrid run` and `hybrid compare` as objects: tables, JSON, rows for pandas.

    report = score_paths(["runs/blink-1a2b3c4d5e"])
    print(report)                    # the tables of `hybrid score`
    report.as_json()                 # the object of `hybrid score --json`
    report.to_pandas()               # a row for each metric of each solver

`paths.py` says what a path may be.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.types import Json
from hybrid.display.html import Bar, as_html, interval_chart, joined, paragraph
from hybrid.display.tables import RENDERERS, Table
from hybrid.display.terminal import NARROW, filled, one_line
from hybrid.log.codec import codec
from hybrid.plugins.registry import described_by, load
from hybrid.scoring.clusters import align_clusters
from hybrid.scoring.compare import Comparison, ComparisonOptions, chosen_pairs, compare, unique
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.conclusion_cases import Sentence
from hybrid.scoring.faults import broken_tools
from hybrid.scoring.groups import origin_of
from hybrid.scoring.headline import (
    GENERATED,
    MORE,
    MORE_COMMAND,
    as_summary,
    flag_captions,
    head_of,
    headline_tables,
    nothing_answered_by,
    rule_head,
    rule_line,
    warnings,
)
from hybrid.scoring.label_changes import OtherLabels, with_same_labels
from hybrid.scoring.paths import (
    DEFAULT_RULE,
    CompareArguments,
    ScoreArguments,
    by_model,
    compare_words,
    known_group,
    margin_of,
    refuse_unknown,
    scored_at,
    tell_origin,
)
from hybrid.scoring.predicted import import_run
from hybrid.scoring.predictions.base import Origin
from hybrid.scoring.published_tables import published_below
from hybrid.scoring.rendering import Block, as_csv, lines_of, needing, pieces, sides, tables_of
from hybrid.scoring.result import FRACTION, Result, SectionResult
from hybrid.scoring.score import Scored, with_judged
from hybrid.scoring.sections import codes_of, results, sections
from hybrid.serving.import_trial import describer
from hybrid.stats import ends_of, interval

if TYPE_CHECKING:
    import pandas as pd


class Report(ABC):
    """Numbers of solvers in every form: `str` gives tables as text, notebooks show them as HTML or markdown."""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """Return the tables in the order printed."""

    @abstractmethod
    def as_json(self) -> dict[str, Json]:
        """Return the object that the command prints with `--json`."""

    @abstractmethod
    def rows(self) -> list[dict[str, Json]]:
        """Return a flat record for each number, with its interval."""

    def render(self, form: str = "text") -> str:
        """Render the tables as text (narrow: within 80 columns), markdown, csv or latex, separated by empty lines."""
        return "\n".join(map(RENDERERS[form], self.tables()))

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame. Raises `UsageError` if pandas is not installed."""
        with needing("pandas"):
            import pandas as pd
        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        return self.render()

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return self.render("markdown")

    def _repr_html_(self) -> str:
        return joined(self.html_parts())

    def html_parts(self) -> Iterator[str]:
        """Yield the tables as HTML; subclasses first yield text that qualifies the numbers."""
        yield from map(as_html, self.tables())


@dataclass(frozen=True, repr=False)
class ScoreReport(Report):
    """The scored solvers of some paths, as `hybrid score` prints them."""

    paths: Mapping[Path, tuple[Scored, ...]]  # Empty for a run whose answers are hidden
    options: ComparisonOptions = field(default_factory=ComparisonOptions)
    unanswered: UnansweredRule = DEFAULT_RULE  # How unanswered questions count, in every form
    published: bool = False  # Whether the tables are followed by numbers from papers
    in_run: bool = False  # Whether JSON names the solver even if there is only one, as `hybrid run` does
    # What `hybrid compare` needs to read a path as it was read here; by default the path alone.
    words: Mapping[Path, Sequence[str]] = field(default_factory=dict)

    @property
    def solvers(self) -> tuple[Scored, ...]:
        """All solvers, scored by the rule of the tables."""
        return tuple(solver for scored in self._ruled.values() for solver in scored)

    @property
    def _ruled(self) -> dict[Path, list[Scored]]:
        return {path: [solver.under(self.unanswered) for solver in scored] for path, scored in self.paths.items()}

    @property
    def damage(self) -> tuple[str, ...]:
        """One line per problem with a run."""
        return corruption_warnings(self.solvers)

    @property
    def failures(self) -> dict[str, str]:
        """Reason why each question failed or has no score, by `ID (SOLVER)`."""
        return failures_of(self.solvers)

    @property
    def failed(self) -> tuple[str, ...]:
        """One line per problem with a run, then one per failed question."""
        return (*self.damage, *(f"{question}: {reason}" for question, reason in self.failures.items()))

    @cached_property
    def comparisons(self) -> Mapping[Path, ComparisonReport]:
        """The comparison for each path; solvers with a judge's readings appear without and with them."""
        return {
            path: ComparisonReport(
                with_judged(scored),
                self.options,
                self.published,
                more=f"{MORE_COMMAND}{shlex.join(self._compare_words(path))}",
                headed=True,
            )
            for path, scored in self._ruled.items()
            if scored
        }

    def _compare_words(self, path: Path) -> Iterator[str]:
        """Yield the words of the command that prints every table of a path with the numbers printed here."""
        yield from ("hybrid", "compare", *self.words.get(path, (str(path),)))
        if self.unanswered != DEFAULT_RULE:
            yield from ("--unanswered", self.unanswered)
        if self.options.by is not None:
            yield from ("--by", self.options.by)
        if self.options.allow_failed:
            yield "--allow-failed"
        yield "--all"

    def render(self, form: str = "text") -> str:
        """Render each path's conclusion and two tables, or a single message if nothing was answered.

        csv has a line for each metric of each solver, unrounded.
        """
        if form == "csv":
            return lines_of(COLUMNS_OF_SCORES, (row.values() for row in self.rows()))
        if nothing := nothing_answered_by(self.solvers):
            return "".join(first_line(scored, form) for scored in self._ruled.values() if scored) + nothing
        return "\n".join(comparison.render(form) for comparison in self.comparisons.values())

    def tables(self) -> tuple[Table, ...]:
        """Return the tables of each path."""
        return tuple(table for comparison in self.comparisons.values() for table in comparison.tables())

    def html_parts(self) -> Iterator[str]:
        """Yield the conclusion, chart and tables of each path, or a single message if nothing was answered."""
        if nothing := nothing_answered_by(self.solvers):
            yield from (head_as_html(scored) for scored in self._ruled.values() if scored)
            yield paragraph(nothing)
            return
        for comparison in self.comparisons.values():
            yield from comparison.html_parts()

    def as_json(self) -> dict[str, Json]:
        """Return one object for a single path, or one object per path."""
        by_path: dict[str, dict[str, Json]] = {}
        for path, solvers in self._ruled.items():
            scored = {solver.solver: solver.as_json(self.options.by) for solver in solvers}
            alone = len(scored) == 1 and not self.in_run
            values: dict[str, Json] = next(iter(scored.values())) if alone else {"run": str(path), "solvers": scored}
            head: dict[str, Json] = {"head": list(head_of(solvers))} if solvers else {}
            by_path[str(path)] = head | values
        return {"paths": by_path} if len(by_path) > 1 else next(iter(by_path.values()))

    def rows(self) -> list[dict[str, Json]]:
        """Return a record for each metric of each solver, with its 95 % interval."""
        records: list[dict[str, Json]] = []
        for path, scored in self.paths.items():
            for solver in with_judged(scored):
                of = (str(path), solver.benchmark, solver.solver, self.unanswered)
                for metric in solver.under(self.unanswered).metrics:
                    numbers = (metric.name, metric.n, metric.value, *ends_of(interval(metric)))
                    records.append(dict(zip(COLUMNS_OF_SCORES, (*of, *numbers), strict=True)))
        return records


@dataclass(frozen=True, repr=False)
class ComparisonReport(Report):
    """Solvers side by side on the same questions, as `hybrid compare` prints them.

    Everything is computed on demand, and the comparison and its sections are computed only once for all forms. Plug-in
    sections are imported then, first in a separate process.
    """

    solvers: tuple[Scored, ...]
    options: ComparisonOptions = field(default_factory=ComparisonOptions)
    published: bool = False
    only: tuple[str, ...] = ()  # Names of the sections to print instead of the conclusion with its two tables
    every: bool = False  # Whether to print all sections
    more: str = ""  # The line that names further options; by default the options of `hybrid compare`
    headed: bool = False  # Whether text begins with models, benchmark, questions and date

    @cached_property
    def comparison(self) -> Comparison:
        """The comparison of the solvers, with the tested pairs."""
        return compare(self.solvers, self.options)

    @cached_property
    @described_by(describer)
    def sections(self) -> tuple[SectionResult, ...]:
        """The rows of each section."""
        return results(self.comparison) if self.solvers else ()

    @cached_property
    @described_by(describer)
    def conclusion(self) -> tuple[Sentence, ...]:
        """At most ten sentences on the effect of the tools."""
        return conclusion(self.comparison) if self.solvers else ()

    @property
    def results(self) -> tuple[Result, ...]:
        """Every row of the result table."""
        return tuple(row for result in self.sections for row in result.rows)

    @property
    def failed(self) -> tuple[str, ...]:
        """One line per problem with a run, and one per computed section that failed."""
        computed = self.comparison.computed.values() if self.solvers else ()
        return (
            *corruption_warnings(self.solvers),
            *(f"{result.name}: {result.fault}" for result in computed if result.fault),
        )

    @described_by(describer)
    def blocks(self) -> tuple[Block, ...]:
        """Return the requested sections (default: all) in order, then the numbers that papers printed.

        Raises:
            UsageError: `only` names a section that does not exist, or as in `published_below`.
        """
        if not self.solvers:
            return ()
        selected = results(self.comparison, self.only) if self.only else self.sections
        blocks = [
            Block(result.name, result.section.title, result.lead, tables_of(self.comparison, result))
            for result in selected
        ]
        blocks += self._published()
        for name in self.only:
            if name not in (block.name for block in blocks):
                names = [*(section.name for section in self.sections), *(block.name for block in self._published())]
                all_names = {*names, *(section.name for section in sections())}
                missing = f"unknown section{did_you_mean(name, all_names)}"
                reason = "this comparison has no such section" if name in all_names else missing
                raise UsageError(f"--only {name}: {reason}; it has: {', '.join(names)}")
        return tuple(block for block in blocks if not self.only or block.name in self.only)

    def _published(self) -> list[Block]:
        return [Block("published", PUBLISHED_TITLE, "", published_below(self.comparison))] if self.published else []

    @described_by(describer)
    def tables(self) -> tuple[Table, ...]:
        """Return the tables of solvers and of tasks, or the tables of the requested sections."""
        if not self.solvers:
            return ()
        if not (self.only or self.every):
            return (
                *headline_tables(self.comparison),
                *(table for block in self._published() for table in block.tables),
            )
        return tuple(table for block in self.blocks() for table in block.tables)

    @described_by(describer)
    def render(self, form: str = "text") -> str:
        """Render warnings, conclusion and two tables within 80 columns, or the requested sections under headings.

        `form` is text, narrow, markdown or latex; csv has one number per line and every section. If nothing was
        answered, a single message replaces them.
        """
        if form == "csv":
            return as_csv(self.solvers, self.results)
        first = self._first_line(form)
        if nothing := nothing_answered_by(self.solvers):
            return first + nothing
        if not self.solvers:
            return ""
        if self.only or self.every:
            head = first + rule_head(self.solvers, form)
            blocks: Sequence[Block] = self.blocks()
        else:
            head = first + as_summary(self.comparison, self.conclusion, self.more or MORE, form)
            blocks = self._published()
        text = "\n".join(filter(None, (head, *(piece for block in blocks for piece in pieces(block, form)))))
        return flag_captions(text, self.solvers) if form == "latex" else text

    @described_by(describer)
    def html_parts(self) -> Iterator[str]:
        """Yield what limits the numbers, the conclusion, a chart of the headline metric, and the tables."""
        if not self.solvers:
            return
        if self.headed:
            yield head_as_html(self.solvers)
        if nothing := nothing_answered_by(self.solvers):
            yield paragraph(nothing)
            return
        yield paragraph(rule_line(self.solvers))
        yield from (paragraph(f"warning: {line}") for line in warnings(self.solvers))
        yield from (paragraph(sentence.text) for sentence in self.conclusion)
        yield interval_chart(self.comparison.headline or "", self._bars())
        yield from map(as_html, self.tables())

    def _bars(self) -> list[Bar]:
        """Return each solver's headline metric with its 95 % interval, if it is a fraction."""
        rows = [row for row in self.results if row.metric == self.comparison.headline and row.unit == FRACTION]
        values = [row for row in rows if (row.quantity, row.none) == ("value", self.comparison.rule) and not row.group]
        return [Bar(row.a, row.value, row.low, row.high) for row in values if row.value is not None]

    def _first_line(self, form: str) -> str:
        return first_line(self.solvers, form) if self.headed and self.solvers else ""

    @described_by(describer)
    def as_json(self) -> dict[str, Json]:
        """Return solvers as `hybrid score --json` prints them, and every row of the result table.

        `conclusion` has the overall sentences, `conclusions` each section's conclusion, `faults` the sections that
        failed with reasons, and `plugins` the code hashes of plug-in sections.
        """
        faults: dict[str, Json] = {
            section.name: section.fault for section in self.sections if section.fault is not None
        }
        origins = self._origins()
        return {
            **({"head": list(head_of(self.solvers))} if self.solvers and self.headed else {}),
            **({"unanswered": self.comparison.rule} if self.solvers else {}),
            "solvers": {
                solver.solver: {**solver.as_json(self.options.by), **origins[solver.solver]} for solver in self.solvers
            },
            "results": [{**row.as_json(), **sides(origins, row)} for row in self.results],
            "conclusion": [asdict(sentence) for sentence in self.conclusion],
            "conclusions": {section.name: section.lead for section in self.sections if section.lead},
            **({"faults": faults} if faults else {}),
            **({"plugins": plugins} if (plugins := codes_of(self.sections)) else {}),
        }

    def rows(self) -> list[dict[str, Json]]:
        """Return a record for each row of the result table, with model and run of its solvers."""
        origins = self._origins()
        return [{**asdict(row), **sides(origins, row)} for row in self.results]

    def _origins(self) -> dict[str, dict[str, str | None]]:
        return {solver.solver: origin_of(solver) for solver in self.solvers}


# Keys of the records of `ScoreReport`; `unanswered` is the rule for all its numbers.
COLUMNS_OF_SCORES = ("path", "benchmark", "solver", "unanswered", "metric", "n", "value", "low", "high")
HEAD_SEPARATOR = " | "
# The colour is readable on light and dark pages.
GENERATED_AS_HTML = f'<b style="color: #b36b00">{GENERATED}</b>'
PUBLISHED_TITLE = "What do papers report for the same metrics?"


def head_as_html(solvers: Sequence[Scored]) -> str:
    """Return the head as a paragraph, with the words for generated questions in colour."""
    text = paragraph(HEAD_SEPARATOR.join(head_of(solvers)))
    return text.replace(f"{GENERATED}{HEAD_SEPARATOR}", f"{GENERATED_AS_HTML}{HEAD_SEPARATOR}", 1)


def first_line(solvers: Sequence[Scored], form: str) -> str:
    """Return models, benchmark, questions and date, as the first lines of an output."""
    line = HEAD_SEPARATOR.join(map(one_line, head_of(solvers)))
    if form in ("text", "narrow"):
        return "".join(f"{part}\n" for part in filled(line, NARROW))
    return f"{'% ' if form == 'latex' else ''}{line}\n\n"


def corruption_warnings(solvers: Sequence[Scored]) -> tuple[str, ...]:
    """Return one line per problem with the solvers' runs, and one per tool that never ran."""
    return tuple(dict.fromkeys(line for solver in solvers for line in (*solver.damage, *broken_tools(solver))))


def failures_of(solvers: Sequence[Scored]) -> dict[str, str]:
    """Return the reason why each question failed or has no score, by `ID (SOLVER)`."""
    return {
        f"{score.id} ({solver.solver})": solver.reasons.get(score.id, score.outcome.value)
        for solver in solvers
        for score in solver.scores
        if score.outcome.failed
    }


@described_by(describer)
def score_paths(paths: Sequence[str | Path], **options: Unpack[ScoreArguments]) -> ScoreReport:
    """Score runs, or predictions that another program saved; the arguments are the options of `hybrid score`.

    Raises:
        UsageError: an invalid path, options that exclude each other, or replies that this protocol cannot read.
        DataError: an unusable file.
    """
    refuse_unknown(options, ScoreArguments)
    benchmark, out = options.get("benchmark"), options.get("out")
    sets = by_model(paths, options)
    if out is not None:
        if len(sets) != 1 or benchmark is None:
            raise UsageError("-o imports one set of predictions: give one PATH and --benchmark")
        ((path, *more),) = sets
        loaded = load("hybrid.benchmarks", benchmark)
        folder = import_run(path, loaded, options.get("field"), Path(out), options.get("data"), more)
        tell_origin(codec(Origin).validate_python(folder.manifest["predictions"]))
        sets = ((folder.path,),)
    scored = {path: scored_at(path, options, more, options.get("verdicts")) for path, *more in sets}
    by = known_group(options.get("by"), [solver for solvers in scored.values() for solver in solvers])
    compared = ComparisonOptions(by, allow_failed=options.get("allow_failed", False))
    rule, published = options.get("unanswered") or DEFAULT_RULE, options.get("published", False)
    words = {path: compare_words([path, *more], options) for path, *more in sets}
    return ScoreReport(scored, compared, rule, published, words=words)


@described_by(describer)
def compare_paths(paths: Sequence[str | Path], **options: Unpack[CompareArguments]) -> ComparisonReport:
    """Put solvers side by side; the arguments are the options of `hybrid compare`.

    Raises:
        UsageError: as in `score_paths`, two benchmarks, or different questions under the same ids.
        DataError: an unusable file.
    """
    refuse_unknown(options, CompareArguments)
    sets = by_model(paths, options)
    scored = [(solver, path.as_posix()) for path, *more in sets for solver in scored_at(path, options, more)]
    solvers, compared = side_by_side(scored, options)
    only, show_all = tuple(options.get("only", ())), options.get("all", False)
    if only and show_all:
        raise UsageError("--only and --all: give only one of the two")
    return ComparisonReport(solvers, compared, options.get("published", False), only, show_all, headed=True)


def side_by_side(
    scored: Sequence[tuple[Scored, str]], options: CompareArguments
) -> tuple[tuple[Scored, ...], ComparisonOptions]:
    """Return the solvers of `scored` (pairs of solver and origin) under distinct names, and the comparison's options.

    Raises:
        UsageError: as in `compare_paths`.
    """
    labels: OtherLabels = options.get("other_labels") or "refuse"
    distinct = unique([solver for solver, _ in scored], [origin for _, origin in scored])
    solvers = with_same_labels(align_clusters(distinct), labels)
    pairs = chosen_pairs([solver.solver for solver in solvers], options.get("baseline"), options.get("pairs", ()))
    by, margin = known_group(options.get("by"), solvers), margin_of(options.get("margin"))
    return solvers, ComparisonOptions(by, pairs, options.get("allow_failed", False), margin, labels)
