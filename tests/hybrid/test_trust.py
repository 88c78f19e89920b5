"""How far a tool is believed: bins, the card as a prior, folds, and files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError, UsageError
from hybrid.tool import Bin
from hybrid.trust import MODEL, PRIOR_WEIGHT, Curve, Trust, fold_of, read_trust

CURVE = Curve((Bin(0.5, 30, 60), Bin(0.8, 95, 98)))
KEY = ("jigsaw", "classical", "Jigsaw")


@pytest.mark.parametrize(
    ("confidence", "expected"), [(0.4, 0.5), (0.5, 31 / 62), (0.79, 31 / 62), (0.8, 96 / 100), (1.0, 96 / 100)]
)
def test_a_confidence_falls_into_the_bin_that_starts_below_it(confidence: float, expected: float) -> None:
    assert CURVE.at(confidence) == pytest.approx(expected)


def test_a_curve_without_bins_knows_nothing() -> None:
    assert (Curve(()).at(0.99), Curve(()).overall) == (0.5, None)
    assert CURVE.overall == pytest.approx(125 / 158)


def test_without_a_measurement_the_card_is_believed() -> None:
    assert Trust().reliability(*KEY, 0.9, CURVE) == CURVE.at(0.9)
    assert Trust({("depth", "classical", "Jigsaw"): CURVE}).reliability(*KEY, 0.9, Curve(())) == 0.5


def test_a_measurement_starts_from_the_card() -> None:
    few = Trust({KEY: Curve((Bin(0.8, 0, 2),))}).reliability(*KEY, 0.9, CURVE)
    assert few == pytest.approx(PRIOR_WEIGHT * 0.96 / (2 + PRIOR_WEIGHT))
    many = Trust({KEY: Curve((Bin(0.8, 0, 2000),))}).reliability(*KEY, 0.9, CURVE)
    assert many < 0.01
    elsewhere = Trust({KEY: Curve((Bin(0.95, 0, 2000),))}).reliability(*KEY, 0.9, CURVE)
    assert elsewhere == pytest.approx(0.96)


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0, 1), st.floats(0, 1))
def test_a_reliability_is_a_probability_between_card_and_count(right: int, wrong: int, start: float, at: float) -> None:
    trust = Trust({KEY: Curve((Bin(start, right, right + wrong),))})
    found, card = trust.reliability(*KEY, at, CURVE), CURVE.at(at)
    counted = right / (right + wrong) if right + wrong and start <= at else card
    assert min(card, counted) - 1e-12 <= found <= max(card, counted) + 1e-12
    assert 0 <= found <= 1


def test_the_models_own_skill_is_measured_or_assumed() -> None:
    trust = Trust({(*MODEL, "Jigsaw"): Curve((Bin(0.9, 6, 8),))})
    assert trust.model("Jigsaw", 0.6) == pytest.approx(7 / 10)
    assert trust.model("Other", 0.6) == 0.6


def test_a_tools_overall_record_is_over_all_its_routes() -> None:
    curves = {KEY: Curve((Bin(0, 1, 2),)), ("jigsaw", "learned", "x"): Curve((Bin(0, 2, 2),)), (*MODEL, "x"): CURVE}
    assert Trust(curves).overall("jigsaw") == pytest.approx(3 / 4)
    assert Trust(curves).overall("depth") is None


@given(st.text(max_size=20), st.integers(2, 12))
def test_a_fold_is_stable_and_one_of_them(unit: str, folds: int) -> None:
    assert 0 <= fold_of(unit, folds) < folds
    assert fold_of(unit, folds) == fold_of(unit, folds)


def test_folds_are_about_even() -> None:
    sizes = [0] * 5
    for number in range(1000):
        sizes[fold_of(f"val_Jigsaw_{number}", 5)] += 1
    assert min(sizes) > 150


def entry(**changes: Any) -> dict[str, Any]:
    return {"tool": "jigsaw", "backend": "classical", "route": "Jigsaw", "bins": [[0.5, 3, 4]], **changes}


def test_a_file_comes_back_fold_by_fold(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_text(json.dumps({"format": 1, "folds": [[entry()], [entry(bins=[[0.5, 1, 9]])]]}))
    found = read_trust(path)
    assert [fold[KEY].bins for fold in found.folds] == [(Bin(0.5, 3, 4),), (Bin(0.5, 1, 9),)]
    for unit in ("a", "b", "c", "d"):
        assert found.for_question(unit).curves == found.folds[fold_of(unit, 2)]
        assert found.for_question(unit).source == f"trust:{found.sha256[:12]}"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"folds": 3}', '{"folds": []}', '{"folds": [[{}]]}', '{"folds": [[[]]]}']
    + [json.dumps({"folds": [[entry(bins=bins)]]}) for bins in ([[1, 2]], [["a", 1, 2]], 7)],
)
def test_what_is_no_trust_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"trust\.json"):
        read_trust(path)


def test_an_absent_file_is_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--trust .*no\.json: No such file"):
        read_trust(tmp_path / "no.json")
