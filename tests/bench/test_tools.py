"""The tables of tools and of throughput: every tool has a row, and wrong answers and passes of a network are
counted."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench import _reduced
from bench import tools as bench
from hybrid.core.images import ImageStore
from hybrid.core.types import Finding, Json
from hybrid.plugins.registry import names
from hybrid.tool import ReducedPrecision
from tests.tables import stored


def test_every_tool_has_questions() -> None:
    assert set(bench.KNOWN) == set(names("tools"))
    for name in ("attributes", "crop", "ocr", "saliency", "segmentation", "semantic_correspondence"):
        values = [bench.KNOWN[name].make(index, 2000) for index in (0, 0, 1)]
        assert values[0].files == values[1].files != values[2].files


@pytest.mark.parametrize(
    ("name", "key", "wrong"), [("jigsaw", "best", -1), ("depth", "nearer", "C"), ("saliency", "most_salient", "9")]
)
def test_another_answer_is_wrong_and_none_is_undecided(name: str, key: str, wrong: object, tmp_path: Path) -> None:
    right, store = bench.KNOWN[name].make(1, 2000).right, ImageStore(tmp_path)
    finding = Finding("", {key: wrong}, 0.5, "classical", "1")
    assert right(finding, store) is False
    assert right(replace(finding, data={key: None}), store) is None


@pytest.mark.system
async def test_a_row_says_what_is_right_or_what_is_missing() -> None:
    options = bench.Options(("crop", "detection", "jigsaw", "scanpath"), 2, 2000, "classical", "cpu", {})
    crop, detection, jigsaw, scanpath = await bench.rows(options)
    assert crop[:4] == ("crop", "classical", "2/2", "1.000")
    assert detection == (
        "detection",
        *["-"] * 5,
        "give weights with --weights detection=DIR_OR_ID (`hybrid tools fetch detection` fetches the default ones)",
    )
    assert jigsaw[:4] == ("jigsaw", "classical", "2/2", "1.000")
    assert scanpath[:4] == ("scanpath", "classical", "-", "-")
    assert scanpath[6] == "not known for a generated picture; only time is measured"


def test_a_device_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(SystemExit) as result:
        bench.main(["--device", "cuda", "--backend", "learned", "--weights", "random"])
    assert result.value.code == 2
    assert capsys.readouterr().err == "error: --device cuda: torch sees no CUDA device on this machine\n"


@pytest.mark.parametrize("words", [["--weights", "somewhere"], ["--requests", "0"], ["--network", "resnet"]])
def test_options_that_make_no_sense_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as result:
        bench.parsed(words)
    assert result.value.code == 2
    assert isinstance(bench.parsed([]), argparse.Namespace)


@pytest.mark.system
def test_throughput_is_measured_side_by_side_and_passes_are_counted() -> None:
    measurement = bench._throughput.measure("dinov2_base", bench._throughput.Load(("dinov2_base",), "cpu", False, 9, 1))
    # A request has two images and a batch has eight requests, so the largest pass has 16 images.
    assert sorted(measurement.passes, reverse=True)[0] == 16
    assert sum(measurement.passes) == 18
    assert measurement.bare > measurement.service > 0
    with_pictures, plain = bench._throughput.rows_of(measurement)
    assert (with_pictures[:3], plain[:3]) == (
        ("DINOv2 base", "similarity", "with"),
        ("DINOv2 base", "similarity", "without"),
    )
    assert (with_pictures[6], plain[6]) == ("9", "9")
    assert with_pictures[4] == f"{measurement.service:.3g}"
    assert plain[4] == f"{measurement.without_overlays:.3g}"


@pytest.mark.system
def test_puzzles_that_are_timed_are_put_to_the_network() -> None:
    measurement = bench._throughput.measure("dinov2_base_jigsaw", bench._throughput.Load((), "cpu", False, 3, 1))
    assert measurement.passes == (6,)


def test_another_choice_is_a_changed_decision_and_another_number_a_difference() -> None:
    mapping: Mapping[str, Json] = stored(__file__, "one")
    other: Mapping[str, Json] = stored(__file__, "other")
    assert [pair for pair in _reduced.differences(mapping, other) if pair[1]] == [
        ("near_px.x", 0.5),
        ("near_px.y", 3.0),
    ]
    for changed in ({"best": 2}, {"sure": False}, {"counts": {"cup": 3}}, {"rows": []}, {"rows": [{"label": "B"}]}):
        assert None in {value for _, value in _reduced.differences(mapping, {**mapping, **changed})}
    precision = ReducedPrecision("bfloat16", 0, 0, 0.0, "", "random")
    row = _reduced._row([mapping, mapping, None, mapping], [other, {**mapping, "best": 2}, None, None], precision)
    assert (row.changed, row.questions, row.largest, row.of) == (2, 3, 3.0, "near_px.y")


@pytest.mark.system
def test_fewer_bits_are_compared_on_the_questions_of_the_tool() -> None:
    setting = _reduced.Comparison(("siglip2_base",), ("bfloat16",), "cpu", False, 2, 2000)
    (row,) = _reduced.compared("siglip2_base", setting)
    assert (row.questions, row.trained, row.harmless) == (2, False, False)
    assert 0 < row.largest < 0.1
