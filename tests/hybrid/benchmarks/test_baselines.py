"""Baselines on the cards: `hybrid run` accepts every command, and the settings exist."""

from typing import Any

from hybrid.benchmarks.card import BenchmarkCard
from hybrid.cli import cli
from hybrid.cli._run_config import SETTINGS
from hybrid.plugins.registry import load, names, recipe_of

CARDS: dict[str, BenchmarkCard] = {name: load("hybrid.benchmarks", name).card for name in names("hybrid.benchmarks")}
ALL = [(name, baseline) for name, card in CARDS.items() for baseline in card.baselines]


def test_every_paper_reports_something() -> None:
    of_papers = {name for name, card in CARDS.items() if card.tasks and recipe_of("hybrid.benchmarks", name) is None}
    assert {name for name, _ in ALL} == of_papers
    assert all(len({baseline.name for baseline in card.baselines}) == len(card.baselines) for card in CARDS.values())


def test_a_card_prints_its_baselines_and_the_settings_of_every_benchmark(capsys: Any) -> None:
    for name, card in CARDS.items():
        cli.main(["benchmarks", "show", name, "--all"], standalone_mode=False)
        out = capsys.readouterr().out
        assert all(f"    {baseline.command}\n" in out for baseline in card.baselines)
        assert all(item.differs in out for item in card.baselines)
        assert all(f"  {key}=" in out for key in SETTINGS)
