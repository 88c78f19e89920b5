"""Repetitions by hand: what they come to, and how many verdicts changed."""

import pytest

from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.sections.spread import SECTION
from tests.hybrid.scoring.sections.rows import by_quantity
from tests.hybrid.scoring.solvers import solver


def three() -> Comparison:
    return compare(
        [
            solver("mllm", {"Jigsaw": "rrrw", "Counting": "rwww"}),
            solver("specialist", {"Jigsaw": "rrrr", "Counting": "rrrr"}),
            solver("mllm@3", {"Jigsaw": "rwrw", "Counting": "rrww"}),
            solver("mllm@2", {"Jigsaw": "rrrr", "Counting": "rwww"}),
        ]
    )


MEAN, DEVIATION, CHANGED = "mean over repetitions", "standard deviation over repetitions", "share of changed verdicts"


def values(found: Comparison, group: str) -> list[tuple[str, float | None]]:
    return [(row.a, row.value) for row in SECTION.rows(found) if (row.quantity, row.group) == ("value", group)]


def test_repetitions_by_hand() -> None:
    """Deviations 0, 1/4, -1/4 of 3/4; t(0.975, 2) = 4.3027."""
    found = three()
    assert values(found, "") == [("mllm", 0.5), ("mllm@2", 0.625), ("mllm@3", 0.5)]
    assert values(found, "Jigsaw") == [("mllm", 0.75), ("mllm@2", 1.0), ("mllm@3", 0.5)]
    assert values(found, "Counting") == [("mllm", 0.25), ("mllm@2", 0.25), ("mllm@3", 0.5)]
    rows = list(SECTION.rows(found))
    jigsaw, overall = by_quantity(rows, "Jigsaw"), by_quantity(rows)
    assert (jigsaw[MEAN].value, jigsaw[DEVIATION].value) == pytest.approx((0.75, 0.25))
    assert jigsaw[MEAN].high == pytest.approx(0.75 + 4.302653 * 0.25 / 3**0.5, abs=1e-6)
    assert (jigsaw[CHANGED].value, jigsaw[CHANGED].n, jigsaw[CHANGED].ids) == (0.5, 4, ("Jigsaw_2", "Jigsaw_4"))
    assert (overall[CHANGED].n, len(overall[CHANGED].ids)) == (8, 3)
    assert {row.metric for row in overall.values()} == {"accuracy_macro"}
    assert SECTION.lead(found, rows).startswith("Asked again, mllm varies by 0.072")
