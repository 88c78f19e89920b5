"""`hybrid run`: ask the questions of a benchmark with one or more solvers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli import _option_types as types
from hybrid.cli._configured import Configured, run_options, runs_of
from hybrid.cli._options import click_option, logging_options_of, path_option, shared_option, tables_option
from hybrid.cli._run_config import config_of
from hybrid.config.command_options import BENCHMARK, FIELDS
from hybrid.core.secrets import redact
from hybrid.display.notes import is_quiet, tell
from hybrid.display.terminal import TEXT, how_many

if TYPE_CHECKING:
    from hybrid.benchmarks.base import UnansweredRule
    from hybrid.cli._several_runs import AskedRuns
    from hybrid.config import RunConfig
    from hybrid.running.resolve import ResolvedRun
    from hybrid.scoring.reports import ScoreReport


BENCHMARK_ARGUMENT = click.Argument([BENCHMARK], shell_complete=types.benchmark_lists)


@click.command(
    "run",
    cls=Configured,
    params=[BENCHMARK_ARGUMENT, click_option(FIELDS["config"]), *run_options()],
    rare=("path",),
)
@path_option
@shared_option("unanswered")
@shared_option("allow_failed")
@shared_option("dry_run")
@tables_option
@shared_option("json")
@logging_options_of
def command(**options: Any) -> int:
    """Ask the questions of BENCHMARK (a name or a file); rerun to resume.

    Answers and traces are saved in a folder, for `hybrid compare` and `report`. \f --config reads every option under
    its long name without dashes: lists for options that may be given several times, mappings for setting, weights and
    model-arg. The command line overrides the file, and the file overrides the environment. Paths are relative to the
    working directory. A list for an option that takes one value, several benchmarks (blink,hvsbench), or options with
    lists under `matrix:` make a run for each combination, each in its own folder in --out, and print one comparison per
    benchmark at the end. If two runs would share a solver's answers, it is asked only in the first. --run-max-... limit
    all runs together. `--config RUN` repeats that run, with hub data at the same commit, but ignores the environment
    and that run's --out. --no-... switches off what a file switches on.

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
        # Print a first message before slow imports, but only in a terminal, not in a log.
        click.echo(f"{options['benchmark']}: preparing ...", err=True)
    runs = runs_of(click.get_current_context())
    if len(runs) > 1:
        from hybrid.cli._several_runs import run_matrix

        return run_matrix(runs, options)
    return _one_run(config_of(runs[0].values, runs[0].recorded), options)


def _one_run(config: RunConfig, options: Mapping[str, Any]) -> int:
    """Ask the open questions of one run and print the scores, or the estimate with `dry_run`. Returns the exit code."""
    from hybrid.cli._several_runs import ask_and_show, nothing_asked_yet, prepared, show_estimate
    from hybrid.core.option_rotation import unrotated_note
    from hybrid.core.repetitions import notes_on_repeats
    from hybrid.engines import opener_of

    # Check the engine before the data are read, so that a missing engine is reported at once.
    opener_of(config)
    with nothing_asked_yet():
        run = prepared(config, dry=options["dry_run"])
    unturned = unrotated_note(run.questions) if config.rotate else ()
    notes = [*run.opened, *notes_on_repeats(run.solvers, config.repeats), *unturned]
    if config.samples == 2:
        notes.append(
            "--setting samples=2 doubles the calls but changes no answer: if the two samples differ, the first one wins"
        )
    if not options["dry_run"]:
        left_out = (*run.tools.foreign.left_out.values(), *run.tools.left_out)
        notes += [f"not offered: {redact(reason)}" for reason in left_out]
    for line in (*notes, *map(redact, run.tools.notes)):
        tell(f"note: {line}")
    if options["dry_run"]:
        from hybrid.running.estimate import estimate

        form = "json" if options["json"] else TEXT[options["tables"]]
        return show_estimate(asyncio.run(estimate(run)), form)
    tell(f"{how_many(len(run.sound))}, run folder {run.folder.path}")
    return ask_and_show({"": lambda: run}, config.run_limits, [run.folder.path], partial(_show, run, options))


def _show(run: ResolvedRun, options: Mapping[str, Any], results: AskedRuns) -> Sequence[str]:
    """Print the scores of a run."""
    from hybrid.cli._output import show_scores

    report = scores_of(run, options["unanswered"], allow_failed=options["allow_failed"])
    show_scores(report, options["tables"], as_json=options["json"])
    failures = {**report.failures, **results.failures}
    return [*report.damage, *(f"{question}: {reason}" for question, reason in failures.items())]


def scores_of(run: ResolvedRun, unanswered: UnansweredRule | None, *, allow_failed: bool) -> ScoreReport:
    """Return the scores of the solvers with finished questions; no scores if the answers are hidden."""
    from hybrid.benchmarks.base import ScoreOptions
    from hybrid.scoring.compare import ComparisonOptions
    from hybrid.scoring.paths import DEFAULT_RULE, warn_unsaved
    from hybrid.scoring.reports import ScoreReport
    from hybrid.scoring.runs import score_run

    rule, split, with_answers = unanswered or DEFAULT_RULE, run.mounted.source.split, run.folder.solvers()
    names = tuple(name for name in run.solvers if name in with_answers)
    if split in run.benchmark.card.hidden_splits:
        names = ()
        submission = f"`hybrid score {run.folder.path}` writes the submission"
        click.echo(f"the answers of the split {split!r} are hidden: {submission}", err=True)
    scored = warn_unsaved(score_run(run.folder, ScoreOptions(run.config.protocol, rule), names)) if names else ()
    return ScoreReport({run.folder.path: scored}, ComparisonOptions(allow_failed=allow_failed), rule, in_run=True)


def lacking_options(other: click.Command, *left_out: str) -> list[click.Parameter]:
    """Return the options of `hybrid run` that another command lacks, without the options `left_out`."""
    other_options = {word for param in other.params for word in (*param.opts, *param.secondary_opts)}
    return [param for param in command.params if other_options.isdisjoint(param.opts) and param.name not in left_out]
