"""Generated rows of recipes: written in the recipe's layout, read back whole, with answers that are true."""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hybrid.benchmarks.base import Source
from hybrid.benchmarks.questions.options import PATTERNS, split
from hybrid.benchmarks.questions.recipe import RecipeBenchmark
from hybrid.benchmarks.questions.sample import write, written
from hybrid.benchmarks.questions.schema import recipe_of
from hybrid.errors import UsageError
from hybrid.images import ImageStore
from hybrid.registry import load
from hybrid.types import Kind, Question

FOLDER = Path(__file__).parents[4] / "hybrid/benchmarks/recipes"
RECIPES = ("cvbench", "hrbench", "mmvp", "pope", "realworldqa", "sat", "vstar")
PER_TASK = 2
every_recipe = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ("cvbench", "mmvp", "pope") else pytest.mark.system) for name in RECIPES],
)
SCENES = {"mmvp": 4, "realworldqa": 4}
"""More rows of a task, so that each of its scenes is among them."""


Generated = Callable[[str], tuple[Question, ...]]


@pytest.fixture(scope="module")
def generated(folders: Callable[[str, int], Path], tmp_path_factory: pytest.TempPathFactory) -> Generated:
    """The questions of a recipe, read once."""
    store = tmp_path_factory.mktemp("store")
    return lambda name: _read(folders(name, SCENES.get(name, PER_TASK)), store, name)


@cache
def _read(data: Path, store: Path, name: str) -> tuple[Question, ...]:
    benchmark = load("hybrid.benchmarks", name)
    card = benchmark.card
    source = Source(data, ImageStore(store), card.splits[0])
    assert set(benchmark.tasks(source)) == set(card.sample_tasks)
    asked = Source(data, source.store, card.splits[0], benchmark.tasks(source))
    found = tuple(benchmark.questions(asked))
    assert all(isinstance(question, Question) for question in found), found
    return tuple(question for question in found if isinstance(question, Question))


@every_recipe
def test_generated_rows_are_read_whole(generated: Generated, name: str) -> None:
    questions = generated(name)
    assert len({question.id for question in questions}) == len(questions)
    for question in questions:
        assert question.route == "by_text"
        assert question.images
        if question.kind is Kind.CHOICE:
            assert str(question.target) in "ABCD"[: len(question.choices)]
            assert all(choice in question.text for choice in question.choices)


@every_recipe
def test_the_right_letter_is_not_always_the_same(generated: Generated, name: str) -> None:
    by_task = defaultdict(set)
    for question in generated(name):
        by_task[question.task].add(str(question.target))
    assert all(len(targets) > 1 for targets in by_task.values()), by_task


def test_a_pair_asks_one_question_of_two_pictures_with_two_answers(generated: Generated) -> None:
    units = defaultdict(list)
    for question in generated("mmvp"):
        units[question.unit].append(question)
    assert len(units) == SCENES["mmvp"] // 2
    for pair in units.values():
        assert len({question.text for question in pair}) == 1
        assert len({question.images[0].sha256 for question in pair}) == 2
        assert sorted(str(question.target) for question in pair) == ["A", "B"]


def test_the_rows_of_a_cycle_have_one_answer_under_every_letter(generated: Generated) -> None:
    cycles = defaultdict(list)
    for question in generated("hrbench"):
        cycles[question.images[0].sha256].append(question)
    assert len(cycles) == 2
    for cycle in cycles.values():
        assert {question.groups["cycle_category"] for question in cycle} == {"0", "1", "2", "3"}
        assert sorted(str(question.target) for question in cycle) == ["A", "B", "C", "D"]
        assert len({question.choices["ABCD".index(str(question.target))] for question in cycle}) == 1
        assert len({question.unit for question in cycle}) == 1


def test_half_of_the_questions_of_one_picture_are_answered_yes(generated: Generated) -> None:
    units = defaultdict(list)
    for question in generated("pope"):
        units[question.unit].append(question)
    for asked in units.values():
        assert Counter(question.target for question in asked) == {"yes": 3, "no": 3}
        assert len({question.images[0].sha256 for question in asked}) == 1
        assert len({question.text for question in asked}) > 2
        yes = {question.text for question in asked if question.target == "yes"}
        assert yes.isdisjoint(question.text for question in asked if question.target == "no")


def test_options_in_a_question_are_taken_out_and_what_follows_them_is_none(generated: Generated) -> None:
    for question in generated("vstar"):
        assert "Answer with" not in question.text
        assert not any("Answer with" in choice for choice in question.choices)
    kinds = {question.kind for question in generated("realworldqa")}
    assert kinds == {Kind.CHOICE, Kind.INTEGER, Kind.YES_NO}


def test_every_option_is_first_once_where_a_recipe_is_cyclic(generated: Generated) -> None:
    by_base = defaultdict(list)
    for question in generated("sat"):
        by_base[question.base].append(question)
    for cycle in by_base.values():
        assert sorted(str(question.target) for question in cycle) == ["A", "B"]
        assert {len(question.images) for question in cycle} == {2}


@pytest.mark.parametrize("name", ["vstar", "cvbench"])
def test_a_larger_sample_begins_with_the_smaller(generated: Generated, tmp_path: Path, name: str) -> None:
    benchmark, data = load("hybrid.benchmarks", name), tmp_path / "larger"
    task = benchmark.card.sample_tasks[1]
    benchmark.generate(data, (task,), PER_TASK + 1, 0)
    source = Source(data, ImageStore(tmp_path / "store"), benchmark.card.splits[0], (task,))
    larger = {question.id: question for question in benchmark.questions(source)}
    smaller = [question for question in generated(name) if question.task == task]
    assert len(larger) == len(smaller) + 1
    assert all(larger[question.id] == question for question in smaller)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_options_are_written_as_they_are_read(pattern: str) -> None:
    options = ("red", "dark blue")
    assert split(pattern, written(pattern, options))[1] == options
    assert split(pattern, written(pattern, options, lower=True))[1] == options


RECIPE = """
title: "Mine: a set"
citation: none
licence: CC0
hub: {{id: me/mine, splits: [test], files: ["{file}"]}}
columns: {{id: number, image: picture, question: asked, choices: offered, answer: right, task: about}}
answer: {answer}
metrics: [accuracy]
samples:
  scenes:
    - {{scene: {scene}, cells: {{about: sides}}}}
"""


FILES = ("{split}.tsv", "{split}.csv", "{split}.jsonl", "a/*.parquet")
WRITTEN = [*itertools.product(FILES, ("letter", "index0")), (FILES[0], "text"), (FILES[0], "index1")]
"""Kinds of tables with the forms that their column of right answers has."""


@pytest.mark.parametrize(("file", "answer"), WRITTEN)
def test_rows_are_written_to_every_kind_of_table(tmp_path: Path, file: str, answer: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE.format(file=file, answer=answer, scene="located"))
    recipe = recipe_of(path)
    table = write(tmp_path / "data", recipe, ("sides",), 2, 0)
    benchmark = RecipeBenchmark(recipe)
    found = list(benchmark.questions(Source(tmp_path / "data", ImageStore(tmp_path / "s"), "test", ("sides",))))
    assert [type(question) for question in found] == [Question, Question], found
    assert {str(question.target) for question in found if isinstance(question, Question)} == {"A", "B"}
    if table.suffix == ".jsonl":
        assert set(json.loads(table.read_text().splitlines()[0])) == {
            *("number", "picture", "asked", "offered", "right", "about"),
        }
    if table.suffix == ".parquet":
        assert pq.read_schema(table).names[0] == "about"


def test_a_scene_that_is_not_known_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE.format(file="a.tsv", answer="letter", scene="landscape"))
    with pytest.raises(UsageError, match="'landscape' is no scene; there are: attribute"):
        write(tmp_path / "data", recipe_of(path), ("sides",), 2, 0)


def test_rows_without_ids_are_told_apart_over_several_tables(tmp_path: Path) -> None:
    benchmark = load("hybrid.benchmarks", "realworldqa")
    for place, seed in enumerate((0, 1)):
        benchmark.generate(tmp_path / str(place), benchmark.card.sample_tasks, 2, seed)
        (table,) = (tmp_path / str(place)).rglob("*.parquet")
        (tmp_path / "data").mkdir(exist_ok=True)
        table.rename(tmp_path / f"data/test-0000{place}-of-00002.parquet")
    source = Source(tmp_path, ImageStore(tmp_path / "store"), "test", benchmark.card.sample_tasks)
    assert [question.id for question in benchmark.questions(source)] == ["0.row1", "0.row2", "1.row1", "1.row2"]


def test_a_unit_may_be_named_by_a_long_text(tmp_path: Path) -> None:
    asked = f'  question: "{"Look here. " * 40}In picture {{unit}}: {{question}}"'
    text = (FOLDER / "hrbench.yaml").read_text().replace("  cyclic: true", f"  cyclic: true\n{asked}")
    (tmp_path / "hrbench.yaml").write_text(text)
    recipe = recipe_of(tmp_path / "hrbench.yaml")
    write(tmp_path / "data", recipe, ("single",), 8, 0)
    source = Source(tmp_path / "data", ImageStore(tmp_path / "store"), "4k", ("single",))
    units = Counter(question.cluster for question in RecipeBenchmark(recipe).questions(source))
    assert sorted(units.values()) == [4, 4]
    assert all(len(unit) < 80 for unit in units)
