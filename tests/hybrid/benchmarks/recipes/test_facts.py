"""Recipes of the project: each loads, holds values alone, and says where its facts are from."""

from pathlib import Path

import pytest
import yaml

from hybrid.benchmarks.questions.recipe import RecipeBenchmark
from hybrid.benchmarks.questions.schema import recipe_of
from hybrid.errors import UsageError
from hybrid.registry import load, names
from hybrid.samples.named import SCENES
from hybrid.scoring.published import published

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "hybrid/benchmarks/recipes"
RECIPES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))

# Counted in the authors' lists, or said by their data cards and papers: the notes of each recipe name the place.
QUESTIONS = {
    "vstar": {"direct_attributes": 115, "relative_position": 76},
    "cvbench": {"Count": 788, "Relation": 650, "Depth": 600, "Distance": 600},
    "mmvp": {"mmvp": 300},
    "hrbench": {"single": 400, "cross": 400},
    "realworldqa": {"realworldqa": 765},
    "sat": {},
    "pope": {"random": 3000, "popular": 3000, "adversarial": 3000},
}


def test_the_recipes_are_these() -> None:
    assert set(RECIPES) == set(QUESTIONS)
    assert set(RECIPES) <= set(names("hybrid.benchmarks"))


def test_a_folder_of_recipes_holds_nothing_else() -> None:
    assert {path.suffix for path in FOLDER.iterdir() if path.name != "__pycache__"} == {".yaml"}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_a_benchmark_with_its_counts(name: str) -> None:
    benchmark = load("hybrid.benchmarks", name)
    assert isinstance(benchmark, RecipeBenchmark)
    card = benchmark.card
    assert card.name == name
    assert dict(card.tasks) == QUESTIONS[name]
    assert card.hub_id is not None
    assert card.hub_id.count("/") == 1
    assert "arXiv:" in card.citation or name == "realworldqa"
    assert card.licence
    assert card.unchecked


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_holds_values_alone(name: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text()
    assert isinstance(yaml.safe_load(text), dict)
    assert "!!" not in text


@pytest.mark.parametrize("name", RECIPES)
def test_units_of_all_right_are_said(name: str) -> None:
    recipe = recipe_of(FOLDER / f"{name}.yaml")
    asks_all_right = any(metric.statistic == "all_right" for metric in recipe.metrics)
    assert not asks_all_right or recipe.cluster_rows > 1 or "cluster" in recipe.layout.columns or recipe.cyclic


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


@pytest.mark.parametrize("name", RECIPES)
def test_samples_are_drawn_for_every_task_or_its_kind_of_question(name: str) -> None:
    recipe = recipe_of(FOLDER / f"{name}.yaml")
    assert recipe.samples is not None
    assert {scene.scene for scene in recipe.samples.scenes} <= set(SCENES)
    assert not recipe.expected or set(recipe.scenes) <= set(recipe.expected)


def test_a_metric_over_a_column_that_is_no_group_is_refused(tmp_path: Path) -> None:
    text = (FOLDER / "cvbench.yaml").read_text().replace("type/source", "type/sources")
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"line \d+: metrics: accuracy over type/sources: no column 'sources'.*source"):
        recipe_of(tmp_path / "mine.yaml")


def test_an_unknown_word_of_samples_is_refused_by_line(tmp_path: Path) -> None:
    text = (FOLDER / "sat.yaml").read_text().replace("  scenes:", "  row: 2\n  scenes:")
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"mine.yaml, line \d+: samples has no 'row'.*rows"):
        recipe_of(tmp_path / "mine.yaml")
