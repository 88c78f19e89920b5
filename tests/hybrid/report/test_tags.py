"""Files of tags: every tag is read, and an error names the row."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError
from hybrid.report.payload import Tag
from hybrid.report.tags import read_tags, tag_tables

WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
TAGS = st.lists(
    st.builds(Tag, WORDS, WORDS.filter(bool), WORDS, WORDS.filter(bool), WORDS), max_size=6, unique=True
).map(tuple)
ROW = {"benchmark": "blink", "question": "q1", "solver": "mllm", "tag": "misread", "note": "n"}


@given(TAGS)
def test_every_tag_is_read(tmp_path: Path, tags: tuple[Tag, ...]) -> None:
    (tmp_path / "tags.json").write_text(json.dumps({"format": 1, "tags": [asdict(tag) for tag in tags]}))
    assert read_tags(tmp_path / "tags.json") == tags


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "expected an object with a list `tags`"),
        ({"format": 2, "tags": []}, "expected tags of format 1, found 2"),
        ({"format": 1, "tags": {}}, "expected an object with a list `tags`"),
        ({"format": 1, "tags": [ROW, "x"]}, "row 2: expected an object, found str"),
        ({"format": 1, "tags": [ROW, {**ROW, "colour": "red"}]}, "row 2: there is no field 'colour'"),
        ({"format": 1, "tags": [{**ROW, "tag": 3}]}, "row 1: tag must be a text, found int"),
        ({"format": 1, "tags": [{"benchmark": "blink", "solver": "mllm", "tag": "t"}]}, "row 1: question must be a"),
        ({"format": 1, "tags": [{**ROW, "question": ""}]}, "row 1: question is empty"),
        ({"format": 1, "tags": [{**ROW, "tag": "", "note": ""}]}, "row 1: tag and note are empty"),
        ({"format": 1, "tags": [ROW, {**ROW, "note": "other"}, ROW]}, "row 3: the same as row 1"),
    ],
)
def test_what_is_no_file_of_tags_is_named(tmp_path: Path, content: Any, told: str) -> None:
    file = tmp_path / "tags.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DataError) as raised:
        read_tags(file)
    assert told in str(raised.value)
    assert str(raised.value).startswith(str(file))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12345"), st.sampled_from("xy")), unique=True))
def test_the_tables_count_answers(given_tags: list[tuple[str, str, str]]) -> None:
    tags = [Tag("blink", question, solver, tag) for tag, question, solver in given_tags]
    tasks = {question: f"task {int(question) % 2}" for question in "12345"}
    by_task, by_solver = tag_tables(tags, tasks)
    assert by_task.rows[-1][-1] == by_solver.rows[-1][-1] == str(len({(q, s) for _, q, s in given_tags}))
    for table, column_of in ((by_task, lambda q, s: tasks[q]), (by_solver, lambda q, s: s)):
        for row in table.rows[:-1]:
            for head, cell in zip(table.names[1:-1], row[1:-1], strict=True):
                mine = {(q, s) for t, q, s in given_tags if t == row[0] and column_of(q, s) == head}
                assert int(cell.split()[0]) == len(mine)
