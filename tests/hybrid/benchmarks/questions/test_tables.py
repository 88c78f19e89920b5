"""Files of questions with every file suffix and every form of an image: rows stay in order, and tasks stay separate."""

import json
from typing import Any

import pytest

from hybrid.core.errors import DataError
from hybrid.core.types import BrokenQuestion, Kind, Question
from tests.tables import cases


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_every_ending_gives_the_same_questions(table_writer: Any, ending: str) -> None:
    rows = [
        table_writer.row(id=f"q{number}", task=f"t{number % 2}", question=f"Which,\nof {number}?")
        for number in range(5)
    ]
    answers = table_writer.sound(table_writer.table(rows, f"questions{ending}"))
    assert [(item.id, item.task) for item in answers] == [
        ("q0", "t0"),
        ("q2", "t0"),
        ("q4", "t0"),
        ("q1", "t1"),
        ("q3", "t1"),
    ]
    assert answers[3].text == "Which,\nof 1?\n(A) one\n(B) two"
    assert (answers[0].target, answers[0].kind, answers[0].choices) == ("B", Kind.CHOICE, ("one", "two"))
    assert [(image.width, image.height) for image in answers[0].images] == [(40, 30)]
    assert answers == table_writer.sound(table_writer.folder), "a folder with one file is that file"


def test_every_form_of_an_image(table_writer: Any) -> None:
    blue = table_writer.base64()
    forms: list[object] = [
        "red.png",
        blue,
        f"data:image/png;base64,{blue}",
        [blue, "red.png"],
        json.dumps(["red.png", blue]),
    ]
    answers = table_writer.sound(
        table_writer.table([table_writer.row(id=str(number), image=form) for number, form in enumerate(forms)])
    )
    red = answers[0].images[0]
    other = answers[1].images[0]
    assert [item.images for item in answers] == [(red,), (other,), (other,), (other, red), (red, other)]


def vlm(built: Any, **changed: object) -> dict[str, object]:
    payload = {"index": 0, "image": built.base64(), "hint": "", "question": "Which?", "A": "red", "B": "blue", "C": ""}
    return payload | {"answer": "B", "category": "colour"} | changed


def test_the_tsv_of_vlmevalkit_is_read_as_it_stands(table_writer: Any) -> None:
    rows = [
        vlm(table_writer, hint="Look twice."),
        vlm(table_writer, index=1, image="0", hint="nan", C="green", answer="C"),
        vlm(table_writer, index=2, image=str([table_writer.base64(), table_writer.base64((1, 2, 3))])),
        vlm(table_writer, index=1000000, A="blue", B="red", answer="A"),
        vlm(table_writer, index=2000003, image="7"),
    ]
    first, other_rotated, second, third, broken = table_writer.read_questions(table_writer.table(rows, "bench.tsv"))
    assert first.text == "Hint: Look twice.\nWhich?\n(A) red\n(B) blue"
    assert (other_rotated.id, other_rotated.unit, other_rotated.target) == ("0#circ1", "picture of 0", "A")
    assert (second.choices, second.target, second.images) == (("red", "blue", "green"), "C", first.images)
    assert second.text.startswith("Which?")
    assert len(third.images) == 2
    assert broken.id == "2000003"
    assert (
        "bench.tsv:6, column image: '7' is neither the path of an image, nor base64, nor the id of a row"
        in broken.error
    )


def test_a_group_and_a_cluster(table_writer: Any) -> None:
    rows = [
        table_writer.row(group={"size": "small", "n": 3}, cluster="pair 1", task="a"),
        table_writer.row(id="q2", group="plain", cluster="pair 2", task="a"),
        table_writer.row(id="q3", cluster="pair 1", task="a"),
    ]
    answers = table_writer.sound(table_writer.table(rows))
    assert [(item.id, item.unit) for item in answers] == [("q1", "pair 1"), ("q3", "pair 1"), ("q2", "pair 2")]
    assert [dict(entry.groups) for entry in answers] == [{"size": "small", "n": "3"}, {}, {"group": "plain"}]
    assert [value.id for value in table_writer.sound(table_writer.table(rows), limit=1)] == ["q1", "q3"], (
        "a limit splits no cluster"
    )


def test_a_category_beside_a_task_is_a_group(table_writer: Any) -> None:
    (question,) = table_writer.sound(table_writer.table([table_writer.row(task="a", category="b")]))
    assert (question.task, question.groups) == ("a", {"category": "b"})
    (other,) = table_writer.sound(table_writer.table([table_writer.row(category="b")]))
    assert (other.task, other.groups) == ("b", {})


def test_a_damaged_line_costs_itself(table_writer: Any) -> None:
    path = table_writer.table([table_writer.row(), table_writer.row(id="q2")])
    path.write_bytes(
        b"\xef\xbb\xbf" + path.read_bytes() + b"{\n\xff\xfe\n[1]\n\n" + json.dumps(table_writer.row(id="q3")).encode()
    )
    result = table_writer.read_questions(path)
    assert [item.id for item in result if isinstance(item, Question)] == ["q1", "q2", "q3"]
    errors = [entry.error for entry in result if isinstance(entry, BrokenQuestion)]
    assert [error.split(": ")[0].rpartition(":")[2] for error in errors] == ["3", "4", "5"]


@pytest.mark.parametrize(*cases(__file__, "test_a_file_that_is_none_is_refused_as_a_whole"))
def test_a_file_that_is_none_is_refused_as_a_whole(table_writer: Any, name: str, content: str, message: str) -> None:
    path = table_writer.folder / name
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        table_writer.read_questions(path)


def test_a_table_without_a_column_of_images_names_the_columns_that_it_has(table_writer: Any) -> None:
    (table_writer.folder / "questions.csv").write_text("img,question,answer\nred.png,Which colour?,red\n")
    (question,) = table_writer.read_questions(table_writer.folder / "questions.csv")
    assert question.error.endswith(
        "questions.csv:2: no image, because no column is certain to be the image; write a mapping "
        "(`columns: {image: NAME}`); available: img, question, answer"
    )


def test_a_folder_has_one_file_of_questions(table_writer: Any) -> None:
    with pytest.raises(DataError, match="contains no file of questions"):
        table_writer.read_questions(table_writer.folder)
    table_writer.table([table_writer.row()])
    table_writer.table([table_writer.row()], "questions.csv")
    with pytest.raises(DataError, match=r"holds questions.jsonl and questions.csv: keep one"):
        table_writer.read_questions(table_writer.folder)


def test_a_mapping_beside_the_file_or_named(table_writer: Any, tmp_path: Any) -> None:
    row = {"qid": "x", "picture": "red.png", "text": "Open\n(a) yes, it is (b) not at all", "label": "(b)"}
    path = table_writer.table([row], "bench.jsonl")
    mapping = "columns: {id: qid, image: picture, question: text, choices: text, answer: label}\n"
    (tmp_path / "m.yaml").write_text(mapping + 'split_choices: "(a) X (b) Y"\noption: "{letter}. {text}"\n')
    (answer,) = table_writer.sound(path, settings={"mapping": str(tmp_path / "m.yaml")})
    (table_writer.folder / "bench.yaml").write_text((tmp_path / "m.yaml").read_text())
    assert table_writer.sound(path) == [answer]
    assert (answer.text, answer.target) == ("Open\nA. yes, it is\nB. not at all", "B")
    (table_writer.folder / "bench.yaml").write_text(
        f'{mapping}prompt: "{{question}}\\n{{hint}}\\n{{choices}}!"\nsplit_choices: "(a) X (b) Y"\n'
    )
    assert table_writer.sound(path)[0].text == "Open\n(A) yes, it is\n(B) not at all!", (
        "no line is left where there is no hint"
    )
    (table_writer.folder / "bench.yaml").write_text("columns: {id: nope}\n")
    with pytest.raises(DataError, match=r"the mapping's id: no column 'nope'"):
        table_writer.read_questions(path)
