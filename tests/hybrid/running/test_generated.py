"""Generated benchmarks on disk: made once, and the same rows again in a larger sample."""

from pathlib import Path

import pytest

from hybrid.images import ImageStore
from hybrid.registry import load, names
from hybrid.running.data import mount, questions
from hybrid.running.generated import generate, sample_size
from hybrid.types import Question
from tests.tables import cases

EXTENDING = [name for name in names("hybrid.benchmarks") if load("hybrid.benchmarks", name).card.sample_extends]


def test_benchmarks_whose_rows_have_ids_of_their_own_extend_their_samples() -> None:
    assert EXTENDING == ["blink", "cvbench", "hrbench", "mm_sap", "mmvp", "vstar"]


@pytest.mark.system
@pytest.mark.parametrize("benchmark", EXTENDING)
def test_a_larger_sample_begins_with_the_smaller_one(benchmark: str, tmp_path: Path) -> None:
    bench = load("hybrid.benchmarks", benchmark)
    store = ImageStore(tmp_path / "images")
    tasks = bench.card.sample_tasks[:2]
    found: dict[int, dict[str, Question]] = {}
    for count in (2, 5):
        folder = generate(bench, tmp_path, tasks, count, 3)
        mounted = mount(bench, str(folder), split=None, tasks=(), settings={}, store=store)
        asked = questions(bench, mounted.source, None)
        found[count] = {question.id: question for question in asked if isinstance(question, Question)}
    assert len(found[5]) > len(found[2]) > 0
    assert {identity: found[5][identity] for identity in found[2]} == found[2]


@pytest.mark.parametrize(*cases(__file__, "test_so_many_are_made_as_the_limit_needs"))
def test_so_many_are_made_as_the_limit_needs(benchmark: str, tasks: int, limit: int | None, size: int) -> None:
    assert sample_size(load("hybrid.benchmarks", benchmark).card, tasks, limit) == size
