"""Recipes have a strict schema, are found by name, take metrics from a fixed list, and contain no code."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hybrid.benchmarks.questions.schema import layout_of, recipe_of
from hybrid.benchmarks.questions.statistics import parse_metric, summed
from hybrid.cli import cli
from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import Outcome, Question, Score
from hybrid.plugins.registry import load, module_of, names
from hybrid.plugins.registry import recipe_of as file_of
from hybrid.scoring.published import published
from hybrid.serving.sources import code_hash_of_plugin
from tests.tables import cases, stored

RECIPE = stored(__file__, "RECIPE")


def row(built: Any, **changed: object) -> dict[str, object]:
    payload = {"qid": "q1", "picture": "red.png", "text": "Which?", "A": "x", "B": "y", "C": "z"}
    return payload | {"label": "B", "category": "near", "source": "s"} | changed


def test_a_recipe_is_a_benchmark(table_writer: Any, recipe: Callable[[str, str], str]) -> None:
    name = recipe("mine", RECIPE)
    table_writer.table([row(table_writer), row(table_writer, qid="q2", category="far", label="C")], "test.csv")
    near, far = table_writer.sound(table_writer.folder, name)
    assert (near.text, near.target, near.groups, far.task) == ("Which?\nA. x\nB. y\nC. z", "B", {"source": "s"}, "far")
    bench = load("hybrid.benchmarks", name)
    assert name in names("hybrid.benchmarks")
    assert dict(bench.card.tasks) == {"near": 2, "far": 1}
    assert bench.card.headline == ("accuracy_macro.task.source",)
    assert bench.card.sources_of(("near",)) == ("COCO",)
    assert bench.card.unchecked == "the number of rows"
    assert bench.hub_files("val", ()) == ("val.csv", "pictures/*")
    (cell,) = published(name)
    assert (cell.who, cell.value, cell.metric, cell.split, cell.n) == ("GPT", 25.0, bench.card.headline[0], "test", "3")
    assert load("hybrid.benchmarks", name) is bench


def test_a_recipe_has_no_code_and_what_decides_its_questions_is_among_the_texts(
    table_writer: Any, recipe: Callable[[str, str], str]
) -> None:
    name = recipe("mine", RECIPE)
    texts = dict(load("hybrid.benchmarks", name).texts)
    assert code_hash_of_plugin("hybrid.benchmarks", name) is None
    assert module_of("hybrid.benchmarks", name) == "hybrid.benchmarks.questions.recipe"
    assert file_of("hybrid.benchmarks", name) is not None
    recipe("mine", RECIPE.replace("GPT", "another model"))
    assert load("hybrid.benchmarks", name).texts == texts, "a published row decides no question"
    recipe("mine", RECIPE.replace('"{letter}. {text}"', '"[{letter}] {text}"'))
    assert load("hybrid.benchmarks", name).texts != texts
    with pytest.raises(UsageError, match="is a recipe, whose prompt is in its file: copy the file"):
        load("hybrid.benchmarks", name).reworded(Path("mine.toml"))


@pytest.mark.parametrize(*cases(__file__, "test_the_schema_is_strict"))
def test_the_schema_is_strict(tmp_path: Path, changed: tuple[str, str], message: str | None) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE.replace(*changed))
    if message is None:
        assert recipe_of(path).name == "mine"
        return
    with pytest.raises(UsageError, match=message) as refused:
        recipe_of(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("text", ["", "- a", "a: [", "columns: {id: x}\ntitle: T\n", "kind: choice\nkind: text", "\0"])
def test_a_mapping_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"m\.yaml"):
        layout_of(path)


def test_a_broken_recipe_from_outside_is_left_out_of_lists_and_says_why(
    recipe: Callable[[str, str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    from hybrid.plugins.registry import load_each

    name = recipe("broken", "columns: {id: x}\n")
    assert name not in dict(load_each("hybrid.benchmarks"))
    with pytest.raises(UsageError, match=r"broken.yaml, line 1: a recipe needs"):
        load("hybrid.benchmarks", name)


def scored(identity: str, correct: float, task: str = "t", cluster: str = "", **groups: str) -> Score:
    return Score(identity, task, correct, Outcome.ANSWERED, groups=groups, cluster=cluster)


def values(words: str, scores: list[Score]) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in summed([parse_metric(words)], scores)}


def test_a_unit_is_right_when_all_of_it_is_and_missing_when_one_failed() -> None:
    scores = [
        *(scored("1", 1.0, cluster="a"), scored("2", 1.0, cluster="a")),
        *(scored("3", 1.0, cluster="b"), scored("4", 0.0, cluster="b")),
        *(scored("5", 1.0), scored("5#circ1", 1.0)),
        *(scored("6", 1.0, cluster="c"), Score("7", "t", None, Outcome.OUTAGE, cluster="c")),
    ]
    assert values("all_right", scores) == {"all_right": pytest.approx(2 / 3)}


def test_groups_too_uneven_to_weigh_are_refused() -> None:
    sizes = (11, 13, 17, 19)
    scores = [scored(f"{a}.{b}", 1.0, x=str(a), y=str(b)) for a in sizes for b in range(a)]
    with pytest.raises(DataError, match="least common multiple"):
        values("accuracy over x/y", scores)


def test_without_its_tables_a_folder_is_refused(table_writer: Any, recipe: Callable[[str, str], str]) -> None:
    with pytest.raises(DataError, match=r"contains no Mine data: expected test.csv"):
        table_writer.read_questions(table_writer.folder, recipe("mine", RECIPE))
    table_writer.table([row(table_writer)], "val.csv")
    assert isinstance(table_writer.read_questions(table_writer.folder, "mine", split="val")[0], Question)


def many(built: Any, near: int, far: int, **more: object) -> Path:
    rows = [row(built, qid=f"n{number}", **more) for number in range(near)]
    built.table([*rows, *(row(built, qid=f"f{number}", category="far", **more) for number in range(far))], "test.csv")
    return Path(built.folder)


@pytest.mark.parametrize(*cases(__file__, "test_data_of_ones_own_are_not_called_a_benchmark"))
def test_data_of_ones_own_are_not_called_a_benchmark(
    table_writer: Any,
    recipe: Callable[[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
    near: int,
    far: int,
    more: Mapping[str, object],
    message: str | None,
) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(table_writer.folder.parent / "home"))
    name = recipe("mine", RECIPE.replace("{near: 2, far: 1}", "{near: 8, far: 4}"))
    data, out = str(many(table_writer, near, far, **more)), str(table_writer.folder.parent / "run")

    def run(*words: str) -> Result:
        items = ["run", name, "--data", data, "--solver", "chance,specialist", "--out", out]
        return CliRunner().invoke(cli, [*items, "--tables", "wide", *words])

    first = run()
    if message is None:
        assert first.exit_code == 0, first.output
    else:
        assert isinstance(first.exception, UsageError)
        assert f"this may not be Mine: it has {message}. For questions of your own, use hybrid run FILE" in str(
            first.exception
        )
        second = run("--allow", "partial")
        assert f"partial: {message}" in second.output
    missing = [f"{n} of {all_} of {task}" for n, all_, task in ((near, 8, "near"), (far, 4, "far")) if 0 < n < all_]
    text = " ".join((first if message is None else second).output.split())
    assert ("the data hold" in text) == bool(missing)
    assert ", ".join(missing) in text


def test_a_folder_of_ones_own_is_told_how_to_be_asked_before_a_benchmark_is_guessed(table_writer: Any) -> None:
    (table_writer.folder / "data").mkdir()
    table_writer.table([table_writer.row()], "data/test-0.parquet")
    with pytest.raises(DataError, match=r"say: hybrid run .*data/test-0\.parquet"):
        table_writer.read_questions(table_writer.folder)
