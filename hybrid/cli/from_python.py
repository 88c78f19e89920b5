"""A benchmark asked from Python, by the options of `hybrid run`: what `hybrid.run` does.

run_benchmark("blink", {"data": "sample", "model": "embedded", "solver": ["mllm", "specialist"], "limit": 8})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hybrid.benchmarks.base import Abstain, ScoreOptions
from hybrid.cli._configured import options_of, variants_of
from hybrid.cli._run_options import config_of
from hybrid.cli.run import Bars, command
from hybrid.config import RunConfig
from hybrid.engines import opener_of
from hybrid.errors import UsageError, did_you_mean
from hybrid.interface.findings import wait_for
from hybrid.models.langchain.chat_models import model_name
from hybrid.registry import described_by
from hybrid.running.resolve import prepare
from hybrid.running.run import execute
from hybrid.scoring.compare import ComparisonOptions
from hybrid.scoring.paths import TABLES_RULE
from hybrid.scoring.reports import ScoreReport
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from hybrid.serving.described import Describer

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def run_benchmark(benchmark: str | RunConfig, options: Mapping[str, object]) -> ScoreReport:
    """Prepare, ask and score, as `hybrid run` with these options does.

    Raises:
        UsageError: an option that is not there or does not fit, or a folder that holds another run.
    """
    with described_by(Describer):
        return _run_benchmark(benchmark, options)


def _run_benchmark(benchmark: str | RunConfig, options: Mapping[str, object]) -> ScoreReport:
    if isinstance(benchmark, RunConfig):
        if options:
            raise UsageError(f"{next(iter(options))}=...: put it into the RunConfig, which is the whole configuration")
        return _scored(benchmark, None, allow_failed=False)
    client = _client(options.get("model"))
    if client is not None:
        options = {**options, "model": model_name(client)}
    try:
        context = command.make_context("run", [benchmark, *words_of(options)])
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error
    if len(variants_of(context)) > 1:
        raise UsageError(f"{options.get('config', benchmark)} asks for several runs: `hybrid run` makes them")
    params = context.params
    config = replace(config_of(params, options_of(context)), client=client)
    return _scored(config, params["abstain"], allow_failed=params["allow_failed"])


def _scored(config: RunConfig, abstain: Abstain | None, *, allow_failed: bool) -> ScoreReport:
    """Ask what is open and score the solvers that were asked; none where the answers are hidden."""
    opener = opener_of(config)
    with Bars() as bars:
        plan = prepare(config)
        wait_for(execute(plan, bars, opener, bars.watch))
    scored: tuple[Scored, ...] = ()
    if plan.mounted.source.split not in plan.benchmark.card.hidden_splits:
        scored = score_run(plan.folder, ScoreOptions(config.protocol, abstain or TABLES_RULE), tuple(plan.solvers))
    choice = ComparisonOptions(allow_failed=allow_failed)
    return ScoreReport({plan.folder.path: scored}, choice, abstain, in_run=True)


def _client(model: object) -> BaseChatModel | None:
    """The model itself, where it is one; None for a name. Raises `UsageError` for anything else."""
    if model is None or isinstance(model, str):
        return None
    from langchain_core.language_models import BaseChatModel

    if not isinstance(model, BaseChatModel):
        raise UsageError(f"model={model!r:.80}: write provider:name, or hand in a chat model of LangChain's")
    return model


def words_of(options: Mapping[str, object]) -> list[str]:
    """The options as they are written on a command line."""
    known = {name: option for option in command.params for name in option.opts if isinstance(option, click.Option)}
    words: list[str] = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if name not in known or name in ("--json", "--dry-run"):
            hint = did_you_mean(key, [word.removeprefix("--").replace("-", "_") for word in known])
            raise UsageError(f"hybrid.run has no option {key!r}{hint}: it takes those of `hybrid run --help`")
        words += _option_words(known[name], name, value)
    return words


def _option_words(option: click.Option, name: str, value: object) -> list[str]:
    if value is None:
        return []
    if option.is_flag:
        return [name] if value else []
    if isinstance(value, bool):
        values: list[object] = ["on" if value else "off"]
    elif isinstance(value, Mapping):
        values = [f"{key}={part}" for key, part in value.items()]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        values = list(value) if option.multiple else [",".join(map(str, value))]
    else:
        values = [value]
    return [f"{name}={one}" for one in values]
