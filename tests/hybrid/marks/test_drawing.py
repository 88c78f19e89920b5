import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.marked_scenes import FONTS, MIN_CONTRAST, marked_scene
from hybrid.core.types import Point
from hybrid.marks.drawing import LABELS, RGB, MarkStyle, draw_marks, label_patch, letter_mask

GREY = np.full((120, 160, 3), 90, np.uint8)


def test_a_ring_has_its_radius_and_line_and_leaves_its_inside_unpainted() -> None:
    out = draw_marks(GREY, [Point(80, 60)], (), MarkStyle(radius_px=10, stroke_px=3))
    assert np.flatnonzero((out[60] == RGB["red"]).all(axis=1)).tolist() == [70, 71, 72, 88, 89, 90]
    assert (out[60, 80] == 90).all()


def test_bad_labels_heights_and_styles_are_named() -> None:
    with pytest.raises(ValueError, match="'Z'"):
        label_patch("Z")
    with pytest.raises(ValueError, match="3 px"):
        letter_mask("A", "strokes", 3)
    with pytest.raises(ValueError, match="radius 4 px"):
        draw_marks(GREY, [Point(5, 5)], (), MarkStyle(radius_px=4, stroke_px=6))


@settings(max_examples=60)
@given(
    x=st.integers(-30, 90),
    y=st.integers(-30, 70),
    radius=st.integers(4, 20),
    label=st.sampled_from(LABELS),
    font=st.sampled_from(FONTS),
    side=st.sampled_from(("auto", "above", "below")),
)
def test_marks_anywhere_are_clipped(x, y, radius, label, font, side) -> None:  # type: ignore[no-untyped-def]
    plain = np.full((40, 60, 3), 90, np.uint8)
    style = MarkStyle(radius_px=radius, stroke_px=2, font=font, side=side)
    out = draw_marks(plain, [Point(x, y, label)], (), style)
    assert out.shape == plain.shape
    reach = radius + style.gap_px + 3 * style.letter_px
    rows, columns = np.nonzero((out != plain).any(axis=2))
    assert rows.size == 0 or (np.abs(rows - y).max() <= reach and np.abs(columns - x).max() <= reach)


def test_scenes_show_every_mark() -> None:
    for seed in range(12):
        scene = marked_scene(np.random.default_rng(seed))
        assert (scene.pixels == marked_scene(np.random.default_rng(seed)).pixels).all()
        for point in scene.points:
            x, y, reach = int(point.x), int(point.y), scene.style.radius_px + 3
            window = (slice(max(0, y - reach), y + reach + 1), slice(max(0, x - reach), x + reach + 1))
            assert np.abs(scene.plain[window].astype(float) - RGB[scene.style.color]).mean() >= MIN_CONTRAST
            assert (scene.pixels[window] != scene.plain[window]).any()
