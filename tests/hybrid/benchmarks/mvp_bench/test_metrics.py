"""The metrics against sums written out by hand and against a slow second definition."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.mvp_bench import BENCHMARK
from hybrid.types import Outcome, Score


def yes_no(pair: int, question: int, image: str, correct: float, level: str = "low") -> Score:
    """One yes/no row; `image` is natural or manipulated."""
    groups = {"level": level, "image": image, "pair": str(pair), "question": f"{pair}.{question}"}
    name = f"{pair}{question}{image}"
    return Score(name, "yes_no", correct, Outcome.ANSWERED, groups=groups, cluster=f"pair{pair}")


def rotation(base: str, number: int, of: int, correct: float, task: str = "cross", level: str = "low") -> Score:
    groups = {"level": level, "pair": "1", "rotation": f"{number}/{of}", "question": base, "image": "both"}
    return Score(f"{base}#circ{number}", task, correct, Outcome.ANSWERED, groups=groups, cluster="pair1")


def values(scores: list[Score]) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in BENCHMARK.summarise(scores)}


def test_filters_leave_out_pictures_with_one_question_and_pairs_with_fewer_than_four_rows() -> None:
    small = [yes_no(1, 1, "natural", 1), yes_no(1, 1, "manipulated", 1)]
    large = [yes_no(2, k, image, 1) for k in (1, 2) for image in ("natural", "manipulated")]
    large[3] = replace(large[3], correct=0.0)
    found = values([*small, *large])
    assert found["qAcc.multi"] == pytest.approx(2 / 3)
    assert found["aAcc.all"] == pytest.approx(5 / 6)
    assert found["iAcc.natural"] == 1
    assert found["iAcc.manipulated"] == 0
    assert found["iAcc.all"] == pytest.approx(1 / 2)
    assert found["mAcc"] == 0
    assert "mAcc" not in values(small)
    assert "iAcc.all" not in values(small)


def test_a_circular_question_needs_every_rotation() -> None:
    whole = [rotation("7", k, 3, 1) for k in (1, 2, 3)]
    assert values(whole)["circular.cross_low"] == 1
    assert values([*whole[:2], replace(whole[2], correct=0.0)])["circular.cross_low"] == 0
    assert "circular.cross_low" not in values(whole[:2])


def test_vanilla_is_the_first_rotation_whatever_the_order_unless_there_is_a_single_run() -> None:
    rotated = [rotation("7", k, 3, float(k == 1)) for k in (3, 2, 1)]
    assert values(rotated)["vanilla.cross_low"] == 1
    plain = replace(rotated[0], id="7", groups={"level": "low", "pair": "1", "image": "both"}, correct=0.0)
    both = values([*rotated, plain])
    assert (both["vanilla.cross_low"], both["first_rotation.cross_low"]) == (0, 1)


def test_an_abstention_at_chance_counts_as_the_guess_it_stands_for() -> None:
    pair = [yes_no(1, 1, "natural", 0.5), yes_no(1, 1, "manipulated", 0.5)]
    assert values(pair)["qAcc.multi"] == 0.25
    assert values(pair)["aAcc.all"] == 0.5


def test_a_failed_row_is_missing_with_every_unit_it_belongs_to() -> None:
    pair = [yes_no(1, q, image, 1) for q in (1, 2, 3) for image in ("natural", "manipulated")]
    assert {name: values(pair)[name] for name in ("qAcc.multi", "iAcc.all", "mAcc")} == {
        "qAcc.multi": 1,
        "iAcc.all": 1,
        "mAcc": 1,
    }
    failed = [*pair[:-1], replace(pair[-1], correct=0.0, outcome=Outcome.OUTAGE)]
    found = {metric.name: (metric.value, metric.n) for metric in BENCHMARK.summarise(failed)}
    assert found["aAcc.all"] == (1, 5)
    assert found["qAcc.multi"] == (1, 2)
    assert found["iAcc.natural"] == (1, 1)
    assert "iAcc.manipulated" not in found
    assert "mAcc" not in found
    wrong = [*pair[:-1], replace(pair[-1], correct=0.0)]
    assert (values(wrong)["aAcc.all"], values(wrong)["mAcc"]) == (pytest.approx(5 / 6), 0)


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
    found = values(scores)

    def share(units: list[list[bool]]) -> float | None:
        return sum(map(all, units)) / len(units) if units else None

    pairs = {row[0] for row in rows}
    by_pair = [[r[3] for r in rows if r[0] == pair] for pair in pairs]
    by_question = [[r[3] for r in rows if r[:2] == key] for key in {r[:2] for r in rows}]
    by_image = [[r[3] for r in rows if (r[0], r[2]) == key] for key in {(r[0], r[2]) for r in rows}]
    assert found.get("mAcc") == share([unit for unit in by_pair if len(unit) > 3])
    assert found.get("qAcc.multi") == share([unit for unit in by_question if len(unit) == 2])
    assert found.get("iAcc.all") == share([unit for unit in by_image if len(unit) > 1])
    assert found.get("aAcc.all") == share([[r[3]] for r in rows])


@settings(max_examples=40)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[tuple[int, int, bool, bool]], random: Random) -> None:
    scores = [yes_no(p, q, "natural" if first else "manipulated", float(right)) for p, q, first, right in rows]
    shuffled = list(scores)
    random.shuffle(shuffled)
    assert values(shuffled) == pytest.approx(values(scores))


@settings(max_examples=40)
@given(ROWS)
def test_all_right_is_one_and_all_wrong_is_zero(rows: list[tuple[int, int, bool, bool]]) -> None:
    for worth in (0.0, 1.0):
        scores = [yes_no(p, q, "natural" if first else "manipulated", worth) for p, q, first, _ in rows]
        assert set(values(scores).values()) <= {worth}
