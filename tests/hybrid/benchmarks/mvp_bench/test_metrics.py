"""The metrics compared with sums written out by hand and with a slow second implementation."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.mvp_bench import BENCHMARK
from hybrid.core.types import Outcome, Score


def yes_no(pair: int, question: int, image: str, correct: float, level: str = "low") -> Score:
    """Return one yes/no row; `image` is natural or manipulated."""
    groups = {"level": level, "image": image, "pair": str(pair), "question": f"{pair}.{question}"}
    name = f"{pair}{question}{image}"
    return Score(name, "yes_no", correct, Outcome.ANSWERED, groups=groups, cluster=f"pair{pair}")


def values(scores: list[Score]) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in BENCHMARK.summarise(scores)}


ROWS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.booleans(), st.booleans()),
    max_size=24,
    unique_by=lambda r: r[:3],
)


@settings(max_examples=40)
@given(ROWS)
def test_yes_no_metrics_equal_a_second_definition(rows: list[tuple[int, int, bool, bool]]) -> None:
    scores = [
        yes_no(pair, question, "natural" if first else "manipulated", float(right), "low" if question < 3 else "high")
        for pair, question, first, right in rows
    ]
    result = values(scores)

    def share(units: list[list[bool]]) -> float | None:
        return sum(map(all, units)) / len(units) if units else None

    pairs = {row[0] for row in rows}
    by_pair = [[r[3] for r in rows if r[0] == pair] for pair in pairs]
    by_question = [[r[3] for r in rows if r[:2] == key] for key in {r[:2] for r in rows}]
    by_image = [[r[3] for r in rows if (r[0], r[2]) == key] for key in {(r[0], r[2]) for r in rows}]
    assert result.get("mAcc") == share([unit for unit in by_pair if len(unit) > 3])
    assert result.get("qAcc.multi") == share([unit for unit in by_question if len(unit) == 2])
    assert result.get("iAcc.all") == share([unit for unit in by_image if len(unit) > 1])
    assert result.get("aAcc.all") == share([[r[3]] for r in rows])


@settings(max_examples=40)
@given(ROWS)
def test_all_right_is_one_and_all_wrong_is_zero(rows: list[tuple[int, int, bool, bool]]) -> None:
    for number in (0.0, 1.0):
        scores = [yes_no(p, q, "natural" if first else "manipulated", number) for p, q, first, _ in rows]
        assert set(values(scores).values()) <= {number}
