"""The either-right ceiling by hand, its bounds, and how often its interval holds the truth."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.ceiling import SECTION
from hybrid.stats import interval
from hybrid.types import Cell, Metric
from tests.hybrid.scoring.sections.rows import by_quantity

WORD = st.text("rwa", min_size=5, max_size=5)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, made_up_runs: Any) -> Any:
    """Hybrid, alone and specialist over five puzzles, answering as they are told."""
    names = ("controller", "mllm", "specialist")
    path = tmp_path_factory.mktemp("sides") / "run"
    made_up_runs.from_letters(path, {name: {"Jigsaw": "rrrrr"} for name in names})
    solvers = compare_paths([path]).solvers
    return lambda *words: [made_up_runs.answering(*pair) for pair in zip(solvers, words, strict=True)]


@settings(max_examples=60)
@given(WORD, WORD, WORD)
def test_the_ceiling_is_above_both_parts_and_ids_are_behind_every_count(sides: Any, a: str, b: str, c: str) -> None:
    rows = by_quantity(tuple(SECTION.rows(compare([one.under("wrong") for one in sides(a, b, c)]))))
    value = {name: row.value or 0.0 for name, row in rows.items()}
    better = max(b.count("r"), c.count("r"))
    assert value["right in the better part"] == better <= value["right in either part"]
    assert value["missed"] + value["right"] - value["only hybrid"] == value["right in either part"]
    assert value["neither"] + value["missed"] == 5 - value["right"]
    assert all(len(rows[name].ids) == value[name] for name in ("only hybrid", "missed", "neither"))
    reached = rows["reached"]
    if reached.value is not None:
        assert reached.value * (value["right in either part"] - better) == pytest.approx(value["right"] - better)
    if reached.low is not None and reached.high is not None and reached.value is not None:
        assert reached.low <= reached.value <= reached.high


@pytest.mark.parametrize(("questions", "clusters"), [(60, 60), (300, 300), (300, 100)])
def test_the_interval_holds_the_truth_as_often_as_it_says(questions: int, clusters: int) -> None:
    """Which of the two parts is right and what the hybrid does with it is drawn; three rows of a cluster are alike.

    The specialist is right where the MLLM is wrong in 30 %, and the hybrid then in 60 %; where the MLLM is right the
    hybrid loses 10 %, and it is right where neither is in 5 %: (0.18 - 0.05 + 0.01) / 0.3 in the long run.
    """
    rng = random.Random(questions + clusters)
    held, simulations = 0, 300
    truth = (0.3 * 0.6 - 0.5 * 0.1 + 0.2 * 0.05) / 0.3
    for _ in range(simulations):
        cells = []
        for cluster in range(clusters):
            kind, luck = rng.random(), rng.random()
            if kind < 0.5:
                above, below = -float(luck < 0.1), 0.0
            elif kind < 0.8:
                above, below = float(luck < 0.6), 1.0
            else:
                above, below = float(luck < 0.05), 0.0
            cells += [Cell("", str(cluster), above, below)] * (questions // clusters)
        value = sum(cell.numerator for cell in cells) / sum(cell.denominator for cell in cells)
        ends = interval(Metric("reached", value, len(cells), "ratio", tuple(cells)))
        assert ends is not None
        held += ends.low <= truth <= ends.high
    assert held / simulations == pytest.approx(0.95, abs=0.03)
