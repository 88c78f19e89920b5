"""A generated benchmark is generated once, and a larger sample begins with the same rows."""

import pytest

from hybrid.plugins.registry import load, names
from hybrid.running.generated import sample_size
from tests.tables import cases

EXTENDING = [name for name in names("hybrid.benchmarks") if load("hybrid.benchmarks", name).card.sample_extends]


def test_benchmarks_whose_rows_have_ids_of_their_own_extend_their_samples() -> None:
    assert EXTENDING == ["blink", "cvbench", "hrbench", "mm_sap", "mmvp", "vstar"]


@pytest.mark.parametrize(*cases(__file__, "test_so_many_are_made_as_the_limit_needs"))
def test_so_many_are_made_as_the_limit_needs(benchmark: str, tasks: int, limit: int | None, size: int) -> None:
    assert sample_size(load("hybrid.benchmarks", benchmark).card, tasks, limit) == size
