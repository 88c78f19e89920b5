"""Recipes of the project: each loads, contains only values, and names the sources of its facts."""

from pathlib import Path

import pytest
import yaml

from hybrid.benchmarks.questions.schema import recipe_of
from hybrid.core.errors import UsageError
from hybrid.plugins.registry import load
from hybrid.scoring.published import published

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "hybrid/benchmarks/recipes"
RECIPES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def test_a_folder_of_recipes_holds_nothing_else() -> None:
    assert {path.suffix for path in FOLDER.iterdir() if path.name != "__pycache__"} == {".yaml"}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_holds_values_alone(name: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text()
    assert isinstance(yaml.safe_load(text), dict)
    assert "!!" not in text


@pytest.mark.parametrize("name", RECIPES)
def test_published_numbers_name_a_metric_of_the_recipe_and_a_source(name: str) -> None:
    card = load("hybrid.benchmarks", name).card
    for row in published(name):
        assert any(metric.describes(row.metric) for metric in card.metrics), row
        assert row.source
        assert row.split in card.splits
        assert 0 < row.value <= 100


def test_published_numbers_are_printed_in_percent() -> None:
    (human,) = (row for row in published("hrbench") if row.kind == "human" and row.split == "8k")
    assert human.value == 86.8


def test_a_metric_over_a_column_that_is_no_group_is_refused(tmp_path: Path) -> None:
    text = (FOLDER / "cvbench.yaml").read_text().replace("type/source", "type/sources")
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"line \d+: metrics: accuracy over type/sources: 'sources' is not a.*source"):
        recipe_of(tmp_path / "mine.yaml")


def test_an_unknown_word_of_samples_is_refused_by_line(tmp_path: Path) -> None:
    text = (FOLDER / "sat.yaml").read_text().replace("  scenes:", "  row: 2\n  scenes:")
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"mine.yaml, line \d+: samples has no 'row'.*rows"):
        recipe_of(tmp_path / "mine.yaml")
