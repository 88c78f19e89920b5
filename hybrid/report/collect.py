"""Collects the contents of a report from runs.

    pages = collect_paths(["runs/a", "runs/b"], ReportOptions(sample_errors=10))
    write_site(pages, Path("site"))       # hybrid/report/site.py

Paths are those of `hybrid compare`. Each benchmark among them is a tab with its own comparison. Only scores are in
memory; everything else is read when its page is written, so a large report needs hardly more memory than scoring.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Unpack

from hybrid.core.errors import UsageError
from hybrid.core.images import home
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.report.error_sheet import error_sheet
from hybrid.report.overview import overview_of, unanswered_overview
from hybrid.report.payload import BenchmarkPages, OverviewSection, Pages, Tag
from hybrid.report.pictures import Pictures
from hybrid.report.questions import QuestionBook
from hybrid.report.tags import check_tags, read_tags, tag_tables
from hybrid.scoring.compare import compare
from hybrid.scoring.paths import CompareArguments, by_model, known_group, options_for, scored_at
from hybrid.scoring.recorded_plugins import find_plugins
from hybrid.scoring.reports import side_by_side
from hybrid.scoring.runs import refuse_hidden, score_run
from hybrid.scoring.score import Scored
from hybrid.version import __version__


@dataclass(frozen=True)
class ReportOptions:
    """Title, error sheet and tags of a report."""

    title: str = ""  # Empty to use the names of the benchmarks
    sample_errors: int = 0  # Questions per task on the error sheet
    seed: int = 0  # Seed for drawing the error sheet
    tags: Path | None = None
    made_by: str = ""  # The command that made the report; empty to derive it from the paths


@dataclass(frozen=True)
class Found:
    """A scored solver and its path; `files` lists all files at that path."""

    scored: Scored
    path: Path
    files: tuple[Path, ...]


def scored_behind(paths: Sequence[str | Path], **options: Unpack[CompareArguments]) -> tuple[Found, ...]:
    """Return the scored solvers of runs, solvers' folders and saved predictions.

    Raises:
        UsageError: as for `hybrid compare`, or if there is nothing to report.
        DataError: an unusable file.
    """
    sets = by_model(paths, options)
    scored = [Found(solver, path, (path, *more)) for path, *more in sets for solver in scored_at(path, options, more)]
    if not scored:
        raise UsageError(f"there is nothing to report: no solver in {', '.join(map(str, paths))} has scores")
    return tuple(scored)


def collect(scored: Sequence[Found], report: ReportOptions | None = None, **options: Unpack[CompareArguments]) -> Pages:
    """Return the pages of scored solvers; `options` are those used for scoring and comparing.

    Raises:
        UsageError: as for `hybrid compare`.
        DataError: tags name questions, solvers or benchmarks that the report does not have.
    """
    known_group(options.get("by"), [entry.scored for entry in scored])
    tabs: dict[str, list[Found]] = {}
    for entry in scored:
        tabs.setdefault(entry.scored.benchmark, []).append(entry)
    return _pages([*tabs.values()], report or ReportOptions(), options)


def collect_paths(
    paths: Sequence[str | Path], report: ReportOptions | None = None, **options: Unpack[CompareArguments]
) -> Pages:
    """Return the pages for some paths: `collect` of `scored_behind`, with the same exceptions."""
    return collect(scored_behind(paths, **options), report, **options)


def collect_run(folder: RunFolder, title: str = "") -> Pages:
    """Return the pages of a run in progress, without writing or locking its folder.

    Raises:
        UsageError: its answers are hidden.
        DataError: its questions cannot be read.
    """
    find_plugins(folder)
    name, split = folder.manifest["identity"]["benchmark"], folder.manifest["identity"]["split"]
    refuse_hidden(load("hybrid.benchmarks", name), split)
    scored = score_run(folder, options_for({}, folder), keep=False) if folder.solvers() else ()
    report = ReportOptions(title, made_by=shlex.join(("hybrid", "view", folder.path.as_posix())))
    if any(solver.scores for solver in scored):
        entries = [Found(solver, folder.path, (folder.path,)) for solver in scored]
        return replace(collect(entries, report), live=True)
    questions = folder.questions()
    overview = unanswered_overview(folder, len(questions))
    book = QuestionBook(overview.benchmark, (), Pictures(home() / "images"), questions=questions.by_id)
    pages = BenchmarkPages(overview.benchmark, overview, len(book.ids), book.pages())
    return replace(_site(report, [pages], ()), live=True)


def _pages(tabs: Sequence[Sequence[Found]], report: ReportOptions, options: CompareArguments) -> Pages:
    paths = [list(dict.fromkeys(path.as_posix() for entry in tab for path in entry.files)) for tab in tabs]
    benchmark_pages = []
    for tab, tab_paths in zip(tabs, paths, strict=True):
        solvers, compared = side_by_side([(entry.scored, entry.path.as_posix()) for entry in tab], options)
        overview = overview_of(compare(solvers, compared), (*tab_paths, *_words(options)))
        sampled = error_sheet(solvers, report.sample_errors, report.seed)
        book = QuestionBook(overview.benchmark, solvers, Pictures(home() / "images"), sampled)
        benchmark_pages.append(BenchmarkPages(overview.benchmark, overview, len(book.ids), book.pages()))
    tags: tuple[Tag, ...] = ()
    if report.tags is not None:
        tags = read_tags(report.tags)
        by_benchmark = {}
        for benchmark, tab in zip(benchmark_pages, tabs, strict=True):
            ids = frozenset(name for entry in tab for name in entry.scored.questions)
            by_benchmark[benchmark.key] = ([solver.name for solver in benchmark.overview.solvers], ids)
        check_tags(tags, by_benchmark, report.tags)
        words = (*_words(options), "--tags", report.tags.as_posix())
        for place, benchmark in enumerate(benchmark_pages):
            if tagged := [tag for tag in tags if tag.benchmark == benchmark.key]:
                section = _tag_section(tabs[place], tagged, (*paths[place], *words))
                overview = replace(benchmark.overview, sections=(*benchmark.overview.sections, section))
                benchmark_pages[place] = replace(benchmark, overview=overview)
    if not report.made_by:
        words = ("hybrid", "report", *chain.from_iterable(paths), *_words(options))
        report = replace(report, made_by=shlex.join(words))
    return _site(report, benchmark_pages, tags)


def _site(report: ReportOptions, benchmarks: Sequence[BenchmarkPages], tags: Sequence[Tag]) -> Pages:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    title = report.title or ", ".join(dict.fromkeys(benchmark.overview.title for benchmark in benchmarks))
    made_by = f"{report.made_by} (hybrid {__version__}, {now})"
    return Pages(title, made_by, tuple(benchmarks), home() / "images", tuple(tags))


def _tag_section(tab: Sequence[Found], tags: Sequence[Tag], arguments: Sequence[str]) -> OverviewSection:
    """Return a section with the counts of one benchmark's tags."""
    names = {tag.question for tag in tags}
    tasks = {name: entry.scored.questions[name].task for entry in tab for name in names & entry.scored.questions.keys()}
    answers = len({(tag.question, tag.solver) for tag in tags})
    different = len({tag.tag for tag in tags if tag.tag})
    lead = f"Answers that people looked at and noted: {answers}; different tags: {different}."
    command = shlex.join(("hybrid", "report", *arguments, "--json"))
    return OverviewSection(
        "error-tags", "Error tags", lead=lead, charts=(), tables=tag_tables(tags, tasks), command=command
    )


def _words(options: CompareArguments) -> tuple[str, ...]:
    """Return the options as command-line words, without options that are not set or that affect no number."""
    words: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if name in ("published", "all", "only") or value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, str | int | float):
            words += [flag, str(value)]
        else:
            assert isinstance(value, Sequence)  # noqa: S101 - `pairs`, the one option that is given several times
            words += [word for item in value for word in (flag, str(item))]
    return tuple(words)
