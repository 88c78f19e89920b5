"""A benchmark asked from Python, by the options of `hybrid run`: what `hybrid.run` does.

run_benchmark("blink", {"data": "sample", "model": "embedded", "solver": ["mllm", "specialist"], "limit": 8})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from hybrid.benchmarks.base import ScoreOptions
from hybrid.cli._configured import options_of, variants_of
from hybrid.cli._run_options import config_of
from hybrid.cli.run import Bars, command
from hybrid.engines import opener_of
from hybrid.errors import UsageError
from hybrid.interface.findings import wait_for
from hybrid.running.resolve import prepare
from hybrid.running.run import execute
from hybrid.scoring.compare import ComparisonOptions
from hybrid.scoring.reports import TABLES_RULE, ScoreReport
from hybrid.scoring.score import Scored, score_run

OptionValue = bool | float | str | Path | Sequence[str] | Mapping[str, str] | None
"""What an option of `hybrid run` is given in Python; None leaves it out."""


def run_benchmark(benchmark: str, options: Mapping[str, OptionValue]) -> ScoreReport:
    """Prepare, ask and score, as `hybrid run` with these options does.

    Raises:
        UsageError: an option that is not there or does not fit, or a folder that holds another run.
    """
    try:
        context = command.make_context("run", [benchmark, *words_of(options)])
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error
    if len(variants_of(context)) > 1:
        raise UsageError(f"{options['config']} asks for several runs: `hybrid run --config` makes them")
    params = context.params
    config = config_of(params, options_of(context))
    opener = opener_of(config)
    plan = prepare(config)
    with Bars() as bars:
        wait_for(execute(plan, bars, opener, bars.watch))
    scored: tuple[Scored, ...] = ()
    if plan.mounted.source.split not in plan.benchmark.card.hidden_splits:
        counting = ScoreOptions(params["protocol"], params["abstain"] or TABLES_RULE)
        scored = score_run(plan.folder, counting, tuple(plan.solvers))
    choice = ComparisonOptions(allow_failed=params["allow_failed"])
    return ScoreReport({plan.folder.path: scored}, choice, params["abstain"], in_run=True)


def words_of(options: Mapping[str, OptionValue]) -> list[str]:
    """The options as they are written on a command line."""
    known = {name: option for option in command.params for name in option.opts if isinstance(option, click.Option)}
    words: list[str] = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if name not in known or name in ("--json", "--dry-run"):
            raise UsageError(f"hybrid.run has no option {key!r}: it takes those of `hybrid run --help`")
        words += _option_words(known[name], name, value)
    return words


def _option_words(option: click.Option, name: str, value: OptionValue) -> list[str]:
    if value is None:
        return []
    if option.is_flag:
        return [name] if value else []
    if isinstance(value, bool):
        values: list[object] = ["on" if value else "off"]
    elif isinstance(value, Mapping):
        values = [f"{key}={part}" for key, part in value.items()]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        values = list(value) if option.multiple else [",".join(value)]
    else:
        values = [value]
    return [f"{name}={one}" for one in values]
