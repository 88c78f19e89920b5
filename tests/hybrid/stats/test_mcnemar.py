"""McNemar's exact test against published examples."""

import pytest

from hybrid.stats import mcnemar
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_mcnemar_published_values"))
def test_mcnemar_published_values(helped: int, harmed: int, p: float) -> None:
    assert mcnemar(helped, harmed) == pytest.approx(p, rel=0.01)
    assert mcnemar(harmed, helped) == mcnemar(helped, harmed)


def test_mcnemar_refuses_negative_counts() -> None:
    for counts in ((-1, 3), (3, -1)):
        with pytest.raises(ValueError, match="-1"):
            mcnemar(*counts)
