"""How far a tool is believed: bins, the card as a prior, folds, and files that are none."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError, UsageError
from hybrid.solving.answer_confidence import CLAIM, AnswerConfidence
from hybrid.solving.trust import (
    MODEL,
    NOT_THE_MODEL,
    Curve,
    Measured,
    Measurement,
    Trust,
    TrustFile,
    claimed_by,
    fold_of,
    picture_name,
    read_trust,
    refuse_other,
    trust_content,
    written,
)
from hybrid.tool import Bin
from hybrid.types import StoredImage

CURVE = Curve((Bin(0.5, 30, 60), Bin(0.8, 95, 98)))
KEY = ("jigsaw", "classical", "Jigsaw")


@pytest.mark.parametrize(
    ("confidence", "expected"), [(0.4, 0.5), (0.5, 31 / 62), (0.79, 31 / 62), (0.8, 96 / 100), (1.0, 96 / 100)]
)
def test_a_confidence_falls_into_the_bin_that_starts_below_it(confidence: float, expected: float) -> None:
    assert CURVE.at(confidence) == pytest.approx(expected)


def test_a_curve_without_bins_knows_nothing() -> None:
    assert (Curve(()).at(0.99), Curve(()).rate) == (0.5, 0.5)
    assert CURVE.rate == pytest.approx(126 / 160)


def test_bins_that_fall_are_counted_together() -> None:
    curve = Curve((Bin(0.0, 1, 4), Bin(0.5, 9, 10), Bin(0.6, 3, 10), Bin(0.7, 6, 10), Bin(0.9, 8, 9)))
    # 9/10 and 3/10 make 12/20, two cases added 13/22, which is more than 7/12.
    expected = [2 / 6, 19 / 32, 19 / 32, 19 / 32, 9 / 11]
    assert [curve.at(confidence) for confidence in (0.1, 0.5, 0.65, 0.8, 0.95)] == pytest.approx(expected)
    # One case that was right is no more than two thirds, less than 95 of 100.
    assert Curve((Bin(0.5, 95, 100), Bin(0.9, 1, 1))).at(0.9) == pytest.approx(97 / 103)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_is_never_worth_less(counts: list[tuple[int, int]], one: float, other: float) -> None:
    curve = Curve(tuple(Bin((place + 1) / 9, right, right + wrong) for place, (right, wrong) in enumerate(counts)))
    low, high = sorted((one, other))
    assert curve.at(low) <= curve.at(high)


def measured(**entries: Measurement) -> Trust:
    """The MLLM's measurements, by route."""
    return Trust({(*MODEL, route): one for route, one in entries.items()})


@given(st.floats(0.05, 0.95), st.integers(0, 200), st.integers(0, 200))
def test_a_model_s_accuracy_is_a_beta_posterior_around_what_is_usual(usual: float, right: int, wrong: int) -> None:
    n = right + wrong
    trust = measured(Jigsaw=Measurement(right, n), Depth=Measurement(1, 90))
    assert trust.model("Jigsaw", usual, None).rate == pytest.approx((right + 8 * usual) / (n + 8))
    # Neither another route nor a tool tells of it.
    assert trust.model("Spatial", usual, None).rate == pytest.approx(usual)


@pytest.mark.parametrize(
    ("measured_as", "share", "said", "usually", "slope"),
    [
        # Alike votes raise nothing before they were measured; votes that spread lower it.
        (Measurement(30, 60), 0.9, 0.5, None, CLAIM),
        (Measurement(30, 60), 0.4, 0.4, None, CLAIM),
        (Measurement(30, 60, 1.5, 0.2), 0.9, 0.9, 1.5, 0.2),
        (Measurement(30, 60, 1.5, 0.2), None, None, 1.5, 0.2),
    ],
)
def test_a_vote_is_evidence_as_far_as_it_was_measured(
    measured_as: Measurement, share: float | None, said: float | None, usually: float | None, slope: float
) -> None:
    trust = measured(Jigsaw=measured_as)
    found = trust.model("Jigsaw", 0.5, share)
    assert found.rate == pytest.approx(0.5)
    assert found.said == (None if said is None else pytest.approx(said))
    assert (found.usually, found.slope) == (usually, slope)


def test_a_tool_is_held_to_what_was_counted_as_a_model_is() -> None:
    """180 of 200 are no less than 0.89, whatever its card says, and beat an MLLM of 175 of 200."""
    claimed = AnswerConfidence(0.8, 0.9, counted_on="scenes")
    trust = Trust({KEY: Measurement(180, 200, usually=1.5, slope=0.7), (*MODEL, "Jigsaw"): Measurement(175, 200)})
    tool = trust.tool(KEY, claimed)
    assert tool == AnswerConfidence(pytest.approx((180 + 2 * 0.8) / 202), 0.9, 1.5, 0.7, "scenes")
    assert tool.rate > trust.model("Jigsaw", 0.8, None).rate
    assert trust.tool(("depth", "classical", "Jigsaw"), claimed) == claimed


@pytest.mark.parametrize(
    ("backend", "on_card", "confidence", "expected"),
    [
        ("classical", True, 0.9, AnswerConfidence(CURVE.rate, 96 / 100)),
        ("classical", True, None, AnswerConfidence(CURVE.rate)),
        ("classical", False, 0.9, AnswerConfidence(0.25)),
        ("learned", True, 0.9, AnswerConfidence(0.25, 0.9)),
        ("learned", False, 0.9, AnswerConfidence(0.25, 0.9)),
        ("unknown", True, 0.9, AnswerConfidence(0.25)),
    ],
)
def test_what_a_tool_claims(
    fakes: Any, backend: str, on_card: bool, confidence: float | None, expected: AnswerConfidence
) -> None:
    """A card's counts; without them the word of a network, and of a rule of thumb nothing."""
    tool = fakes.counter(fakes.CountingBackend(), kind="learned", fallback=fakes.CountingBackend())
    learned, classical = tool.card.backends
    card = replace(tool.card, backends=(learned, replace(classical, reliability=CURVE.bins)))
    assert claimed_by(replace(tool, card=card), backend, confidence, 0.25, on_card=on_card) == expected


def test_a_tools_overall_record_is_over_all_its_routes() -> None:
    found = {KEY: Measurement(1, 2), ("jigsaw", "learned", "x"): Measurement(2, 2), (*MODEL, "x"): Measurement(9, 9)}
    assert Trust(found).overall("jigsaw") == pytest.approx(3 / 4)
    assert Trust(found).overall("depth") is None


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
    key = {"tool": "jigsaw", "backend": "classical", "route": "Jigsaw"}
    return {**key, "right": 3, "n": 4, "usually": 0.1, "slope": 0.9, **changes}


def test_a_file_comes_back_fold_by_fold(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    folds = [[entry()], [entry(right=1.5, n=9)]]
    path.write_bytes(trust_content(MEASURED, folds, [entry(n=13)], {"a": 0, "b": 1, picture_name(SEEN): 1}))
    found = read_trust(path)
    assert found.measured == MEASURED
    kept = [Measurement(3, 4, 0.1, 0.9), Measurement(1.5, 9, 0.1, 0.9)]
    assert [fold[KEY] for fold in found.folds] == kept
    assert [found.for_question(unit).measured for unit in "ab"] == list(found.folds)
    # A new question is decided with all that was measured, unless it shows a picture that was counted.
    new, seen = found.for_question("c"), found.for_question("c", [SEEN])
    assert (new.measured[KEY].n, seen.measured) == (13, found.folds[1])


SEEN = StoredImage("5e" * 32, 4, 4, "image/png")
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
    with pytest.raises(UsageError, match=r"--trust .*trust\.json is of an older format.*hybrid calibrate RUN -o FILE"):
        read_trust(path)
    del content["measured"]
    path.write_text(json.dumps(content | {"format": 5}))
    with pytest.raises(UsageError, match="older format"):
        read_trust(path)
    before = {"tool": "jigsaw", "backend": "classical", "route": "Jigsaw", "bins": [[0.5, 3, 4]]}
    path.write_text(json.dumps({"format": 2, "measured": {}, "folds": [[before]]}))
    with pytest.raises(UsageError, match="older format"):
        read_trust(path)


def test_what_was_measured_must_be_named_in_full(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    content = json.loads(trust_content(MEASURED, [[entry()]], [], {}))
    del content["measured"]["tools"]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"trust\.json does not name what was measured"):
        read_trust(path)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("folds", 0, 0, "right"), 4),
        (("folds", 0, 0, "slope"), 1.0),
        (("folds", 0, 0, "tool"), "depth"),
        (("measured", "model", "model"), "openai:two"),
        (("measured", "tools", "jigsaw"), "classical:seams-2"),
        (("measured", "benchmark"), "hvsbench"),
        (("sha256",), "00"),
    ],
)
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


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"right": 5}, "counts 5 right of 4"),
        ({"right": -1}, "counts -1 right of 4"),
        ({"slope": -0.1}, "a slope below 0 or no number"),
        ({"slope": math.inf}, "a slope below 0 or no number"),
        ({"usually": math.nan}, "a slope below 0 or no number"),
    ],
)
def test_numbers_that_cannot_be_are_refused(tmp_path: Path, wrong: dict[str, float], told: str) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trust_content(MEASURED, [[entry(**wrong)]], [], {}))
    with pytest.raises(DataError, match=f"the entry of jigsaw, classical, Jigsaw .*{told}"):
        read_trust(path)


@pytest.mark.parametrize("right", [0, 4])
def test_nothing_right_and_all_right_can_be(tmp_path: Path, right: int) -> None:
    path = tmp_path / "trust.json"
    kept = Measurement(right, 4, None, 0.0)
    path.write_bytes(trust_content(MEASURED, [[written(KEY, kept)]], [], {}))
    assert read_trust(path).folds == ({KEY: kept},)


def test_no_fold_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trust_content(MEASURED, [], [], {}))
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
        ({"samples": 5}, "samples: 1 measured, 5 here"),
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
