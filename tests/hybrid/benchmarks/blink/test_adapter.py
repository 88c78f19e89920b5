"""BLINK: questions from its parquet files, errors for invalid questions, and the official and the strict verdict."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions, Source
from hybrid.benchmarks.blink import BENCHMARK, TASKS, analyze_answer
from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Exchange, Kind, Outcome, Prompt, Question, Reply
from hybrid.running.data import questions
from tests.tables import cases

STRICT, OFFICIAL = ScoreOptions(), ScoreOptions(parse="official")


def source(folder: Path, *tasks: str, split: str = "val", **selected: str) -> Source:
    return Source(folder, ImageStore(folder / "store"), split, tasks, selected)


@pytest.mark.parametrize(*cases(__file__, "test_an_unusable_row_costs_its_own_question"))
def test_an_unusable_row_costs_its_own_question(
    tmp_path: Path, fakes: Any, change: dict[str, Any], message: str
) -> None:
    change = {key: value.encode() if value and key.startswith("image") else value for key, value in change.items()}
    rows = [fakes.jigsaw_row(1), {**fakes.jigsaw_row(2), **change}, fakes.jigsaw_row(3)]
    fakes.write_task(tmp_path, "Jigsaw", rows)
    result = questions(BENCHMARK, source(tmp_path, "Jigsaw"), None)
    assert [question.id for question in result] == ["val_Jigsaw_1", "val_Jigsaw_2", "val_Jigsaw_3"]
    (broken,) = [question for question in result if isinstance(question, BrokenQuestion)]
    assert broken.id == "val_Jigsaw_2"
    with pytest.raises(DataError, match=message):
        raise DataError(broken.error)


@pytest.mark.parametrize(*cases(__file__, "test_an_unusable_id_costs_its_own_question"))
def test_an_unusable_id_costs_its_own_question(
    tmp_path: Path, fakes: Any, change: dict[str, Any], message: str
) -> None:
    fakes.write_task(tmp_path, "Jigsaw", [fakes.jigsaw_row(1), {**fakes.jigsaw_row(2), **change}, fakes.jigsaw_row(3)])
    first, broken, third = questions(BENCHMARK, source(tmp_path, "Jigsaw"), None)
    assert (first.id, third.id) == ("val_Jigsaw_1", "val_Jigsaw_3")
    assert isinstance(broken, BrokenQuestion)
    assert broken.id == "Jigsaw:Jigsaw_val-00000-of-00001.parquet_row_2"
    assert message in broken.error


def test_what_is_no_parquet_is_refused(tmp_path: Path, fakes: Any) -> None:
    path = fakes.write_task(tmp_path, "Jigsaw", [fakes.jigsaw_row(1)])
    data = path.read_bytes()
    for content in (b"", b"text", data[: len(data) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"val-00000-of-00001\.parquet is not a readable parquet file"):
            BENCHMARK.tasks(source(tmp_path))


@pytest.mark.shared_data
def test_the_published_columns_are_read(shared_data: Path, tmp_path: Path) -> None:
    real = Source(shared_data / "blink", ImageStore(tmp_path / "store"), "val", ("Relative_Depth",))
    result = questions(BENCHMARK, real, 3)
    assert [type(question) for question in result] == [Question] * 3


@pytest.mark.parametrize(*cases(__file__, "test_the_official_parse"))
def test_the_official_parse(text: str, choices: int, expected: str | None) -> None:
    assert analyze_answer(text, choices) == expected


LETTERED = st.text(alphabet="ABCDE(). \n\u00a0x", max_size=30)


@given(LETTERED, st.integers(2, 4))
def test_the_official_parse_finds_offered_letters_in_a_sentence(text: str, choices: int) -> None:
    result = analyze_answer(text, choices)
    if result is not None and text.strip("()") not in "ABCDE":
        assert result in "ABCD"[:choices]
        assert f"({result})" in text.split()
    # A bare letter is the answer even if it was not offered: the authors compare it with the right letter, so the reply
    # is wrong.
    if result is not None and result not in "ABCD"[:choices]:
        assert text in (result, f"({result})")


def make_question(letters: str = "AB", target: str = "(A)") -> Question:
    choices = tuple(f"choice {letter}" for letter in letters)
    return Question("val_Jigsaw_1", "Jigsaw", (), "?", Kind.CHOICE, choices, target, "Jigsaw")


def exchange(text: str, outcome: Outcome = Outcome.ANSWERED) -> tuple[Exchange, ...]:
    return (Exchange(Prompt(("?",), Kind.CHOICE), Reply(text, outcome)),)


@settings(max_examples=200)
@given(LETTERED, st.sampled_from([STRICT, OFFICIAL]), st.sampled_from("AB"))
def test_a_verdict_is_right_exactly_for_the_target(text: str, options: ScoreOptions, target: str) -> None:
    score = BENCHMARK.score(make_question(target=f"({target})"), exchange(text), options)
    assert score.correct == float(score.answer == target)
    assert (score.outcome is Outcome.UNPARSED) == (score.answer is None)
    assert (score.rule == "none") == (score.answer is None)


def test_a_hidden_answer_is_not_scored() -> None:
    with pytest.raises(UsageError, match="hidden"):
        BENCHMARK.score(make_question(target="hidden"), exchange("(A)"), STRICT)


def test_the_card_has_all_questions() -> None:
    assert sum(BENCHMARK.card.tasks.values()) == 1901
    assert set(BENCHMARK.card.tasks) == set(TASKS)
