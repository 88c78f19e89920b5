"""Generated rows of recipes: written in the recipe's layout, read back completely, with correct answers."""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hybrid.benchmarks.base import Source
from hybrid.benchmarks.questions.options import PATTERNS, split
from hybrid.benchmarks.questions.recipe import RecipeBenchmark
from hybrid.benchmarks.questions.sample import format_options, write
from hybrid.benchmarks.questions.schema import recipe_of
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import Question
from tests.tables import stored

FOLDER = Path(__file__).parents[4] / "hybrid/benchmarks/recipes"


Generated = Callable[[str], tuple[Question, ...]]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_options_are_written_as_they_are_read(pattern: str) -> None:
    options = ("red", "dark blue")
    assert split(pattern, format_options(pattern, options))[1] == options
    assert split(pattern, format_options(pattern, options, lower=True))[1] == options


RECIPE = stored(__file__, "RECIPE")


FILES = ("{split}.tsv", "{split}.csv", "{split}.jsonl", "a/*.parquet")
# Pairs of a kind of table and a form of its column of right answers.
WRITTEN = [*itertools.product(FILES, ("letter", "index0")), (FILES[0], "text"), (FILES[0], "index1")]


@pytest.mark.parametrize(("file", "answer"), WRITTEN)
def test_rows_are_written_to_every_kind_of_table(tmp_path: Path, file: str, answer: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE.format(file=file, answer=answer, scene="located"))
    recipe = recipe_of(path)
    table = write(tmp_path / "data", recipe, ("sides",), per_task=2, seed=0)
    benchmark = RecipeBenchmark(recipe)
    items = list(benchmark.questions(Source(tmp_path / "data", ImageStore(tmp_path / "s"), "test", ("sides",))))
    assert [type(question) for question in items] == [Question, Question], items
    assert {str(question.target) for question in items if isinstance(question, Question)} == {"A", "B"}
    if table.suffix == ".jsonl":
        assert set(json.loads(table.read_text().splitlines()[0])) == {
            *("number", "picture", "asked", "offered", "right", "about", "evidence")
        }
    if table.suffix == ".parquet":
        assert pq.read_schema(table).names[0] == "about"


def test_a_scene_that_is_not_known_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE.format(file="a.tsv", answer="letter", scene="landscape"))
    with pytest.raises(UsageError, match="'landscape' is not a scene; available: attribute"):
        write(tmp_path / "data", recipe_of(path), ("sides",), per_task=2, seed=0)


def test_a_unit_may_be_named_by_a_long_text(tmp_path: Path) -> None:
    message = f'  question: "{"Look here. " * 40}In picture {{unit}}: {{question}}"'
    text = (FOLDER / "hrbench.yaml").read_text().replace("  cyclic: true", f"  cyclic: true\n{message}")
    (tmp_path / "hrbench.yaml").write_text(text)
    recipe = recipe_of(tmp_path / "hrbench.yaml")
    write(tmp_path / "data", recipe, ("single",), per_task=8, seed=0)
    source = Source(tmp_path / "data", ImageStore(tmp_path / "store"), "4k", ("single",))
    units = Counter(question.cluster for question in RecipeBenchmark(recipe).questions(source))
    assert sorted(units.values()) == [4, 4]
    assert all(len(unit) < 80 for unit in units)
