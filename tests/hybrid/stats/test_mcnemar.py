"""McNemar's exact test against published examples."""

import pytest

from hybrid.stats import mcnemar


@pytest.mark.parametrize(
    ("helped", "harmed", "p"),
    # Fagerland, Lydersen and Laake 2013 (airway hyper-responsiveness); Agresti (approval ratings: z = -4.17).
    [(7, 1, 0.0703), (86, 150, 3.7e-5), (0, 0, 1.0), (5, 5, 1.0), (6, 0, 2 / 64)],
)
def test_mcnemar_published_values(helped: int, harmed: int, p: float) -> None:
    assert mcnemar(helped, harmed) == pytest.approx(p, rel=0.01)
    assert mcnemar(harmed, helped) == mcnemar(helped, harmed)


def test_mcnemar_refuses_negative_counts() -> None:
    for counts in ((-1, 3), (3, -1)):
        with pytest.raises(ValueError, match="-1"):
            mcnemar(*counts)
