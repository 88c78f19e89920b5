"""MM-SAP's data and dialogue: columns, shuffled options, the second pass, bad input."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hybrid.benchmarks.base import Source
from hybrid.benchmarks.mm_sap import BENCHMARK, MmSap
from hybrid.benchmarks.mm_sap.data import order_of
from hybrid.benchmarks.mm_sap.sample import REFUSAL, SETS, write
from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Exchange, Kind, Prompt, Question, Reply
from tests.hybrid.benchmarks import mounted
from tests.image_bytes import saved
from tests.tables import cases

asked, sound = partial(mounted.read_questions, BENCHMARK), partial(mounted.sound, BENCHMARK)

PER_SET = 3
OPTIONS = ["red", "green", "blue", "white", REFUSAL]


def picture() -> bytes:
    return saved(Image.new("RGB", (4, 3), (9, 90, 190)))


def table(folder: Path, rows: Sequence[Mapping[str, Any]], name: str = "BasicVisQA") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


def row(**changed: object) -> dict[str, object]:
    return {"question": "What colour?", "options": OPTIONS, "answer": "C", "image": {"bytes": picture()}} | changed


def run(question: Question, replies: Sequence[str], benchmark: MmSap = BENCHMARK) -> tuple[Exchange, ...]:
    waiting = list(replies)

    async def ask(prompt: Prompt) -> Reply:
        return Reply(waiting.pop(0))

    return asyncio.run(benchmark.dialogue(question.without_target(), ask))


def target(question: Question) -> Mapping[str, Any]:
    assert isinstance(question.target, Mapping)
    return question.target


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mm_sap")
    write(folder, tuple(SETS), PER_SET, 4)
    return folder


@given(shuffle=st.integers(0, 19), seed=st.integers(-5, 5), count=st.integers(2, 6))
def test_an_order_is_a_permutation(shuffle: int, seed: int, count: int) -> None:
    order = order_of("basic_0001", shuffle, seed, count)
    assert sorted(order) == list(range(count))
    assert order == order_of("basic_0001", shuffle, seed, count)


@pytest.mark.parametrize("value", ["0", "21", "many", "-1", "1.5"])
def test_wrong_numbers_of_shuffles(sample: Path, tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match=f"--setting shuffles={value}: the allowed values are: 1 to 20, stored"):
        asked(sample, tmp_path, shuffles=value)


@pytest.mark.parametrize(
    "changed",
    [*(case for (case,) in cases(__file__, "test_columns_are_found_under_many_names")[1]), {"image": picture()}],
)
def test_columns_are_found_under_many_names(tmp_path: Path, changed: dict[str, object]) -> None:
    folder = tmp_path / "data"
    (folder / "pictures").mkdir(parents=True)
    (folder / "pictures" / "a.png").write_bytes(picture())
    table(folder, [{key: value for key, value in row(**changed).items() if value is not None}])
    (question,) = sound(folder, tmp_path, shuffles="stored")
    assert question.text == "What colour?"
    assert question.choices[:4] == ("red", "green", "blue", "white")
    assert target(question) == {"correct": 2, "refusal": 4}
    assert (question.images[0].width, question.images[0].height) == (4, 3)


def test_numbers_count_from_where_the_table_shows(tmp_path: Path) -> None:
    table(tmp_path / "zero", [row(answer=0), row(answer=3)])
    table(tmp_path / "one", [row(answer=1), row(answer=4), row(options=[REFUSAL, *OPTIONS[:4]], answer=5)])
    zero = sound(tmp_path / "zero", tmp_path, shuffles="stored")
    item = sound(tmp_path / "one", tmp_path, shuffles="stored")
    assert [target(question)["correct"] for question in zero] == [0, 3]
    assert [target(question)["correct"] for question in item] == [0, 3, 4]
    for answers in ([1, 2], [0, 5], [7]):
        folder = tmp_path / f"unclear{answers[0]}{len(answers)}"
        table(folder, [row(answer=answer) for answer in answers])
        with pytest.raises(DataError, match="do not show whether they count from 0 or from 1"):
            asked(folder, tmp_path)


def test_the_set_may_stand_in_a_column(tmp_path: Path) -> None:
    rows = [row(subset="Know"), row(subset="beyond", answer="E"), row(subset="BasicVisQA")]
    table(tmp_path / "d", rows, name="test")
    answers = sound(tmp_path / "d", tmp_path, shuffles="stored")
    assert [question.id for question in answers] == ["basic_0001", "know_0001", "beyond_0001"]
    table(tmp_path / "e", [row()], name="test")
    with pytest.raises(
        DataError,
        match=(
            r"test.parquet, row 1: it is unknown to which set this row belongs: neither the file's name nor a "
            "column "
        ),
    ):
        asked(tmp_path / "e", tmp_path)


def test_no_files_and_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(DataError, match="contains no MM-SAP data"):
        asked(tmp_path / "d", tmp_path)
    (tmp_path / "d" / "basic.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"basic.parquet is not a readable parquet file"):
        asked(tmp_path / "d", tmp_path)


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_cannot_be_used_costs_itself_alone"))
def test_a_row_that_cannot_be_used_costs_itself_alone(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    if isinstance(changed.get("image"), dict):
        changed["image"] = {key: value.encode() for key, value in changed["image"].items()}
    table(tmp_path / "d", [row(), row(**changed), row()])
    result = asked(tmp_path / "d", tmp_path, shuffles="stored")
    assert [question.id for question in result] == ["basic_0001", "basic_0002", "basic_0003"]
    (broken,) = (question for question in result if isinstance(question, BrokenQuestion))
    assert broken.id == "basic_0002"
    assert "BasicVisQA.parquet, row 2" in broken.error
    assert message in broken.error


def test_beyond_has_no_correct_option(tmp_path: Path) -> None:
    rows = [row(answer="E"), row(answer=None), row(answer=""), row(answer="B")]
    table(tmp_path / "d", rows, name="BeyondVisQA")
    *good, bad = asked(tmp_path / "d", tmp_path, shuffles="stored")
    assert all(isinstance(question, Question) and target(question)["correct"] is None for question in good)
    assert isinstance(bad, BrokenQuestion)
    assert "no option of BeyondVisQA is correct" in bad.error


def test_picture_paths_stay_inside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "outside.png").write_bytes(picture())
    table(tmp_path / "d", [row(image="../outside.png"), row(image="none.png")])
    result = asked(tmp_path / "d", tmp_path)
    assert all(isinstance(question, BrokenQuestion) and "no file" in question.error for question in result)


def one(sample: Path, tmp_path: Path, name: str, **given_settings: str) -> Question:
    source = Source(sample, ImageStore(tmp_path / "store"), "test", (name,), {"shuffles": "1", **given_settings})
    question = next(BENCHMARK.questions(source))
    assert isinstance(question, Question)
    return question


@settings(max_examples=80)
@given(text=st.text(max_size=40))
def test_the_second_pass_follows_from_the_reply_alone(text: str) -> None:
    question = Question(
        "know_0001#s0",
        "KnowVisQA",
        (),
        "Which?",
        Kind.CHOICE,
        ("a cat", REFUSAL, "a dog", "a cow", "a hen"),
        {"correct": 0, "refusal": 1},
        protocol={"refusal": 1, "refusal_prompt": False},
    )
    assert len({len(run(replace(question, task=name), [text, "A"])) for name in SETS}) == 1
