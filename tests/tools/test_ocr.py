"""OCR: straightening, reading order, and PP-OCR through its processors on small checkpoints."""

import importlib.util
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import ToolError, WeightsError
from hybrid.tool import Evidence, Request
from hybrid.types import Box
from tools._readers import Line, RapidReader, reading_order, straighten
from tools.ocr import TOOL, LearnedOcr, OcrArgs, confidence, report

PIXELS = np.random.default_rng(0).integers(0, 256, (80, 200, 3)).astype(np.uint8)
EDGE = st.floats(0, 500)
LINES = st.builds(
    lambda text, score, x, y: Line(text, score, Box(x, y, x + 40, y + 12)),
    st.text(min_size=1, max_size=300),
    st.floats(0, 1),
    EDGE,
    EDGE,
)


def started(folder: Path) -> LearnedOcr:
    backend = LearnedOcr()
    backend.setup("cpu", str(folder))
    return backend


def ask(backend: LearnedOcr, pixels: np.ndarray = PIXELS, **more: object) -> Evidence:
    return backend.run([Request((pixels,), OcrArgs(**more))])[0]


@given(st.lists(LINES, max_size=12))
def test_order_keeps_every_line_and_goes_down(lines: list[Line]):
    ordered = reading_order(lines)
    assert sorted(map(id, ordered)) == sorted(map(id, lines))
    assert all(second.box.y0 > first.box.y0 - 12 for first, second in pairwise(ordered))


def test_lines_of_one_row_go_left_to_right():
    rows = [Line("c", 1, Box(0, 40, 30, 52)), Line("b", 1, Box(60, 2, 90, 14)), Line("a", 1, Box(0, 5, 30, 17))]
    assert [line.text for line in reading_order(rows)] == ["a", "b", "c"]


def test_a_slanted_line_is_straightened():
    pixels = np.zeros((100, 200, 3), np.uint8)
    quad = np.array([[40, 20], [120, 50], [113, 69], [33, 39]], np.float32)
    cv2.fillPoly(pixels, [quad.astype(np.int32)], (255, 255, 255))
    crop = straighten(pixels, quad)
    assert crop.shape[0] == pytest.approx(20, abs=1)
    assert crop.shape[1] == pytest.approx(85, abs=1)
    assert (crop > 200).mean() > 0.9
    assert straighten(pixels, quad[:, ::-1].copy() * 0) is None
    turned = straighten(pixels, np.array([[10, 10], [20, 10], [20, 60], [10, 60]], np.float32))
    assert turned.shape == (10, 50, 3)


@given(st.lists(LINES, max_size=12))
def test_the_report_is_short_and_holds_every_line(lines: list[Line]):
    found = report(PIXELS, lines, "a test")
    assert len(found.data["lines"]) == len(lines)
    assert 0 <= found.confidence <= 0.9
    assert found.confidence == confidence(lines)
    assert len(found.text.split("\n")) <= 6 + "".join(line.text[:160] for line in lines).count("\n")


def test_pp_ocr_reads_through_both_processors(things_checkpoint: Callable[[str], Path]):
    backend = started(things_checkpoint("ocr"))
    first, again = (ask(backend) for _ in range(2))
    assert first.data == again.data
    assert first.data["lines"] == [{"text": "a", "score_0_1": pytest.approx(1), "box_px": [0, 0, 200, 80]}]
    assert first.pictures[0].pixels.shape == PIXELS.shape
    assert "pp_ocrv5_mobile_det@" in backend.version
    assert "pp_ocrv6_tiny_rec@" in backend.version
    assert backend.version.startswith(TOOL.backend("learned").version)


def test_a_region_is_read_in_pixels_of_the_whole_image(things_checkpoint: Callable[[str], Path]):
    backend = started(things_checkpoint("ocr"))
    region = {"x0": 100, "y0": 10, "x1": 180, "y1": 60}
    (line,) = ask(backend, box=region).data["lines"]
    assert line["box_px"] == [100, 10, 180, 60]
    large = np.random.default_rng(1).integers(0, 256, (900, 3000, 3)).astype(np.uint8)
    (line,) = ask(backend, large).data["lines"]
    assert line["box_px"] == pytest.approx([0, 0, 3000, 900], abs=2)
    with pytest.raises(ToolError, match="too small or too elongated"):
        ask(backend, PIXELS[:1, :1])
    with pytest.raises(ToolError, match="outside the image"):
        ask(backend, box={"x0": 900, "y0": 0, "x1": 950, "y1": 9})


def test_parts_that_are_absent_damaged_or_without_characters_are_refused(
    things_checkpoint: Callable[[str], Path], tmp_path: Path
):
    from safetensors.torch import load_file, save_file

    good = things_checkpoint("ocr")
    folder = Path(shutil.copytree(good, tmp_path / "copy"))
    processor = folder / "rec" / "preprocessor_config.json"
    processor.write_text(processor.read_text().replace('"blank",', ""))
    with pytest.raises(WeightsError, match="lists 37 characters, the network tells 38 apart"):
        started(folder)
    tensors = load_file(folder / "det" / "model.safetensors")
    del tensors["head.conv_final.bias"]
    save_file(tensors, folder / "det" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WeightsError, match=r"head\.conv_final\.bias"):
        started(folder)
    shutil.rmtree(folder / "rec")
    with pytest.raises(WeightsError, match="has no folder rec/"):
        started(folder)
    with pytest.raises(ToolError, match="before its weights"):
        ask(LearnedOcr())


def test_without_weights_the_package_answers_or_is_named():
    if importlib.util.find_spec("rapidocr") is None:
        with pytest.raises(WeightsError, match="the package rapidocr cannot be imported"):
            LearnedOcr().setup("cpu", None)
        return
    board = np.full((120, 400, 3), 255, np.uint8)
    cv2.putText(board, "HELLO 42", (30, 75), cv2.FONT_HERSHEY_SIMPLEX, 2, (0, 0, 0), 4)
    (line,) = RapidReader().read(board)
    assert line.text.replace(" ", "") == "HELLO42"
