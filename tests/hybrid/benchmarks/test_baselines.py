"""Baselines on the cards: every command is one that `hybrid run` takes, with existing settings."""

import shlex
from typing import Any

import click
import pytest

from hybrid.benchmarks.card import Baseline, BenchmarkCard
from hybrid.cli import cli
from hybrid.cli._help import HELP_ALL
from hybrid.cli._run_options import SETTINGS, config_of
from hybrid.cli.run import command as run_command
from hybrid.registry import load, load_solver, names, recipe_of

CARDS: dict[str, BenchmarkCard] = {name: load("hybrid.benchmarks", name).card for name in names("hybrid.benchmarks")}
ALL = [(name, baseline) for name, card in CARDS.items() for baseline in card.baselines]


def test_every_paper_reports_something() -> None:
    of_papers = {name for name, card in CARDS.items() if card.tasks and recipe_of("hybrid.benchmarks", name) is None}
    assert {name for name, _ in ALL} == of_papers
    assert all(len({one.name for one in card.baselines}) == len(card.baselines) for card in CARDS.values())


@pytest.mark.parametrize(("benchmark", "baseline"), ALL, ids=[f"{name}: {one.name}" for name, one in ALL])
def test_the_command_is_one(benchmark: str, baseline: Baseline) -> None:
    program, command, *words = shlex.split(baseline.command)
    assert (program, command, words[0]) == ("hybrid", "run", benchmark)
    config = config_of(run_command.make_context("run", words).params)
    card = CARDS[benchmark]
    chosen = card.chosen({**card.official_settings, **config.settings})
    assert set(chosen) == {setting.name for setting in card.settings}
    assert set(config.tasks) <= set(card.tasks)
    for name in config.solvers:
        assert load_solver(name).needs_model == (config.model is not None)
    assert not any(setting.name in SETTINGS for setting in card.settings)
    assert baseline.where


def test_a_card_prints_its_baselines_and_the_settings_of_every_benchmark(capsys: Any) -> None:
    for name, card in CARDS.items():
        cli.main(["benchmarks", "show", name, "--all"], standalone_mode=False)
        shown = capsys.readouterr().out
        assert all(f"    {one.command}\n" in shown for one in card.baselines)
        assert all(one.differs in shown for one in card.baselines)
        assert all(f"  {key}=" in shown for key in SETTINGS)


def test_the_help_of_a_run_tells_of_the_keys() -> None:
    context = click.Context(run_command, terminal_width=400, max_content_width=400)
    context.meta[HELP_ALL] = True
    shown = run_command.get_help(context)
    flat = " ".join(shown.split())
    for key in ("samples=K", "reasoning=first|none", "caption-model=PROVIDER:NAME", "context=FILE.jsonl"):
        assert key in flat
    assert "--solver caption --setting caption-model=" in flat
