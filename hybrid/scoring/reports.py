"""What `hybrid score`, `hybrid run` and `hybrid compare` print, as objects: tables, JSON, rows for pandas.

    report = score_paths(["runs/blink-1a2b3c4d5e"])
    print(report)                    # the tables of `hybrid score`
    report.as_json()                 # the object of `hybrid score --json`
    report.to_pandas()               # a row for each metric of each solver

A path is a run (all of its solvers), one solver's folder in it, or predictions that somebody else saved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from hybrid.benchmarks.base import Abstain, Benchmark, ScoreOptions
from hybrid.config import Parse
from hybrid.display.notes import tell
from hybrid.display.tables import RENDERERS, Table
from hybrid.display.terminal import NARROW, filled
from hybrid.errors import UsageError, did_you_mean
from hybrid.log.codec import codec
from hybrid.log.folder import LOG, RunFolder, runs_near
from hybrid.log.manifest import MANIFEST
from hybrid.registry import load
from hybrid.scoring.compare import Comparison, ComparisonOptions, chosen_pairs, compare, unique
from hybrid.scoring.conclusion import Sentence, conclusion
from hybrid.scoring.groups import origin_of
from hybrid.scoring.headline import as_summary, headline_tables
from hybrid.scoring.predictions.base import Origin
from hybrid.scoring.predictions.mounted import sets_of
from hybrid.scoring.published_tables import published_below
from hybrid.scoring.rendering import as_csv, sides, tables_of
from hybrid.scoring.result import Result, SectionResult
from hybrid.scoring.score import Field, Scored, import_run, score_predictions, score_run, write_submission
from hybrid.scoring.sections import computed, results, sections
from hybrid.secrets import redact
from hybrid.stats import Interval, interval
from hybrid.types import Json

if TYPE_CHECKING:
    import pandas as pd

TABLES_RULE: Abstain = "chance"
"""What no answer counts in tables where nothing was said: a guess."""
JSON_RULE: Abstain = "wrong"
"""The same for the `metrics` of JSON: as the papers count."""


class TableArguments(TypedDict, total=False):
    """The options that `hybrid score` and `hybrid compare` share."""

    benchmark: str | None
    data: str | None
    field: Field | None
    protocol: Parse | None
    abstain: Abstain | None
    allow_failed: bool
    published: bool
    by: str | None


class ScoreArguments(TableArguments, total=False):
    """The options of `hybrid score`."""

    verdicts: str | Path | None
    out: str | Path | None


class CompareArguments(TableArguments, total=False):
    """The options of `hybrid compare`."""

    baseline: str | None
    pairs: Sequence[str]
    margin: float
    only: Sequence[str]
    all: bool


class Report(ABC):
    """Numbers of solvers in every form: `str` gives tables as text, notebooks show them as such."""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The tables in the order printed."""

    @abstractmethod
    def as_json(self) -> dict[str, Json]:
        """The object that the command prints with `--json`."""

    @abstractmethod
    def rows(self) -> list[dict[str, Json]]:
        """A flat record for each number, with its interval."""

    def render(self, form: str = "text") -> str:
        """The tables as text (narrow: within 80 columns), markdown, csv or latex, an empty line between two."""
        return "\n".join(map(RENDERERS[form], self.tables()))

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame. Raises `UsageError` where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError as error:
            message = "to_pandas needs the package pandas, which is not installed: pip install pandas"
            raise UsageError(message) from error
        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        return self.render()

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return self.render("markdown")


@dataclass(frozen=True, repr=False)
class ScoreReport(Report):
    """The scored solvers behind some paths, as `hybrid score` prints them."""

    paths: Mapping[Path, tuple[Scored, ...]]
    """None behind a run whose answers are hidden."""
    options: ComparisonOptions = field(default_factory=ComparisonOptions)
    abstain: Abstain | None = None
    """What no answer counts; None for a guess in tables and nothing in JSON."""
    published: bool = False
    """Whether tables end with what papers printed."""
    in_run: bool = False
    """Whether JSON names the solver even where there is only one, as `hybrid run` does."""

    @property
    def solvers(self) -> tuple[Scored, ...]:
        """All solvers, by the rule of the tables."""
        return tuple(_under(one, self.abstain or TABLES_RULE) for scored in self.paths.values() for one in scored)

    @property
    def damage(self) -> tuple[str, ...]:
        """A line for each thing that is wrong with a run."""
        return _damage(self.solvers)

    @property
    def failures(self) -> dict[str, str]:
        """What became of each question that nobody answered, or that has no score, by `ID (SOLVER)`."""
        return {
            f"{score.id} ({one.solver})": one.reasons.get(score.id, score.outcome.value)
            for one in self.solvers
            for score in one.scores
            if score.outcome.failed
        }

    @property
    def failed(self) -> tuple[str, ...]:
        """A line for each thing that is wrong with a run, then for each question that nobody answered."""
        return (*self.damage, *(f"{question}: {why}" for question, why in self.failures.items()))

    @cached_property
    def comparisons(self) -> Mapping[Path, ComparisonReport]:
        """The comparison behind each path, a solver with a judge's readings next to the same without."""
        solvers = {
            path: with_judged([_under(one, self.abstain or TABLES_RULE) for one in scored])
            for path, scored in self.paths.items()
        }
        return {
            path: ComparisonReport(scored, self.options, self.published, more=f"More: hybrid compare {path} --all")
            for path, scored in solvers.items()
            if scored
        }

    def render(self, form: str = "text") -> str:
        """Of each path the conclusion and its two tables; where nothing was answered one statement instead."""
        if nothing := nothing_answered_by(self.solvers):
            return nothing
        return (
            super().render(form) if form == "csv" else "\n".join(one.render(form) for one in self.comparisons.values())
        )

    def tables(self) -> tuple[Table, ...]:
        """The tables of each path."""
        return tuple(table for one in self.comparisons.values() for table in one.tables())

    def as_json(self) -> dict[str, Json]:
        """One object for a path, for several one under each."""
        found = {str(path): self._path_as_json(path) for path in self.paths}
        return {"paths": found} if len(found) > 1 else next(iter(found.values()))

    def _path_as_json(self, path: Path) -> dict[str, Json]:
        scored = [_under(one, self.abstain or JSON_RULE) for one in self.paths[path]]
        if len(scored) == 1 and not self.in_run:
            return scored[0].as_json(self.options.by)
        return {"run": str(path), "solvers": {one.solver: one.as_json(self.options.by) for one in scored}}

    def rows(self) -> list[dict[str, Json]]:
        """A record for each metric of each solver under each rule, with its 95 % interval."""
        return [
            {
                "path": str(path),
                "benchmark": one.benchmark,
                "solver": one.solver,
                "abstain": rule,
                "metric": metric.name,
                "n": metric.n,
                "value": metric.value,
                **_ends(interval(metric)),
            }
            for path, scored in self.paths.items()
            for one in with_judged(scored)
            for rule, counted in one.counted.items()
            for metric in counted.metrics
        ]


@dataclass(frozen=True)
class Block:
    """The tables of one section under its heading."""

    name: str
    heading: str
    lead: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, repr=False)
class ComparisonReport(Report):
    """Solvers side by side on the same questions, as `hybrid compare` prints them.

    Nothing is computed before it is asked for, and the comparison and its sections once for every form.
    """

    solvers: tuple[Scored, ...]
    options: ComparisonOptions = field(default_factory=ComparisonOptions)
    published: bool = False
    only: tuple[str, ...] = ()
    """Names of the sections that are printed instead of the conclusion with its two tables."""
    every: bool = False
    """Whether all sections are printed."""
    more: str = ""
    """The line that says what else can be asked; by default the options of `hybrid compare`."""

    @cached_property
    def comparison(self) -> Comparison:
        """The solvers and the pairs among them."""
        return compare(self.solvers, self.options)

    @cached_property
    def sections(self) -> tuple[SectionResult, ...]:
        """What each section comes to."""
        return results(self.comparison) if self.solvers else ()

    @cached_property
    def conclusion(self) -> tuple[Sentence, ...]:
        """At most five sentences on what the tools bring."""
        return conclusion(self.comparison) if self.solvers else ()

    @property
    def results(self) -> tuple[Result, ...]:
        """Every row of the result table."""
        return tuple(row for made in self.sections for row in made.rows)

    @property
    def failed(self) -> tuple[str, ...]:
        """A line for each thing that is wrong with a run, and for each section asked for that could not be made."""
        made = computed(self.comparison).values() if self.solvers else ()
        return (*_damage(self.solvers), *(f"{one.name}: {one.fault}" for one in made if one.fault))

    def blocks(self) -> tuple[Block, ...]:
        """The sections that were asked for, all by default, in order, then what papers printed.

        Raises:
            UsageError: `only` names a section that is not there, or see `published_below`.
        """
        if not self.solvers:
            return ()
        found = [
            Block(made.name, made.section.title, made.lead, tables_of(self.comparison, made)) for made in self.sections
        ]
        found += self._published()
        names = [block.name for block in found]
        for name in self.only:
            if name not in names:
                known = {*names, *(section.name for section in sections())}
                missing = f"there is no such section{did_you_mean(name, known)}"
                why = "this comparison has no such section" if name in known else missing
                raise UsageError(f"--only {name}: {why}; it has: {', '.join(names)}")
        return tuple(block for block in found if not self.only or block.name in self.only)

    def _published(self) -> list[Block]:
        return [Block("published", PUBLISHED_TITLE, "", published_below(self.comparison))] if self.published else []

    def tables(self) -> tuple[Table, ...]:
        """The table of solvers and that of tasks; of each section, where sections were asked for."""
        if not self.solvers:
            return ()
        if not (self.only or self.every):
            return (
                *headline_tables(self.comparison),
                *(table for block in self._published() for table in block.tables),
            )
        return tuple(table for block in self.blocks() for table in block.tables)

    def render(self, form: str = "text") -> str:
        """Warnings, conclusion and two tables within 80 columns, or the sections asked for, each under its heading.

        `form` is text, narrow, markdown or latex; csv has one number a line and every section. Where nothing was
        answered one statement stands instead.
        """
        if form == "csv":
            return as_csv(self.solvers, self.results)
        if nothing := nothing_answered_by(self.solvers):
            return nothing
        if not self.solvers:
            return ""
        if self.only or self.every:
            return "\n".join(piece for block in self.blocks() for piece in _pieces(block, form))
        short = as_summary(self.comparison, self.conclusion, self.more or MORE, form)
        return "\n".join([short, *(piece for block in self._published() for piece in _pieces(block, form))])

    def as_json(self) -> dict[str, Json]:
        """Solvers as `hybrid score --json` prints them, and every row of the result table.

        `conclusion` has the sentences of the whole, `conclusions` what each section concludes, `faults` the sections
        that could not be made, and why.
        """
        faults: dict[str, Json] = {made.name: made.fault for made in self.sections if made.fault is not None}
        return {
            "solvers": {one.solver: {**one.as_json(self.options.by), **origin_of(one)} for one in self.solvers},
            "results": [{**row.as_json(), **sides(self.solvers, row)} for row in self.results],
            "conclusion": [asdict(sentence) for sentence in self.conclusion],
            "conclusions": {made.name: made.lead for made in self.sections if made.lead},
            **({"faults": faults} if faults else {}),
        }

    def rows(self) -> list[dict[str, Json]]:
        """A record for each row of the result table, with model and run of its solvers."""
        return [{**asdict(row), **sides(self.solvers, row)} for row in self.results]


MORE = "More: --all, or --only NAME: differences, helped, gain, evidence, chance, ..."

WIDE = 100
"""Columns that a sentence takes where tables may be wide."""

HEADINGS: Mapping[str, Callable[[str], str]] = {
    "text": lambda heading: f"{heading}\n{'=' * len(heading)}\n",
    "narrow": lambda heading: "\n".join([*filled(heading, NARROW), "=" * min(len(heading), NARROW), ""]),
    "markdown": lambda heading: f"## {heading}\n",
    "latex": lambda heading: f"% {heading}\n",
}
"""What stands above the tables of a section, by form."""
PUBLISHED_TITLE = "What did papers print of the same metrics?"


def _pieces(block: Block, form: str) -> Iterator[str]:
    """Heading, conclusion and tables of one section."""
    yield HEADINGS[form](block.heading)
    if block.lead and form in ("text", "narrow", "markdown"):
        yield "\n".join(filled(block.lead, NARROW if form == "narrow" else WIDE)) + "\n"
    yield from map(RENDERERS[form], block.tables)


def nothing_answered_by(solvers: Sequence[Scored]) -> str | None:
    """That none of these solvers finished a question, why, and what to do, in three lines; None where one did."""
    if not solvers or any(not score.outcome.failed for one in solvers for score in one.scores):
        return None
    names = ", ".join(dict.fromkeys(one.solver for one in solvers))
    asked, waiting = sum(len(one.scores) for one in solvers), sum(one.open for one in solvers)
    lines = [f"Nothing was answered by {names}: {asked} questions failed, {waiting} were not asked."]
    folders = {one.folder.path: one.folder for one in solvers if one.folder is not None}
    reasons = Counter(
        why
        for one in solvers
        if one.folder is not None
        for why in one.folder.recorded(one.recorded).unfinished.values()
        if why
    )
    lines += [f"The reason of {count}: {why}" for why, count in reasons.most_common(1)]
    if not reasons:
        logs = [folder.path / LOG for folder in folders.values() if (folder.path / LOG).is_file()]
        lines += [f"{path} says what happened." for path in logs]
    commands = [folder.manifest.get("commands", ()) for folder in folders.values()]
    again = dict.fromkeys(found[-1]["command"] for found in commands if found)
    lines.append(f"Mend that, then ask again: {'; '.join(again) or 'repeat its `hybrid run`'}")
    return redact("\n".join(lines) + "\n")


def _damage(solvers: Sequence[Scored]) -> tuple[str, ...]:
    """What is wrong with the runs of some solvers: a line each."""
    return tuple(dict.fromkeys(line for one in solvers for line in one.damage))


def _ends(found: Interval | None) -> dict[str, Json]:
    return {"low": None, "high": None} if found is None else {"low": found.low, "high": found.high}


def score_paths(paths: Sequence[str | Path], **options: Unpack[ScoreArguments]) -> ScoreReport:
    """Score runs, or predictions that somebody else saved; the arguments are the options of `hybrid score`.

    Raises:
        UsageError: a path that is neither, options that do not go together, or replies that this protocol cannot read.
        DataError: a file that cannot be used.
    """
    _refuse_unknown(options, ScoreArguments)
    benchmark, out = options.get("benchmark"), options.get("out")
    sets = by_model(paths, options)
    if out is not None:
        if len(sets) != 1 or benchmark is None:
            raise UsageError("-o imports one set of predictions: give one PATH and --benchmark")
        ((path, *more),) = sets
        loaded = load("hybrid.benchmarks", benchmark)
        folder = import_run(path, loaded, options.get("field"), Path(out), options.get("data"), more)
        _tell_origin(predictions_origin(folder))
        sets = ((folder.path,),)
    found = {path: scored_at(path, options, more, options.get("verdicts")) for path, *more in sets}
    by = known_group(options.get("by"), [one for scored in found.values() for one in scored])
    compared = ComparisonOptions(by, allow_failed=options.get("allow_failed", False))
    return ScoreReport(found, compared, options.get("abstain"), options.get("published", False))


def compare_paths(paths: Sequence[str | Path], **options: Unpack[CompareArguments]) -> ComparisonReport:
    """Put solvers side by side; the arguments are the options of `hybrid compare`.

    Raises:
        UsageError: as `score_paths`, two benchmarks, or different questions under the same ids.
        DataError: a file that cannot be used.
    """
    _refuse_unknown(options, CompareArguments)
    sets = by_model(paths, options)
    found = [(one, path.as_posix()) for path, *more in sets for one in scored_at(path, options, more)]
    solvers = unique([one for one, _ in found], [origin for _, origin in found])
    chosen = chosen_pairs([one.solver for one in solvers], options.get("baseline"), options.get("pairs", ()))
    by = known_group(options.get("by"), solvers)
    compared = ComparisonOptions(by, chosen, options.get("allow_failed", False), margin_of(options.get("margin")))
    only, every = tuple(options.get("only", ())), options.get("all", False)
    if only and every:
        raise UsageError("--only and --all: give one of the two")
    return ComparisonReport(solvers, compared, options.get("published", False), only, every)


def known_group(by: str | None, solvers: Sequence[Scored]) -> str | None:
    """The name of a group of questions. Raises `UsageError` where there are scores, and none of them is in such one."""
    scores = [score for one in solvers for score in one.scores]
    groups = {name for score in scores for name in score.groups}
    if by is not None and scores and by not in groups:
        there_are = f"there are: {', '.join(sorted(groups))}" if groups else "there are none: leave out --by"
        raise UsageError(f"--by {by}: these questions have no such group; {there_are}")
    return by


def margin_of(value: float | None) -> float:
    """The margin of non-inferiority, 0.05 by default. Raises `UsageError` unless 0 < margin < 1."""
    margin = ComparisonOptions().margin if value is None else value
    if not 0 < margin < 1:
        raise UsageError(f"--margin {margin}: a difference in accuracy, larger than 0 and smaller than 1")
    return margin


def _refuse_unknown(options: Mapping[str, object], known: type) -> None:
    if unknown := sorted(set(options) - set(known.__annotations__)):
        raise TypeError(f"there is no option {', '.join(unknown)}; there are: {', '.join(known.__annotations__)}")


def by_model(paths: Sequence[str | Path], options: TableArguments) -> tuple[tuple[Path, ...], ...]:
    """The paths, with the files of one model's predictions together; the first of each names it.

    Options that are about predictions are told as unused where all of them are runs. Raises `UsageError` where one is
    given twice.
    """
    _refuse_twice([Path(path) for path in paths])
    unused = [f"--{name}" for name in ("benchmark", "data", "field") if options.get(name) is not None]
    if unused and all(_run_of(Path(path)) is not None for path in paths):
        tell(
            f"note: {', '.join(unused)} not used: a run knows its questions, and only saved predictions are told theirs"
        )
    benchmark = options.get("benchmark")
    if benchmark is None:
        return tuple((Path(path),) for path in paths)
    sets = sets_of([Path(path) for path in paths], load("hybrid.benchmarks", benchmark).card)
    for files in sets:
        if len(files) > 1:
            tell(f"one model, scored together: {', '.join(map(str, files))}")
    return sets


def _run_of(path: Path) -> Path | None:
    """The run that a path names, or whose solver it names; None for predictions, and for nothing that is known."""
    if (path / MANIFEST).is_file():
        return path
    return path.parent if path.is_dir() and (path.parent / MANIFEST).is_file() else None


def _refuse_twice(paths: Sequence[Path]) -> None:
    """Raise `UsageError` where a run, or a solver of it, is among them twice: it would be compared with itself."""
    seen: dict[Path, Path] = {}
    for path in paths:
        if (other := seen.setdefault(path.resolve(), path)) is not path:
            raise UsageError(f"{path} is given twice{'' if other == path else f' (as {other})'}: name each run once")
    for real, path in seen.items():
        if real.parent in seen and (real.parent / MANIFEST).is_file():
            raise UsageError(f"{path} is given twice, for {seen[real.parent]} is its run: name one of them")


def scored_at(
    path: Path, options: TableArguments, more: Sequence[Path] = (), verdicts: str | Path | None = None
) -> tuple[Scored, ...]:
    """The scored solvers behind a path: a run, a solver's folder in it, or saved predictions.

    `more` are further files of the predictions at `path` (`by_model`). For a run whose answers are hidden the
    submission files are written, and there is nothing to return.
    """
    source: Path | Literal["judge"] | None = None
    if verdicts is not None:
        source = "judge" if verdicts == "judge" else Path(verdicts)
    if _run_of(path) == path:
        folder = RunFolder(path)
        return () if _submitted(folder) else tell_unkept(score_run(folder, options_for(options, folder), (), source))
    if (run := _run_of(path)) is not None:
        folder = RunFolder(run)
        return tell_unkept(score_run(folder, options_for(options, folder), (path.name,), source))
    if path.is_dir():
        RunFolder(path).refuse_orphans()
    name = options.get("benchmark")
    if name is None:
        if runs := runs_near(path):
            raise UsageError(f"{path} is not a run{runs}")
        raise UsageError(f"{path} is not a run; for saved predictions say whose they are with --benchmark NAME")
    if verdicts is not None:
        raise UsageError(
            f"--verdicts: {path} is not a run; import it with -o RUN --field text, then `hybrid judge RUN`"
        )
    benchmark: Benchmark = load("hybrid.benchmarks", name)
    field, data = options.get("field"), options.get("data")
    scored = score_predictions(path, benchmark, field, options_for(options), data, more)
    _tell_origin(scored.origin)
    return (scored,)


def tell_unkept(scored: tuple[Scored, ...]) -> tuple[Scored, ...]:
    """The solvers of a run, after it was told once where their scores are not on disk."""
    for line in dict.fromkeys(one.not_kept for one in scored if one.not_kept):
        tell(f"note: {line}")
    return scored


def options_for(options: TableArguments, folder: RunFolder | None = None) -> ScoreOptions:
    """How the replies of a run are scored, or saved predictions: by the run's own protocol unless another was named."""
    own = "strict" if folder is None else protocol_of(folder)
    return ScoreOptions(options.get("protocol") or own, options.get("abstain") or TABLES_RULE)


def _submitted(folder: RunFolder) -> bool:
    """Whether the run's answers are hidden; then the submission of each solver is written."""
    name, split = folder.manifest["identity"]["benchmark"], folder.manifest["identity"]["split"]
    if split not in load("hybrid.benchmarks", name).card.hidden_splits:
        return False
    tell(f"the answers of {name} {split} are hidden: nothing is scored")
    for solver in folder.solvers():
        tell(f"submission: {write_submission(folder, solver)}")
    return True


def protocol_of(folder: RunFolder) -> Parse:
    """The protocol by which a run was made: its replies are read by it where nothing else was said."""
    own: Parse = folder.manifest["identity"].get("protocol", "strict")
    return own


def predictions_origin(folder: RunFolder) -> Origin | None:
    """Where the predictions of an imported run came from."""
    known = folder.manifest.get("predictions")
    origin: Origin | None = None if known is None else codec(Origin).validate_python(known)
    return origin


def _tell_origin(origin: Origin | None) -> None:
    """Tell which format was recognised, how its rows were joined, and what is missing or extra."""
    for line in origin.lines() if origin is not None else ():
        tell(line)


def _under(scored: Scored, rule: Abstain) -> Scored:
    return replace(scored, abstain=rule)


def with_judged(scored: Sequence[Scored]) -> tuple[Scored, ...]:
    """Every solver, and once more next to itself with a judge's readings where there are some."""
    found = []
    for one in scored:
        found.append(one)
        if one.judged:
            found.append(replace(one, solver=f"{one.solver} + judge", counted=one.judged, judged={}))
    return tuple(found)
