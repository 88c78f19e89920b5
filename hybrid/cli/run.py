"""`hybrid run`: ask a benchmark's questions with one or more solvers."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli import _complete
from hybrid.cli._configured import Configured, options_of, variants_of
from hybrid.cli._help import GroupedOption
from hybrid.cli._logging_options import told_options
from hybrid.cli._path import path_option
from hybrid.cli._run_options import config_of, run_options
from hybrid.cli._table_options import abstain_option, allow_failed_option, tables_option
from hybrid.display.loading import loading_shown_by
from hybrid.display.notebook import line_in_place
from hybrid.display.notes import is_quiet, tell
from hybrid.display.terminal import TEXT, Shape
from hybrid.errors import HybridError, UsageError
from hybrid.secrets import redact

if TYPE_CHECKING:
    from hybrid.config import RunConfig
    from hybrid.running.engine import Opener
    from hybrid.running.progress import Progress
    from hybrid.running.resolve import ResolvedRun
    from hybrid.running.run import RunEnd
    from hybrid.scoring.score import Scored


OWN_OPTIONS: list[click.Parameter] = [
    click.Argument(["benchmark"], shell_complete=_complete.benchmark_lists),
    GroupedOption(
        ["--config"],
        metavar="FILE|RUN",
        shell_complete=_complete.runs,
        group="ask",
        brief="Options from a YAML or JSON file, or from a run",
        help="Options from a YAML or JSON file, KEY: VALUE, or from a run that was made, by its folder or manifest.",
    ),
]


@click.command("run", cls=Configured, params=[*OWN_OPTIONS, *run_options()], rare=("path",))
@path_option
@abstain_option
@allow_failed_option
@click.option(
    "--dry-run/--no-dry-run", is_flag=True, help="Print what would be asked, what it costs and what is missing."
)
@tables_option
@click.option("--json/--no-json", "as_json", is_flag=True, help="One JSON object on stdout, everything else on stderr.")
@told_options
def command(**options: Any) -> int:
    """Ask the questions of BENCHMARK, a name or a file of questions; give it again to go on where it stopped.

    Answers and traces stay in a run folder, for `hybrid compare` and `report`.
    \f
    --config reads every option under its long name without dashes: lists for options that may be given several times,
    mappings for setting, weights and model-arg. The command line wins over the file, and the file over the
    environment. Paths are seen from the working directory. A list for an option that takes one value, several
    benchmarks (blink,hvsbench), or options with lists under `matrix:` make a run for each combination, in folders of
    their own in --out, and one comparison a benchmark at the end. What would be answered alike in two runs is asked in
    the first; --run-max-... are for all together. `--config RUN` asks what that run asked, data of the hub at the same
    commit, without the environment and its --out. What a file switches on, --no-... switches off.

    \b
      benchmark: blink                      # run.yaml
      data: DIR
      solver: [controller, mllm, specialist]
      setting: {disclaimer: off}
      matrix:
        model: [openai:gpt-4o, openai:gpt-4.1]
        tool-output: [real, blank]

    \b
    Examples:
      hybrid run blink --data DIR --model openai:gpt-4o --limit 50
      hybrid run mvp_bench --data DIR --model openai:gpt-4o --solver mllm --format-line off --image-labels off
      hybrid run actiview --data DIR --model openai:gpt-4o --protocol official
      hybrid run blink --data DIR --model openai:gpt-4o --solver caption --setting caption-model=openai:gpt-4.1
      hybrid run hvsbench --data DIR --model openai:gpt-4o --solver mllm --setting context=FILE.jsonl
      hybrid run blink --data DIR --model openai:gpt-4o --solver mllm --max-tokens 1024 --setting reasoning=first
      hybrid run blink --data DIR --model openai:gpt-4o --path my_tools --tools default,my_tool
      hybrid run blink --data DIR --model openai:gpt-4o --mcp "shapes=python shapes_server.py" --dry-run
      hybrid run hvsbench --data DIR --model openai:qwen --base-url URL --engine ray --address 10.0.0.4:6379
      hybrid run questions.csv --model openai:gpt-4o --strict
      hybrid run blink,hvsbench --model openai:gpt-4o --limit 50
      hybrid run --config run.yaml --dry-run
      hybrid run --config runs/blink-gpt-4o-1a2b3c4d5e --model openai:gpt-4.1
    """
    if sys.stderr is not None and sys.stderr.isatty() and not is_quiet():
        # A log needs no sign of life, and a person gets one before the first library is read.
        click.echo(f"{options['benchmark']}: making ready ...", err=True)
    context = click.get_current_context()
    if len(variants_of(context)) > 1:
        from hybrid.cli._many import run_matrix

        return run_matrix(variants_of(context), context.command, asked)
    return _one_run(config_of(options, options_of(context)), options)


def _one_run(config: RunConfig, options: Mapping[str, Any]) -> int:
    """Ask the open questions of one run and print its scores, or with `dry_run` its estimate. Returns the exit code."""
    from hybrid.cli._many import prepared
    from hybrid.engines import opener_of
    from hybrid.repeats import asked_once
    from hybrid.running.batching import left_behind
    from hybrid.running.signals import Interrupted

    opener = opener_of(config)
    run = prepared(config, dry=options["dry_run"])
    for label in (*run.opened, *asked_once(run.solvers, config.repeats)):
        tell(f"note: {label}")
    if config.samples == 2:
        tell("note: --setting samples=2 doubles the calls and changes no vote: of two that differ the first wins")
    for why in () if options["dry_run"] else (*run.tools.foreign.left_out.values(), *run.tools.left_out):
        tell(f"note: not offered: {redact(why)}")
    for why in run.tools.notes:
        tell(f"note: {redact(why)}")
    if options["dry_run"]:
        return _dry_run(run, options["tables"], as_json=options["as_json"])
    tell(f"{len(run.sound)} questions, run folder {run.folder.path}")
    try:
        end = asked(run, opener)
    except Interrupted as interrupted:
        say = redact(shlex.join(["hybrid", *sys.argv[1:]]))
        left = left_behind(run.folder.path)
        kept = f"{run.folder.path}{f'; {left}' if left else ''}"
        click.echo(f"{interrupted}; what is finished is kept in {kept}; to go on: {say}", err=True)
        return interrupted.exit_code
    if isinstance(end.stopped, UsageError) and not end.answered:
        raise end.stopped
    return _report(run, end, options)


def asked(run: ResolvedRun, opener: Opener) -> RunEnd:
    """Ask what is open, with a progress bar a solver on stderr.

    Raises:
        Interrupted: a signal ended it.
        HybridError: something that the run uses ended the program.
    """
    import asyncio

    from hybrid.running.run import carry_out
    from hybrid.running.signals import until_signal

    with Bars(quiet=is_quiet()) as bars:
        try:
            return asyncio.run(until_signal(carry_out(run, bars, bars.tell, opener, bars.watch)))
        except SystemExit as error:
            raise HybridError(f"something that the run uses ended the program (SystemExit: {error})") from error


class Bars:
    """One progress bar a solver, on stderr or in a notebook's cell, with what it has used and lost beside it."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bars: dict[str, Any] = {}
        self._beside = self._loading = self._waits = ""
        self._shown = loading_shown_by(self._loads)

    def __enter__(self) -> Bars:
        self._shown.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.__exit__(None, None, None)
        for bar in self._bars.values():
            bar.close()

    def tell(self, line: str) -> None:
        """Print a line on stderr."""
        if self._quiet:
            return
        click.echo(redact(line), err=True)

    def watch(self, solver: str, so_far: Progress) -> None:
        """Show beside the solver's bar what it has used and lost."""
        from hybrid.cli._progress import beside

        self._beside = beside(so_far)
        # While batches are waited for no question ends, which would show it.
        waits, self._waits = self._waits, so_far.waits
        self._set_beside(refresh=waits != so_far.waits)

    def _loads(self, what: Sequence[str]) -> None:
        """Show what is being loaded."""
        self._loading = f"loading {', '.join(what)}" if what else ""
        self._set_beside(refresh=True)

    def _set_beside(self, *, refresh: bool) -> None:
        if self._bars:
            beside = ", ".join(filter(None, (self._loading, self._beside)))
            next(reversed(self._bars.values())).set_postfix_str(beside, refresh=refresh)

    def __call__(self, solver: str, finished: int, total: int) -> None:
        """Show so many of the solver's questions as finished."""
        if self._quiet:
            return
        from tqdm import tqdm

        if solver not in self._bars:
            for bar in self._bars.values():
                bar.close()
            self._bars[solver] = tqdm(
                total=total, initial=finished, desc=solver, unit="q", mininterval=0.5, file=line_in_place()
            )
            self._beside = ""
            self._set_beside(refresh=bool(self._loading))
        self._bars[solver].update(finished - self._bars[solver].n)


def _report(run: ResolvedRun, end: RunEnd, options: Mapping[str, Any]) -> int:
    from hybrid.cli._many import stopped
    from hybrid.cli.score import name_failed, show
    from hybrid.scoring.compare import ComparisonOptions
    from hybrid.scoring.paths import TABLES_RULE
    from hybrid.scoring.reports import ScoreReport

    left = sum(len(run.open_questions(name)) for name in run.solvers) - len(end.failures)
    if left:
        reason = end.stopped or f"the budget of {run.resources.run_meter.spent()} is spent"
        click.echo(stopped(f"{left} questions open", reason), err=True)
    for notice in run.service.notices:
        tell(f"note: {notice}")
    scored = _scored(run, options)
    choice = ComparisonOptions(allow_failed=options["allow_failed"])
    report = ScoreReport({run.folder.path: scored}, choice, options["abstain"] or TABLES_RULE, in_run=True)
    show(report, options["tables"], as_json=options["as_json"])
    reasons = {f"{broken.id} ({solver})": broken.error for broken in run.broken for solver in run.solvers}
    reasons |= {f"{failure.id} ({failure.solver})": failure.error for failure in end.failures}
    failed = [*report.damage, *(f"{question}: {why}" for question, why in {**report.failures, **reasons}.items())]
    name_failed(failed)
    return 3 if failed or left else 0


def _scored(run: ResolvedRun, options: Mapping[str, Any]) -> tuple[Scored, ...]:
    """The solvers of which anything is finished; none where the answers are hidden."""
    from hybrid.benchmarks.base import ScoreOptions
    from hybrid.scoring.paths import TABLES_RULE, tell_unkept
    from hybrid.scoring.runs import score_run

    split = run.mounted.source.split
    if split in run.benchmark.card.hidden_splits:
        click.echo(
            f"the answers of {split} are hidden: `hybrid score {run.folder.path}` writes the submission", err=True
        )
        return ()
    begun = run.folder.solvers()
    rule = options["abstain"] or TABLES_RULE
    names = tuple(name for name in run.solvers if name in begun)
    return tell_unkept(score_run(run.folder, ScoreOptions(options["protocol"], rule), names)) if names else ()


def _dry_run(run: ResolvedRun, tables: Shape, *, as_json: bool) -> int:
    import asyncio

    from hybrid.running.estimate import estimate

    report = asyncio.run(estimate(run))
    click.echo(json.dumps(report.as_json()) if as_json else report.as_text(TEXT[tables]))
    return 2 if report.missing else 0
