"""The annotated places of a row: boxes and points that a solver has to see, for each picture in its pixels."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.benchmarks.questions.from_python import write
from hybrid.core.images import ImageStore
from hybrid.core.types import AnnotatedPlace, Box, BrokenQuestion, Kind, Point, Question
from hybrid.log.questions import question_line, read_question
from hybrid.plugins.registry import load
from hybrid.running.data import mount, questions
from tests.hybrid.benchmarks.questions.test_rows import doubts_in

BOX = AnnotatedPlace(Box(4, 3, 8, 6))
# The pictures have 40 x 30 px.
INSIDE = [4, 3, 8, 6]


def places(table_writer: Any, evidence: object, mapping: str = "", **changed: object) -> tuple[AnnotatedPlace, ...]:
    (question,) = table_writer.sound(with_mapping(table_writer, mapping, evidence=evidence, **changed))
    annotated: tuple[AnnotatedPlace, ...] = question.evidence
    return annotated


def with_mapping(table_writer: Any, mapping: str, **changed: object) -> Path:
    path: Path = table_writer.table([table_writer.row(**changed)])
    path.with_suffix(".yaml").unlink(missing_ok=True)
    if mapping:
        path.with_suffix(".yaml").write_text(mapping)
    return path


@pytest.mark.parametrize(
    "evidence",
    [[INSIDE], INSIDE, "[[4, 3, 8, 6]]", "4, 3, 8, 6", [{"box": INSIDE}], {"image": 1, "box": "(4, 3, 8, 6)"}],
)
def test_a_box_is_written_in_several_ways(table_writer: Any, evidence: object) -> None:
    assert places(table_writer, evidence) == (BOX,)


def test_several_places_and_pictures(table_writer: Any) -> None:
    two = (BOX, AnnotatedPlace(Point(7, 9)))
    assert places(table_writer, [INSIDE, [7, 9]]) == two
    images = ["red.png", "red.png"]
    second = places(table_writer, [{"image": 2, "point": [7, 9]}], image=images)
    assert second == (AnnotatedPlace(Point(7, 9), 2),)


@pytest.mark.parametrize("evidence", [None, "", [], "[]"])
def test_a_row_without_an_annotation(table_writer: Any, evidence: object) -> None:
    assert places(table_writer, evidence) == ()


def test_the_frame_of_the_table_converts(table_writer: Any) -> None:
    assert places(table_writer, [[0.1, 0.1, 0.2, 0.2]], "frame: normalised\n") == (BOX,)
    assert places(table_writer, [[100, 100, 200, 200]], "frame: thousandths\n") == (BOX,)
    assert places(table_writer, [[4, 3, 4, 3]], "evidence_form: xywh\n") == (BOX,)
    (renamed,) = table_writer.sound(with_mapping(table_writer, "columns: {evidence: seen}\n", seen=[INSIDE]))
    assert renamed.evidence == (BOX,)


@pytest.mark.parametrize(
    ("evidence", "mapping", "reason"),
    [
        ([[4, 3, 4, 6]], "", "is not a box: write left, top, right, bottom"),
        ([[4, 3, 0, 6]], "evidence_form: xywh\n", "is not a box: write left, top, width, height"),
        ([[4, 3, 50, 6]], "", "is outside the picture of 40 x 30 px"),
        ([[4, 3, 8]], "", "is neither a box (four numbers) nor a point (two)"),
        ([[4, 3, 8, "x"]], "", "is neither a box (four numbers) nor a point (two)"),
        ([[4, 3, 8, None]], "", "is neither a box (four numbers) nor a point (two)"),
        ([{"image": 2, "box": INSIDE}], "", "there is no picture 2; the row has 1"),
        ([{"image": 0, "box": INSIDE}], "", "there is no picture 0; pictures are numbered from 1"),
        ([{"image": -1, "box": INSIDE}], "", "there is no picture -1; pictures are numbered from 1"),
        ([{"image": True, "box": INSIDE}], "", 'write {"image": 1, "box": [...]} or "point"'),
        ([{"box": INSIDE, "point": [1, 2]}], "", 'write {"image": 1, "box": [...]} or "point"'),
        ("in the upper left", "columns: {evidence: evidence}\n", "is not a list of boxes or points"),
        ({"box": None}, "", 'write {"image": 1, "box": [...]} or "point"'),
        ([INSIDE] * 1001, "", "1,001 annotated places; at most 1,000"),
        (7, "", "is not a list of boxes or points"),
        (["The sign says so."], "columns: {evidence: evidence}\n", "is neither a box (four numbers) nor a point (two)"),
        ("[[4, 3, 8", "", "is neither a box (four numbers) nor a point (two)"),
        ("[[4, 3, 8, 6], [4", "", "is not a list of boxes or points"),
        ([["left"], [4, 3, 8]], "", "is neither a box (four numbers) nor a point (two)"),
        ([[0.1, 0.1, 1.2, 0.2]], "frame: normalised\n", "as frame: normalised is outside the picture"),
    ],
)
def test_an_unusable_annotation_costs_its_row(table_writer: Any, evidence: object, mapping: str, reason: str) -> None:
    (question,) = table_writer.read_questions(with_mapping(table_writer, mapping, evidence=evidence))
    assert isinstance(question, BrokenQuestion)
    assert "questions.jsonl:1, column evidence: " in question.error
    assert reason in question.error


def test_of_several_pictures_the_annotation_says_which(table_writer: Any) -> None:
    path = table_writer.table([table_writer.row(image=["red.png", "red.png"], evidence=[INSIDE])])
    (question,) = table_writer.read_questions(path)
    assert "it is unclear which of the 2 pictures is meant" in question.error


def test_data_check_names_doubtful_annotations(table_writer: Any) -> None:
    (doubt,) = doubts_in(table_writer, with_mapping(table_writer, "", evidence=[[0.1, 0.1, 0.2, 0.2]]))
    assert "questions.jsonl:1, evidence: no number is larger than 1" in doubt
    assert "frame: normalised" in doubt
    assert doubts_in(table_writer, with_mapping(table_writer, "", evidence=[INSIDE])) == []


@pytest.mark.parametrize(
    "evidence",
    [
        "The sign says so.",
        "[citation needed] by whom?",
        ["The sign says so.", "In 1990 it was red."],
        "['The sign says so.', 'It is red.']",
        [["Page of a book", 0], ["Another page", 3]],
        [{"text": "The sign says so.", "page": 3}],
        {"sentences": ["The sign says so."]},
    ],
)
def test_an_unmapped_column_of_texts_is_not_read(table_writer: Any, evidence: object) -> None:
    assert places(table_writer, evidence) == ()
    (doubt,) = doubts_in(table_writer, with_mapping(table_writer, "", evidence=evidence))
    assert "questions.jsonl:1, column evidence: not used, as it contains no boxes or points" in doubt


def test_pictures_of_two_are_numbered_from_1(table_writer: Any) -> None:
    annotation = [{"image": 0, "box": INSIDE}]
    path = with_mapping(table_writer, "", image=["red.png", "red.png"], evidence=annotation)
    (question,) = table_writer.read_questions(path)
    assert "column evidence: there is no picture 0; pictures are numbered from 1" in question.error


def test_no_solver_gets_the_annotation_and_the_file_keeps_it(table_writer: Any) -> None:
    (question,) = table_writer.sound(with_mapping(table_writer, "", evidence=[INSIDE, [7, 9]]))
    assert question.without_target().evidence == ()
    assert read_question(question_line(question)) == question
    # Files of questions without annotations stay unchanged, byte for byte.
    assert b"evidence" not in question_line(question.without_target())


def test_answers_that_are_hidden_hide_the_annotation(table_writer: Any) -> None:
    path = with_mapping(table_writer, "", evidence=[INSIDE])
    source = mount(
        load("hybrid.benchmarks", "questions"),
        str(path),
        split="hidden",
        tasks=(),
        settings={},
        store=ImageStore(table_writer.folder / "store"),
    ).source
    (question,) = load("hybrid.benchmarks", "questions").questions(source)
    assert question.evidence == ()


def test_the_annotation_of_a_question_from_python(table_writer: Any) -> None:
    from_python = hybrid.Question("Which?", table_writer.png(), "two", choices=["one", "two"], evidence=[INSIDE])
    folder = write([from_python], table_writer.folder / "made")
    (question,) = table_writer.sound(folder)
    assert question.evidence == (BOX,)


def sampled(name: str, folder: Path) -> Iterator[Question]:
    bench = load("hybrid.benchmarks", name)
    bench.generate(folder, bench.card.sample_tasks, 1, 0)
    source = mount(bench, str(folder), split=None, tasks=(), settings={}, store=ImageStore(folder / "store")).source
    for question in questions(bench, source, None):
        assert isinstance(question, Question)
        yield question


def test_generated_questions_of_vstar_know_their_places(tmp_path: Path) -> None:
    """Generated V* questions have boxes that are read from a JSON file beside the picture, as in the data (left, top,
    width and height)."""
    samples = list(sampled("vstar", tmp_path))
    counts = {question.task: len(question.evidence) for question in samples}
    assert counts == {"direct_attributes": 1, "relative_position": 2}
    first = samples[0]
    (file,) = {json.loads(path.read_text())["bbox"][0][2] for path in tmp_path.glob("images/1_0.json")}
    place = first.evidence[0].place
    assert isinstance(place, Box)
    assert place.x1 - place.x0 == pytest.approx(file)
    assert 0 < place.x0 < place.x1 < first.images[0].width


def test_generated_questions_of_hrbench_know_their_places(tmp_path: Path) -> None:
    assert {question.task: bool(question.evidence) for question in sampled("hrbench", tmp_path)} == {
        "single": True,
        "cross": True,
    }


def test_a_broken_file_beside_a_picture_costs_its_row(table_writer: Any) -> None:
    (table_writer.folder / "red.json").write_text('{"bbox": [[4, 3, 4')
    path = with_mapping(table_writer, "evidence_beside: bbox\nevidence_form: xywh\n")
    (question,) = table_writer.read_questions(path)
    assert "red.json: is not JSON" in question.error
    (table_writer.folder / "red.json").write_text('{"bbox": [[4, 3, 4, 3]]}')
    (question,) = table_writer.sound(path)
    assert (question.evidence, question.kind) == ((BOX,), Kind.CHOICE)
    (table_writer.folder / "red.json").unlink()
    assert table_writer.sound(path)[0].evidence == ()
