"""Broken images and broken tables in every benchmark: each is used or named, and none costs another question."""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.benchmarks._shared import rows
from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Question
from hybrid.plugins.registry import load
from hybrid.running.data import fingerprint, mount, questions
from tests.reliability import broken_images as images
from tests.tables import cases

CORPUS: dict[str, Any] = images.CORPUS
NAMES = tuple(CORPUS)
NUMBERED = tuple(enumerate(NAMES))


def read(name: str, folder: Path, store: ImageStore, **selected: str) -> dict[str, Question | BrokenQuestion]:
    """Return every question by id, after computing the fingerprint of the files that define them."""
    benchmark = load("hybrid.benchmarks", name)
    source = mount(benchmark, str(folder), split=None, tasks=(), settings=selected, store=store).source
    fingerprint(benchmark.files(source), source.folder)
    return {question.id: question for question in questions(benchmark, source, None)}


def broken(results: dict[str, Question | BrokenQuestion]) -> dict[str, str]:
    """Return reasons of the broken questions by id; each on one line of bounded length."""
    faults = {question.id: question.error for question in results.values() if isinstance(question, BrokenQuestion)}
    assert all("\n" not in fault and len(fault) < 1000 for fault in faults.values())
    return faults


def sound(results: dict[str, Question | BrokenQuestion]) -> set[str]:
    return {question.id for question in results.values() if isinstance(question, Question)}


def table(path: Path, rows: Sequence[dict[str, Any]], group: int = 2) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path, row_group_size=group)
    return path


def blink_rows(task: str, pictures: Sequence[bytes]) -> list[dict[str, Any]]:
    return [
        {
            "idx": f"val_{task}_{number}",
            "prompt": "Is it? (A) yes (B) no",
            "choices": ["yes", "no"],
            "answer": "(A)",
            "image_1": {"bytes": data, "path": "a.png"},
        }
        for number, data in enumerate(pictures)
    ]


def hvs_rows(pictures: Sequence[bytes], task: str = "Q2") -> list[dict[str, Any]]:
    return [
        {
            "index": number,
            "image": {"bytes": data, "path": None},
            "question": "How many? Which? [A] the dog [B] the cat",
            "question_type": task,
            "answer": "3" if task == "Q2" else "A",
            "real_image_path": f"{number}.jpg",
        }
        for number, data in enumerate(pictures)
    ]


def sap_rows(pictures: Sequence[bytes]) -> list[dict[str, Any]]:
    options = ["red", "green", "blue", "grey", "Sorry, I can't help with it."]
    return [
        {"question": f"Colour {n}?", "options": options, "answer": "A", "image": {"bytes": data, "path": None}}
        for n, data in enumerate(pictures)
    ]


def mvp_row(number: int) -> dict[str, Any]:
    return {
        "question_id": number,
        "id": number,
        "type": "y/n-s",
        "level": "low",
        "image": f"Single_Images/{number}_s.jpg",
        "question": "Is it?",
        "answer": "yes",
    }


def mvp_folder(folder: Path, pictures: Sequence[bytes]) -> Path:
    """Write yes/no questions, one per picture, without rotations, which other tests cover."""
    (folder / "Images" / "Single_Images").mkdir(parents=True)
    for number, data in enumerate(pictures):
        (folder / "Images" / "Single_Images" / f"{number}_s.jpg").write_bytes(data)
    lines = [json.dumps(mvp_row(number)) for number in range(len(pictures))]
    (folder / "all_questions.json").write_text("\n".join(lines) + "\n")
    return folder


def actiview_folder(folder: Path, pictures: Sequence[bytes]) -> Path:
    """Write one question per picture, used for all seven pictures of its row."""
    (folder / "asset").mkdir(parents=True)
    (folder / "images").mkdir()
    rows = []
    for number, data in enumerate(pictures):
        (folder / "images" / f"{number}.jpg").write_bytes(data)
        row = {"id": f"q{number}", "category": "counting", "question": "How many?", "options": ["1", "2"], "answer": 0}
        rows.append({**row, "images": [f"images/{number}.jpg"] * 7})
    (folder / "asset" / "data.json").write_text(json.dumps({"data": rows}))
    (folder / "asset" / "groundtruth_views.json").write_text(json.dumps([[1]] * len(rows)))
    return folder


def blink_folder(folder: Path, pictures: Sequence[bytes]) -> Path:
    table(folder / "Counting" / "val-0.parquet", blink_rows("Counting", pictures))
    return folder


def hvs_folder(folder: Path, pictures: Sequence[bytes]) -> Path:
    table(folder / "data" / "test-0.parquet", hvs_rows(pictures))
    return folder


def sap_folder(folder: Path, pictures: Sequence[bytes]) -> Path:
    table(folder / "BasicVisQA.parquet", sap_rows(pictures))
    return folder


# For each benchmark: the builder of a folder with one question per picture, the questions' ids, and the settings to
# read the folder.
MADE: dict[str, tuple[Callable[[Path, Sequence[bytes]], Path], Callable[[int], str], dict[str, str]]] = {
    "blink": (blink_folder, lambda n: f"val_Counting_{n}", {}),
    "hvsbench": (hvs_folder, lambda n: f"Q2_{n}", {}),
    "mm_sap": (sap_folder, lambda n: f"basic_{n + 1:04d}", {"shuffles": "stored"}),
    "mvp_bench": (mvp_folder, str, {"mcq": "vanilla"}),
    "actiview": (actiview_folder, lambda n: f"q{n}", {}),
}


@pytest.mark.parametrize("name", MADE)
def test_a_broken_image_costs_its_own_question_and_no_other(tmp_path: Path, name: str) -> None:
    build, identity, selected = MADE[name]
    store = ImageStore(tmp_path / "store")
    parsed = read(name, build(tmp_path / "data", [CORPUS[item].data for item in NAMES]), store, **selected)
    faults = broken(parsed)
    assert set(parsed) == {identity(number) for number, _ in NUMBERED}
    assert {entry for number, entry in NUMBERED if identity(number) in faults} == set(images.BROKEN)
    for number, value in NUMBERED:
        question = parsed[identity(number)]
        if isinstance(question, Question):
            image = question.images[0]
            assert (image.width, image.height) == CORPUS[value].size, value
        else:
            assert re.search(r"(row|line) \d+", question.error), question.error


@pytest.mark.parametrize("name", images.SOUND)
def test_a_sound_image_decodes_to_rgb_of_the_size_that_was_said(tmp_path: Path, name: str) -> None:
    store = ImageStore(tmp_path / "store")
    image = store.put(CORPUS[name].data, name)
    pixels = store.pixels(image)
    assert (pixels.shape, pixels.dtype) == ((image.height, image.width, 3), "uint8")


GOOD = [CORPUS["PNG"].data] * 6


@pytest.fixture
def blink(tmp_path: Path) -> Path:
    """Two tasks of six rows each, in row groups of two."""
    table(tmp_path / "data" / "Counting" / "val-0.parquet", blink_rows("Counting", GOOD))
    table(tmp_path / "data" / "Spatial_Relation" / "val-0.parquet", blink_rows("Spatial_Relation", GOOD))
    return tmp_path / "data"


def test_a_file_with_a_row_group_past_the_limit_costs_its_rows(
    blink: Path, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = blink / "Counting" / "val-0.parquet"
    table(path, [{**row, "prompt": "A" * 3000} for row in blink_rows("Counting", GOOD)])
    metadata = pq.ParquetFile(path).metadata
    largest = max(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    assert len(sound(read("blink", blink, store))) == 12
    monkeypatch.setattr(rows, "MAX_GROUP_BYTES", largest - 1)
    results = read("blink", blink, store)
    assert {identity.split("_")[1] for identity in sound(results)} == {"Spatial"}
    assert [fault.partition("parquet ")[2] for fault in broken(results).values()] == [
        f"has a row group of {largest:,} bytes; at most {largest - 1:,} are read: write it with fewer rows in a group"
    ]


def spoil_pages(path: Path, column: str, group: int) -> None:
    """Overwrite every page of a column in a row group (from 0)."""
    metadata = pq.ParquetFile(path).metadata.row_group(group)
    chunks = [metadata.column(place) for place in range(metadata.num_columns)]
    data = bytearray(path.read_bytes())
    for chunk in chunks:
        if chunk.path_in_schema.split(".")[0] == column:
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("column", ["prompt", "choices", "answer", "image_1"])
def test_a_page_that_does_not_decode_costs_its_rows(blink: Path, store: ImageStore, column: str) -> None:
    spoil_pages(blink / "Counting" / "val-0.parquet", column, 1)
    parsed = read("blink", blink, store)
    assert len(parsed) == 12
    faults = broken(parsed)
    assert set(faults) == {"val_Counting_2", "val_Counting_3"}
    assert f"val-0.parquet, row 3, column {column}: cannot be read (" in faults["val_Counting_2"]


def test_a_page_of_ids_that_does_not_decode_costs_its_rows(blink: Path, store: ImageStore) -> None:
    spoil_pages(blink / "Counting" / "val-0.parquet", "idx", 2)
    parsed = read("blink", blink, store)
    assert len(parsed) == 12
    assert set(broken(parsed)) == {f"Counting:Counting_val-0.parquet_row_{row}" for row in (5, 6)}


def spoilt(kind: str, path: Path) -> None:
    """Make one file of a benchmark unusable."""
    data = path.read_bytes()
    rows = pq.read_table(path)
    match kind:
        case "empty":
            path.write_bytes(b"")
        case "truncated":
            path.write_bytes(data[: len(data) // 2])
        case "without its first half":
            path.write_bytes(data[len(data) // 2 :])
        case "text":
            path.write_text("idx,prompt\n1,2\n")
        case "missing column":
            pq.write_table(rows.drop_columns(["answer"]), path)
        case "renamed column":
            pq.write_table(rows.rename_columns([f"{name}_" for name in rows.column_names]), path)


SPOILT = ("empty", "truncated", "text", "missing column", "renamed column")


@pytest.mark.parametrize("kind", SPOILT)
def test_a_file_of_several_that_cannot_be_used_is_one_named_failure(blink: Path, store: ImageStore, kind: str) -> None:
    spoilt(kind, blink / "Counting" / "val-0.parquet")
    parsed = read("blink", blink, store)
    assert sound(parsed) == {f"val_Spatial_Relation_{n}" for n in range(6)}
    (identity,) = broken(parsed)
    assert parsed[identity].task == "Counting"
    assert identity == "Counting:Counting_val-0.parquet"
    assert str(blink / "Counting" / "val-0.parquet") in broken(parsed)[identity]


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize(*cases(__file__, "test_the_only_file_that_cannot_be_used_is_one_line"))
def test_the_only_file_that_cannot_be_used_is_one_line(
    tmp_path: Path, store: ImageStore, name: str, file: str, kind: str
) -> None:
    build, _, selected = MADE[name]
    folder = build(tmp_path / "data", GOOD)
    spoilt(kind, folder / file)
    with pytest.raises(DataError, match=re.escape(str(folder / file))) as caught:
        read(name, folder, store, **selected)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", SPOILT)
def test_a_second_file_of_hvsbench_that_cannot_be_used_is_missing_from_each_type(
    tmp_path: Path, store: ImageStore, kind: str
) -> None:
    folder = hvs_folder(tmp_path / "data", GOOD)
    table(folder / "data" / "test-1.parquet", hvs_rows(GOOD, "Q5"))
    spoilt(kind, table(folder / "data" / "test-2.parquet", hvs_rows(GOOD, "Q5")))
    parsed = read("hvsbench", folder, store)
    assert sound(parsed) == {f"{task}_{number}" for task in ("Q2", "Q5") for number in range(6)}
    assert set(broken(parsed)) == {f"{task}:data_test-2.parquet" for task in ("Q2", "Q5")}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_second_set_of_mm_sap_that_cannot_be_used_is_one_named_failure(
    tmp_path: Path, store: ImageStore, kind: str
) -> None:
    folder = sap_folder(tmp_path / "data", GOOD)
    spoilt(kind, table(folder / "KnowVisQA.parquet", sap_rows(GOOD)))
    parsed = read("mm_sap", folder, store, shuffles="stored")
    assert sound(parsed) == {f"basic_{number:04d}" for number in range(1, 7)}
    assert set(broken(parsed)) == {"KnowVisQA:KnowVisQA.parquet"}


CELLS = {
    "null id": {"idx": None},
    "null prompt": {"prompt": None},
    "null choices": {"choices": None},
    "null answer": {"answer": None},
    "null image": {"image_1": None},
    "an id that was there": {"idx": "val_Counting_0"},
    "an id of another task": {"idx": "val_Jigsaw_3"},
    "one choice": {"choices": ["yes"]},
    "27 choices": {"choices": [str(n) for n in range(27)]},
    "an answer that is no choice": {"answer": "(C)"},
    "a path of NULs": {"image_1": {"bytes": None, "path": "\0"}},
    "a text without end": {"prompt": "x" * 1_000_000},
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_that_cannot_be_used_costs_its_row(blink: Path, store: ImageStore, cell: str) -> None:
    rows = blink_rows("Counting", GOOD)
    rows[3] = {**rows[3], **CELLS[cell]}
    table(blink / "Counting" / "val-0.parquet", rows)
    parsed = read("blink", blink, store)
    (fault,) = broken(parsed).values()
    assert "val-0.parquet, row 4" in fault
    assert len(sound(parsed)) == 11


def test_26_choices_are_a_question(blink: Path, store: ImageStore) -> None:
    rows = blink_rows("Counting", GOOD)
    rows[3] |= {"choices": [str(n) for n in range(26)], "answer": "(Z)"}
    table(blink / "Counting" / "val-0.parquet", rows)
    assert broken(read("blink", blink, store)) == {}


@pytest.mark.parametrize(("column", "values"), [("idx", [1, 2]), ("answer", [1.5, math.nan]), ("prompt", [True, None])])
def test_a_column_of_another_type_names_each_row(
    blink: Path, store: ImageStore, column: str, values: list[Any]
) -> None:
    rows = [{**row, column: values[place % 2]} for place, row in enumerate(blink_rows("Counting", GOOD))]
    table(blink / "Counting" / "val-0.parquet", rows)
    parsed = read("blink", blink, store)
    faults = enumerate(broken(parsed).values(), 1)
    assert all(f"row {row}, column {column}: expected text" in fault for row, fault in faults)
    assert (len(broken(parsed)), len(sound(parsed))) == (6, 6)


def test_text_that_is_not_utf_8_costs_its_row(blink: Path, store: ImageStore) -> None:
    path = blink / "Counting" / "val-0.parquet"
    full = pq.read_table(path)
    raw = pa.array([b"sound", b"sound", b"\xff\xfe\x80", b"sound", b"sound", b"sound"])
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    pq.write_table(full.set_column(full.column_names.index("prompt"), "prompt", text), path, row_group_size=2)
    (fault,) = broken(read("blink", blink, store)).items()
    assert fault[0] == "val_Counting_2"
    assert "row 3, column prompt: cannot be read ('utf-8' codec" in fault[1]


@pytest.mark.parametrize("value", [math.nan, 7.0, None])
def test_metadata_that_are_no_text(tmp_path: Path, store: ImageStore, value: float | None) -> None:
    rows = [{**row, "real_image_path": value} for row in hvs_rows(GOOD)]
    table(tmp_path / "data" / "data" / "test-0.parquet", rows)
    parsed = read("hvsbench", tmp_path / "data", store)
    assert len(parsed) == 6
    assert all("column real_image_path: expected text, found float" in fault for fault in broken(parsed).values())
    assert len(broken(parsed)) == (0 if value is None else 6)


@pytest.mark.parametrize(
    "change", [{"question_type": None}, {"question_type": "Q14"}, {"index": None}, {"index": 1}, {"answer": "9" * 50}]
)
def test_a_row_of_hvsbench_that_cannot_be_used(tmp_path: Path, store: ImageStore, change: dict[str, Any]) -> None:
    rows = hvs_rows(GOOD)
    rows[4] |= change
    table(tmp_path / "data" / "data" / "test-0.parquet", rows)
    parsed = read("hvsbench", tmp_path / "data", store)
    (fault,) = broken(parsed).values()
    assert "test-0.parquet, row 5, column " in fault
    assert len(sound(parsed)) == 5


@pytest.mark.parametrize("column", ["question", "answer", "image", "question_type", "index"])
def test_pages_of_hvsbench_that_do_not_decode(tmp_path: Path, store: ImageStore, column: str) -> None:
    folder = hvs_folder(tmp_path / "data", GOOD)
    spoil_pages(folder / "data" / "test-0.parquet", column, 1)
    parsed = read("hvsbench", folder, store)
    assert len(broken(parsed)) == 2
    assert all(f"column {column}" in fault for fault in broken(parsed).values())
    assert sound(parsed) == {f"Q2_{number}" for number in (0, 1, 4, 5)}


@pytest.mark.parametrize("column", ["question", "options", "answer", "image"])
def test_pages_of_mm_sap_that_do_not_decode(tmp_path: Path, store: ImageStore, column: str) -> None:
    folder = sap_folder(tmp_path / "data", GOOD)
    spoil_pages(folder / "BasicVisQA.parquet", column, 1)
    parsed = read("mm_sap", folder, store, shuffles="stored")
    assert set(broken(parsed)) == {"basic_0003", "basic_0004"}
    assert len(sound(parsed)) == 4


LINES = {
    "no JSON": b"{",
    "half a line": json.dumps(mvp_row(2)).encode()[:40],
    "a list": b"[1, 2]",
    "null": b"null",
    "not UTF-8": b'{"question_id": "\xff\xfe"}',
    "a NUL": b'{"question_id": \0}',
    "a number without end": b'{"question_id": ' + b"7" * 10_000 + b"}",
    "not a number": b'{"question_id": NaN}',
    "nested too deeply": b"[" * 100_000,
    "half of a character": json.dumps({**mvp_row(2), "question": "\ud800"}).encode(),
    "a number as a question": json.dumps({**mvp_row(2), "question": 7}).encode(),
    "a path that leads out": json.dumps({**mvp_row(2), "image": "../Single_Images/2_s.jpg"}).encode(),
    "an id that was there": json.dumps({**mvp_row(2), "question_id": 1}).encode(),
}


@pytest.mark.parametrize("case", LINES)
def test_a_bad_line_in_the_middle_costs_its_own_question(tmp_path: Path, store: ImageStore, case: str) -> None:
    folder = mvp_folder(tmp_path / "data", GOOD)
    path = folder / "all_questions.json"
    lines = path.read_bytes().split(b"\n")
    lines[2] = LINES[case]
    path.write_bytes(b"\n".join(lines))
    parsed = read("mvp_bench", folder, store, mcq="vanilla")
    (fault,) = broken(parsed).values()
    assert "all_questions.json, line 3" in fault
    assert sound(parsed) == {"0", "1", "3", "4", "5"}


@pytest.mark.parametrize("change", ["BOM", "CRLF", "blank lines", "no last line feed"])
def test_lines_of_another_hand_are_read(tmp_path: Path, store: ImageStore, change: str) -> None:
    folder = mvp_folder(tmp_path / "data", GOOD)
    path = folder / "all_questions.json"
    data = path.read_bytes()
    changed = {
        "BOM": b"\xef\xbb\xbf" + data,
        "CRLF": data.replace(b"\n", b"\r\n"),
        "blank lines": data.replace(b"\n", b"\n\n \n"),
        "no last line feed": data.rstrip(),
    }
    path.write_bytes(changed[change])
    parsed = read("mvp_bench", folder, store, mcq="vanilla")
    assert (broken(parsed), len(parsed)) == ({}, 6)


def test_without_the_rotations_the_other_questions_are_asked(tmp_path: Path, store: ImageStore) -> None:
    folder = mvp_folder(tmp_path / "data", GOOD)
    path = folder / "all_questions.json"
    more = {"question_id": 9, "type": "mcq-e", "image": "Single_Images/0_e.jpg", "id": 0}
    path.write_text(
        path.read_text() + json.dumps({**mvp_row(0), **more, "question": "Which?\nA. x\nB. y", "answer": "A"})
    )
    (folder / "Images" / "Single_Images" / "0_e.jpg").write_bytes(GOOD[0])
    (folder / "mcq_questions.json").write_bytes(b"\x00\xff")
    parsed = read("mvp_bench", folder, store, mcq="both")
    assert sound(parsed) == {"0", "1", "2", "3", "4", "5", "9"}
    assert set(broken(parsed)) == {"single:mcq_questions.json"}


ROWS: dict[str, Any] = {
    "null": None,
    "a list": [],
    "no id": {"id": None},
    "an id that was there": {"id": "q0"},
    "an answer that is no number": {"answer": math.nan},
    "an answer that is too large": {"answer": 10**300},
    "27 options": {"options": [str(n) for n in range(27)]},
    "half of a character": {"question": "\ud800"},
    "pictures that are none": {"images": [None] * 7},
    "a picture with a NUL": {"images": ["\0"] * 7},
    "no category": {"category": 7},
}


@pytest.mark.parametrize("case", ROWS)
def test_a_bad_row_of_actiview_costs_its_own_question(tmp_path: Path, store: ImageStore, case: str) -> None:
    folder = actiview_folder(tmp_path / "data", GOOD)
    path = folder / "asset" / "data.json"
    content = json.loads(path.read_text())
    row = ROWS[case]
    content["data"][2] = {**content["data"][2], **row} if isinstance(row, dict) else row
    path.write_text(json.dumps(content))
    parsed = read("actiview", folder, store)
    (fault,) = broken(parsed).values()
    assert "data.json, row 3" in fault
    assert len(sound(parsed)) == 5


@pytest.mark.parametrize("file", ["data.json", "groundtruth_views.json"])
@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe\x00", b"null", b"[" * 100_000, b'{"data": ' + b"7" * 9999 + b"}"]
)
def test_a_json_file_that_cannot_be_read_is_one_line(
    tmp_path: Path, store: ImageStore, file: str, content: bytes
) -> None:
    folder = actiview_folder(tmp_path / "data", GOOD)
    (folder / "asset" / file).write_bytes(content)
    with pytest.raises(DataError, match=re.escape(file)) as caught:
        read("actiview", folder, store)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [lambda data: b"\xef\xbb\xbf" + data, lambda data: data.replace(b", ", b",\r\n")])
def test_json_of_another_hand_is_read(tmp_path: Path, store: ImageStore, change: Callable[[bytes], bytes]) -> None:
    folder = actiview_folder(tmp_path / "data", GOOD)
    path = folder / "asset" / "data.json"
    path.write_bytes(change(path.read_bytes()))
    assert len(sound(read("actiview", folder, store))) == 6
