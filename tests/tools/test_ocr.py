"""OCR: straightening, reading order, and PP-OCR through its processors on small checkpoints."""

import importlib.util
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import BackendChoice
from hybrid.core.errors import ToolError, WeightsError
from hybrid.core.types import Box
from hybrid.serving.loader import Loader
from hybrid.tool import Evidence, Request
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools.ocr import TOOL, LearnedOcr, OcrArgs, confidence, report
from tools.ocr.models import BUNDLED, RapidReader, TextLine, drop_repeats, reading_order, straighten

PIXELS = np.random.default_rng(0).integers(0, 256, (80, 200, 3)).astype(np.uint8)
EDGE = st.floats(0, 500)
LINES = st.builds(
    lambda text, score, x, y: TextLine(text, score, Box(x, y, x + 40, y + 12)),
    st.text(min_size=1, max_size=300),
    st.floats(0, 1),
    EDGE,
    EDGE,
)


def ask(backend: LearnedOcr, pixels: np.ndarray = PIXELS, **more: object) -> Evidence:
    return backend.run([Request((pixels,), OcrArgs(**more))])[0]


@given(st.lists(LINES, max_size=12))
def test_order_keeps_every_line_and_goes_down(lines: list[TextLine]):
    ordered = reading_order(lines)
    assert sorted(map(id, ordered)) == sorted(map(id, lines))
    assert all(second.box.y0 > first.box.y0 - 12 for first, second in pairwise(ordered))


def test_a_slanted_line_is_straightened():
    pixels = np.zeros((100, 200, 3), np.uint8)
    quad = np.array([[40, 20], [120, 50], [113, 69], [33, 39]], np.float32)
    cv2.fillPoly(pixels, [quad.astype(np.int32)], (255, 255, 255))
    crop = straighten(pixels, quad)
    assert crop.shape[0] == pytest.approx(20, abs=1)
    assert crop.shape[1] == pytest.approx(85, abs=1)
    assert (crop > 200).mean() > 0.9
    assert straighten(pixels, quad[:, ::-1].copy() * 0) is None
    assert straighten(pixels, np.array([[10, 10], [20, 10], [20, 60], [10, 60]], np.float32)).shape == (10, 50, 3)


@given(st.lists(LINES, max_size=12))
def test_the_report_is_short_and_holds_every_line(lines: list[TextLine]):
    data = report(PIXELS, lines, "a test")
    assert len(data.data["lines"]) == len(lines)
    assert 0 <= data.confidence <= 0.98
    assert data.confidence == confidence(lines)
    assert len(data.text) <= 450
    assert len(data.text.split("\n")) <= 6 + "".join(line.text[:160] for line in lines).count("\n")


def test_pp_ocr_reads_through_both_processors(things_checkpoint: Checkpoints):
    backend = started("ocr", things_checkpoint("ocr"))
    first, second = (ask(backend) for _ in range(2))
    assert first.data == second.data
    assert first.data["lines"] == [{"text": "a", "score_0_1": pytest.approx(1), "box_px": [0, 0, 200, 80]}]
    assert first.pictures[0].pixels.shape == PIXELS.shape
    assert "pp_ocrv5_mobile_det@" in backend.version
    assert "pp_ocrv6_tiny_rec@" in backend.version
    assert backend.version.startswith(TOOL.backend("learned").version)


def test_a_region_is_read_in_pixels_of_the_whole_image(things_checkpoint: Checkpoints):
    backend = started("ocr", things_checkpoint("ocr"))
    (line,) = ask(backend, box={"x0": 100, "y0": 10, "x1": 180, "y1": 60}).data["lines"]
    assert line["box_px"] == [100, 10, 180, 60]
    large = np.random.default_rng(1).integers(0, 256, (300, 1500, 3)).astype(np.uint8)
    (line,) = ask(backend, large).data["lines"]
    assert line["box_px"] == pytest.approx([0, 0, 1500, 300], abs=2)
    with pytest.raises(ToolError, match="too small or too elongated"):
        ask(backend, PIXELS[:1, :1])
    with pytest.raises(ToolError, match="outside the image"):
        ask(backend, box={"x0": 900, "y0": 0, "x1": 950, "y1": 9})


def test_parts_that_are_absent_damaged_or_without_characters_are_refused(
    things_checkpoint: Checkpoints, tmp_path: Path
):
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(things_checkpoint("ocr"), tmp_path / "copy"))
    processor = folder / "rec" / "preprocessor_config.json"
    processor.write_text(processor.read_text().replace('"blank",', ""))
    with pytest.raises(WeightsError, match="lists 37 characters, the network has 38"):
        started("ocr", folder)
    tensors = load_file(folder / "det" / "model.safetensors")
    del tensors["head.conv_final.bias"]
    save_file(tensors, folder / "det" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WeightsError, match=r"head\.conv_final\.bias"):
        started("ocr", folder)
    shutil.rmtree(folder / "rec")
    with pytest.raises(WeightsError, match="has no folder rec/"):
        started("ocr", folder)
    with pytest.raises(ToolError, match="before its weights"):
        ask(LearnedOcr())


INSTALLED = importlib.util.find_spec("rapidocr") is not None
package = pytest.mark.skipif(not INSTALLED, reason="rapidocr is not installed")


@pytest.fixture(scope="module")
def rapid() -> LearnedOcr:
    backend = LearnedOcr()
    backend.setup("cpu", None)
    return backend


@pytest.mark.skipif(INSTALLED, reason="rapidocr is installed")
def test_without_weights_the_package_is_named():
    with pytest.raises(WeightsError, match="rapidocr with onnxruntime cannot be imported"):
        LearnedOcr().setup("cpu", None)


@pytest.mark.system
@package
def test_where_nothing_is_named_the_package_answers_and_its_weights_pass_the_known_answers(hybrid_home: Path):
    loader = Loader(BackendChoice("auto"))
    ready = loader.load(TOOL)
    assert (ready.card.name, ready.weights, loader.notices) == ("learned", None, [])
    assert re.fullmatch(rf"{TOOL.backend('learned').version}\+rapidocr-3\.\d+\.\d+@[0-9a-f]{{12}}", ready.version)
    (passed,) = (hybrid_home / "checked").glob("*.json")
    assert json.loads(passed.read_text())["passed"] == [check.name for check in TOOL.checks]


@pytest.mark.system
@package
def test_the_package_reads_lines_in_order_and_says_nothing_else(
    rapid: LearnedOcr, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    board = np.full((300, 400, 3), 235, np.uint8)
    for row, text in enumerate(("Platform 9", "to the river")):
        cv2.putText(board, text, (40, 80 + 90 * row), cv2.FONT_HERSHEY_DUPLEX, 1.5, (160, 20, 20), 2, cv2.LINE_AA)
    first, output = ask(rapid, board), ask(rapid, board)
    assert first.data == output.data
    assert first.data["text"] == "Platform 9\nto the river"
    assert first.confidence > 0.9
    (width, height), below = cv2.getTextSize("to the river", cv2.FONT_HERSHEY_DUPLEX, 1.5, 2)
    assert first.data["lines"][1]["box_px"] == pytest.approx([40, 170 - height, 40 + width, 170 + below], abs=20)
    empty = ask(rapid, board[200:, 200:])
    assert empty.data["lines"] == []
    assert empty.confidence == confidence([])
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.system
@package
def test_files_of_the_package_that_are_absent_or_damaged_are_refused(tmp_path: Path):
    import rapidocr

    for name in BUNDLED.values():
        (tmp_path / name).symlink_to(Path(rapidocr.__file__).parent / "models" / name)
    damaged = tmp_path / BUNDLED["Rec"]
    content = damaged.read_bytes()
    damaged.unlink()
    with pytest.raises(WeightsError, match=f"there is no .*{BUNDLED['Rec']}"):
        RapidReader(tmp_path)
    damaged.write_bytes(content[:-1000])
    with pytest.raises(WeightsError, match=f"rapidocr cannot load {tmp_path}"):
        RapidReader(tmp_path)


def line(text: str, x0: float, x1: float, y: float = 0, *, is_turned: bool = False) -> TextLine:
    return TextLine(text, 0.99, Box(x0, y, x1, y + 30), is_turned)


def test_words_that_stand_upside_down_are_read_from_the_lower_right():
    page = [line("D", 0, 60, 0), line("C", 200, 260, 0), line("B", 0, 60, 80), line("A", 200, 260, 80)]
    values = [row._replace(turned=True) for row in page]
    assert [row.text for row in reading_order(values)] == ["A", "B", "C", "D"]
    assert [row.text for row in reading_order(page)] == ["D", "C", "B", "A"]
    # One row of a page, and one word that the classifier took for rotated.
    assert [row.text for row in reading_order([*page[:2], *values[2:]])] == ["D", "C", "A", "B"]
    doubtful = [line("FIRST", 0, 90), line("6", 100, 130, is_turned=True), line("LAST", 150, 240)]
    assert [row.text for row in reading_order(doubtful)] == ["FIRST", "6", "LAST"]


# Functions from pixels of a page of 500 x 200 to those of the rotated page, whose text runs downwards, upwards, or
# upside down.
TURNS = {
    "downwards": (lambda box: Box(200 - box.y1, box.x0, 200 - box.y0, box.x1), False),
    "upwards": (lambda box: Box(box.y0, 500 - box.x1, box.y1, 500 - box.x0), True),
    "upside down": (lambda box: Box(500 - box.x1, 200 - box.y1, 500 - box.x0, 200 - box.y0), True),
}


@pytest.mark.parametrize("turn", TURNS)
def test_a_turned_page_is_read_in_its_own_order(turn: str):
    move, upside_down = TURNS[turn]
    page = [
        *(TextLine("HARBOUR", 1.0, Box(10, 10, 200, 40)), TextLine("GATE 14", 1.0, Box(300, 12, 420, 41))),
        *(TextLine("PLATFORM 9", 1.0, Box(10, 80, 230, 110)), TextLine("91", 1.0, Box(208, 82, 252, 108))),
        TextLine("DEPARTURES", 1.0, Box(300, 80, 420, 110)),
    ]
    upside_down_rows = [row._replace(box=move(row.box), turned=upside_down) for row in page]
    texts = ["HARBOUR", "GATE 14", "PLATFORM 9", "1", "DEPARTURES"]
    for lines in (upside_down_rows, upside_down_rows[::-1]):
        # The second of the overlapping boxes also contains a digit of the first.
        ordered = drop_repeats(reading_order(lines))
        assert [row.text for row in ordered] == texts
        assert [row.box for row in ordered if row.text != "1"] == [move(row.box) for row in page if row.text != "91"]
        assert {row.turned for row in ordered} == {upside_down}


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        # Letters are 20 px wide.
        ([("123", 0, 60), ("345", 40, 100)], ["123", "45"]),
        ([("123", 0, 60), ("2345", 20, 100)], ["123", "45"]),
        ([("AB 1", 0, 80), ("1", 60, 80)], ["AB 1"]),
        # Only margins overlap, so the digit really occurs twice.
        ([("122", 0, 60), ("234", 52, 112)], ["122", "234"]),
        ([("122", 0, 60), ("234", 64, 124)], ["122", "234"]),
        # The digits were read differently, so both stay.
        ([("123", 0, 60), ("845", 40, 100)], ["123", "845"]),
        ([("40７", 0, 60), ("715", 40, 100)], ["40７", "15"]),
    ],
)
def test_a_digit_in_two_overlapping_boxes_is_read_once(lines: list[tuple[str, float, float]], texts: list[str]):
    assert [row.text for row in drop_repeats([line(*row) for row in lines])] == texts
    # The lines are turned upside down, with the first word on the right. From lines on different rows nothing is
    # dropped.
    values = [line(text, 200 - x1, 200 - x0, is_turned=True) for text, x0, x1 in lines]
    assert [row.text for row in drop_repeats(values)] == texts
    items = [line(text, x0, x1, 40 * place) for place, (text, x0, x1) in enumerate(lines)]
    assert [row.text for row in drop_repeats(items)] == [text for text, *_ in lines]


@pytest.mark.system
def test_the_package_reads_a_page_the_same_whichever_way_it_is_turned():
    pytest.importorskip("rapidocr")
    page = np.full((300, 700, 3), 245, np.uint8)
    for text, corner in (("MARKET", (30, 80)), ("PLACE 27", (330, 80)), ("NO ENTRY", (30, 220)), ("GATE", (450, 220))):
        cv2.putText(page, text, corner, cv2.FONT_HERSHEY_SIMPLEX, 1.4, (20, 20, 20), 3, cv2.LINE_AA)
    model = RapidReader()
    words = ["MARKET", "PLACE 27", "NO ENTRY", "GATE"]
    for quarters in range(4):
        pixels = np.ascontiguousarray(np.rot90(page, quarters))
        assert [row.text for row in reading_order(model.read(pixels))] == words


@pytest.mark.system
def test_the_package_finds_faint_text():
    """The reader finds words that are 8 levels brighter than their background. With the package's own mean and
    deviation it would find none."""
    pytest.importorskip("rapidocr")
    page = np.full((200, 640, 3), 128, np.uint8)
    words = ("MARKET", "GARDEN")
    for word, x in zip(words, (30, 340), strict=True):
        cv2.putText(page, word, (x, 110), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (136, 136, 136), 3, cv2.LINE_AA)
    noise = np.random.default_rng(0).normal(0, 3, (200, 640, 1))
    noisy = np.clip(page + noise, 0, 255).astype(np.uint8)
    assert [row.text for row in reading_order(RapidReader().read(noisy))] == list(words)
