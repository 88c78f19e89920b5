import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.marked_scenes import (
    BACKGROUNDS,
    FONTS,
    LEAST_CONTRAST,
    LEAST_SHOWN,
    background,
    boxed_scene,
    marked_scene,
)
from hybrid.marks.drawing import LABELS, RGB, LabelledBox, MarkStyle, draw_marks, label_patch, letter_mask
from hybrid.types import Box, Point

GREY = np.full((120, 160, 3), 90, np.uint8)


def test_a_ring_has_its_radius_and_line_and_leaves_its_inside_unpainted() -> None:
    out = draw_marks(GREY, [Point(80, 60)], (), MarkStyle(radius_px=10, stroke_px=3))
    row = out[60]
    painted = np.flatnonzero((row == RGB["red"]).all(axis=1))
    assert painted.tolist() == [70, 71, 72, 88, 89, 90]
    assert (out[60, 80] == 90).all()


def test_the_default_letter_stands_where_blink_puts_it() -> None:
    out = draw_marks(GREY, [Point(80, 60, "A")])
    rows, columns = np.nonzero((out == 0).all(axis=2))
    assert abs(int(columns.min()) - (80 - 7)) <= 1
    assert abs(int(rows.min()) - (60 - 31)) <= 1
    assert abs(int(rows.max()) - (60 - 17)) <= 1


def test_the_letter_stands_below_where_it_would_not_show_above() -> None:
    out = draw_marks(GREY, [Point(80, 8, "B")])
    assert (out[:8, 70:90] == 255).all(axis=2).sum() == 0
    assert (out[24:40, 70:90] == 255).all(axis=2).sum() > 20


def test_box_outlines_are_drawn_inside_their_bounds() -> None:
    out = draw_marks(GREY, (), [LabelledBox(Box(20, 40, 100, 110), "A", "green")], MarkStyle(stroke_px=2))
    green = (out == RGB["green"]).all(axis=2)
    rows, columns = np.nonzero(green)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (40, 109, 20, 99)
    assert green[40:110, 20:100].sum() == 80 * 70 - 76 * 66


def test_the_input_is_left_as_it_was() -> None:
    before = GREY.copy()
    draw_marks(GREY, [Point(3, 3, "REF")], [LabelledBox(Box(-5, -5, 300, 300), "B")])
    assert (before == GREY).all()


@pytest.mark.parametrize("font", FONTS)
def test_letters_differ_and_have_their_height(font: str) -> None:
    for height in (8, 11, 20):
        masks = [cv2.resize(letter_mask(label, font, height), (20, 20)).ravel() for label in LABELS]  # type: ignore[arg-type]
        assert all(abs(letter_mask(label, font, height).shape[0] - height) <= 2 for label in LABELS)  # type: ignore[arg-type]
        correlation = np.corrcoef(np.array(masks, float))
        assert correlation[~np.eye(len(masks), dtype=bool)].max() < 0.95


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


@pytest.mark.parametrize("kind", BACKGROUNDS)
def test_backgrounds_have_their_size_and_are_repeatable(kind: str) -> None:
    first, second = (background(np.random.default_rng(4), kind, 50, 70) for _ in range(2))  # type: ignore[arg-type]
    assert first.shape == (50, 70, 3)
    assert (first == second).all()
    assert first.std() > 3


def test_scenes_show_every_mark() -> None:
    for seed in range(12):
        scene = marked_scene(np.random.default_rng(seed))
        assert (scene.pixels == marked_scene(np.random.default_rng(seed)).pixels).all()
        for point in scene.points:
            x, y, reach = int(point.x), int(point.y), scene.style.radius_px + 3
            window = (slice(max(0, y - reach), y + reach + 1), slice(max(0, x - reach), x + reach + 1))
            difference = np.abs(scene.plain[window].astype(float) - RGB[scene.style.color]).mean()
            assert difference >= LEAST_CONTRAST
            assert (scene.pixels[window] != scene.plain[window]).any()


def test_box_scenes_hold_a_red_and_a_green_box_inside_the_picture() -> None:
    for seed in range(12):
        scene = boxed_scene(np.random.default_rng(seed))
        assert sorted(item.color for item in scene.boxes) == ["green", "red"]
        height, width = scene.pixels.shape[:2]
        assert all(0 <= b.box.x0 < b.box.x1 <= width and 0 <= b.box.y0 < b.box.y1 <= height for b in scene.boxes)
        for item in scene.boxes:
            for side in _sides(item.box, scene.style.stroke_px):
                color = np.array(RGB[item.color])
                assert np.abs(scene.plain[side].astype(float) - color).mean() >= LEAST_CONTRAST
                drawn = draw_marks(scene.plain, (), scene.boxes, scene.style)[side]
                assert (drawn == color).all(axis=-1).mean() >= LEAST_SHOWN


def test_some_box_scenes_touch_the_border_and_all_fonts_occur() -> None:
    scenes = [boxed_scene(np.random.default_rng(seed)) for seed in range(30)]
    assert {scene.style.font for scene in scenes} == set(FONTS)
    touching = [
        b.box.x0 == 0 or b.box.y0 == 0 or b.box.x1 == s.pixels.shape[1] or b.box.y1 == s.pixels.shape[0]
        for s in scenes
        for b in s.boxes
    ]
    assert 3 <= sum(touching) <= 30


def _sides(box: Box, line_px: int) -> list[tuple[slice, slice]]:
    rows, columns = slice(int(box.y0), int(box.y1)), slice(int(box.x0), int(box.x1))
    upper, lower = slice(rows.start, rows.start + line_px), slice(rows.stop - line_px, rows.stop)
    left, right = slice(columns.start, columns.start + line_px), slice(columns.stop - line_px, columns.stop)
    return [(upper, columns), (lower, columns), (rows, left), (rows, right)]
