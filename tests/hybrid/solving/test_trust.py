"""How far a tool is trusted: bins, the card as a prior, folds, and invalid files."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.errors import DataError, UsageError
from hybrid.solving.trust import (
    MODEL,
    Curve,
    Measured,
    Measurement,
    Trust,
    TrustFile,
    fold_of,
    read_trust,
    refuse_other,
    trust_content,
)
from hybrid.tool import Bin
from tests.tables import cases


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_is_never_worth_less(counts: list[tuple[int, int]], first: float, second: float) -> None:
    curve = Curve(tuple(Bin((place + 1) / 9, right, right + wrong) for place, (right, wrong) in enumerate(counts)))
    low, high = sorted((first, second))
    assert curve.at(low) <= curve.at(high)


def measured(**entries: Measurement) -> Trust:
    """Return the MLLM's measurements, by route."""
    return Trust({(*MODEL, route): item for route, item in entries.items()})


@given(st.floats(0.05, 0.95), st.integers(0, 200), st.integers(0, 200))
def test_a_model_s_accuracy_is_a_beta_posterior_around_what_is_usual(usual: float, right: int, wrong: int) -> None:
    n = right + wrong
    trust = measured(Jigsaw=Measurement(right, n), Depth=Measurement(1, 90))
    assert trust.model("Jigsaw", usual, None).rate == pytest.approx((right + 8 * usual) / (n + 8))
    # Measurements of another route or another tool do not affect the trust in this one.
    assert trust.model("Spatial", usual, None).rate == pytest.approx(usual)


@given(st.text(max_size=20), st.integers(2, 12))
def test_a_fold_is_stable_and_one_of_them(unit: str, folds: int) -> None:
    assert 0 <= fold_of(unit, folds) < folds
    assert fold_of(unit, folds) == fold_of(unit, folds)


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
    key = {"tool": "jigsaw", "backend": "classical", "route": "Jigsaw"}
    return {**key, "right": 3, "n": 4, "usually": 0.1, "slope": 0.9, **changes}


WRONG: tuple[dict[str, Any], ...] = ({"right": "a"}, {"n": None}, {"slope": []})


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"folds": 3}', '{"folds": []}', '{"folds": [[{}]]}', '{"folds": [[[]]]}']
    + [json.dumps({"format": 5, "every": [], "places": {}, "folds": [[entry(**wrong)]]}) for wrong in WRONG]
    + ['{"format": 9, "folds": 3}'],
)
def test_what_is_no_trust_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"trust\.json"):
        read_trust(path)


def test_an_absent_file_is_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--trust .*no\.json: No such file"):
        read_trust(tmp_path / "no.json")


@pytest.mark.parametrize("format_", [1, 2, 3, 4, None, "5"])
def test_a_file_that_does_not_name_what_was_measured_is_refused(tmp_path: Path, format_: Any) -> None:
    path = tmp_path / "trust.json"
    content = json.loads(trust_content(MEASURED, [[entry()]], [], {})) | {"format": format_}
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"--trust .*trust\.json has an older format.*hybrid calibrate RUN -o FILE"):
        read_trust(path)
    del content["measured"]
    path.write_text(json.dumps(content | {"format": 5}))
    with pytest.raises(UsageError, match="older format"):
        read_trust(path)
    payload = {"tool": "jigsaw", "backend": "classical", "route": "Jigsaw", "bins": [[0.5, 3, 4]]}
    path.write_text(json.dumps({"format": 2, "measured": {}, "folds": [[payload]]}))
    with pytest.raises(UsageError, match="older format"):
        read_trust(path)


def test_what_was_measured_must_be_named_in_full(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    content = json.loads(trust_content(MEASURED, [[entry()]], [], {}))
    del content["measured"]["tools"]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"trust\.json does not name what was measured"):
        read_trust(path)


@pytest.mark.parametrize(*cases(__file__, "test_a_changed_value_is_noticed"))
def test_a_changed_value_is_noticed(tmp_path: Path, part: tuple[Any, ...], value: Any) -> None:
    path = tmp_path / "trust.json"
    content = json.loads(trust_content(MEASURED, [[entry()]], [], {}))
    inner = content
    for step in part[:-1]:
        inner = inner[step]
    assert inner[part[-1]] != value
    inner[part[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"trust\.json was changed after `hybrid calibrate` wrote it"):
        read_trust(path)


@pytest.mark.parametrize(*cases(__file__, "test_numbers_that_cannot_be_are_refused"))
def test_numbers_that_cannot_be_are_refused(tmp_path: Path, wrong: dict[str, float], message: str) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trust_content(MEASURED, [[entry(**wrong)]], [], {}))
    with pytest.raises(DataError, match=f"the entry of jigsaw, classical, Jigsaw .*{message}"):
        read_trust(path)


def test_no_fold_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trust_content(MEASURED, [], [], {}))
    with pytest.raises(DataError, match="needs at least one fold"):
        read_trust(path)


FILE = TrustFile(({},), "ab" * 32, MEASURED)
PATH = Path("trust.json")


def refusal(file: TrustFile, tools: dict[str, Any] | None = None, **changes: Any) -> str | None:
    """Return why a run with this identity and these tools refuses a file; None if it accepts it."""
    try:
        refuse_other(file, PATH, {**IDENTITY, **changes}, TOOLS if tools is None else tools)
    except UsageError as error:
        return str(error)
    return None


def test_a_generated_file_is_not_for_the_benchmark() -> None:
    file = TrustFile(({},), "ab", Measured("blink", "val", {"kind": "sample", "seed": 1}, None, {}, "real"))
    assert refusal(file, data={"kind": "sample", "seed": 2}) is None
    assert 'data.kind: "sample" measured, "folder" here' in (refusal(file) or "")


def test_a_model_that_is_not_known_yet_is_not_compared() -> None:
    refuse_other(FILE, PATH, {**IDENTITY, "model": None}, TOOLS, model_known=False)
    with pytest.raises(UsageError, match=r"tools\.jigsaw"):
        refuse_other(FILE, PATH, {**IDENTITY, "model": None}, {"jigsaw": "absent"}, model_known=False)


def test_a_fold_is_the_hash_of_the_unit() -> None:
    """The fold of a unit is computed from the first 8 bytes of its SHA-256, big-endian, and never changes between
    versions."""
    assert [fold_of(unit, 5) for unit in ("val_Jigsaw_1", "val_Jigsaw_2", "pair-1", "")] == [4, 2, 4, 2]
