"""The effects of a study: the cells that each effect compares, effects that add up, and names of cells."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.types import ImageRef, Json, Question, Reply, Step
from hybrid.log.folder import RunFolder
from hybrid.scoring.attempt_facts import lacks_pictures, questions_with_pictures
from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.effects import SECTION
from hybrid.scoring.study_tables import study_tables
from tests.hybrid.scoring.sections.rows import by_quantity

ALONE, RESULT, LOOP = "wwwrrw" * 6, "rrwrrw" * 6, "rrrrrw" * 6
TEXT, PICTURES, ORACLE = "rrwrrw" * 6, "wwwrrw" * 6, "rrrrrr" * 6


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory, synthetic_runs: Any) -> Comparison:
    """A study in four runs over 36 puzzles."""
    folder = tmp_path_factory.mktemp("study")

    def run(name: str, messages: Mapping[str, str], output: str = "real", show: str = "both") -> Path:
        letters = {solver: {"Jigsaw": value} for solver, value in messages.items()}
        path: Path = synthetic_runs.from_letters(folder / name, letters, output, show, synthetic_runs.with_picture).path
        return path

    paths = [
        run("with-tools", {"controller": LOOP, "mllm": ALONE, "result_only": RESULT}),
        run("oracle", {"controller": ORACLE}, "oracle"),
        run("text", {"controller": TEXT}, show="text"),
        run("pictures", {"controller": PICTURES}, show="image"),
    ]
    return compare(compare_paths(paths).solvers)


def test_each_effect_is_the_difference_of_its_cells(cells: Comparison) -> None:
    rows = by_quantity(tuple(SECTION.rows(cells)))
    assert {name: round(36 * (row.value or 0)) for name, row in rows.items()} == {
        "result effect": 12,
        "loop effect": 6,
        "oracle": 6,
        "text alone": -6,
        "pictures alone": -18,
    }
    assert {(row.a, row.b) for row in rows.values()} >= {
        ("mllm", "result_only"),
        ("result_only", "controller"),
        ("controller", "controller [findings as text]"),
    }
    assert all(row.p is not None and row.p_holm is not None and row.p_holm >= row.p for row in rows.values())


def test_a_cell_is_no_contestant_of_its_own(cells: Comparison) -> None:
    (group,) = cells.groups
    assert group.hybrid.solver == "controller"
    assert group.result_only is not None


def test_the_tables_of_a_study_fit_eighty_columns(cells: Comparison) -> None:
    from hybrid.display.tables import RENDERERS
    from hybrid.scoring.sections import results

    tables = study_tables(results(cells))
    first_words = ["gain", "effects", "equal", "only", "calls", "room,", "calls", "tool"]
    assert [table.title.split(" ")[0] for table in tables] == first_words
    assert all(len(line) <= 80 for table in tables for line in RENDERERS["narrow"](table).splitlines())


@pytest.mark.parametrize("pictured", [True, False])
def test_the_form_of_findings_is_tested_only_where_a_tool_made_a_picture(
    pictured: bool, tmp_path: Path, synthetic_runs: Any
) -> None:
    def calling(solver: str, question: Question, reply: Reply) -> Reply:
        images = (ImageRef("tool:1", question.images[0]),) if pictured and question.id == "val_Jigsaw_3" else ()
        step = Step("tool", "jigsaw", "a finding", 0.1, None, {"images": ["img:1"], "args": {}}, images)
        return reply if solver == "mllm" else replace(reply, steps=(step,))

    def run(name: str, show: str, **message: str) -> Path:
        letters = {solver: {"Jigsaw": value} for solver, value in message.items()}
        path: Path = synthetic_runs.from_letters(tmp_path / name, letters, "real", show, calling).path
        return path

    main = run("with-tools", "both", controller=LOOP, mllm=ALONE)
    paths = [main, run("text", "text", controller=TEXT), run("pictures", "image", controller=PICTURES)]
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths(paths).solvers))))
    assert set(rows) == ({"text alone", "pictures alone"} if pictured else set())
    assert lacks_pictures(RunFolder(main), "controller") is not pictured
    assert lacks_pictures(RunFolder(main), "mllm"), "where no tool answered there is nothing to show as pictures"


def test_pictures_alone_are_compared_where_each_output_has_a_picture(tmp_path: Path, synthetic_runs: Any) -> None:
    """The effect of pictures alone is measured where each output has a picture. Of six questions, two have only outputs
    with pictures, one also has an output without a picture, and three have only outputs without."""

    def calling(solver: str, question: Question, reply: Reply) -> Reply:
        picture = (ImageRef("tool:1", question.images[0]),)
        number = int(question.id.rpartition("_")[2])
        pictures_by_number: dict[int, list[tuple[ImageRef, ...]]] = {
            1: [picture],
            2: [picture, picture],
            3: [picture, ()],
        }
        call: dict[str, Json] = {"images": ["img:1"], "args": {}}
        steps = tuple(
            Step("tool", "crop", "a finding", 0.1, None, call, images)
            for images in pictures_by_number.get(number, [()])
        )
        return reply if solver == "mllm" else replace(reply, steps=steps)

    def run(name: str, show: str, **letters: str) -> Path:
        answers = {solver: {"Jigsaw": value} for solver, value in letters.items()}
        path: Path = synthetic_runs.from_letters(tmp_path / name, answers, "real", show, calling).path
        return path

    main = run("with-tools", "both", controller="rrrrrr", mllm="wwwwww")
    paths = [main, run("text", "text", controller="rrrwww"), run("pictures", "image", controller="rwwwww")]
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths(paths).solvers))))
    assert (rows["pictures alone"].value, rows["pictures alone"].n) == (-0.5, 2)
    note = "pictures alone: on the questions where each tool output has a picture"
    assert rows["pictures alone"].note.endswith(f"; {note}")
    assert (rows["text alone"].value, rows["text alone"].n) == (-0.5, 6)
    assert note not in rows["text alone"].note
    assert questions_with_pictures(RunFolder(main), "controller") == {"val_Jigsaw_1", "val_Jigsaw_2"}
