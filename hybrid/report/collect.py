"""Reads runs and gives the contents of a report.

    pages = collect_paths(["runs/a", "runs/b"], ReportOptions(sample_errors=10))
    write_site(pages, Path("site"))       # hybrid/report/site.py

Paths are those of `hybrid compare`. Every benchmark among them is a tab, with its own comparison. Scores are in memory
and all else is read when its page is written, so a report of many questions takes hardly more memory than scoring them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Unpack

from hybrid.errors import UsageError
from hybrid.images import home
from hybrid.log.folder import RunFolder
from hybrid.log.questions import Questions
from hybrid.registry import load
from hybrid.report.error_sheet import error_sheet
from hybrid.report.overview import Commands, overview_of, unanswered_overview
from hybrid.report.payload import BenchmarkPages, OverviewSection, Pages, Tag
from hybrid.report.pictures import Pictures
from hybrid.report.questions import QuestionBook
from hybrid.report.tags import check_tags, read_tags, tag_tables
from hybrid.scoring.compare import ComparisonOptions, chosen_pairs, compare, unique
from hybrid.scoring.label_changes import OtherLabels, with_same_labels
from hybrid.scoring.paths import CompareArguments, by_model, known_group, margin_of, options_for, scored_at
from hybrid.scoring.runs import refuse_hidden, score_run
from hybrid.scoring.score import Scored
from hybrid.types import BrokenQuestion, Question
from hybrid.version import __version__


@dataclass(frozen=True)
class ReportOptions:
    """Title, error sheet and tags of a report."""

    title: str = ""
    """Empty for one that names the benchmarks."""
    sample_errors: int = 0
    """Questions of each task on the error sheet."""
    seed: int = 0
    """Of the draw for the error sheet."""
    tags: Path | None = None
    made_by: str = ""
    """The command; empty for that of the paths."""


@dataclass(frozen=True)
class Found:
    """A scored solver, and the path behind which it was found; `files` are all that stand behind that path."""

    scored: Scored
    path: Path
    files: tuple[Path, ...]


def scored_behind(paths: Sequence[str | Path], **options: Unpack[CompareArguments]) -> tuple[Found, ...]:
    """The scored solvers behind runs, solvers' folders and saved predictions.

    Raises:
        UsageError: as `hybrid compare`, or nothing to report.
        DataError: a file that cannot be used.
    """
    sets = by_model(paths, options)
    scored = [Found(one, path, (path, *more)) for path, *more in sets for one in scored_at(path, options, more)]
    if not scored:
        raise UsageError(f"nothing to report: no solver behind {', '.join(map(str, paths))} has scores")
    return tuple(scored)


def collect(scored: Sequence[Found], report: ReportOptions | None = None, **options: Unpack[CompareArguments]) -> Pages:
    """The pages of scored solvers; `options` are those by which they were scored, and what of them is compared.

    Raises:
        UsageError: as `hybrid compare`.
        DataError: tags of what the report does not have.
    """
    known_group(options.get("by"), [one.scored for one in scored])
    tabs: dict[str, list[Found]] = {}
    for one in scored:
        tabs.setdefault(one.scored.benchmark, []).append(one)
    return _pages([_Tab(tuple(members)) for members in tabs.values()], report or ReportOptions(), options)


def collect_paths(
    paths: Sequence[str | Path], report: ReportOptions | None = None, **options: Unpack[CompareArguments]
) -> Pages:
    """The pages of what lies behind some paths: `collect` of `scored_behind`, which say what is raised."""
    return collect(scored_behind(paths, **options), report, **options)


def collect_run(folder: RunFolder, title: str = "") -> Pages:
    """The pages of a run that goes on: as far as it has come, without a write or a lock in its folder.

    Raises:
        UsageError: its answers are hidden.
        DataError: its questions cannot be read.
    """
    name, split = folder.manifest["identity"]["benchmark"], folder.manifest["identity"]["split"]
    refuse_hidden(load("hybrid.benchmarks", name), split)
    scored = score_run(folder, options_for({}, folder), keep=False) if folder.solvers() else ()
    report = ReportOptions(title, made_by=shlex.join(("hybrid", "view", folder.path.as_posix())))
    if any(one.scores for one in scored):
        shown = [Found(one, folder.path, (folder.path,)) for one in scored]
        return replace(collect(shown, report), live=True)
    questions = folder.questions()
    return replace(_site(report, [_unanswered(folder, questions)], ()), live=True)


@dataclass(frozen=True)
class _Tab:
    """The solvers of one benchmark."""

    found: tuple[Found, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths behind them, as a command takes them."""
        return tuple(dict.fromkeys(path.as_posix() for one in self.found for path in one.files))

    @property
    def ids(self) -> frozenset[str]:
        """The questions of all of them."""
        return frozenset(name for one in self.found for name in one.scored.questions)


def _pages(tabs: Sequence[_Tab], report: ReportOptions, options: CompareArguments) -> Pages:
    tags = read_tags(report.tags) if report.tags is not None else ()
    made = [_benchmark_pages(tab, report, options) for tab in tabs]
    if report.tags is not None:
        check_tags(tags, {one.key: (_solvers(one), tab.ids) for one, tab in zip(made, tabs, strict=True)}, report.tags)
        again = (*_words(options), "--tags", report.tags.as_posix())
        made = [
            _tagged(one, tab, [tag for tag in tags if tag.benchmark == one.key], Commands(tab.paths, again))
            for one, tab in zip(made, tabs, strict=True)
        ]
    if not report.made_by:
        paths = [path for tab in tabs for path in tab.paths]
        report = replace(report, made_by=shlex.join(("hybrid", "report", *paths, *_words(options))))
    return _site(report, made, tags)


def _site(report: ReportOptions, benchmarks: Sequence[BenchmarkPages], tags: Sequence[Tag]) -> Pages:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    title = report.title or ", ".join(dict.fromkeys(one.overview.title for one in benchmarks))
    made_by = f"{report.made_by} (hybrid {__version__}, {now})"
    return Pages(title, made_by, tuple(benchmarks), home() / "images", tuple(tags))


def _solvers(pages: BenchmarkPages) -> tuple[str, ...]:
    return tuple(solver.name for solver in pages.overview.solvers)


def _benchmark_pages(tab: _Tab, report: ReportOptions, options: CompareArguments) -> BenchmarkPages:
    solvers = unique([one.scored for one in tab.found], [one.path.as_posix() for one in tab.found])
    labels: OtherLabels = options.get("other_labels") or "refuse"
    solvers = with_same_labels(solvers, labels)
    chosen = chosen_pairs([one.solver for one in solvers], options.get("baseline"), options.get("pairs", ()))
    margin = margin_of(options.get("margin"))
    compared = compare(
        solvers, ComparisonOptions(options.get("by"), chosen, options.get("allow_failed", False), margin, labels)
    )
    overview = overview_of(compared, Commands(tab.paths, _words(options)))
    sampled = error_sheet(solvers, report.sample_errors, report.seed)
    book = QuestionBook(overview.benchmark, solvers, Pictures(home() / "images"), sampled)
    return BenchmarkPages(overview.benchmark, overview, len(book.ids), book.pages())


def _unanswered(folder: RunFolder, questions: Questions) -> BenchmarkPages:
    overview = unanswered_overview(folder, len(questions))
    book = QuestionBook(overview.benchmark, (), Pictures(home() / "images"), asked=questions.by_id)
    return BenchmarkPages(overview.benchmark, overview, len(book.ids), book.pages())


def _tagged(pages: BenchmarkPages, tab: _Tab, tags: Sequence[Tag], commands: Commands) -> BenchmarkPages:
    """The pages with a section that counts the tags, where there are any."""
    if not tags:
        return pages
    tasks = {name: question.task for one in tab.found for name, question in _questions(one.scored, tags)}
    answers = len({(tag.question, tag.solver) for tag in tags})
    different = len({tag.tag for tag in tags if tag.tag})
    lead = f"Answers that people looked at and noted: {answers}; different tags: {different}."
    section = OverviewSection("error-tags", "Error tags", lead, (), tag_tables(tags, tasks), commands.payload)
    overview = replace(pages.overview, sections=(*pages.overview.sections, section))
    return replace(pages, overview=overview)


def _questions(scored: Scored, tags: Sequence[Tag]) -> Iterator[tuple[str, Question | BrokenQuestion]]:
    """The tagged questions that a solver has."""
    for name in {tag.question for tag in tags}:
        if name in scored.questions:
            yield name, scored.questions[name]


def _words(options: CompareArguments) -> tuple[str, ...]:
    """The options as a command line has them, without those that were not given and those that change no number."""
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
            words += [word for each in value for word in (flag, str(each))]
    return tuple(words)
