"""How far a tool is believed: bins, the card as a prior, folds, and files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError, UsageError
from hybrid.solving.trust import (
    MODEL,
    NOT_THE_MODEL,
    PRIOR_WEIGHT,
    Curve,
    Measured,
    Trust,
    TrustFile,
    fold_of,
    read_trust,
    refuse_other,
    trust_content,
)
from hybrid.tool import Bin

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


MEASURED = Measured(
    benchmark="blink",
    split="val",
    data={"kind": "folder", "sha256": "ab"},
    model={"model": "openai:one", "options": {"temperature": 0.0}, "retries": 3, "versions": {"x": "1"}},
    tools={"jigsaw": "classical:seams-1"},
    control="real",
    unchecked=("jigsaw",),
)
IDENTITY: dict[str, Any] = {
    "benchmark": "blink",
    "split": "val",
    "data": {"kind": "folder", "sha256": "ab"},
    "model": MEASURED.model,
}
TOOLS = {"jigsaw": "classical:seams-1", "ocr": "absent"}


def entry(**changes: Any) -> dict[str, Any]:
    return {"tool": "jigsaw", "backend": "classical", "route": "Jigsaw", "bins": [[0.5, 3, 4]], **changes}


def test_a_file_comes_back_fold_by_fold(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trust_content(MEASURED, [[entry()], [entry(bins=[[0.5, 1, 9]])]]))
    found = read_trust(path)
    assert found.measured == MEASURED
    assert [fold[KEY].bins for fold in found.folds] == [(Bin(0.5, 3, 4),), (Bin(0.5, 1, 9),)]
    for unit in ("a", "b", "c", "d"):
        assert found.for_question(unit).curves == found.folds[fold_of(unit, 2)]


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


@pytest.mark.parametrize("format_", [1, None, "2"])
def test_a_file_that_does_not_name_what_was_measured_is_refused(tmp_path: Path, format_: Any) -> None:
    path = tmp_path / "trust.json"
    content = json.loads(trust_content(MEASURED, [[entry()]])) | {"format": format_}
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"--trust .*trust\.json is of an older format.*hybrid calibrate RUN -o FILE"):
        read_trust(path)
    del content["measured"]
    path.write_text(json.dumps(content | {"format": 2}))
    with pytest.raises(UsageError, match="older format"):
        read_trust(path)
    path.write_text(json.dumps({"format": 1, "run": {}, "folds": [[entry()]]}))
    with pytest.raises(UsageError, match="older format"):
        read_trust(path)


def test_what_was_measured_must_be_named_in_full(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    content = json.loads(trust_content(MEASURED, [[entry()]]))
    del content["measured"]["tools"]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"trust\.json does not name what was measured"):
        read_trust(path)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("folds", 0, 0, "bins", 0, 1), 4),
        (("folds", 0, 0, "tool"), "depth"),
        (("measured", "model", "model"), "openai:two"),
        (("measured", "tools", "jigsaw"), "classical:seams-2"),
        (("measured", "benchmark"), "hvsbench"),
        (("sha256",), "00"),
    ],
)
def test_a_changed_value_is_noticed(tmp_path: Path, part: tuple[Any, ...], value: Any) -> None:
    path = tmp_path / "trust.json"
    content = json.loads(trust_content(MEASURED, [[entry()]]))
    inner = content
    for step in part[:-1]:
        inner = inner[step]
    assert inner[part[-1]] != value
    inner[part[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"trust\.json was changed after `hybrid calibrate` wrote it"):
        read_trust(path)


@pytest.mark.parametrize(
    "bins", [[[0.6, 1, 2], [0.5, 1, 2]], [[0.5, 1, 2], [0.5, 1, 2]], [[0.5, 3, 2]], [[0.5, -1, 2]]]
)
def test_bins_that_cannot_be_are_refused(tmp_path: Path, bins: list[Any]) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trust_content(MEASURED, [[entry(bins=bins)]]))
    with pytest.raises(DataError, match="the bins of jigsaw, classical, Jigsaw do not rise, or count more right than"):
        read_trust(path)


def test_a_bin_may_hold_nothing_right_and_all_right(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trust_content(MEASURED, [[entry(bins=[[0.0, 0, 2], [0.5, 2, 2]])]]))
    assert read_trust(path).folds[0][KEY] == Curve((Bin(0.0, 0, 2), Bin(0.5, 2, 2)))


def test_no_fold_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trust_content(MEASURED, []))
    with pytest.raises(DataError, match="needs at least one fold"):
        read_trust(path)


FILE = TrustFile(({},), "ab" * 32, MEASURED)
PATH = Path("trust.json")


def refusal(file: TrustFile, tools: dict[str, Any] | None = None, **changes: Any) -> str | None:
    """Why a run with this identity and these tools refuses a file; None where it takes it."""
    try:
        refuse_other(file, PATH, {**IDENTITY, **changes}, TOOLS if tools is None else tools)
    except UsageError as error:
        return str(error)
    return None


def test_the_same_and_other_data_of_the_benchmark_are_taken() -> None:
    assert refusal(FILE) is None
    assert refusal(FILE, data={"kind": "hub", "id": "x", "revision": "y"}, split="test") is None


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"benchmark": "hvsbench"}, 'benchmark: "blink" measured, "hvsbench" here'),
        ({"data": {"kind": "sample", "seed": 0}}, 'data.kind: "folder" measured, "sample" here'),
        (
            {"model": {**(MEASURED.model or {}), "model": "openai:two"}},
            'model.model: "openai:one" measured, "openai:two"',
        ),
        ({"model": None}, 'model.model: "openai:one" measured, null here'),
        ({"model": {**(MEASURED.model or {}), "base_url": "x"}}, 'model.base_url: null measured, "x" here'),
        ({"tools": {"jigsaw": "classical:seams-2"}}, 'tools.jigsaw: "classical:seams-1" measured, "classical:seams-2"'),
        ({"tools": {"jigsaw": "absent"}}, 'tools.jigsaw: "classical:seams-1" measured, "absent" here'),
    ],
)
def test_what_differs_is_named_with_both_values(changes: dict[str, Any], line: str) -> None:
    said = refusal(FILE, **changes)
    assert said is not None
    assert said.startswith("--trust trust.json was measured with something else:\n  ")
    assert line in said


def test_every_difference_is_named() -> None:
    said = refusal(FILE, benchmark="hvsbench", model=None, tools={"jigsaw": "absent"})
    assert said is not None
    assert [line.split(":")[0].strip() for line in said.splitlines()[1:]] == [
        "benchmark",
        "model.model",
        "model.options",
        "tools.jigsaw",
    ]


def test_a_generated_file_is_not_for_the_benchmark() -> None:
    drawn = TrustFile(({},), "ab", Measured("blink", "val", {"kind": "sample", "seed": 1}, None, {}, "real"))
    assert refusal(drawn, data={"kind": "sample", "seed": 2}) is None
    assert 'data.kind: "sample" measured, "folder" here' in (refusal(drawn) or "")


def test_tools_alone_fit_any_model_and_a_model_alone_any_tools() -> None:
    tools = TrustFile(({},), "ab", Measured("blink", "val", {}, None, MEASURED.tools, "real"))
    assert refusal(tools, model={"model": "openai:two"}) is None
    assert refusal(tools, model=None) is None
    model = TrustFile(({},), "ab", Measured("blink", "val", {}, MEASURED.model, {}, "real"))
    assert refusal(model, tools={"jigsaw": "learned:x"}) is None


@pytest.mark.parametrize("fact", sorted(NOT_THE_MODEL))
def test_a_fact_that_decides_no_answer_may_differ(fact: str) -> None:
    assert refusal(FILE, model={**(MEASURED.model or {}), fact: "other"}) is None


def test_a_model_that_is_not_known_yet_is_not_compared() -> None:
    refuse_other(FILE, PATH, {**IDENTITY, "model": None}, TOOLS, model_known=False)
    with pytest.raises(UsageError, match=r"tools\.jigsaw"):
        refuse_other(FILE, PATH, {**IDENTITY, "model": None}, {"jigsaw": "absent"}, model_known=False)


def test_a_counted_tool_that_the_run_cannot_call_is_not_compared() -> None:
    assert refusal(FILE, tools={}) is None
    assert refusal(FILE, tools={"ocr": "learned:x"}) is None


def test_generated_is_the_kind_of_the_data() -> None:
    assert not MEASURED.generated
    assert not Measured("blink", "val", {}, None, {}, "real").generated
    assert Measured("blink", "val", {"kind": "sample"}, None, {}, "real").generated


def test_a_fold_is_the_hash_of_the_unit() -> None:
    """First 8 bytes of SHA-256, big-endian: a fold never moves between versions."""
    assert [fold_of(unit, 5) for unit in ("val_Jigsaw_1", "val_Jigsaw_2", "pair-1", "")] == [4, 2, 4, 2]
