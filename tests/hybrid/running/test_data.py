"""Sources of questions: unsuitable options are refused, and a limit selects the right questions."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.base import Source, accuracy
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.benchmarks.card import BenchmarkCard
from hybrid.core.errors import DataError, UsageError
from hybrid.core.image_clusters import JoinedUnits
from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Kind, Metric, Question, Score, StoredImage
from hybrid.log.lines import Records
from hybrid.log.questions import QuestionSpool
from hybrid.running.data import Mounted, mount, questions
from tests.tables import cases


@dataclass
class Rows:
    """A benchmark with given questions that counts how many were read."""

    rows: dict[str, list[Question | BrokenQuestion]]
    read: int = 0
    card: BenchmarkCard = field(default_factory=lambda: BenchmarkCard("rows", "", "", "", (), None, ("val",), {}))

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        for task in source.tasks:
            for row in self.rows[task]:
                self.read += 1
                yield row

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        return (accuracy("accuracy", scores),)


def row(identity: str, cluster: str = "") -> Question:
    return Question(identity, identity[0], (), "?", Kind.YES_NO, cluster=cluster)


def choose_ids(rows: dict[str, list[Question | BrokenQuestion]], limit: int | None) -> list[str]:
    bench: Any = Rows(rows)
    with tempfile.TemporaryDirectory() as store:
        source = Source(Path("data"), ImageStore(Path(store)), "val", tuple(rows))
        return [question.id for question in questions(bench, source, limit)]


def test_a_pair_is_never_split_and_each_of_it_counts() -> None:
    rows: dict[str, list[Question | BrokenQuestion]] = {"a": [row("a1", "p"), row("a2", "p"), row("a3", "r")]}
    assert choose_ids(rows, 1) == ["a1", "a2"]
    assert choose_ids(rows, 2) == ["a1", "a2"]
    assert choose_ids(rows, 3) == ["a1", "a2", "a3"]


@given(st.lists(st.lists(st.integers(1, 3), max_size=5), min_size=1, max_size=4), st.integers(1, 12))
def test_a_limit_takes_whole_groups_and_as_many_as_there_are(sizes: list[list[int]], limit: int) -> None:
    rows: dict[str, list[Question | BrokenQuestion]] = {}
    for task, groups in zip("abcd", sizes, strict=False):
        variants = [(g, v) for g, size in enumerate(groups) for v in range(size)]
        rows[task] = [row(f"{task}{g}#s{v}" if v else f"{task}{g}") for g, v in variants]
    everything = [question for of_task in rows.values() for question in of_task]
    if not everything:
        return
    result = choose_ids(rows, limit)
    bases = Counter(identity.split("#")[0] for identity in result)
    assert len(bases) == min(limit, sum(map(len, sizes)))
    counts = Counter(question.id.split("#")[0] for question in everything)
    assert all(counts[base] == count for base, count in bases.items())
    per_task = Counter(base[0] for base in bases)
    for task, groups in zip("abcd", sizes, strict=False):
        assert per_task[task] >= min(len(groups), limit // len(sizes))


def test_an_id_that_stands_twice_is_an_error() -> None:
    with pytest.raises(DataError, match="data: the id 'a1' appears twice"):
        choose_ids({"a": [row("a1")], "b": [row("a1")]}, None)


@pytest.mark.system
def test_work_grows_with_the_questions_where_pictures_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions that share pictures need work in proportion to their number: each of 20,000 questions on 200 pictures
    is written twice and read once, and the clusters are computed once."""
    calls: Counter[str] = Counter()

    def count_calls_of(place: type, name: str) -> None:
        function = getattr(place, name)

        def call(*args: Any) -> Any:
            calls[name] += 1
            return function(*args)

        monkeypatch.setattr(place, name, call)

    count_calls_of(JoinedUnits, "root")
    count_calls_of(JoinedUnits, "joined")
    count_calls_of(QuestionSpool, "add")
    count_calls_of(Records, "__getitem__")
    pictures = [StoredImage(f"{number:064x}", 4, 4, "image/png") for number in range(200)]
    rows = [replace(row(f"a{number}"), images=(pictures[number % 200],)) for number in range(20_000)]
    assert len(choose_ids({"a": list(rows)}, None)) == 20_000
    assert calls["joined"] == 1
    assert calls["add"] == 2 * 20_000
    # Each question is read a second time for the assertion.
    assert calls["__getitem__"] == 2 * 20_000
    assert calls["root"] <= 6 * 20_000


def test_no_question_at_all_is_an_error() -> None:
    with pytest.raises(DataError, match="contains no question of the split val"):
        choose_ids({"a": []}, None)


def mounted(folder: Path | str, tmp_path: Path, **changes: Any) -> Mounted:
    options: dict[str, Any] = {"split": None, "tasks": (), "settings": {}, "store": ImageStore(tmp_path / "store")}
    return mount(BENCHMARK, str(folder), **{**options, **changes})


@pytest.mark.parametrize(*cases(__file__, "test_an_option_that_does_not_fit_names_those_that_do"))
def test_an_option_that_does_not_fit_names_those_that_do(
    blink: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        mounted(blink, tmp_path, **changes)


def test_a_value_that_a_setting_does_not_have_is_refused(blink: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--setting disclaimer=maybe: the allowed values are: on, off"):
        mounted(blink, tmp_path, settings={"disclaimer": "maybe"})
    unchecked = replace(mounted(blink, tmp_path).source, settings={"disclaimer": "maybe"})
    with pytest.raises(UsageError, match="--setting disclaimer=maybe: the allowed values are: on, off"):
        questions(BENCHMARK, unchecked, None)


def test_a_folder_that_is_not_there_or_empty(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder not found"):
        mounted(tmp_path / "nowhere", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty contains no BLINK data: expected TASK/val-\*\.parquet"):
        mounted(tmp_path / "empty", tmp_path)


def test_a_split_that_the_folder_does_not_hold(blink: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected TASK/test-\*\.parquet"):
        mounted(blink, tmp_path, split="test")


def test_a_task_that_cannot_be_generated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--data sample: --task IQ_Test cannot be generated"):
        mounted("sample", tmp_path, tasks=("IQ_Test",))
