"""Generated MM-SAP questions: sets, answers, bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.mm_sap.sample import LEVEL, SETS, UPRIGHT, item
from hybrid.errors import UsageError


def test_no_two_flags_are_alike() -> None:
    stripes = [*((True, *colours) for colours in UPRIGHT.values()), *((False, *colours) for colours in LEVEL.values())]
    assert len(set(stripes)) == len(UPRIGHT) + len(LEVEL)


@settings(max_examples=20)
@given(name=st.text(max_size=12).filter(lambda text: text not in SETS))
def test_unknown_sets_are_named(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be generated; there are: BasicVisQA"):
        item(name, 0, 0)
