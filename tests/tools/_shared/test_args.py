"""Points and boxes as a model writes them: in pixels, by the letter drawn next to them, and invalid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.core.errors import ToolError
from hybrid.core.types import Finding
from hybrid.marks.marks import Marks, PointMark
from hybrid.marks.marks_json import marks_data
from tools._shared.args import BoxArg, PointArg, read_boxes, read_points


def mark(label: str | None, x: float, y: float, confidence: float = 0.9) -> PointMark:
    return PointMark(label, x, y, 7.0, 3.0, "red", None, 0.8, 0.8, confidence)


def marks_finding(*marks: PointMark) -> tuple[Finding, ...]:
    return (Finding("", marks_data(Marks(marks)), 0.9, "classical", "1"),)


def test_errors_name_the_point():
    with pytest.raises(ToolError, match=r"depth: point 2 \(100, 4\) is outside the image of 100 x 50 px"):
        read_points("depth", (PointArg(x=1, y=1), PointArg(x=100, y=4)), (), (50, 100))
    with pytest.raises(ToolError, match=r"no drawn point 'C' was found \(found: A\)"):
        read_points("depth", (PointArg(label="C"),), marks_finding(mark("A", 1, 2)), (50, 100))
    for wrong in ({"x": 1}, {"y": 1}, {}, {"x": -1, "y": 2, "label": "A"}):
        with pytest.raises(ValidationError):
            PointArg.model_validate(wrong)


@given(st.integers(1, 300), st.integers(1, 300), st.tuples(*[st.floats(0, 400)] * 4))
def test_a_box_is_cut_at_the_border_or_refused(height: int, width: int, corners: tuple[float, ...]):
    x0, y0, x1, y1 = corners
    if x1 <= x0 or y1 <= y0:
        with pytest.raises(ValidationError):
            BoxArg(x0=x0, y0=y0, x1=x1, y1=y1)
        return
    box = BoxArg(x0=x0, y0=y0, x1=x1, y1=y1)
    if x0 >= width or y0 >= height:
        with pytest.raises(ToolError, match="outside the image"):
            read_boxes("saliency", (box,), (height, width))
        return
    (cut,) = read_boxes("saliency", (box,), (height, width))
    assert 0 <= cut.x0 < cut.x1 <= width
    assert 0 <= cut.y0 < cut.y1 <= height
